#include "demo.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"

namespace penstock::program {

namespace {

constexpr std::string_view kHello = "Hello, World!";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";

Handler fixed_text(std::string_view text);
std::string text_of(std::size_t bytes);
void send_json(Request& request, Response& response);
void send_letters(Request& request, Response& response);
void send_greeting(Request& request, Response& response);

}  // namespace

Handler echo_handler() {
    return [](Request& request, Response& response) {
        // Whatever it is, it must not become a page of this server in somebody's browser.
        response.header("Content-Type", "application/octet-stream")
            .header("X-Content-Type-Options", "nosniff");
        response.send(request.body());
    };
}

void add_demo_routes(Router& router, const std::string& directory) {
    static const std::string small = text_of(128);
    static const std::string medium = text_of(1'024);
    static const std::string large = text_of(100 * 1'024);
    std::error_code error;
    if (!std::filesystem::is_regular_file(std::filesystem::path(directory) / "index.html", error)) {
        router.get("/", fixed_text(kHello));
    }
    router.get("/plaintext", fixed_text(kHello));
    router.get("/json", send_json);
    router.get("/small", fixed_text(small));
    router.get("/medium", fixed_text(medium));
    router.get("/large", fixed_text(large));
    router.get("/f", send_letters);
    router.get("/only-get", fixed_text("GET and HEAD are all that this path takes.\n"));
    router.get("/hello/:name", send_greeting);
    router.any("/echo", echo_handler());
}

namespace {

Handler fixed_text(std::string_view text) {
    return [text](Request&, Response& response) {
        response.send_static(text);
    };
}

// Lines that can be told apart, cut to the size.
std::string text_of(std::size_t bytes) {
    static constexpr std::size_t kLineBytes = 64;
    std::string text;
    for (std::size_t line = 0; text.size() < bytes; ++line) {
        std::string number = std::to_string(line);
        number.insert(0, 6 - number.size(), '0');
        text.append(number).append(kLineBytes - number.size() - 1, '.').append("\n");
    }
    text.resize(bytes);
    return text;
}

void send_json(Request&, Response& response) {
    response.header("Content-Type", "application/json");
    response.send_static(R"({"message":"Hello, World!"})");
}

void send_letters(Request&, Response& response) {
    response.header("ETag", "\"a-z\"").header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT");
    response.send_static(kLetters);
}

void send_greeting(Request& request, Response& response) {
    response.send("Hello, " + std::string(request.parameter("name")) + "!");
}

}  // namespace

}  // namespace penstock::program

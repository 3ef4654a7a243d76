#include "demo.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "penstock/engine/tls.h"
#include "penstock/protocols/http/multipart.h"
#include "penstock/protocols/http/prepared_field.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"

namespace penstock::program {

namespace {

constexpr std::string_view kHello = "Hello, World!";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
// What a stream is made of, again and again. Longer than the engine's output mark, so that each write waits.
constexpr std::size_t kStreamPieceBytes = 100 * 1'024;
// As much as anybody will send to try a body that nothing holds: 1 TiB.
constexpr std::uint64_t kCountLimitBytes = 1ull << 40;
// As much of the disk as one client may fill, until its form has been answered: 1 GiB.
constexpr std::uint64_t kUploadLimitBytes = 1ull << 30;

Handler fixed_text(std::string_view text);
std::string text_of(std::size_t bytes);
void send_json(Request& request, Response& response);
void send_letters(Request& request, Response& response);
void send_greeting(Request& request, Response& response);
void send_tls(Request& request, Response& response);
std::string json_text(std::string_view text);
Task<void> send_stream(Request& request, Response& response);
Task<void> count_body(Request& request, Response& response);
void stream_by_callbacks(Request& request, Response& response);
void count_by_callbacks(Request& request, Response& response);
bool begin_stream(Request& request, Response& response, std::uint64_t* bytes);
std::string_view stream_piece(std::uint64_t rest);
Task<void> list_upload(const std::string& directory, Request& request, Response& response);

}  // namespace

Handler echo_handler() {
    return [](Request& request, Response& response) {
        // Whatever it is, it must not become a page of this server in somebody's browser.
        static const PreparedField kType("Content-Type", "application/octet-stream");
        static const PreparedField kNoSniffing("X-Content-Type-Options", "nosniff");
        response.header_static(kType).header_static(kNoSniffing).send(request.body());
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
    router.get("/tls", send_tls);
    router.any("/echo", echo_handler());
    router.get("/stream/:bytes", send_stream);
    const RouteOptions boundless{.body_limit_bytes = kCountLimitBytes};
    router.post("/count", count_body, boundless);
    router.put("/count", count_body, boundless);
    // The same two without a coroutine.
    router.get("/callback/stream/:bytes", stream_by_callbacks);
    router.post("/callback/count", count_by_callbacks,
                {.body_limit_bytes = kCountLimitBytes, .stream_body = true});
    const std::string spool = std::filesystem::temp_directory_path(error).string();
    router.post(
        "/upload",
        [spool](Request& request, Response& response) { return list_upload(spool, request, response); },
        {.body_limit_bytes = kUploadLimitBytes});
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
    static const PreparedField kType("Content-Type", "application/json");
    response.header_static(kType).send_static(R"({"message":"Hello, World!"})");
}

void send_letters(Request&, Response& response) {
    static const PreparedField kTag("ETag", "\"a-z\"");
    static const PreparedField kModified("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT");
    response.header_static(kTag).header_static(kModified).send_static(kLetters);
}

void send_greeting(Request& request, Response& response) {
    response.send("Hello, " + std::string(request.parameter("name")) + "!");
}

void send_tls(Request& request, Response& response) {
    const TlsInfo* const tls = request.tls();
    if (tls == nullptr) {
        response.json("null");
        return;
    }
    std::string json = "{\"version\":" + json_text(tls->version);
    json.append(",\"suite\":").append(json_text(tls->suite));
    json.append(",\"server_name\":").append(json_text(tls->server_name));
    json.append(",\"client_subject\":").append(json_text(tls->client_subject));
    json.append(",\"resumed\":").append(tls->resumed ? "true" : "false").append("}");
    response.json(std::move(json));
}

// In quotes. What is no visible ASCII is escaped byte by byte, as Latin-1: a subject may hold anything, in any encoding.
std::string json_text(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string json = "\"";
    for (const char letter : text) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte < 0x20 || byte > 0x7E) {
            json.append("\\u00").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
        } else {
            json.append(letter == '"' || letter == '\\' ? "\\" : "").append(1, letter);
        }
    }
    return json.append("\"");
}

// Chunked; with "?length" its length is announced. False when the number of bytes is none, and that is answered.
bool begin_stream(Request& request, Response& response, std::uint64_t* bytes) {
    const std::string_view text = request.parameter("bytes");
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *bytes);
    if (error != std::errc{} || end != text.data() + text.size()) {
        response.status(400).send("/stream/BYTES takes a number of bytes.\n");
        return false;
    }
    response.header("Content-Type", "text/plain; charset=utf-8");
    if (request.query() == "length") {
        response.content_length(*bytes);
    }
    return true;
}

// The next of a stream of which so many bytes are left.
std::string_view stream_piece(std::uint64_t rest) {
    static const std::string piece = text_of(kStreamPieceBytes);
    return std::string_view(piece).substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(rest, piece.size())));
}

Task<void> send_stream(Request& request, Response& response) {
    std::uint64_t rest = 0;
    if (!begin_stream(request, response, &rest)) {
        co_return;
    }
    do {
        const std::string_view piece = stream_piece(rest);
        co_await response.write(piece);
        rest -= piece.size();
    } while (rest > 0);
}

Task<void> count_body(Request& request, Response& response) {
    std::uint64_t count = 0;
    for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
        count += piece.size();
    }
    response.send(std::to_string(count));
}

// The callback that is to come holds what it needs for the one after it.
void write_next(Response& response, std::uint64_t rest) {
    const std::string_view piece = stream_piece(rest);
    response.write(piece, [&response, left = rest - piece.size()] {
        if (left > 0) {
            write_next(response, left);
        }
    });
}

void stream_by_callbacks(Request& request, Response& response) {
    std::uint64_t bytes = 0;
    if (begin_stream(request, response, &bytes)) {
        write_next(response, bytes);
    }
}

void read_next(Request& request, Response& response, std::uint64_t count) {
    request.read([&request, &response, count](std::string_view piece) {
        if (piece.empty()) {
            response.send(std::to_string(count));
        } else {
            read_next(request, response, count + piece.size());
        }
    });
}

void count_by_callbacks(Request& request, Response& response) { read_next(request, response, 0); }

unsigned status_for(int code) {
    switch (code) {
        case ENOSPC:
        case EDQUOT: return 507;
        case EMFILE:
        case ENFILE: return 503;
        default: return 500;
    }
}

// A line for each part: its name, its file name and its size, with tabs between them, which no name holds. Each part is
// put into a file on the way, and the file is let go.
Task<void> list_upload(const std::string& directory, Request& request, Response& response) {
    const Result<std::string> boundary = multipart_boundary(request.header(HeaderName::content_type));
    if (!boundary.ok()) {
        response.status(415).send(boundary.error().message + "\n");
        co_return;
    }
    MultipartReader reader(request, boundary.value());
    std::string list;
    while (const MultipartPart* part = co_await reader.next()) {
        list.append(part->name).append("\t").append(part->filename).append("\t");
        const Result<UploadedFile> file = co_await reader.save(directory);
        if (!file.ok() && !reader.failed()) {
            response.status(status_for(file.error().code)).send("the upload cannot be stored\n");
            co_return;
        }
        list.append(file.ok() ? std::to_string(file.value().size_bytes()) : "").append("\n");
    }
    if (reader.failed()) {
        response.status(reader.error_status()).send(std::string(reader.error()) + "\n");
        co_return;
    }
    response.header("Content-Type", "text/plain; charset=utf-8").header("X-Content-Type-Options", "nosniff");
    response.send(std::move(list));
}

}  // namespace

}  // namespace penstock::program

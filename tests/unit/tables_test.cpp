#include "penstock/protocols/http/tables.h"

#include <cctype>
#include <string>

#include <doctest/doctest.h>

using namespace penstock;

TEST_CASE("methods have their names, and what no route can name has none") {
    CHECK(method_name(Method::get) == "GET");
    CHECK(method_name(Method::head) == "HEAD");
    CHECK(method_name(Method::post) == "POST");
    CHECK(method_name(Method::put) == "PUT");
    CHECK(method_name(Method::del) == "DELETE");
    CHECK(method_name(Method::patch) == "PATCH");
    CHECK(method_name(Method::options) == "OPTIONS");
    CHECK(method_name(Method::connect) == "CONNECT");
    CHECK(method_name(Method::trace) == "TRACE");
    CHECK(method_name(Method::other).empty());
}

TEST_CASE("every known field name is found in any letter case") {
    for (std::size_t i = 1; i < kKnownHeaders; ++i) {
        const auto name = static_cast<HeaderName>(i);
        const std::string usual(header_name(name));
        CAPTURE(usual);
        REQUIRE_FALSE(usual.empty());
        std::string lower;
        std::string upper;
        std::string mixed;
        for (const char letter : usual) {
            lower += static_cast<char>(std::tolower(letter));
            upper += static_cast<char>(std::toupper(letter));
            mixed += mixed.size() % 2 == 0 ? lower.back() : upper.back();
        }
        CHECK(find_header_name(usual) == name);
        CHECK(find_header_name(lower) == name);
        CHECK(find_header_name(upper) == name);
        CHECK(find_header_name(mixed) == name);
    }
    CHECK(header_name(HeaderName::unknown).empty());
}

TEST_CASE("a field name that differs in any single byte is unknown or another known one") {
    for (std::size_t i = 1; i < kKnownHeaders; ++i) {
        const std::string usual(header_name(static_cast<HeaderName>(i)));
        for (std::size_t place = 0; place < usual.size(); ++place) {
            for (int byte = 0; byte < 256; ++byte) {
                std::string changed = usual;
                changed[place] = static_cast<char>(byte);
                const HeaderName found = find_header_name(changed);
                if (found != HeaderName::unknown && !equal_ignoring_case(header_name(found), changed)) {
                    FAIL_CHECK("\"" << changed << "\" was taken for " << header_name(found));
                }
            }
        }
        CHECK(find_header_name(usual + "x") != static_cast<HeaderName>(i));
        CHECK(find_header_name(std::string_view(usual).substr(1)) != static_cast<HeaderName>(i));
    }
}

TEST_CASE("names of no known length are unknown") {
    CHECK(find_header_name("") == HeaderName::unknown);
    CHECK(find_header_name("t") == HeaderName::unknown);
    CHECK(find_header_name("sec-websocket-extensionss") == HeaderName::unknown);
    CHECK(find_header_name(std::string(100'000, 'a')) == HeaderName::unknown);
    CHECK(find_header_name("x-request-id") == HeaderName::unknown);
    CHECK(find_header_name("accept encoding") == HeaderName::unknown);
    CHECK(find_header_name("keep\ralive") == HeaderName::unknown);
}

TEST_CASE("status lines") {
    CHECK(status_line(100) == "HTTP/1.1 100 Continue\r\n");
    CHECK(status_line(101) == "HTTP/1.1 101 Switching Protocols\r\n");
    CHECK(status_line(200) == "HTTP/1.1 200 OK\r\n");
    CHECK(status_line(299) == "HTTP/1.1 299 \r\n");
    CHECK(status_line(306) == "HTTP/1.1 306 \r\n");
    CHECK(status_line(404) == "HTTP/1.1 404 Not Found\r\n");
    CHECK(status_line(431) == "HTTP/1.1 431 Request Header Fields Too Large\r\n");
    CHECK(status_line(511) == "HTTP/1.1 511 Network Authentication Required\r\n");
    CHECK(status_line(599) == "HTTP/1.1 599 \r\n");
    for (unsigned status = 100; status < 600; ++status) {
        CHECK(status_line(status) ==
              "HTTP/1.1 " + std::to_string(status) + " " + std::string(status_phrase(status)) + "\r\n");
    }
}

TEST_CASE("a status that HTTP does not have becomes 500") {
    for (const unsigned status : {0u, 1u, 99u, 600u, 999u, 70'000u, ~0u}) {
        CAPTURE(status);
        CHECK(status_line(status) == "HTTP/1.1 500 Internal Server Error\r\n");
        CHECK(status_phrase(status).empty());
    }
}

TEST_CASE("status phrases") {
    CHECK(status_phrase(204) == "No Content");
    CHECK(status_phrase(413) == "Content Too Large");
    CHECK(status_phrase(451) == "Unavailable For Legal Reasons");
    CHECK(status_phrase(418).empty());
    CHECK(status_phrase(150).empty());
}

TEST_CASE("comparing without letter case folds ASCII letters and nothing else") {
    CHECK(equal_ignoring_case("", ""));
    CHECK(equal_ignoring_case("Keep-Alive", "kEEP-aLIVE"));
    CHECK_FALSE(equal_ignoring_case("close", "closed"));
    CHECK_FALSE(equal_ignoring_case("", "x"));
    CHECK_FALSE(equal_ignoring_case("[", "{"));
    CHECK_FALSE(equal_ignoring_case("@", "`"));
    CHECK_FALSE(equal_ignoring_case("-", "\r"));
    CHECK_FALSE(equal_ignoring_case("\xC4", "\xE4"));
}

TEST_CASE("tokens") {
    CHECK(is_token("GET"));
    CHECK(is_token("!#$%&'*+-.^_`|~09azAZ"));
    for (const std::string_view text : {"", " ", "a b", "a,b", "a:b", "a/b", "a\"", "(a)", "a;b", "a=b",
                                        "a@b", "[a]", "{a}", "a\\b", "a\t", "a\x7F", "\xC3\xA4", "a?"}) {
        CAPTURE(text);
        CHECK_FALSE(is_token(text));
    }
    CHECK_FALSE(is_token(std::string_view("a\0b", 3)));
}

TEST_CASE("list members") {
    struct {
        std::string_view list;
        std::string_view token;
        bool found;
    } const cases[] = {
        {"close", "close", true},
        {"Close", "close", true},
        {"keep-alive, Upgrade", "upgrade", true},
        {"keep-alive,\tupgrade\t ,x", "upgrade", true},
        {",, ,close,", "close", true},
        {"upgrade", "upgrade", true},
        {"", "close", false},
        {",", "close", false},
        {",,", "", false},
        {"closed", "close", false},
        {"not close", "close", false},
        {"close;q=1", "close", false},
        {"x=\"a, close, b\"", "close", false},
        {"x=\"a\\\", close\", close", "close", true},
        {"x=\"a\\\", close\"", "close", false},
        {"x=\"open, close", "close", false},
        {"x=\"open\\", "close", false},
    };
    for (const auto& test : cases) {
        CAPTURE(test.list);
        CAPTURE(test.token);
        CHECK(list_has_token(test.list, test.token) == test.found);
    }
}
TEST_CASE("field text holds no control but the tab") {
    CHECK(is_field_text(""));
    for (int byte = 0; byte < 256; ++byte) {
        CAPTURE(byte);
        const char letter = static_cast<char>(byte);
        CHECK(is_field_text({&letter, 1}) == ((byte >= 0x20 && byte != 0x7f) || byte == '\t'));
    }
    CHECK_FALSE(is_field_text("a\r\nb"));
}

TEST_CASE("each byte is judged alike wherever it stands in a text of whatever length") {
    const std::string tchars = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    int wrong = 0;
    for (std::size_t size = 1; size <= 40; ++size) {
        for (std::size_t at = 0; at < size; ++at) {
            // As long as its text, so that AddressSanitizer sees what is read behind it or before.
            std::string text(size, 'a');
            for (int byte = 0; byte < 256; ++byte) {
                const char letter = static_cast<char>(byte);
                text[at] = letter;
                const std::string_view view(text.data(), size);
                wrong += is_token(view) != (tchars.find(letter) != std::string::npos);
                wrong += is_field_text(view) != ((byte >= 0x20 && byte != 0x7f) || byte == '\t');
            }
        }
    }
    CHECK(wrong == 0);
}

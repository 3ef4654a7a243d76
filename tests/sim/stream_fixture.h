// Internal.
// What the tests of bodies in pieces share: bodies whose bytes can be told apart, their framing, and what a counting
// handler answers for them. Functions only; any thread.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "engine_fixture.h"

namespace penstock::test {

inline std::string pattern(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        text[i] = static_cast<char>('a' + i % 23);
    }
    return text;
}

inline std::string chunked(std::string_view body, std::size_t chunk) {
    std::string text;
    for (std::size_t at = 0; at < body.size(); at += chunk) {
        const std::string_view piece = body.substr(at, chunk);
        char size[20];
        std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
        text.append(size).append(piece).append("\r\n");
    }
    return text + "0\r\n\r\n";
}

// The body of a chunked response, checked to be one.
inline std::string dechunk(std::string_view response) {
    std::string_view rest = body_of(response);
    std::string body;
    for (;;) {
        const std::size_t line = rest.find("\r\n");
        REQUIRE(line != std::string_view::npos);
        const std::size_t size = std::stoul(std::string(rest.substr(0, line)), nullptr, 16);
        rest.remove_prefix(line + 2);
        if (size == 0) {
            return body;
        }
        REQUIRE(rest.size() >= size + 2);
        body.append(rest.substr(0, size));
        REQUIRE(rest.substr(size, 2) == "\r\n");
        rest.remove_prefix(size + 2);
    }
}

inline std::string post(std::string_view path, std::string_view fields, std::string_view body) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

inline std::string length_field(std::size_t size) { return "Content-Length: " + std::to_string(size) + "\r\n"; }

inline std::string expected_count(std::string_view body) {
    std::uint64_t sum = 0;
    for (const char c : body) {
        sum = sum * 31 + static_cast<unsigned char>(c);
    }
    return std::to_string(body.size()) + " " + std::to_string(sum);
}

// A plain handler that sends its request's body back piece by piece. The callbacks to come keep it alive.
struct Copier : std::enable_shared_from_this<Copier> {
    Request& request;
    Response& response;
    std::string piece;

    Copier(Request& from, Response& to) : request(from), response(to) {}
    void read() {
        request.read([self = shared_from_this()](std::string_view bytes) {
            if (!bytes.empty()) {
                self->piece = bytes;
                self->response.write(self->piece, [self] { self->read(); });
            }
        });
    }
};

}  // namespace penstock::test

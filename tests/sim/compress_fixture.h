// Internal.
// What the tests of compressed responses share: an answer taken apart, unframed and decoded as its fields say. Owned by one
// test; its thread alone.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "http_fixture.h"
#include "stream_fixture.h"
#include "unit/coding_bodies.h"

namespace penstock::test {

struct Compressed {
    Reply reply;
    std::string sent;   // the body as it came, without chunks
    std::string plain;  // decoded

    [[nodiscard]] std::string field(std::string_view name) const { return reply.field(name); }
    [[nodiscard]] std::string coding() const { return field("Content-Encoding"); }
};

// One whole response, of which nothing may be missing.
inline Compressed take_apart(std::string_view bytes, bool is_head = false) {
    Compressed answer;
    const std::size_t end = bytes.find("\r\n\r\n");
    REQUIRE(end != std::string_view::npos);
    answer.reply.status = status_of(bytes);
    answer.reply.head = bytes.substr(0, end + 4);
    if (answer.field("Transfer-Encoding") == "chunked" && !is_head) {
        CHECK_FALSE(answer.reply.has_field("Content-Length"));
        CHECK(bytes.ends_with("\r\n\r\n"));
        answer.sent = dechunk(bytes);
    } else {
        answer.sent = bytes.substr(end + 4);
        if (answer.reply.has_field("Content-Length") && !is_head) {
            CHECK(answer.field("Content-Length") == std::to_string(answer.sent.size()));
        }
    }
    answer.plain = answer.sent;
    if (answer.reply.has_field("Content-Encoding") && !answer.sent.empty()) {
        const std::optional<ContentCoding> coding = find_content_coding(answer.coding());
        REQUIRE(coding.has_value());
        const Decoded body = decoded(*coding, answer.sent);
        CHECK(body.status == 0);
        answer.plain = body.body;
    }
    return answer;
}

inline std::string accepting(std::string_view codings) { return "Accept-Encoding: " + std::string(codings) + "\r\n"; }

inline Compressed ask_for(Engine& engine, std::string_view path, std::string_view fields, std::string_view method = "GET") {
    sim::Peer peer = engine.world.connect(kPort);
    const std::string request = std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n" + std::string(fields) + "\r\n";
    const Compressed answer = take_apart(engine.exchange(peer, request), method == "HEAD");
    CHECK_FALSE(peer.closed_by_server());
    peer.close();
    engine.server.settle();
    engine.server.check_nothing_left();
    CHECK(engine.server.reactor().encoder_memory_bytes() == 0);
    return answer;
}

inline Router compressing(CompressOptions options = {}) {
    Router router;
    Result<Middleware> middleware = compress(std::move(options));
    REQUIRE_MESSAGE(middleware.ok(), middleware.error().message);
    router.use(middleware.value());
    return router;
}

}  // namespace penstock::test

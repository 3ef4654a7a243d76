// Internal.
// What the tests of HTTP share: replies taken apart, and requests sent whole, cut in two at every place, and
// byte by byte, which must not make a difference. Owned by one test; its thread alone.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine_fixture.h"

namespace penstock::test {

struct Reply {
    int status = 0;
    std::string head;  // with its empty line
    std::string body;

    [[nodiscard]] std::string field(std::string_view name) const {
        const std::string begin = "\r\n" + std::string(name) + ": ";
        const std::size_t at = head.find(begin);
        return at == std::string::npos
                   ? ""
                   : head.substr(at + begin.size(), head.find("\r\n", at + 2) - at - begin.size());
    }
    [[nodiscard]] bool has_field(std::string_view name) const {
        return head.find("\r\n" + std::string(name) + ": ") != std::string::npos;
    }
};

// Takes apart what a server sent, by its Content-Length alone. The first `heads` final replies answer HEAD. A
// part of a reply at the end is a reply with status -1.
inline std::vector<Reply> replies_in(std::string_view bytes, std::size_t heads = 0) {
    std::vector<Reply> replies;
    std::size_t final_replies = 0;
    while (!bytes.empty()) {
        Reply reply;
        const std::size_t end = bytes.find("\r\n\r\n");
        reply.status = end == std::string_view::npos ? -1 : status_of(bytes);
        reply.head = bytes.substr(0, end == std::string_view::npos ? end : end + 4);
        bytes.remove_prefix(reply.head.size());
        const std::string length = reply.field("Content-Length");
        if (reply.status >= 200 && final_replies++ >= heads && !length.empty()) {
            const std::size_t size = std::stoul(length);
            reply.status = size > bytes.size() ? -1 : reply.status;
            reply.body = bytes.substr(0, size);
            bytes.remove_prefix(reply.body.size());
        }
        replies.push_back(std::move(reply));
    }
    return replies;
}

// "200 404"; interim replies included.
inline std::string statuses_in(std::string_view bytes, std::size_t heads = 0) {
    std::string statuses;
    for (const Reply& reply : replies_in(bytes, heads)) {
        statuses += (statuses.empty() ? "" : " ") + std::to_string(reply.status);
    }
    return statuses;
}

// What came back for some bytes, and whether the server ended its side.
struct Answer {
    std::string bytes;
    bool closed = false;

    bool operator==(const Answer&) const = default;
};

// On a connection of its own, with the reactor at rest between the pieces.
inline Answer feed(Engine& engine, std::span<const std::string_view> pieces) {
    sim::Peer peer = engine.world.connect(kPort);
    Answer answer;
    for (const std::string_view piece : pieces) {
        peer.send(piece);
        engine.server.settle();
        answer.bytes += peer.take_received();
    }
    answer.closed = peer.finished_by_server();
    peer.close();
    engine.server.settle();
    return answer;
}

inline Answer feed_whole(Engine& engine, std::string_view bytes) {
    return feed(engine, std::span{&bytes, 1});
}

inline Answer feed_bytewise(Engine& engine, std::string_view bytes) {
    std::vector<std::string_view> pieces;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        pieces.push_back(bytes.substr(i, 1));
    }
    return feed(engine, pieces);
}

inline Answer feed_cut(Engine& engine, std::string_view bytes, std::size_t at) {
    const std::string_view pieces[] = {bytes.substr(0, at), bytes.substr(at)};
    return feed(engine, pieces);
}

enum class Ending : std::uint8_t { stays, closes };

// One stream of requests and all that must come of it.
struct Case {
    std::string name;
    std::string request;
    std::string statuses;  // of every reply, as statuses_in gives them
    Ending ending = Ending::closes;
    std::string contains = "";
    std::string lacks = "";
    std::size_t heads = 0;  // so many replies in front answer HEAD
};

// Answers the target that it is called with and the body, so that a table can see both.
inline Router case_router() {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("home"); });
    router.any("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    router.get("/only-get", [](Request&, Response& response) { response.send_static("got"); });
    router.get("/host", [](Request& request, Response& response) { response.send(request.host()); });
    router.get("/value", [](Request& request, Response& response) {
        response.send("[" + std::string(request.header("X-Value")) + "]");
    });
    router.get("/letters",
               [](Request&, Response& response) { response.send_static("abcdefghijklmnopqrstuvwxyz"); });
    return router;
}

inline void check_answer(const Case& expected, const Answer& answer) {
    CHECK(statuses_in(answer.bytes, expected.heads) == expected.statuses);
    CHECK(answer.closed == (expected.ending == Ending::closes));
    CHECK(answer.bytes.find(expected.contains) != std::string::npos);
    CHECK((expected.lacks.empty() || answer.bytes.find(expected.lacks) == std::string::npos));
}

// Large streams are cut at fewer places: the work is their length times the number of cuts.
inline void run_case(Engine& engine, const Case& expected) {
    CAPTURE(expected.name);
    const Answer whole = feed_whole(engine, expected.request);
    CAPTURE(whole.bytes);
    check_answer(expected, whole);
    CHECK(feed_bytewise(engine, expected.request) == whole);
    const std::size_t stride = expected.request.size() < 3'000 ? 1 : 1'499;
    for (std::size_t at = 1; at < expected.request.size(); at += stride) {
        if (feed_cut(engine, expected.request, at) != whole) {
            FAIL_CHECK("cut in front of byte "
                       << at << " it has another outcome: " << feed_cut(engine, expected.request, at).bytes);
            break;
        }
    }
    if (expected.ending == Ending::closes && expected.heads == 0) {
        const Answer behind_good = feed_whole(engine, get("/letters") + expected.request);
        CHECK(statuses_in(behind_good.bytes) == "200 " + expected.statuses);
        CHECK(behind_good.bytes.find("abcdefghijklmnopqrstuvwxyz") != std::string::npos);
    }
    engine.server.check_nothing_left();
}

inline void run_cases(std::span<const Case> cases, Config config = small_config()) {
    Engine engine(case_router(), std::move(config));
    for (const Case& expected : cases) {
        run_case(engine, expected);
    }
}

// A request for /echo with fields as given and a body behind them.
inline std::string post(std::string_view fields, std::string_view body = "") {
    return "POST /echo HTTP/1.1\r\nHost: t\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

inline std::string chunked(std::string_view body) {
    return post("Transfer-Encoding: chunked\r\n", body);
}

}  // namespace penstock::test

// What the short ways of the hot path must not change: deadlines of connections that are only noted in their first turn, answers
// that are sent straight from their block, responses that are written at once and then misused.
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine_fixture.h"
#include "penstock/engine/config.h"
#include "support/seed.h"

namespace penstock::test {
namespace {

Config timed_config() {
    Config config = small_config();
    config.idle_timeout_ms = 1'000;
    config.head_timeout_ms = 1'700;
    config.body_timeout_ms = 2'300;
    config.write_timeout_ms = 1'300;
    return config;
}

const PreparedField kType("Content-Type", "text/csv");
const PreparedField kWord("X-Word", "prepared");
const PreparedField kShut("Connection", "close");

Router plain_router() {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send("Hello"); });
    router.get("/large", [](Request&, Response& response) { response.send(std::string(400'000, 'l')); });
    router.get("/small", [](Request&, Response& response) { response.send(std::string_view("0123456789")); });
    router.post("/", [](Request& request, Response& response) { response.send(request.body()); });
    return router;
}

struct NamedAct {
    const char* name;
    std::function<void(Request&, Response&)> act;
};

// What is deferred is put into `kept`.
std::vector<NamedAct> acts_around_an_answer(std::vector<DeferredResponse>& kept) {
    return {
        {"send", [](Request&, Response& r) { r.send(std::string_view("abc")); }},
        {"static", [](Request&, Response& r) { r.send_static("static"); }},
        {"owned", [](Request&, Response& r) { r.send(std::string("owned")); }},
        {"empty", [](Request&, Response& r) { r.send_empty(); }},
        {"field", [](Request&, Response& r) { r.header("X-A", "b").header(kWord).add_header(kWord); }},
        {"type", [](Request&, Response& r) { r.header(kType).header("content-type", "a/b").header(kType); }},
        {"shut", [](Request&, Response& r) { r.header(kShut); }},
        {"204", [](Request&, Response& r) { r.status(204); }},
        {"304", [](Request&, Response& r) { r.status(304); }},
        {"205", [](Request&, Response& r) { r.status(205); }},
        {"bad field", [](Request&, Response& r) { r.header("Content-Length", "1"); }},
        {"bad status", [](Request&, Response& r) { r.status(100); }},
        {"throw", [](Request&, Response&) { throw std::runtime_error("x"); }},
        {"defer", [&kept](Request&, Response& r) { kept.push_back(r.defer()); }},
        {"drop", [](Request&, Response& r) { (void)r.defer(); }},
        {"on_abort", [](Request&, Response& r) { r.on_abort([] {}); }},
        {"abort", [](Request&, Response& r) { r.abort(); }},
        {"read", [](Request& q, Response&) { q.read([](std::string_view) {}); }},
        {"write", [](Request&, Response& r) { r.write("piece", {}); }},
        {"end", [](Request&, Response& r) { r.end(); }},
        {"trailer", [](Request&, Response& r) { r.trailer("X-T", "t"); }},
        {"length", [](Request&, Response& r) { r.content_length(5); }},
    };
}

}  // namespace

TEST_CASE("a deadline that was noted in a connection's first turn comes when it is due and not before") {
    struct Wait {
        std::string bytes;
        std::uint64_t ms;
    };
    const Config config = timed_config();
    const std::string half = "GET / HTTP/1.1\r\nHo";
    for (const Wait& wait : std::vector<Wait>{{"", config.idle_timeout_ms},
                                              {half, config.head_timeout_ms},
                                              {"\r\n", config.head_timeout_ms},
                                              {get("/"), config.idle_timeout_ms},
                                              {get("/") + half, config.head_timeout_ms},
                                              {"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab", config.body_timeout_ms},
                                              {get("/") + get("/") + get("/"), config.idle_timeout_ms}}) {
        CAPTURE(wait.bytes);
        for (const std::uint64_t start : {0ull, 1ull, 63ull, 64ull, 4'095ull, 4'096ull, 262'143ull}) {
            CAPTURE(start);
            Engine engine(plain_router(), config);
            engine.server.advance(start);
            sim::Peer peer = engine.world.connect(kPort);
            if (!wait.bytes.empty()) {
                peer.send(wait.bytes);
            }
            engine.server.settle();
            for (std::uint64_t ms = 1; ms < wait.ms; ++ms) {
                engine.world.advance_ms(1);
                engine.server.reactor().run_turn(0);
                REQUIRE(!peer.finished_by_server());
            }
            engine.server.advance(1);
            CHECK(peer.finished_by_server());
            peer.close();
            engine.server.settle();
            engine.server.check_nothing_left();
        }
    }
}

TEST_CASE("the write deadline of an answer that was stuck in the first turn, with anything behind it") {
    const Config config = timed_config();
    for (const std::string& behind : {std::string(), get("/"), std::string("GET / HTTP/1.1\r\nH")}) {
        for (const std::size_t window : {std::size_t{1}, std::size_t{100}, std::size_t{5'000}}) {
            CAPTURE(behind);
            CAPTURE(window);
            Engine engine(plain_router(), config);
            sim::Peer peer = engine.world.connect(kPort);
            peer.set_receive_window(window);
            peer.send(get("/large") + behind);
            engine.server.settle();
            engine.server.advance(config.write_timeout_ms - 1);
            CHECK(!peer.closed_by_server());
            engine.server.advance(1'000);
            CHECK(peer.closed_by_server());
            engine.server.check_nothing_left();
        }
    }
}

TEST_CASE("a straight send that takes a part, would block or fails, at each of a connection's first sends") {
    for (const int error : {0, EAGAIN, EPIPE, ECONNRESET, ENOBUFS}) {
        for (std::uint64_t nth = 1; nth <= 3; ++nth) {
            for (const std::uint64_t most : {std::uint64_t{1}, std::uint64_t{17}, std::uint64_t{120}}) {
                CAPTURE(error);
                CAPTURE(nth);
                CAPTURE(most);
                Engine engine(plain_router(), timed_config());
                sim::Peer peer = engine.world.connect(kPort);
                peer.script(sim::Call::send, nth, error != 0 ? sim::Outcome::fail(error) : sim::Outcome::at_most(most), 3);
                for (int i = 0; i < 3; ++i) {
                    peer.send(get("/small") + get("/"));
                    engine.server.settle();
                }
                if (error == 0 || error == EAGAIN) {
                    CHECK(count_of(peer.received(), "HTTP/1.1 200") == 6);
                    engine.server.advance(timed_config().idle_timeout_ms - 1);
                    CHECK(!peer.finished_by_server());
                    engine.server.advance(1);
                    CHECK(peer.finished_by_server());
                } else {
                    CHECK(peer.closed_by_server());
                }
                peer.close();
                engine.server.settle();
                engine.server.check_nothing_left();
                CHECK(engine.world.bad_descriptor_calls() == 0);
            }
        }
    }
}

TEST_CASE("after a connection was blocked and went on, it is not idle too early") {
    Config config = timed_config();
    config.write_timeout_ms = 500;
    config.idle_timeout_ms = 5'000;
    for (const std::size_t window : {std::size_t{100}, std::size_t{70'000}}) {
        Engine engine(plain_router(), config);
        sim::Peer peer = engine.world.connect(kPort);
        peer.set_receive_window(window);
        peer.send(get("/large"));
        engine.server.settle();
        engine.server.advance(300);
        peer.read_freely();
        engine.server.settle();
        CHECK(peer.received().size() > 400'000);
        engine.server.advance(4'900);
        CHECK(!peer.finished_by_server());
        engine.server.advance(200);
        CHECK(peer.finished_by_server());
    }
}

// Up to four of those acts in any order, by a plain handler and by a coroutine, alone and with requests before and behind.
TEST_CASE("whatever a handler does around an answer that was sent at once, its client can read what it gets") {
    std::vector<DeferredResponse> kept;
    const std::vector<NamedAct> acts = acts_around_an_answer(kept);
    std::vector<std::size_t> order;
    Router router;
    const auto run = [&](Request& q, Response& r) {
        for (const std::size_t i : order) {
            acts[i].act(q, r);
        }
    };
    router.get("/ok", [](Request&, Response& r) { r.send("OK"); });
    router.any("/act", run);
    router.any("/task", [&](Request& q, Response& r) -> Task<void> {
        run(q, r);
        co_return;
    });
    std::minstd_rand random(static_cast<unsigned>(test_seed()));
    Config config = timed_config();
    config.request_timeout_ms = 4'000;
    for (int round = 0; round < 6'000; ++round) {
        order.clear();
        for (std::size_t n = 1 + random() % 4; n > 0; --n) {
            order.push_back(random() % acts.size());
        }
        std::string names;
        for (const std::size_t i : order) {
            names.append(acts[i].name).append(", ");
        }
        const char* const path = random() % 3 == 0 ? "/task" : "/act";
        const bool head = random() % 5 == 0;
        const bool old = random() % 6 == 0;
        names.append(path).append(head ? " HEAD" : "").append(old ? " 1.0" : "");
        CAPTURE(names);
        Engine engine(router, config);
        sim::Peer peer = engine.world.connect(kPort);
        const bool first = random() % 2 == 0;
        std::string bytes = (first ? get("/ok") : "") + (head ? "HEAD " : "GET ") + path + (old ? " HTTP/1.0" : " HTTP/1.1") + "\r\nHost: t\r\n" +
                 (old && random() % 2 == 0 ? "Connection: keep-alive\r\n" : "") + "\r\n";
        peer.send(bytes + get("/ok"));
        engine.server.settle();
        engine.server.advance(10'000);  // whatever it is, its time is over
        engine.server.advance(10'000);
        const bool is_reset = peer.reset_by_server();
        CHECK((peer.finished_by_server() || (old && is_reset)));
        const std::string all = peer.take_received();
        if (first && !is_reset) {
            CHECK(all.starts_with("HTTP/1.1 200"));
            CHECK(all.find("\r\n\r\nOK") != std::string::npos);
        }
        CHECK(count_of(all, "\r\n\r\nOK") <= (first ? 2u : 1u));
        if (all.find("Connection: close\r\n") == std::string::npos && count_of(all, "HTTP/1.1 ") == (first ? 3u : 2u)) {
            CHECK(all.ends_with("\r\n\r\nOK"));
        }
        kept.clear();
        engine.server.settle();
        engine.server.check_nothing_left();
        CHECK(engine.world.bad_descriptor_calls() == 0);
    }
}

// RFC 9112 §9.3.2: answers leave in the order of the requests, and what was answered before a mistake still leaves.
TEST_CASE("a body that ends with its connection and is cut does not take earlier answers with it") {
    Router router;
    router.get("/ok", [](Request&, Response& r) { r.send("OK"); });
    router.get("/cut", [](Request&, Response& r) {
        r.write("piece", {});
        throw std::runtime_error("x");
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    peer.send("GET /ok HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /cut HTTP/1.0\r\n\r\n");
    engine.server.settle();
    CHECK(count_of(peer.received(), "\r\n\r\nOK") == 1);
    CHECK(!peer.reset_by_server());
    engine.server.advance(1);
    CHECK(peer.reset_by_server());  // a clean end would be that of the second body
}

TEST_CASE("a wall clock that is set back or on is seen in Date within a second, and one that never moves is no trouble") {
    Engine engine(plain_router(), timed_config());
    const auto date = [&] {
        const std::string answer = engine.ask(get("/"));
        return answer.substr(answer.find("Date: "), 37);
    };
    CHECK(date() == "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    engine.server.advance(999);
    CHECK(date() == "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    engine.server.advance(1);
    CHECK(date() == "Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    engine.world.set_wall_seconds(0);
    engine.server.advance(1'000);
    CHECK(date() == "Date: Thu, 01 Jan 1970 00:00:01 GMT\r\n");
    engine.world.set_wall_seconds(4'102'444'800);
    engine.server.advance(1'000);
    CHECK(date() == "Date: Fri, 01 Jan 2100 00:00:01 GMT\r\n");
    engine.world.set_wall_seconds(-5);
    engine.server.advance(1'000);
    CHECK(date() == "Date: Wed, 31 Dec 1969 23:59:56 GMT\r\n");
    engine.server.advance(4'294'967'295u);  // 49 days without a turn
    (void)date();
    engine.server.advance(1'000);
    const std::string before = date();
    engine.server.advance(1'000);
    CHECK(date() != before);
}

TEST_CASE("time wraps after 49 days, and deadlines that stand across it come when they are due") {
    Config config = timed_config();
    Engine engine(plain_router(), config);
    for (int i = 0; i < 16; ++i) {
        engine.server.advance((1u << 28) - 50);
    }
    for (int i = 0; i < 40; ++i) {
        sim::Peer peer = engine.world.connect(kPort);
        engine.server.settle();
        engine.server.advance(config.idle_timeout_ms - 1);
        CHECK(!peer.finished_by_server());
        engine.server.advance(1);
        CHECK(peer.finished_by_server());
        peer.close();
        engine.server.settle();
    }
    engine.server.check_nothing_left();
}

}  // namespace penstock::test

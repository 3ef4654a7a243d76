// Plain handlers that go on after they have returned: bodies by callbacks, answers from elsewhere, and the news that
// an answer will not get through.
#include <functional>
#include <memory>
#include <stdexcept>

#include "stream_fixture.h"

namespace penstock::test {
namespace {

// What the handlers below leave for the test to see.
struct Seen {
    DeferredResponse later;
    Response* response = nullptr;
    std::string notes;
    int aborts = 0;
};

// These go on by themselves for as long as there are callbacks to come, which keep them alive.
struct Counter : std::enable_shared_from_this<Counter> {
    Request& request;
    Response& response;
    std::string body;

    Counter(Request& from, Response& to) : request(from), response(to) {}
    void read() {
        request.read([self = shared_from_this()](std::string_view bytes) {
            self->body += bytes;
            if (bytes.empty()) {
                self->response.send(expected_count(self->body));
            } else {
                self->read();
            }
        });
    }
};

struct Pieces : std::enable_shared_from_this<Pieces> {
    Response& response;
    const std::string piece;
    std::size_t left;

    Pieces(Response& to, std::size_t count, std::size_t size) : response(to), piece(pattern(size)), left(count) {}
    void write() {
        if (left-- > 0) {
            response.write(piece, [self = shared_from_this()] { self->write(); });
        }
    }
};

Router callback_router(Seen& seen) {
    Router router;
    const RouteOptions streaming{.body_limit_bytes = 100ull << 30, .stream_body = true};
    router.post("/copy", [](Request& request, Response& response) {
        std::make_shared<Copier>(request, response)->read();
    }, streaming);
    router.post("/count", [&seen](Request& request, Response& response) {
        response.on_abort([&seen] { ++seen.aborts; });
        std::make_shared<Counter>(request, response)->read();
    }, streaming);
    router.post("/deaf", [](Request&, Response& response) { response.send("not interested"); }, streaming);
    router.get("/pieces/:count/:size", [](Request& request, Response& response) {
        const auto number = [&](const char* name) { return std::stoull(std::string(request.parameter(name))); };
        std::make_shared<Pieces>(response, number("count"), number("size"))->write();
    });
    router.any("/later", [&seen](Request&, Response& response) {
        seen.later = response.defer();
        seen.response = &response;
        response.on_abort([&seen] { ++seen.aborts; });
    });
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    return router;
}

struct CallbackEngine : Seen, Engine {
    explicit CallbackEngine(Config config = small_config()) : Engine(callback_router(*this), std::move(config)) {}

    void close_and_check(std::initializer_list<sim::Peer*> peers) {
        for (sim::Peer* peer : peers) {
            peer->close();
        }
        server.settle();
        server.check_nothing_left();
    }
};

}  // namespace

TEST_CASE("a body that comes by callbacks is the same however it is framed and cut") {
    CallbackEngine engine;
    for (const std::size_t size : {0u, 1u, 5'000u, 20'000u, 100'000u}) {
        for (const std::size_t chunk : {0u, 7u, 5'000u, 60'000u}) {
            for (const std::size_t cut : {1u, 1'000u, 17'000u, 1'000'000u}) {
                if (cut == 1 && size > 5'000) {
                    continue;
                }
                CAPTURE(size);
                CAPTURE(chunk);
                CAPTURE(cut);
                const std::string body = pattern(size);
                const std::string bytes = chunk == 0 ? post("/count", length_field(size), body)
                                                     : post("/count", "Transfer-Encoding: chunked\r\n", chunked(body, chunk));
                sim::Peer peer = engine.world.connect(kPort);
                for (std::size_t at = 0; at < bytes.size(); at += cut) {
                    peer.send(std::string_view(bytes).substr(at, cut));
                    engine.server.settle();
                }
                CHECK(body_of(peer.take_received()) == expected_count(body));
                CHECK(status_of(engine.exchange(peer, get("/ok"))) == 200);
                engine.close_and_check({&peer});
            }
        }
    }
    CHECK(engine.aborts == 0);
}

TEST_CASE("callbacks that read and write pass a body on, and hold little of it for a slow reader") {
    CallbackEngine engine;
    const std::string body = pattern(2'000'000);
    sim::Peer fast = engine.world.connect(kPort);
    CHECK(dechunk(engine.exchange(fast, post("/copy", length_field(body.size()), body))) == body);
    CHECK(status_of(engine.exchange(fast, get("/ok"))) == 200);

    sim::Peer slow = engine.world.connect(kPort);
    slow.set_receive_window(10'000);
    slow.send(post("/copy", "Transfer-Encoding: chunked\r\n", chunked(body, 50'000)));
    std::uint32_t most_blocks = 0;
    std::string got;
    for (int rounds = 0; rounds < 10'000 && !got.ends_with("0\r\n\r\n"); ++rounds) {
        engine.server.settle();
        most_blocks = std::max(most_blocks, static_cast<std::uint32_t>(engine.server.reactor().blocks().leased()));
        got += slow.read(9'000);
    }
    CHECK(dechunk(got) == body);
    CHECK(most_blocks <= small_config().output_high_water_bytes / kIoBlockBytes + 4);
    engine.close_and_check({&fast, &slow});
}

TEST_CASE("a body written by callbacks is framed as one written by a coroutine") {
    CallbackEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    for (const std::size_t count : {1u, 3u, 700u}) {
        const std::string path = "/pieces/" + std::to_string(count) + "/1000";
        std::string wanted;
        for (std::size_t i = 0; i < count; ++i) {
            wanted += pattern(1'000);
        }
        CHECK(dechunk(engine.exchange(peer, get(path))) == wanted);
    }
    const std::string head = engine.exchange(peer, "HEAD /pieces/1000000/1000 HTTP/1.1\r\nHost: t\r\n\r\n");
    CHECK(status_of(head) == 200);
    CHECK(body_of(head).empty());
    CHECK(body_of(engine.exchange(peer, get("/ok"))) == "ok");
    const std::string old = engine.ask("GET /pieces/3/10 HTTP/1.0\r\n\r\n");
    CHECK(body_of(old) == pattern(10) + pattern(10) + pattern(10));
    engine.close_and_check({&peer});
}

TEST_CASE("callbacks that never wait leave others their turn") {
    CallbackEngine engine;
    sim::Peer greedy = engine.world.connect(kPort);
    greedy.send(get("/pieces/100000/1"));
    sim::Peer other = engine.world.connect(kPort);
    other.send(get("/ok"));
    int turns = 0;
    while (other.received().empty() && turns < 100) {
        engine.server.reactor().run_turn(0);
        ++turns;
    }
    CHECK(turns <= 3);
    CHECK(greedy.received().size() < 50'000);
    engine.server.settle();
    CHECK(dechunk(greedy.received()).size() == 100'000);
}

TEST_CASE("an answer that comes later keeps its place, and the connection goes on") {
    CallbackEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(body_of(engine.exchange(peer, get("/ok") + get("/later") + get("/ok"))) == "ok");
    engine.server.advance(5'000);
    CHECK(peer.take_received().empty());
    REQUIRE(engine.later.post([](Response& response) { response.status(201).send("at last"); }));
    engine.server.settle();
    const std::string answers = peer.take_received();
    CHECK(status_of(answers) == 201);
    CHECK(answers.find("at last") < answers.rfind("ok"));
    CHECK(count_of(answers, "HTTP/1.1 ") == 2);
    CHECK(engine.aborts == 0);
    engine.close_and_check({&peer});
}

TEST_CASE("an answer from a function that has nothing to do with the connection") {
    CallbackEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/later"));
    bool over_afterwards = false;
    REQUIRE(engine.server.reactor().try_post(Message([&] {
        engine.later.get()->send("from elsewhere");
        over_afterwards = engine.later.get() == nullptr;  // and the reference still lives until the function returns
        CHECK(engine.response->answered());
    })));
    engine.server.settle();
    CHECK(body_of(peer.take_received()) == "from elsewhere");
    CHECK(over_afterwards);
    CHECK(engine.exchange(peer, get("/ok")).ends_with("ok"));
    engine.close_and_check({&peer});
}

TEST_CASE("a deferred answer may be written piece by piece from outside") {
    CallbackEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/later"));
    const std::string piece = pattern(100'000);
    int written = 0;
    REQUIRE(engine.later.post([&](Response& response) {
        response.write(piece, [&] {
            ++written;
            engine.response->write(piece, [&] {
                ++written;
                engine.response->trailer("X-Sum", "7").end();
            });
        });
    }));
    engine.server.settle();
    CHECK(written == 2);
    const std::string answer = peer.take_received();
    CHECK(answer.ends_with("0\r\nX-Sum: 7\r\n\r\n"));
    std::string without_trailer = answer;
    without_trailer.resize(answer.size() - std::string("X-Sum: 7\r\n\r\n").size());
    CHECK(dechunk(without_trailer + "\r\n") == piece + piece);
    CHECK(status_of(engine.exchange(peer, get("/ok"))) == 200);
    engine.close_and_check({&peer});
}

TEST_CASE("a client that leaves is told by on_abort, once, and what names its response finds nothing") {
    CallbackEngine engine;
    CHECK(DeferredResponse().get() == nullptr);
    CHECK_FALSE(DeferredResponse().post([](Response&) {}));
    for (const bool by_reset : {false, true}) {
        engine.aborts = 0;
        sim::Peer peer = engine.world.connect(kPort);
        engine.exchange(peer, get("/later"));
        if (!by_reset) {
            engine.exchange(peer, "more");
        }
        peer.reset();
        engine.server.settle();
        CHECK(engine.aborts == 1);
        bool ran = false;
        REQUIRE(engine.later.post([&ran](Response&) { ran = true; }));
        engine.server.settle();
        CHECK_FALSE(ran);
    }
    // The slot is used again by another connection, with a deferred answer of its own.
    sim::Peer first = engine.world.connect(kPort);
    engine.exchange(first, get("/later"));
    const DeferredResponse stale = engine.later;
    first.reset();
    engine.server.settle();
    sim::Peer second = engine.world.connect(kPort);
    engine.exchange(second, get("/later"));
    REQUIRE(stale.post([](Response& response) { response.send("for somebody else"); }));
    engine.server.settle();
    CHECK(second.take_received().empty());
    // And so is the connection, by its next request.
    REQUIRE(engine.later.post([](Response& response) { response.send("one"); }));
    engine.server.settle();
    const DeferredResponse answered = engine.later;
    engine.exchange(second, get("/later"));
    REQUIRE(answered.post([](Response& response) { response.send("for another request"); }));
    engine.server.settle();
    CHECK(body_of(second.take_received()).empty());
    second.reset();
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("half-closed clients get a deferred answer") {
    CallbackEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    peer.send(get("/later"));
    peer.finish();
    engine.server.settle();
    CHECK(engine.aborts == 0);
    REQUIRE(engine.later.post([](Response& response) { response.send("for you"); }));
    engine.server.settle();
    CHECK(body_of(peer.take_received()) == "for you");
    CHECK(peer.finished_by_server());
}

TEST_CASE("on_abort tells of broken bodies, limits and times as well") {
    Config config = small_config();
    config.request_timeout_ms = 60'000;
    CallbackEngine engine(config);
    const auto aborts_of = [&engine](std::string_view bytes, std::uint64_t wait_ms) {
        engine.aborts = 0;
        sim::Peer peer = engine.world.connect(kPort);
        peer.send(bytes);
        engine.server.settle();
        engine.server.advance(wait_ms);
        const std::string answer = peer.take_received();
        engine.close_and_check({&peer});
        return std::to_string(status_of(answer)) + " " + std::to_string(engine.aborts);
    };
    CHECK(aborts_of(post("/count", "Transfer-Encoding: chunked\r\n", "3\r\nabcX"), 0) == "400 1");
    CHECK(aborts_of(post("/count", "Content-Length: 100\r\n", "abc"), config.body_timeout_ms + 1) == "408 1");
    CHECK(aborts_of(get("/later"), config.request_timeout_ms) == "503 1");
    sim::Peer peer = engine.world.connect(kPort);
    engine.aborts = 0;
    engine.exchange(peer, get("/later"));
    engine.server.reactor().request_stop(true);
    engine.server.settle();
    CHECK(engine.aborts == 1);
}

TEST_CASE("100-continue is sent when a callback asks for the body, and a final status when none does") {
    CallbackEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    const std::string fields = length_field(3) + "Expect: 100-continue\r\n";
    CHECK(engine.exchange(peer, post("/count", fields, "")) == "HTTP/1.1 100 Continue\r\n\r\n");
    CHECK(body_of(engine.exchange(peer, "abc")) == expected_count("abc"));
    const std::string unwanted = engine.exchange(peer, post("/deaf", fields, ""));
    CHECK(status_of(unwanted) == 200);
    CHECK(unwanted.find("Connection: close\r\n") != std::string::npos);
}

TEST_CASE("nothing is received while a callback handler does not ask for it") {
    CallbackEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    peer.send(post("/later", length_field(3), "abc") + pattern(300'000));
    engine.server.settle();
    CHECK(engine.server.reactor().counters().received_bytes.get() <= kIoBlockBytes);
}

}  // namespace penstock::test

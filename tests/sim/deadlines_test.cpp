// Several deadlines of one connection at once: each holds by itself, and none shortens or puts off another.
#include "stream_fixture.h"

namespace penstock::test {
namespace {

constexpr std::size_t kBigBytes = 60'000;
// Less than that, so that the client reads it in several goes.
constexpr std::size_t kWindowBytes = 10'000;

const std::string& big_text() {
    static const std::string text(300'000, 'x');
    return text;
}

Router deadline_router() {
    Router router;
    router.get("/big", [](Request&, Response& response) {
        response.send_static(std::string_view(big_text()).substr(0, kBigBytes));
    });
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    const RouteOptions short_body{.body_timeout_ms = 5'000};
    router.post("/whole", [](Request& request, Response& response) {
        response.send(std::to_string(request.body().size()));
    }, short_body);
    router.post("/stream", [](Request& request, Response& response) -> Task<void> {
        const std::size_t size = (co_await request.read_all()).size();
        response.send(std::to_string(size));
    }, short_body);
    router.post("/reads-on", [](Request& request, Response& response) -> Task<void> {
        co_await response.write("begun");
        while (!(co_await request.read()).empty()) {
        }
    });
    return router;
}

// Has asked for more than it reads.
sim::Peer slow_reader(Engine& engine) {
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(kWindowBytes);
    engine.exchange(peer, get("/big"));
    return peer;
}

// Whole seconds until the server ends it, `limit` at most.
int seconds_lived(Engine& engine, const sim::Peer& peer, int limit) {
    int seconds = 0;
    while (seconds < limit && !peer.closed_by_server()) {
        engine.server.advance(1'000);
        ++seconds;
    }
    return seconds;
}

}  // namespace

TEST_CASE("a client that takes its answer is not idle, however short the idle timeout") {
    Config config = small_config();
    config.idle_timeout_ms = 5'000;
    config.write_timeout_ms = 30'000;
    Engine engine(deadline_router(), config);
    const sim::Peer peer = slow_reader(engine);
    CHECK(seconds_lived(engine, peer, 60) == 30);
    engine.server.check_nothing_left();
}

TEST_CASE("a steady upload goes on behind an answer that is not read, until that answer's time is over") {
    for (const char* path : {"/whole", "/stream"}) {
        CAPTURE(std::string(path));
        Config config = small_config();
        config.write_timeout_ms = 30'000;
        Engine engine(deadline_router(), config);
        sim::Peer peer = slow_reader(engine);
        peer.send(post(path, length_field(400'000), ""));
        engine.server.settle();
        for (int second = 0; second < 20; ++second) {
            peer.send(std::string(20'000, 'y'));  // twice as fast as it must be
            engine.server.advance(1'000);
            REQUIRE_FALSE(peer.closed_by_server());
        }
        CHECK(seconds_lived(engine, peer, 60) == 10);
        engine.server.check_nothing_left();
    }
}

TEST_CASE("a head that arrives meanwhile does not shorten the time in which an answer may be taken") {
    Config config = small_config();
    config.head_timeout_ms = 10'000;
    config.write_timeout_ms = 30'000;
    config.write_rate_min_bytes_per_s = 100'000;
    Engine engine(deadline_router(), config);
    sim::Peer peer = slow_reader(engine);
    engine.exchange(peer, "GET /ok HTTP/1.1\r\n");
    engine.server.advance(9'800);
    (void)peer.read(kWindowBytes);  // a tenth of a second
    engine.server.settle();
    engine.server.advance(100);
    engine.exchange(peer, "Host: t\r\n\r\n");
    CHECK(seconds_lived(engine, peer, 60) >= 20);  // of 30, of which nearly 10 are gone
    engine.server.check_nothing_left();
}

TEST_CASE("a fault in a body, or its end, does not cost a slow reader the answers before it") {
    Engine engine(deadline_router());
    for (const bool finishes : {false, true}) {
        CAPTURE(finishes);
        sim::Peer peer = slow_reader(engine);
        if (finishes) {
            peer.send(post("/reads-on", length_field(100), "half"));
            peer.finish();
        } else {
            peer.send(post("/reads-on", "Transfer-Encoding: chunked\r\n", "3\r\nabcX"));
        }
        engine.server.settle();
        std::string received;
        for (int reads = 0; reads < 20; ++reads) {
            (void)peer.read(kWindowBytes);
            engine.server.settle();
            received += peer.take_received();
        }
        CHECK(replies_in(received).front().body.size() == kBigBytes);
        peer.close();
        engine.server.advance(10'000);
        engine.server.check_nothing_left();
    }
}

TEST_CASE("a deferred body that nobody takes is ended by the write timeout, and its handler is told") {
    DeferredResponse later;
    int aborts = 0;
    Router router;
    router.get("/", [&](Request&, Response& response) {
        later = response.defer();
        response.on_abort([&aborts] { ++aborts; });
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(1'000);
    engine.exchange(peer, get("/"));
    REQUIRE(later.post([](Response& response) { response.write(std::string_view(big_text()), nullptr); }));
    engine.server.settle();
    CHECK(seconds_lived(engine, peer, 100) == 30);
    CHECK(aborts == 1);
    engine.server.check_nothing_left();
}

TEST_CASE("of a body that is waited for and one that is not taken, whichever time ends first ends the connection") {
    struct {
        std::uint32_t body_timeout_ms;
        bool takes_all;
        int seconds;
    } const cases[] = {{40'000, false, 30}, {5'000, true, 5}};
    for (const auto& expected : cases) {
        CAPTURE(expected.body_timeout_ms);
        Router router;
        router.post("/", [](Request& request, Response& response) {
            response.write(std::string_view(big_text()), [] {});
            request.read([](std::string_view) {});
        }, {.body_timeout_ms = expected.body_timeout_ms, .stream_body = true});
        Engine engine(router);
        sim::Peer peer = engine.world.connect(kPort);
        if (!expected.takes_all) {
            peer.set_receive_window(1'000);
        }
        engine.exchange(peer, post("/", length_field(100), ""));
        int seconds = 0;
        while (seconds < 100 && !peer.finished_by_server() && !peer.closed_by_server()) {
            engine.server.advance(1'000);
            ++seconds;
        }
        CHECK(seconds == expected.seconds);
        peer.close();
        engine.server.settle();
        engine.server.check_nothing_left();
    }
}

}  // namespace penstock::test

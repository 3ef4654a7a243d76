// Stopping: what is under way is answered, what waits is let go, what takes too long is cut.
#include "engine_fixture.h"

namespace penstock::test {
namespace {

Router drain_router() {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    router.get("/slow", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(500);
        response.send_static("slow");
    });
    return router;
}

// Whether the reactor still runs.
bool settle_stopping(Engine& engine) {
    bool running = true;
    for (int turns = 0; running && turns < 100; ++turns) {
        running = engine.server.reactor().run_turn(0);
    }
    return running;
}

}  // namespace

TEST_CASE("without connections a drain ends at once") {
    Engine engine(drain_router());
    engine.server.reactor().request_stop(false);
    CHECK_FALSE(settle_stopping(engine));
    CHECK(engine.world.connect(kPort).refused());
    CHECK_FALSE(engine.server.reactor().try_post(Message([] {})));
}

TEST_CASE("a drain closes idle connections, answers what is under way and says that it closes") {
    Engine engine(drain_router());
    sim::Peer idle = engine.world.connect(kPort);
    sim::Peer busy = engine.world.connect(kPort);
    sim::Peer halfway = engine.world.connect(kPort);
    engine.exchange(idle, get("/"));
    engine.exchange(busy, get("/slow"));
    engine.exchange(halfway, "GET / HTTP/1.1\r\n");
    engine.server.reactor().request_stop(false);
    CHECK(settle_stopping(engine));
    CHECK(idle.closed_by_server());
    CHECK(engine.world.connect(kPort).refused());
    halfway.send("Host: t\r\n\r\n");
    CHECK(settle_stopping(engine));
    CHECK(status_of(halfway.received()) == 200);
    CHECK(halfway.received().find("Connection: close\r\n") != std::string::npos);
    engine.world.advance_ms(500);
    CHECK(settle_stopping(engine));
    CHECK(busy.received().find("Connection: close\r\n") != std::string::npos);
    CHECK(body_of(busy.received()) == "slow");
    busy.close();
    halfway.close();
    CHECK_FALSE(settle_stopping(engine));
    CHECK(engine.server.reactor().counters().cut_by_drain.get() == 0);
}

TEST_CASE("clients that were in the accept queue when the drain began are served") {
    Engine engine(drain_router());
    engine.server.reactor().request_stop(false);
    sim::Peer queued = engine.world.connect(kPort);
    queued.send(get("/"));
    settle_stopping(engine);
    CHECK(status_of(queued.received()) == 200);
    queued.close();
    CHECK_FALSE(settle_stopping(engine));
}

TEST_CASE("a silent client from the accept queue does not hold up the drain") {
    const Config config = small_config();
    Engine engine(drain_router(), config);
    engine.server.reactor().request_stop(false);
    sim::Peer silent = engine.world.connect(kPort);
    CHECK(settle_stopping(engine));
    engine.world.advance_ms(config.linger_timeout_ms);
    CHECK_FALSE(settle_stopping(engine));
    CHECK(silent.closed_by_server());
    CHECK(engine.server.reactor().counters().cut_by_drain.get() == 0);
}

TEST_CASE("a drain ends as soon as a slow reader has its answer") {
    Config config = small_config();
    Router router;
    router.get("/", [](Request&, Response& response) { response.send(std::string(100'000, 'x')); });
    Engine engine(router, config);
    sim::Peer slow = engine.world.connect(kPort);
    slow.set_receive_window(1'000);
    engine.exchange(slow, get("/"));
    engine.server.reactor().request_stop(false);
    CHECK(settle_stopping(engine));
    std::uint64_t total = 0;
    for (int i = 0; i < 1'000 && !slow.finished_by_server(); ++i) {
        CHECK(settle_stopping(engine));
        total += slow.read(1'000).size();
    }
    CHECK(total > 100'000);
    slow.close();
    CHECK_FALSE(settle_stopping(engine));
}

TEST_CASE("what is still busy at the deadline is cut and counted") {
    Config config = small_config();
    config.drain_timeout_ms = 300;
    Engine engine(drain_router(), config);
    sim::Peer busy = engine.world.connect(kPort);
    engine.exchange(busy, get("/slow"));
    engine.server.reactor().request_stop(false);
    CHECK(settle_stopping(engine));
    engine.world.advance_ms(299);
    CHECK(settle_stopping(engine));
    engine.world.advance_ms(1);
    CHECK_FALSE(settle_stopping(engine));
    CHECK(busy.closed_by_server());
    CHECK(engine.server.reactor().counters().cut_by_drain.get() == 1);
}

TEST_CASE("a cut does not wait, except for functions that are being run elsewhere") {
    Router router;
    router.get("/", [](Request&, Response& response) -> Task<void> {
        co_await offload([] {});
        response.send_static("ok");
    });
    Engine engine(router);
    sim::Peer busy = engine.world.connect(kPort);
    engine.exchange(busy, get("/"));
    engine.server.reactor().request_stop(true);
    CHECK(settle_stopping(engine));  // its job refers into the frame
    CHECK(busy.closed_by_server());
    CHECK(engine.server.offload.run_one());
    CHECK_FALSE(settle_stopping(engine));
}

TEST_CASE("a poller that fails ends its reactor instead of spinning") {
    Engine engine(drain_router());
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    engine.world.script(sim::Call::poller_wait, sim::World::kAnyDescriptor, 1, sim::Outcome::fail(EBADF));
    CHECK_FALSE(engine.server.reactor().run_turn(0));
    CHECK(engine.server.log.mention("poller has failed"));
    CHECK(peer.closed_by_server());
}

}  // namespace penstock::test

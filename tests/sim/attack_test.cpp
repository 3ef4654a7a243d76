// Attacks that worked once: memory held by slow peers, deadlines put off, things that outlive each other.
#include "engine_fixture.h"

namespace penstock::test {
namespace {

Router attack_router() {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    router.any("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    router.post("/hold", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(100'000);
        response.send_static("held");
    });
    return router;
}

std::string big_post(std::size_t bytes) {
    return "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
           std::string(bytes, 'e');
}

}  // namespace

TEST_CASE("slow readers of copied answers take every block; an honest client is still answered") {
    Config config = small_config();  // 128 blocks, 32 of them in reserve
    config.body_limit_bytes = 1 << 20;
    Engine engine(attack_router(), config);
    std::vector<sim::Peer> slow;
    for (int i = 0; i < 4; ++i) {
        slow.push_back(engine.world.connect(kPort));
        slow.back().set_receive_window(1'000);
        slow.back().send(big_post(500'000));  // 31 blocks each, of which the socket takes 0
        engine.server.settle();
    }
    int answered = 0;
    for (int second = 0; second < 300; second += 20) {  // ten write timeouts
        sim::Peer honest = engine.world.connect(kPort);
        answered += status_of(engine.exchange(honest, get("/"))) == 200 ? 1 : 0;
        for (sim::Peer& peer : slow) {
            (void)peer.read(1'000);  // "something now and then": never cut
        }
        engine.server.advance(20'000);
    }
    CHECK(answered >= 14);
}

// without bodies: pipelined GETs, high water mark only.
TEST_CASE("slow readers held at the high-water mark take every block; an honest client is still answered") {
    Config config = small_config();
    Router router = attack_router();
    router.get("/big", [](Request&, Response& response) { response.send(std::string_view(std::string(30'000, 'x'))); });
    Engine engine(router, config);
    std::string batch;
    for (int i = 0; i < 20; ++i) {
        batch += get("/big");
    }
    std::vector<sim::Peer> slow;
    for (int i = 0; i < 30; ++i) {
        slow.push_back(engine.world.connect(kPort));
        slow.back().set_receive_window(1'000);
        slow.back().send(batch);
        engine.server.settle();
    }
    sim::Peer honest = engine.world.connect(kPort);
    CHECK(status_of(engine.exchange(honest, get("/"))) == 200);
}

TEST_CASE("linger_timeout_ms = 0 does not wait") {
    Config config = small_config();
    config.linger_timeout_ms = 0;
    REQUIRE(validate(config).ok());
    Engine engine(attack_router(), config);
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(status_of(engine.exchange(peer, "BAD\r\n\r\n")) == 400);
    engine.server.advance(10'000);
    engine.server.advance(1'000'000);
    CHECK(peer.closed_by_server());
}

TEST_CASE("a body that finds no memory does not end requests that hold none") {
    Config config = small_config();
    config.body_limit_bytes = 100'000;
    config.body_memory_limit_bytes = 200'000;
    Engine engine(attack_router(), config);
    // The memory is held by requests that are being handled, so nothing that arrives has any.
    std::vector<sim::Peer> holders;
    for (int i = 0; i < 2; ++i) {
        holders.push_back(engine.world.connect(kPort));
        engine.exchange(holders.back(), "POST /hold HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'h'));
    }
    std::vector<sim::Peer> honest;
    for (int i = 0; i < 20; ++i) {
        honest.push_back(engine.world.connect(kPort));
        engine.exchange(honest.back(), "GET / HTTP/1.1\r\nHos");
    }
    sim::Peer attacker = engine.world.connect(kPort);
    engine.exchange(attacker, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n" + std::string(50'000, 'a'));
    int survived = 0;
    for (sim::Peer& peer : honest) {
        survived += status_of(engine.exchange(peer, "t: t\r\n\r\n")) == 200 ? 1 : 0;
    }
    CHECK(survived == 20);
}

TEST_CASE("a peer that takes nothing cannot put its write timeout off by sending") {
    Config config = small_config();
    Router router = attack_router();
    router.get("/big", [](Request&, Response& response) { response.send(std::string_view(std::string(20'000, 'x'))); });
    Engine engine(router, config);
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(1'000);
    engine.exchange(peer, get("/big"));
    // From now on it reads nothing at all; write_timeout_ms is 30 s.
    int alive_s = 0;
    for (; alive_s < 600 && !peer.closed_by_server(); alive_s += 9) {
        peer.send("GET / HTTP/1.1\r\nHost: ");
        engine.server.advance(5'000);
        peer.send("t\r\n\r\n");
        engine.server.advance(4'000);
    }
    CHECK(alive_s <= 40);
}

TEST_CASE("a view of the body outlives its peer while an offloaded function uses it") {
    Router router;
    std::size_t sum = 0;
    router.post("/", [&sum](Request& request, Response& response) -> Task<void> {
        const std::string_view body = co_await request.read_all();
        const std::size_t result = co_await offload([body, &sum] {
            for (const char c : body) {
                sum += static_cast<unsigned char>(c);
            }
            return sum;
        });
        response.send(std::to_string(result));
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc");
    peer.reset();
    engine.server.settle();
    CHECK(engine.server.reactor().counters().tasks_parked.get() == 1);
    CHECK(engine.server.offload.run_one());
    engine.server.settle();
    CHECK(sum == 'a' + 'b' + 'c');
}

// no offloaded function touches the request; a local's destructor does, on the reactor's thread.
TEST_CASE("a parked task's locals may look at the request when they are destroyed") {
    Router router;
    std::string seen;
    struct AccessLog {
        Request& request;
        std::string& out;
        ~AccessLog() { out = std::string(request.target()); }
    };
    router.get("/*path", [&seen](Request& request, Response& response) -> Task<void> {
        const AccessLog log{request, seen};
        co_await offload([] {});
        response.send_static("ok");
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/a-path"));
    peer.reset();
    engine.server.settle();
    // Another client's bytes take the block.
    sim::Peer other = engine.world.connect(kPort);
    other.send("GET /secret-of-another HTTP/1.1\r\nHo");
    engine.server.settle();
    CHECK(engine.server.offload.run_one());
    engine.server.settle();
    CHECK(seen == "/a-path");
}

TEST_CASE("sleep_ms waits at least as long as it says") {
    for (const std::uint32_t delay : {400'000'000u, 2'200'000'000u, 4'294'967'295u}) {
        int woken = 0;
        Router router;
        router.get("/", [&](Request&, Response& response) -> Task<void> {
            co_await sleep_ms(delay);
            ++woken;
            response.send_static("up");
        });
        Engine engine(router);
        sim::Peer peer = engine.world.connect(kPort);
        engine.exchange(peer, get("/"));
        engine.server.advance(1);
        CHECK(woken == 0);
        engine.server.advance(268'435'456);
        CHECK(woken == 0);
        peer.reset();
        engine.server.settle();
    }
}

// two listeners of one reactor; the second's attackers make the first's clients pay.
namespace {

// One reactor that listens on two ports.
struct TwoListeners {
    sim::World world;
    Config config;
    std::shared_ptr<ProtocolFactory> factory = make_protocol_factory(attack_router());
    std::unique_ptr<Reactor> reactor;

    explicit TwoListeners(Config limits) : config(std::move(limits)) {
        REQUIRE(factory->prepare(config).ok());
        reactor = std::make_unique<Reactor>(config, 0, nullptr);
        REQUIRE(reactor->open().ok());
        for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{81}}) {
            platform::ListenTarget target;
            target.port = port;
            const auto opened = platform::open_listener(target);
            REQUIRE(opened.ok());
            REQUIRE(reactor->add_listener(opened.value(), *factory).ok());
        }
    }
    sim::Peer send(std::uint16_t port, std::string_view bytes) {
        sim::Peer peer = world.connect(port);
        peer.send(bytes);
        settle();
        return peer;
    }
    void settle() {
        for (int i = 0; i < 50; ++i) {
            reactor->run_turn(0);
        }
    }
};

}  // namespace

TEST_CASE("memory pressure of one listener is not paid by another's youngest request") {
    Config config = small_config();
    config.connection_limit = 100;
    config.io_block_limit = 16;
    config.io_block_reserve = 8;
    TwoListeners server(config);
    std::vector<sim::Peer> attackers;
    for (int i = 0; i < 8; ++i) {
        attackers.push_back(server.send(81, "GET / HTTP/1.1\r\nX: "));
    }
    // An honest request on the other listener, cut in two by the network: younger than each of the attackers'.
    sim::Peer honest = server.send(80, "GET / HTTP/1.1\r\nHo");
    attackers.push_back(server.send(81, "GET / HTTP/1.1\r\nX: "));
    honest.send("st: t\r\n\r\n");
    server.settle();
    CHECK(status_of(honest.received()) == 200);
}

TEST_CASE("pages held by one listener's slow heads are given up for another's request") {
    Config config = small_config();
    config.page_limit = 8;
    TwoListeners server(config);
    std::vector<sim::Peer> attackers;
    for (int i = 0; i < 8; ++i) {
        attackers.push_back(server.send(80, "GET / HTTP/1.1\r\nX: "));
    }
    sim::Peer honest = server.send(81, get("/"));
    CHECK(status_of(honest.received()) == 200);
}

TEST_CASE("a request that waits for a block when the drain begins is answered") {
    Config config = small_config();
    config.io_block_limit = 10;
    config.io_block_reserve = 8;
    Router router = attack_router();
    router.get("/slow", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(500);
        response.send_static("slow");
    });
    Engine engine(router, config);
    sim::Peer a = engine.world.connect(kPort);
    sim::Peer b = engine.world.connect(kPort);
    engine.exchange(a, get("/slow"));
    engine.exchange(b, get("/slow"));
    sim::Peer waiting = engine.world.connect(kPort);
    engine.exchange(waiting, get("/"));
    const auto settle = [&] {
        for (int i = 0; i < 20; ++i) {
            engine.server.reactor().run_turn(0);
        }
    };
    engine.server.reactor().request_stop(false);
    settle();
    engine.world.advance_ms(500);
    settle();
    CHECK(status_of(a.received()) == 200);
    CHECK(status_of(waiting.received()) == 200);
}

// handlers that sleep hold every input block.
TEST_CASE("requests whose handlers wait hold every input block; others are told 503 rather than left waiting") {
    Config config = small_config();
    config.io_block_limit = 16;
    config.io_block_reserve = 8;
    Router router = attack_router();
    router.get("/wait", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(100'000);
        response.send_static("held");
    });
    Engine engine(router, config);
    std::vector<sim::Peer> waiters;
    for (int i = 0; i < 8; ++i) {
        waiters.push_back(engine.world.connect(kPort));
        engine.exchange(waiters.back(), get("/wait"));
    }
    sim::Peer honest = engine.world.connect(kPort);
    honest.send(get("/"));
    engine.server.settle();
    engine.server.advance(1'000);
    CHECK(honest.received().empty());
    engine.server.advance(1'000);
    CHECK(status_of(honest.received()) == 503);
}

TEST_CASE("a connection that finds a block by itself while it is listed as starved") {
    Router router;
    router.get("/m", [](Request&, Response& r) { r.send(std::string_view(std::string(9'000, 'm'))); });
    router.get("/hog", [](Request&, Response& r) { r.send(std::string_view(std::string(130'000, 'h'))); });
    Config config = small_config();
    config.io_block_limit = 10;
    config.io_block_reserve = 2;  // input finds a block while fewer than 8 are leased
    config.output_high_water_bytes = 20'000;
    Engine engine(router, config);
    sim::Peer hog = engine.world.connect(kPort);
    hog.set_receive_window(1'000);
    hog.send(get("/hog"));  // 8 blocks of output that it does not read
    engine.server.settle();
    sim::Peer victim = engine.world.connect(kPort);
    victim.set_receive_window(1'000);
    std::string batch;
    while (batch.size() < 40'000) {
        batch += get("/m");
    }
    victim.send(batch);
    engine.server.settle();
    CHECK(engine.server.reactor().counters().input_starved.get() > 0);  // on the starved list
    // In one batch of events: the hog reads, which gives blocks back in the midst of the turn, and the starved one has
    // more to say. It finds a block, but keeps the flag, and by the turn's end no block is left to take it off the list.
    hog.set_receive_window(45'000);
    (void)hog.read(45'000);
    victim.send(get("/m"));
    engine.server.settle();
    // It is paused, for its output is full, and its input block is filled to the end. Now it reads.
    victim.set_receive_window(40'000);
    (void)victim.read(40'000);
    engine.server.settle();
    (void)victim.read(40'000);
    engine.server.settle();
    CHECK(status_of(victim.received()) == 200);
}

}  // namespace penstock::test

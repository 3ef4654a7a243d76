// Things that outlive each other: events, messages, tasks and offloaded functions for connections that are gone.
#include "engine_fixture.h"

namespace penstock::test {
namespace {

// Says when it is destroyed.
struct Witness {
    int* count;
    explicit Witness(int* counter) : count(counter) {}
    Witness(const Witness&) = delete;
    Witness& operator=(const Witness&) = delete;
    ~Witness() { ++*count; }
};

}  // namespace

TEST_CASE("an event for a connection that was closed in the same turn is dropped") {
    // The first handler closes the second connection, whose event is in the same batch.
    Router router;
    ConnectionToken victim;
    Reactor* reactor = nullptr;
    router.get("/kill", [&](Request&, Response& response) {
        if (Connection* connection = reactor->connections().find(victim)) {
            connection->close();
        }
        response.send_static("done");
    });
    router.get("/", [](Request&, Response& response) { response.send_static("alive"); });
    Engine engine(router);
    reactor = &engine.server.reactor();
    sim::Peer killer = engine.world.connect(kPort);
    sim::Peer other = engine.world.connect(kPort);
    engine.exchange(killer, get("/"));
    engine.exchange(other, get("/"));
    reactor->connections().for_each([&](Connection& connection) { victim = connection.token(); });
    killer.send(get("/kill"));
    other.send(get("/"));
    engine.server.settle();
    CHECK(killer.received().find("done") != std::string::npos);
    CHECK(other.take_received().empty());
    CHECK(other.closed_by_server());
}

TEST_CASE("an event with the name of a slot's earlier connection is counted and dropped") {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    Engine engine(router);
    Reactor& reactor = engine.server.reactor();
    sim::Peer first = engine.world.connect(kPort);
    engine.exchange(first, get("/"));
    ConnectionToken old;
    reactor.connections().for_each([&](Connection& connection) { old = connection.token(); });
    first.close();
    engine.server.settle();
    CHECK(reactor.connections().find(old) == nullptr);

    // The slot and the descriptor number are used again; the kernel then reports the descriptor under its old name.
    sim::Peer second = engine.world.connect(kPort);
    engine.exchange(second, get("/"));
    ConnectionToken fresh;
    reactor.connections().for_each([&](Connection& connection) { fresh = connection.token(); });
    CHECK(fresh.index == old.index);
    CHECK(fresh.generation != old.generation);
    CHECK(reactor.connections().find(old) == nullptr);
    reactor.dispatch_for_test({.token = old.pack(), .readable = true, .error = true});
    CHECK(reactor.counters().stale_events.get() == 1);
    CHECK(status_of(engine.exchange(second, get("/"))) == 200);
}

TEST_CASE("a handler closes its own connection") {
    Router router;
    router.get("/plain", [](Request&, Response& response) { response.abort(); });
    router.get("/task", [](Request&, Response& response) -> Task<void> {
        response.abort();
        co_await sleep_ms(10);
    });
    router.get("/late", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(10);
        response.abort();
    });
    Engine engine(router);
    for (const char* path : {"/plain", "/task", "/late"}) {
        CAPTURE(path);
        sim::Peer peer = engine.world.connect(kPort);
        CHECK(engine.exchange(peer, get(path) + get(path)).empty());
        engine.server.advance(20);
        CHECK(peer.closed_by_server());
        CHECK(peer.take_received().empty());
        engine.server.check_nothing_left();
    }
}

TEST_CASE("a peer that resets ends the suspended task at its suspension point") {
    int destroyed = 0;
    int resumed = 0;
    Router router;
    router.get("/", [&](Request&, Response& response) -> Task<void> {
        const Witness witness(&destroyed);
        co_await sleep_ms(1'000);
        ++resumed;
        response.send_static("never");
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    CHECK(destroyed == 0);
    peer.reset();
    engine.server.settle();
    CHECK(destroyed == 1);
    engine.server.advance(2'000);
    CHECK(resumed == 0);
    engine.server.check_nothing_left();
}

TEST_CASE("nested tasks are destroyed with the one that awaits them") {
    int destroyed = 0;
    struct Nested {
        static Task<int> inner(int* count) {
            const Witness witness(count);
            co_await sleep_ms(1'000);
            co_return 7;
        }
        static Task<int> outer(int* count) {
            const Witness witness(count);
            co_return co_await inner(count) + 1;
        }
    };
    Router router;
    router.get("/", [&](Request&, Response& response) -> Task<void> {
        response.send(std::to_string(co_await Nested::outer(&destroyed)));
    });
    Engine engine(router);
    sim::Peer patient = engine.world.connect(kPort);
    engine.exchange(patient, get("/"));
    engine.server.advance(1'000);
    CHECK(body_of(patient.received()) == "8");
    CHECK(destroyed == 2);
    sim::Peer impatient = engine.world.connect(kPort);
    engine.exchange(impatient, get("/"));
    impatient.reset();
    engine.server.settle();
    CHECK(destroyed == 4);
}

TEST_CASE("a task that fails in what it awaits answers 500, and the connection goes on") {
    struct Failing {
        static Task<void> fail() {
            co_await sleep_ms(5);
            throw std::runtime_error("out of luck");
        }
    };
    Router router;
    router.get("/", [](Request&, Response&) -> Task<void> { co_await Failing::fail(); });
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    peer.send(get("/") + get("/ok"));
    engine.server.settle();
    engine.server.advance(5);
    CHECK(status_of(peer.received()) == 500);
    CHECK(peer.received().find("\r\n\r\nok") != std::string::npos);
    CHECK(engine.server.log.mention("out of luck"));
}

TEST_CASE("an offloaded function whose peer has left parks its exchange until it is back") {
    int destroyed = 0;
    int ran = 0;
    bool resumed = false;
    Router router;
    router.get("/", [&](Request&, Response& response) -> Task<void> {
        const Witness witness(&destroyed);
        const int local = 42;
        const int result = co_await offload([&] { return ran += local; });
        resumed = true;
        response.send(std::to_string(result));
    });
    Engine engine(router);
    sim::Peer patient = engine.world.connect(kPort);
    engine.exchange(patient, get("/"));
    CHECK(engine.server.offload.run_one());
    engine.server.settle();
    CHECK(body_of(patient.received()) == "42");

    resumed = false;
    destroyed = 0;
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    peer.reset();
    engine.server.settle();
    CHECK(engine.server.reactor().counters().tasks_parked.get() == 1);
    CHECK(destroyed == 0);
    CHECK(engine.server.offload.run_one());  // still refers into the frame
    CHECK(ran == 84);
    engine.server.settle();
    CHECK(destroyed == 1);
    CHECK_FALSE(resumed);
    CHECK(engine.server.reactor().counters().tasks_parked.get() == 0);
}

TEST_CASE("what a parked exchange refers to stays its own, whoever comes meanwhile") {
    std::string seen;
    Router router;
    router.get("/:name", [&](Request& request, Response& response) -> Task<void> {
        const std::string_view name = request.parameter("name");
        co_await offload([&seen, name] { seen = name; });
        response.send_static("ok");
    });
    router.get("/other/:name", [](Request&, Response& response) { response.send_static("other"); });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/the-first-name"));
    peer.reset();
    engine.server.settle();
    for (int i = 0; i < 4; ++i) {
        engine.ask(get("/other/somebody-elses", "X-Padding: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n"));
    }
    CHECK(engine.server.offload.run_one());
    CHECK(seen == "the-first-name");
    engine.server.advance(120'000);
    engine.server.check_nothing_left();
}

TEST_CASE("a reply that brings about the next offload finds a place for it") {
    for (const std::uint32_t limit : {1u, 2u, 4u}) {
        CAPTURE(limit);
        Config config = small_config();
        config.offload_limit = limit;
        int ran = 0;
        Router router;
        router.get("/", [&](Request&, Response& response) -> Task<void> {
            for (int i = 0; i < 3; ++i) {
                co_await offload([&] { ++ran; });
            }
            response.send_static("ok");
        });
        Engine engine(router, config);
        std::vector<sim::Peer> peers;
        for (std::uint32_t i = 0; i < limit; ++i) {
            peers.push_back(engine.world.connect(kPort));
            engine.exchange(peers.back(), get("/"));
        }
        // All replies wait before the first is run.
        for (int round = 0; round < 3; ++round) {
            while (engine.server.offload.run_one()) {
            }
            engine.server.settle();
        }
        CHECK(ran == static_cast<int>(limit) * 3);
        for (sim::Peer& peer : peers) {
            CHECK(status_of(peer.received()) == 200);
        }
    }
}

TEST_CASE("an offload whose task was dropped runs to its end and finds nobody") {
    struct Fan {
        static Task<int> run(int* ran) {
            co_return co_await offload([ran] { return ++*ran; });
        }
        static Task<int> fail() {
            co_await sleep_ms(1);
            throw std::runtime_error("one of them fails");
        }
    };
    int ran = 0;
    Router router;
    router.get("/", [&](Request&, Response& response) -> Task<void> {
        Task<int> failing = Fan::fail();
        Task<int> other = Fan::run(&ran);
        const int first = co_await failing;
        response.send(std::to_string(first + co_await other));
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    engine.server.advance(1);
    CHECK(status_of(peer.take_received()) == 500);
    CHECK(engine.server.reactor().counters().tasks_parked.get() == 1);
    CHECK(engine.server.offload.run_one());
    engine.server.settle();
    CHECK(ran == 1);
    CHECK(engine.server.reactor().counters().tasks_parked.get() == 0);
    CHECK(status_of(engine.exchange(peer, get("/nothing"))) == 404);
}

TEST_CASE("a full offload pool throws Overloaded, and a handler that does not catch it is answered 503") {
    Config config = small_config();
    config.offload_limit = 1;
    std::string caught;
    Router router;
    router.get("/", [](Request&, Response& response) -> Task<void> {
        response.header("X-Half", "done");
        response.send(co_await offload([] { return std::string("here"); }));
    });
    router.get("/catches", [&caught](Request&, Response& response) -> Task<void> {
        try {
            co_await offload([] {});
        } catch (const Overloaded& overloaded) {
            caught = overloaded.what();
        }
        response.send_static("without");
    });
    router.get("/begun", [](Request&, Response& response) -> Task<void> {
        co_await response.write("half");
        co_await offload([] {});
    });
    Engine engine(router, config);
    sim::Peer first = engine.world.connect(kPort);
    sim::Peer second = engine.world.connect(kPort);
    engine.exchange(first, get("/"));
    for (int i = 0; i < 2; ++i) {
        const std::string refused = engine.exchange(second, get("/"));
        CHECK(status_of(refused) == 503);
        CHECK(count_of(refused, "\r\nRetry-After: 1\r\n") == 1);
        CHECK(count_of(refused, "X-Half") == 0);
        CHECK(count_of(refused, "Connection: close") == 0);
    }
    CHECK(engine.server.reactor().counters().overloaded.get() == 2);
    CHECK(engine.server.log.lines.empty());
    CHECK(body_of(engine.exchange(second, get("/catches"))) == "without");
    CHECK(caught.find("offload_limit is 1; raise it or offload_threads") != std::string::npos);
    CHECK(engine.server.reactor().counters().overloaded.get() == 2);
    // Half an answer has left: its client learns that it is not whole.
    sim::Peer third = engine.world.connect(kPort);
    CHECK(count_of(engine.exchange(third, get("/begun")), "0\r\n\r\n") == 0);
    CHECK(third.finished_by_server());
    CHECK(engine.server.offload.run_one());
    engine.server.settle();
    CHECK(body_of(first.received()) == "here");
    second.send(get("/"));
    engine.server.settle();
    CHECK(engine.server.offload.run_one());
    engine.server.settle();
    CHECK(body_of(second.take_received()) == "here");
}

TEST_CASE("without a pool, Overloaded as well; and any handler or hook may throw it") {
    Config config = small_config();
    config.offload_limit = 0;
    config.offload_threads = 0;
    Router router;
    router.get("/offload", [](Request&, Response&) -> Task<void> { co_await offload([] {}); });
    router.get("/plain", [](Request&, Response&) { throw Overloaded("too many of these"); });
    router.get("/task", [](Request&, Response&) -> Task<void> {
        co_await sleep_ms(1);
        throw Overloaded("too many of those");
    });
    router.get("/function", [](Request&, Response&) -> Task<void> {
        co_await sleep_ms(1);
        throw std::runtime_error("a fault");
    });
    Engine engine(router, config);
    sim::Peer peer = engine.world.connect(kPort);
    for (const char* path : {"/offload", "/plain", "/task"}) {
        CAPTURE(path);
        peer.send(get(path));
        engine.server.settle();
        engine.server.advance(1);
        const std::string answer = peer.take_received();
        CHECK(status_of(answer) == 503);
        CHECK(count_of(answer, "\r\nRetry-After: 1\r\n") == 1);
    }
    CHECK(engine.server.log.lines.empty());
    peer.send(get("/function"));
    engine.server.settle();
    engine.server.advance(1);
    CHECK(status_of(peer.take_received()) == 500);
    CHECK(engine.server.log.mention("a fault"));
    CHECK(engine.server.reactor().counters().overloaded.get() == 3);
}

TEST_CASE("a message for a connection that is gone finds nobody") {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    Engine engine(router);
    Reactor& reactor = engine.server.reactor();
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    ConnectionToken token;
    reactor.connections().for_each([&](Connection& connection) { token = connection.token(); });
    int found = 0;
    int missed = 0;
    const auto post = [&] {
        return reactor.try_post(Message([&] { ++(reactor.connections().find(token) != nullptr ? found : missed); }));
    };
    REQUIRE(post());
    engine.server.settle();
    CHECK(found == 1);
    REQUIRE(post());
    peer.reset();
    engine.server.settle();  // the reset is seen before the message
    REQUIRE(post());
    engine.server.settle();
    CHECK(found + missed == 3);
    CHECK(missed >= 1);
    engine.server.check_nothing_left();
}

TEST_CASE("sleeping tasks wake in the order of their times, however many there are") {
    std::string order;
    Router router;
    router.get("/:ms", [&](Request& request, Response& response) -> Task<void> {
        const std::string name(request.parameter("ms"));
        co_await sleep_ms(static_cast<std::uint32_t>(std::stoul(name)));
        order += name + " ";
        response.send_static("up");
    });
    Engine engine(router);
    std::vector<sim::Peer> peers;
    for (const char* ms : {"300", "100", "200", "0"}) {
        peers.push_back(engine.world.connect(kPort));
        peers.back().send(get(std::string("/") + ms));
        engine.server.settle();
    }
    for (int i = 0; i < 4; ++i) {
        engine.server.advance(100);
    }
    CHECK(order == "0 100 200 300 ");
    for (sim::Peer& peer : peers) {
        CHECK(status_of(peer.received()) == 200);
    }
}

TEST_CASE("arguments of an offloaded function are given to it, and destroyed once") {
    const auto shared = std::make_shared<int>(7);
    Router router;
    router.get("/arguments", [&shared](Request&, Response& response) -> Task<void> {
        const int seen = co_await offload([](const std::shared_ptr<int>& number, const std::string& text) {
            return *number + static_cast<int>(text.size());
        }, shared, std::string("a text that has no place in the string itself"));
        response.send(std::to_string(seen));
    });
    router.get("/named", [&shared](Request&, Response& response) -> Task<void> {
        const auto function = [shared] { return *shared; };
        response.send(std::to_string(co_await offload(function)));
    });
    router.get("/moved", [](Request&, Response& response) -> Task<void> {
        auto owned = std::make_unique<std::string>("only one has it");
        response.send(co_await offload([](std::unique_ptr<std::string> text) { return *text; }, std::move(owned)));
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    for (const auto& [path, body] : {std::pair{"/arguments", "52"}, {"/named", "7"}, {"/moved", "only one has it"}}) {
        CHECK(engine.exchange(peer, get(path)).empty());
        while (engine.server.offload.run_one()) {
        }
        engine.server.settle();
        CHECK(body_of(peer.take_received()) == body);
    }
    CHECK(shared.use_count() == 1);
}

TEST_CASE("a task that nobody runs fails where it first waits") {
    Router router;
    router.get("/", [](Request&, Response& response) {
        const Task<void> nap = []() -> Task<void> { co_await sleep_ms(1); }();
        response.send(nap.done() && nap.exception() ? "refused" : "runs");
    });
    Engine engine(router);
    CHECK(body_of(engine.ask(get("/"))) == "refused");
}

}  // namespace penstock::test

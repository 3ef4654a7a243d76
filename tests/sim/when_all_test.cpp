// Several things awaited at once by one handler: what it gives, how it fails, and clients that leave meanwhile.
#include "engine_fixture.h"

#include <stdexcept>

namespace penstock::test {
namespace {

// Says that it lives.
class Presence {
public:
    explicit Presence(int* count) : count_(count) { ++*count_; }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;
    ~Presence() { --*count_; }

private:
    int* count_;
};

Task<int> sleep_then(std::uint32_t delay_ms, int value, int* present) {
    const Presence presence(present);
    co_await sleep_ms(delay_ms);
    co_return value;
}

// The function refers to a local of its task.
Task<int> offload_then(int value, int* present) {
    const Presence presence(present);
    const std::string text = std::to_string(value);
    co_return co_await offload([&text] { return std::stoi(text); });
}

Task<int> fail_after(std::uint32_t delay_ms, const char* text, int* present) {
    const Presence presence(present);
    co_await sleep_ms(delay_ms);
    throw std::runtime_error(text);
}

std::string post(std::string_view path, std::string_view body, std::size_t announced) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(announced) +
           "\r\n\r\n" + std::string(body);
}

// Sleeps, offloads and reads its body at once.
Router everything_router(int* present, int* resumed) {
    Router router;
    router.post("/", [present, resumed](Request& request, Response& response) -> Task<void> {
        const Presence presence(present);
        auto [slept, offloaded, body, nothing] = co_await when_all(
            sleep_then(100, 1, present), offload_then(2, present), request.read_all(), sleep_ms(50));
        ++*resumed;
        response.send(std::to_string(slept) + std::to_string(offloaded) + std::string(body));
    });
    return router;
}

}  // namespace

TEST_CASE("a task that reads may be dropped while its handler goes on") {
    Router router;
    router.post("/", [](Request& request, Response& response) -> Task<void> {
        {
            const Task<std::string_view> dropped = request.read_all();
            co_await sleep_ms(10);
        }
        co_await sleep_ms(100'000);  // longer than a body may take, which nobody waits for any more
        response.send(co_await request.read_all());
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, post("/", "ab", 4));
    engine.server.advance(10);
    engine.exchange(peer, "cd");
    engine.server.advance(100'000);
    CHECK(status_of(peer.received()) == 200);
    CHECK(body_of(peer.take_received()) == "cd");
    sim::Peer leaves = engine.world.connect(kPort);
    engine.exchange(leaves, post("/", "ab", 4));
    leaves.reset();
    engine.server.settle();
    peer.close();
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("a sleep, a function and a body are awaited at once, whichever ends last") {
    for (const int last : {0, 1, 2}) {
        CAPTURE(last);
        int present = 0;
        int resumed = 0;
        Engine engine(everything_router(&present, &resumed));
        sim::Peer peer = engine.world.connect(kPort);
        engine.exchange(peer, post("/", "ab", 4));
        CHECK(present == 3);
        for (int step = 1; step <= 3; ++step) {
            CHECK(resumed == 0);
            switch ((last + step) % 3) {
                case 0: engine.server.advance(100); break;
                case 1: CHECK(engine.server.offload.run_one()); break;
                default: peer.send("cd");
            }
            engine.server.settle();
        }
        CHECK(resumed == 1);
        CHECK(present == 0);
        CHECK(body_of(peer.take_received()) == "12abcd");
        engine.exchange(peer, post("/", "ab", 4));  // the connection goes on
        CHECK(present == 3);
        peer.reset();
        engine.server.settle();
        CHECK(engine.server.offload.run_one());
        engine.server.settle();
        CHECK(present == 0);
        engine.server.check_nothing_left();
    }
}

TEST_CASE("a client that leaves a handler which awaits several things destroys them all, once the function is back") {
    int present = 0;
    int resumed = 0;
    Engine engine(everything_router(&present, &resumed));
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, post("/", "ab", 4));
    peer.reset();
    engine.server.settle();
    CHECK(engine.server.reactor().counters().tasks_parked.get() == 1);
    CHECK(present == 3);
    engine.server.advance(200);  // both sleeps are over while it is parked
    CHECK(present == 3);
    CHECK(engine.server.offload.run_one());  // refers to a local of its task
    engine.server.settle();
    CHECK(present == 0);
    CHECK(resumed == 0);
    engine.server.check_nothing_left();
    // With the function back already, nothing holds them.
    sim::Peer other = engine.world.connect(kPort);
    engine.exchange(other, post("/", "ab", 4));
    CHECK(engine.server.offload.run_one());
    engine.server.settle();
    CHECK(present == 2);
    other.reset();
    engine.server.settle();
    CHECK(present == 0);
    CHECK(resumed == 0);
    engine.server.check_nothing_left();
}

TEST_CASE("a body that does not come, or breaks, ends everything that its handler awaits") {
    int present = 0;
    int resumed = 0;
    Router router;
    router.post("/", [&](Request& request, Response& response) -> Task<void> {
        const Presence presence(&present);
        co_await when_all(request.read_all(), sleep_then(1'000'000, 1, &present));
        ++resumed;
        response.send_static("never");
    });
    Engine engine(router);
    sim::Peer slow = engine.world.connect(kPort);
    engine.exchange(slow, post("/", "ab", 4));
    engine.server.advance(small_config().body_timeout_ms + 1'000);
    CHECK(status_of(slow.take_received()) == 408);
    sim::Peer broken = engine.world.connect(kPort);
    engine.exchange(broken, "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
    CHECK(present == 2);
    CHECK(status_of(engine.exchange(broken, "nonsense\r\n")) == 400);
    CHECK(present == 0);
    CHECK(resumed == 0);
    engine.server.advance(small_config().linger_timeout_ms);
    engine.server.check_nothing_left();
}

TEST_CASE("a branch that writes what nobody takes ends a branch that still reads") {
    int present = 0;
    Router router;
    router.post("/short", [&](Request& request, Response& response) -> Task<void> {
        const Presence presence(&present);
        response.content_length(3);
        co_await when_all(request.read_all(), response.write("more than was announced"));
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, post("/short", "ab", 4));
    CHECK(present == 0);
    CHECK_FALSE(engine.server.reactor().end_oldest_arrival());  // nobody is waited for any more
    engine.server.advance(small_config().linger_timeout_ms);
    CHECK(peer.closed_by_server());
    engine.server.check_nothing_left();
}

TEST_CASE("one that fails is answered for when the others have ended, whatever they wait for") {
    int present = 0;
    Router router;
    router.get("/", [&](Request&, Response&) -> Task<void> {
        co_await when_all(fail_after(10, "the first to fail", &present), offload_then(2, &present),
                          fail_after(20, "the second to fail", &present));
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    engine.server.advance(30);
    CHECK(present == 1);
    CHECK(peer.take_received().empty());
    CHECK(engine.server.offload.run_one());
    engine.server.settle();
    CHECK(present == 0);
    CHECK(status_of(peer.take_received()) == 500);
    CHECK(engine.server.log.mention("the first to fail"));
    CHECK_FALSE(engine.server.log.mention("the second to fail"));
    CHECK(status_of(engine.exchange(peer, get("/nothing"))) == 404);
}

TEST_CASE("of many functions at once those without room make it 503, after those that run") {
    Config config = small_config();
    config.offload_limit = 4;
    int present = 0;
    int ran = 0;
    Router router;
    router.get("/:count", [&](Request& request, Response& response) -> Task<void> {
        const Presence presence(&present);
        std::vector<Task<int>> tasks;
        for (int i = std::stoi(std::string(request.parameter("count"))); i > 0; --i) {
            tasks.push_back(offload_then(i, &present));
        }
        int sum = 0;
        for (const int value : co_await when_all(std::move(tasks))) {
            sum += value;
        }
        response.send(std::to_string(sum));
    });
    Engine engine(router, config);
    sim::Peer peer = engine.world.connect(kPort);
    struct Case {
        const char* path;
        int status;
        int functions;
    };
    for (const Case& each : {Case{"/4", 200, 4}, Case{"/9", 503, 4}, Case{"/3", 200, 3}}) {
        CAPTURE(each.path);
        CHECK(engine.exchange(peer, get(each.path)).empty());
        for (ran = 0; engine.server.offload.run_one(); ++ran) {
        }
        CHECK(ran == each.functions);
        engine.server.settle();
        CHECK(present == 0);
        CHECK(status_of(peer.take_received()) == each.status);
    }
    CHECK(engine.server.reactor().counters().overloaded.get() == 1);
}

TEST_CASE("a drain waits for all that a handler awaits, and its end cuts what is left") {
    Config config = small_config();
    config.drain_timeout_ms = 300;
    int present = 0;
    int resumed = 0;
    Engine engine(everything_router(&present, &resumed), config);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, post("/", "ab", 4));
    engine.server.reactor().request_stop(false);
    CHECK(engine.server.reactor().run_turn(0));
    engine.world.advance_ms(300);
    for (int i = 0; i < 10; ++i) {
        CHECK(engine.server.reactor().run_turn(0));  // the function refers to a local of its task
    }
    CHECK(peer.closed_by_server());
    CHECK(engine.server.offload.run_one());
    CHECK_FALSE(engine.server.reactor().run_turn(0));
    CHECK(present == 0);
    CHECK(resumed == 0);
}

}  // namespace penstock::test

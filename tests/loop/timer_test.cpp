// Timers of the program on real reactors and threads.
#include <array>
#include <atomic>
#include <chrono>

#include "loop/loop_client.h"

namespace penstock {

namespace {

Router timer_router() {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    return router;
}

[[nodiscard]] bool start_by_post(Server& server, unsigned reactor, Timer& timer, std::atomic<int>& rung) {
    return server.post(reactor, [&timer, &rung] { timer.start_repeating(1, [&rung] { ++rung; }); });
}

}  // namespace

TEST_CASE("timer: rings on each reactor while the server serves, and is set when that ends") {
    std::array<Timer, 2> before;  // destroyed after the server
    std::array<std::atomic<int>, 4> rung{};
    {
        Server server(reactors(2));
        std::array<Timer, 2> after;  // destroyed before it
        server.listen({.address = "127.0.0.1"}, timer_router());
        start_or_fail(server);
        for (unsigned reactor = 0; reactor < 2; ++reactor) {
            REQUIRE(start_by_post(server, reactor, before[reactor], rung[reactor]));
            REQUIRE(start_by_post(server, reactor, after[reactor], rung[2 + reactor]));
        }
        for (const std::atomic<int>& count : rung) {
            CHECK(eventually([&count] { return count >= 5; }));
        }
        CHECK(LoopClient(server.port()).ask("/").status == 200);
        CHECK(stops(server));
        for (const Timer& timer : after) {
            CHECK_FALSE(timer.running());
        }
    }
    const int last = rung[0];
    for (Timer& timer : before) {
        CHECK_FALSE(timer.running());
        timer.stop();
    }
    CHECK(rung[0] == last);
}

TEST_CASE("timer: a server that starts again takes a timer that its former reactors had set; one that is cut forgets it") {
    std::atomic<int> rung{0};
    Timer timer;
    Server server(reactors(1));
    server.listen({.address = "127.0.0.1"}, timer_router());
    for (int round = 0; round < 3; ++round) {
        start_or_fail(server);
        rung = 0;
        REQUIRE(start_by_post(server, 0, timer, rung));
        CHECK(eventually([&rung] { return rung >= 2; }));
        server.stop_now();
        CHECK(ends(server));
        CHECK_FALSE(timer.running());
    }
}

TEST_CASE("timer: a handler's own, which outlives its request") {
    struct Shared {
        Timer timer;
        std::atomic<int> rung{0};
    };
    Shared shared;
    Router router;
    router.get("/", [&shared](Request&, Response& response) {
        shared.timer.start(5, [&shared] { ++shared.rung; });
        response.send_static("set");
    });
    Server server(reactors(1));
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(LoopClient(server.port()).ask("/").body == "set");
    CHECK(eventually([&shared] { return shared.rung == 1; }));
    CHECK(elapsed_ms_since(begin) >= 4);
    CHECK(stops(server));
    CHECK(shared.rung == 1);
}

}  // namespace penstock

// Attacks that worked once, on real sockets.
#include <atomic>
#include <semaphore>
#include <thread>

#include "loop/loop_client.h"

namespace penstock {

TEST_CASE("attack: urgent data does not end a read before all has arrived") {
    Router router;
    std::binary_semaphore entered{0};
    std::binary_semaphore leave{0};
    router.get("/hold", [&](Request&, Response& response) {
        entered.release();
        (void)leave.try_acquire_for(std::chrono::milliseconds(kWaitMs));
        response.send_static("held");
    });
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    Server server(reactors(1));
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);
    LoopClient client(server.port());
    REQUIRE(client.ask("/").status == 200);
    // While the reactor is held, everything arrives; the urgent byte stands in its midst.
    LoopClient holder(server.port());
    holder.send(request_for("/hold"));
    REQUIRE(entered.try_acquire_for(std::chrono::milliseconds(kWaitMs)));
    client.send("GET / HTTP/1.1\r\nHo");
    client.send_urgent('s');
    client.send("t: loop\r\n\r\n");
    leave.release();
    CHECK(client.receive().status == 200);
    CHECK(holder.receive().status == 200);
    CHECK(stops(server));
}

TEST_CASE("attack: past its deadline a drain waits for an offloaded function without spinning") {
    std::binary_semaphore started{0};
    std::binary_semaphore leave{0};
    Router router;
    router.get("/", [&](Request&, Response& response) -> Task<void> {
        co_await offload([&] {
            started.release();
            (void)leave.try_acquire_for(std::chrono::milliseconds(kWaitMs));
        });
        response.send_static("late");
    });
    Config config = reactors(1);
    config.drain_timeout_ms = 50;
    Server server(config);
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);
    LoopClient client(server.port());
    client.send(request_for("/"));
    REQUIRE(started.try_acquire_for(std::chrono::milliseconds(kWaitMs)));
    server.stop();
    CHECK(client.receive().status == 0);  // cut
    const std::uint64_t before = server.stats().turns;
    CHECK_FALSE(leave.try_acquire_for(std::chrono::milliseconds(200)));  // a while in which nothing happens
    CHECK(server.stats().turns - before < 20);
    leave.release();
    CHECK(ends(server));
}

TEST_CASE("attack: a stop may come at any moment of a start") {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    for (int round = 0; round < 20; ++round) {
        Server server(reactors(2));
        server.listen({.address = "127.0.0.1"}, router);
        std::atomic<bool> done{false};
        std::thread stopper([&] {
            while (!done.load()) {
                server.stop();
                std::this_thread::yield();
            }
        });
        const bool started = server.start().ok();
        server.wait();
        done.store(true);
        stopper.join();
        CHECK(started);
    }
}

TEST_CASE("attack: a server that drains leaves the Unix socket of its successor alone") {
    TemporaryDirectory directory;
    const std::string path = directory / "socket";
    Router router;
    std::binary_semaphore started{0};
    std::binary_semaphore leave{0};
    router.get("/slow", [&](Request&, Response& response) -> Task<void> {
        co_await offload([&] {
            started.release();
            (void)leave.try_acquire_for(std::chrono::milliseconds(kWaitMs));
        });
        response.send_static("slow");
    });
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    Server old(reactors(1));
    old.listen({.address = "unix:" + path}, router);
    start_or_fail(old);
    LoopClient busy = LoopClient::to_unix(path);
    busy.send(request_for("/slow"));
    REQUIRE(started.try_acquire_for(std::chrono::milliseconds(kWaitMs)));
    old.stop();
    Server successor(reactors(1));
    successor.listen({.address = "unix:" + path}, router);
    start_or_fail(successor);
    leave.release();
    CHECK(busy.receive().body == "slow");
    CHECK(ends(old));
    CHECK(LoopClient::to_unix(path).ask("/").status == 200);
    CHECK(stops(successor));
    CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace penstock

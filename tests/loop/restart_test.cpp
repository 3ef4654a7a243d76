// A server that starts again, and what is still held from before: a response that was deferred then names nobody now, neither
// the memory of its former server nor the client who has taken its place.
#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "loop/loop_client.h"

namespace penstock {
namespace {

constexpr int kRounds = 5;

// What the handlers have promised, for threads to answer.
class Promises {
public:
    void add(const DeferredResponse& later) {
        const std::lock_guard lock(mutex_);
        all_.push_back(later);
    }
    [[nodiscard]] std::vector<DeferredResponse> all() {
        const std::lock_guard lock(mutex_);
        return all_;
    }
    [[nodiscard]] bool reach(std::size_t count) {
        return eventually([this, count] { return all().size() == count; });
    }

private:
    std::mutex mutex_;
    std::vector<DeferredResponse> all_;
};

Router promising_router(Promises& promises) {
    Router router;
    router.get("/later", [&promises](Request&, Response& response) { promises.add(response.defer()); });
    return router;
}

}  // namespace

TEST_CASE("restart: a response deferred before reaches nobody afterwards, while those of now are answered") {
    Promises promises;
    std::atomic<int> strays{0};
    Config config = reactors(1);
    config.drain_timeout_ms = 50;
    Server server(config);
    server.listen({.address = "127.0.0.1"}, promising_router(promises));
    std::vector<DeferredResponse> former;
    for (int round = 0; round < kRounds; ++round) {
        CAPTURE(round);
        start_or_fail(server);
        LoopClient client(server.port());
        client.send(request_for("/later"));
        REQUIRE(promises.reach(former.size() + 1));
        const DeferredResponse current = promises.all().back();
        for (const DeferredResponse& old : former) {
            CHECK(old.get() == nullptr);
            CHECK_FALSE(old.post([&strays](Response& response) {
                ++strays;
                response.send("another client's");
            }));
        }
        CHECK(current.post([round](Response& response) { response.send(std::to_string(round)); }));
        CHECK(client.receive().body == std::to_string(round));
        former.push_back(current);
        server.stop_now();
        CHECK(ends(server));
        CHECK_FALSE(current.post([&strays](Response&) { ++strays; }));
    }
    CHECK(strays == 0);
}

TEST_CASE("restart: threads that go on posting while the server stops and starts harm nothing") {
    Promises promises;
    std::atomic<int> strays{0};
    Config config = reactors(2);
    config.drain_timeout_ms = 50;
    Server server(config);
    server.listen({.address = "127.0.0.1"}, promising_router(promises));
    std::array<std::jthread, 2> posters;
    for (std::jthread& poster : posters) {
        poster = std::jthread([&promises, &strays](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                for (const DeferredResponse& later : promises.all()) {
                    (void)later.post([&strays](Response& response) {
                        strays += response.answered() ? 1 : 0;
                        response.send("from afar");
                    });
                }
                std::this_thread::yield();
            }
        });
    }
    int answered = 0;
    for (int round = 0; round < kRounds; ++round) {
        start_or_fail(server);
        std::array<LoopClient, 3> clients{LoopClient(server.port()), LoopClient(server.port()), LoopClient(server.port())};
        for (LoopClient& client : clients) {
            client.send(request_for("/later"));
        }
        for (LoopClient& client : clients) {
            answered += client.receive().body == "from afar" ? 1 : 0;
        }
        LoopClient unanswered(server.port());
        unanswered.send(request_for("/later"));
        server.stop_now();
        CHECK(ends(server));
    }
    CHECK(answered == 3 * kRounds);
    CHECK(strays == 0);
}

}  // namespace penstock

#include "penstock/engine/offload.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "penstock/platform/poller.h"

namespace penstock {

namespace {

using namespace std::chrono_literals;

constexpr auto kWaitLimit = 20s;

}  // namespace

TEST_CASE("OffloadPool: without threads jobs wait for run_one, in their order") {
    OffloadPool pool(0, 3);
    CHECK(!pool.run_one());
    std::vector<int> seen;
    for (int i = 0; i < 3; ++i) {
        REQUIRE(pool.try_submit(Message([&seen, i] { seen.push_back(i); })));
    }
    CHECK(pool.queued() == 3);
    Message refused([&seen] { seen.push_back(9); });
    CHECK(!pool.try_submit(std::move(refused)));
    CHECK(static_cast<bool>(refused));
    CHECK(seen.empty());
    CHECK(pool.run_one());
    CHECK(pool.try_submit(std::move(refused)));
    while (pool.run_one()) {
    }
    CHECK(seen == std::vector{0, 1, 2, 9});
    CHECK(pool.queued() == 0);
}

TEST_CASE("OffloadPool: a queue of 0 refuses everything") {
    OffloadPool pool(1, 0);
    CHECK(!pool.try_submit(Message([] {})));
}

TEST_CASE("OffloadPool: stop finishes what is queued and refuses the rest, with threads and without") {
    for (const unsigned threads : {0u, 1u, 3u}) {
        OffloadPool pool(threads, 100);
        std::atomic<int> runs{0};
        for (int i = 0; i < 50; ++i) {
            REQUIRE(pool.try_submit(Message([&runs] { ++runs; })));
        }
        pool.stop();
        CHECK(runs == 50);
        Message late([&runs] { ++runs; });
        CHECK(!pool.try_submit(std::move(late)));
        CHECK(static_cast<bool>(late));
        pool.stop();
        CHECK(!pool.run_one());
        CHECK(runs == 50);
    }
}

TEST_CASE("OffloadPool: destroyed, it waits for the running job and drops the queued ones") {
    std::promise<void> started;
    std::promise<void> finish;
    std::atomic<bool> ran_to_its_end{false};
    auto dropped = std::make_shared<int>(1);
    bool dropped_ran = false;
    std::thread releaser;
    {
        OffloadPool pool(1, 10);
        REQUIRE(pool.try_submit(Message([&] {
            started.set_value();
            ran_to_its_end = finish.get_future().wait_for(kWaitLimit) == std::future_status::ready;
        })));
        REQUIRE(started.get_future().wait_for(kWaitLimit) == std::future_status::ready);
        REQUIRE(pool.try_submit(Message([dropped, &dropped_ran] { dropped_ran = true; })));
        // Only once the queue is empty, which destroying does first, may the running job end.
        releaser = std::thread([&pool, &finish] {
            const auto limit = std::chrono::steady_clock::now() + kWaitLimit;
            while (pool.queued() > 0 && std::chrono::steady_clock::now() < limit) {
                std::this_thread::yield();
            }
            finish.set_value();
        });
    }
    releaser.join();
    CHECK(ran_to_its_end);
    CHECK(!dropped_ran);
    CHECK(dropped.use_count() == 1);
}

TEST_CASE("OffloadPool: a dropped job's destructor may call back") {
    struct SubmitsWhenDestroyed {
        OffloadPool* pool;
        bool* refused;
        ~SubmitsWhenDestroyed() {
            *refused = !pool->try_submit(Message([] {}));
        }
    };
    bool refused = false;
    {
        OffloadPool pool(0, 10);
        std::unique_ptr<SubmitsWhenDestroyed> held(new SubmitsWhenDestroyed{&pool, &refused});
        REQUIRE(pool.try_submit(Message([held = std::move(held)] {})));
    }
    CHECK(refused);
}

TEST_CASE("OffloadPool: as many jobs run at once as there are threads, none on the caller's") {
    constexpr int kThreads = 3;
    OffloadPool pool(kThreads, 10);
    std::counting_semaphore<> arrived(0);
    std::counting_semaphore<> all_there(0);
    std::atomic<int> met{0};
    const auto caller = std::this_thread::get_id();
    for (int i = 0; i < kThreads; ++i) {
        REQUIRE(pool.try_submit(Message([&] {
            arrived.release();
            const bool in_time = all_there.try_acquire_for(kWaitLimit);
            met += in_time && std::this_thread::get_id() != caller ? 1 : 0;
        })));
    }
    for (int i = 0; i < kThreads; ++i) {
        REQUIRE(arrived.try_acquire_for(kWaitLimit));
    }
    all_there.release(kThreads);
    pool.stop();
    CHECK(met == kThreads);
}

TEST_CASE("OffloadPool: replies come back through a mailbox") {
    platform::Poller poller;
    REQUIRE(poller.open().ok());
    Mailbox mailbox(256, poller);
    OffloadPool pool(2, 200);
    int sum = 0;
    int replies = 0;
    for (int i = 1; i <= 200; ++i) {
        Message job([&mailbox, &sum, &replies, i] {
            const int result = 2 * i;
            CHECK(mailbox.try_post(Message([&sum, &replies, result] {
                sum += result;
                ++replies;
            })));
        });
        REQUIRE(pool.try_submit(std::move(job)));
    }
    while (replies < 200 && poller.wait(static_cast<int>(kWaitLimit / 1ms)).woken) {
        mailbox.run(256);
    }
    CHECK(replies == 200);
    CHECK(sum == 200 * 201);
    pool.stop();
}

}  // namespace penstock

// What a message costs: by itself, and from 1 and 4 writers to a reader that sleeps in its poller between
// them.
#include <benchmark/benchmark.h>

#include <thread>
#include <vector>

#include "micro/allocations.h"
#include "penstock/engine/mailbox.h"
#include "penstock/platform/poller.h"

namespace penstock {

namespace {

// Without a second thread and with the poller woken only once: the instructions themselves.
void mailbox_post_and_run(benchmark::State& state) {
    platform::Poller poller;
    if (!poller.open().ok()) {
        state.SkipWithError("no poller");
        return;
    }
    Mailbox mailbox(256, poller);
    std::size_t sum = 0;
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        for (int i = 0; i < 256; ++i) {
            benchmark::DoNotOptimize(mailbox.try_post(Message([&sum] { ++sum; })));
        }
        mailbox.run(256);
    }
    allocations.report(state);
    benchmark::DoNotOptimize(sum);
    state.SetItemsProcessed(state.iterations() * 256);
}
BENCHMARK(mailbox_post_and_run);

void mailbox_writers(benchmark::State& state) {
    constexpr std::int64_t kPostsPerWriter = 50'000;
    const std::int64_t writers = state.range(0);
    platform::Poller poller;
    if (!poller.open().ok()) {
        state.SkipWithError("no poller");
        return;
    }
    Mailbox mailbox(4096, poller);
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        std::int64_t received = 0;
        std::vector<std::thread> threads;
        for (std::int64_t i = 0; i < writers; ++i) {
            threads.emplace_back([&] {
                for (std::int64_t posted = 0; posted < kPostsPerWriter; ++posted) {
                    Message message([&received] { ++received; });
                    while (!mailbox.try_post(std::move(message))) {
                        std::this_thread::yield();
                    }
                }
            });
        }
        while (received < writers * kPostsPerWriter) {
            if (!mailbox.has_more() && !poller.wait(10'000).woken) {
                state.SkipWithError("a wake-up was lost");
                break;
            }
            mailbox.run(256);
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }
    allocations.report(state);
    state.SetItemsProcessed(state.iterations() * writers * kPostsPerWriter);
}
BENCHMARK(mailbox_writers)->Arg(1)->Arg(4)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace penstock

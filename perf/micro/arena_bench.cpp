// What memory of one exchange costs: pieces that fit its first page, and an exchange that needs further ones.
#include <benchmark/benchmark.h>

#include "micro/allocations.h"
#include "penstock/engine/arena.h"
#include "penstock/engine/config.h"

namespace penstock {

namespace {

void arena_exchange(benchmark::State& state) {
    BlockPool pages(kPageBytes, 64, 64);
    std::byte* first = pages.try_acquire();
    const auto pieces = state.range(0);
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        Arena arena(pages, first, 1024);
        for (std::int64_t i = 0; i < pieces; ++i) {
            benchmark::DoNotOptimize(arena.try_allocate(64));
        }
    }
    allocations.report(state);
    pages.release(first);
    state.SetItemsProcessed(state.iterations() * pieces);
}
BENCHMARK(arena_exchange)->Arg(1)->Arg(32)->Arg(256);

void arena_copy(benchmark::State& state) {
    BlockPool pages(kPageBytes, 64, 64);
    std::byte* first = pages.try_acquire();
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        Arena arena(pages, first, 1024);
        for (int i = 0; i < 16; ++i) {
            benchmark::DoNotOptimize(arena.try_copy("a parameter of a path"));
        }
    }
    allocations.report(state);
    pages.release(first);
    state.SetItemsProcessed(state.iterations() * 16);
}
BENCHMARK(arena_copy);

}  // namespace

}  // namespace penstock

// What a lease costs, and what the allocator would.
#include <benchmark/benchmark.h>

#include <array>
#include <new>

#include "micro/allocations.h"
#include "penstock/engine/block_pool.h"
#include "penstock/engine/config.h"

namespace penstock {

namespace {

void block_pool_lease(benchmark::State& state) {
    BlockPool pool(kIoBlockBytes, 4096, 64);
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        std::byte* block = pool.try_acquire();
        benchmark::DoNotOptimize(block);
        pool.release(block);
    }
    allocations.report(state);
}
BENCHMARK(block_pool_lease);

// As many as a busy turn holds at once, all kept when free.
void block_pool_burst(benchmark::State& state) {
    BlockPool pool(kIoBlockBytes, 4096, 64);
    std::array<std::byte*, 64> blocks{};
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        for (std::byte*& block : blocks) {
            block = pool.try_acquire();
        }
        for (std::byte* block : blocks) {
            pool.release(block);
        }
    }
    allocations.report(state);
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(blocks.size()));
}
BENCHMARK(block_pool_burst);

void allocator_lease(benchmark::State& state) {
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        void* block = ::operator new (kIoBlockBytes, std::align_val_t{64});
        benchmark::DoNotOptimize(block);
        ::operator delete (block, std::align_val_t{64});
    }
    allocations.report(state);
}
BENCHMARK(allocator_lease);

}  // namespace

}  // namespace penstock

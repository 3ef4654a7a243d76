#include "allocations.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <benchmark/benchmark.h>

namespace {

std::atomic<std::uint64_t> g_allocations{0};

void* count(void* memory) {
    g_allocations.fetch_add(1, std::memory_order_relaxed);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

}  // namespace

// Never inlined: the compiler would see malloc on one side and delete on the other, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) { return count(std::malloc(std::max<std::size_t>(size, 1))); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
    const auto step = static_cast<std::size_t>(alignment);
    return count(std::aligned_alloc(step, (size + step - 1) / step * step));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace penstock::perf {

void AllocationCounter::report(benchmark::State& state) const {
    state.counters["allocations"] =
        benchmark::Counter(static_cast<double>(count() - before_), benchmark::Counter::kAvgIterations);
}

std::uint64_t AllocationCounter::count() { return g_allocations.load(std::memory_order_relaxed); }

}  // namespace penstock::perf

// Internal.
// What a benchmark asks operator new for, as its counter "allocations": of each iteration, by all threads.
#pragma once

#include <cstdint>

namespace benchmark {
class State;
}

namespace penstock::perf {

// Made right before the loop.
class AllocationCounter {
public:
    AllocationCounter() : before_(count()) {}
    // Right behind the loop.
    void report(benchmark::State& state) const;

private:
    [[nodiscard]] static std::uint64_t count();

    std::uint64_t before_;
};

}  // namespace penstock::perf

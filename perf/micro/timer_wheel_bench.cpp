// What deadlines cost a reactor: moved with every request, asked for with every turn, set and cancelled with
// every connection.
#include <benchmark/benchmark.h>

#include <vector>

#include "micro/allocations.h"
#include "penstock/engine/timer_wheel.h"

namespace penstock {

namespace {

constexpr std::uint32_t kIdleMs = 60'000;

std::vector<TimerNode> idle_nodes(TimerWheel& wheel, std::size_t count) {
    std::vector<TimerNode> nodes(count);
    for (std::size_t i = 0; i < count; ++i) {
        wheel.schedule(nodes[i], wheel.now_ms() + kIdleMs + static_cast<std::uint32_t>(i % 1000));
    }
    return nodes;
}

void timer_wheel_move_later(benchmark::State& state) {
    TimerWheel wheel(0);
    TimerNode node;
    std::uint32_t deadline = kIdleMs;
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        wheel.schedule(node, deadline);
        deadline = deadline < 2 * kIdleMs ? deadline + 1 : kIdleMs;
        benchmark::DoNotOptimize(node);
    }
    allocations.report(state);
    wheel.cancel(node);
}
BENCHMARK(timer_wheel_move_later);

void timer_wheel_set_and_cancel(benchmark::State& state) {
    TimerWheel wheel(0);
    std::vector<TimerNode> others = idle_nodes(wheel, 10'000);
    TimerNode node;
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        wheel.schedule(node, kIdleMs);
        wheel.cancel(node);
        benchmark::DoNotOptimize(node);
    }
    allocations.report(state);
}
BENCHMARK(timer_wheel_set_and_cancel);

// A turn in which nothing is due: time moves on a millisecond every tenth turn.
void timer_wheel_turn(benchmark::State& state) {
    TimerWheel wheel(0);
    std::vector<TimerNode> nodes = idle_nodes(wheel, 10'000);
    std::uint32_t turn = 0;
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        wheel.advance(++turn / 10);
        while (TimerNode* node = wheel.pop_due()) {
            wheel.schedule(*node, wheel.now_ms() + kIdleMs);
        }
        benchmark::DoNotOptimize(wheel.next_timeout_ms());
    }
    allocations.report(state);
}
BENCHMARK(timer_wheel_turn);

// Everything fires and is set again: the cost of a node's whole way down the levels.
void timer_wheel_expire(benchmark::State& state) {
    TimerWheel wheel(0);
    std::vector<TimerNode> nodes = idle_nodes(wheel, 10'000);
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        wheel.advance(wheel.now_ms() + kIdleMs + 1000);
        while (TimerNode* node = wheel.pop_due()) {
            wheel.schedule(*node, wheel.now_ms() + kIdleMs);
        }
    }
    allocations.report(state);
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(nodes.size()));
}
BENCHMARK(timer_wheel_expire);

}  // namespace

}  // namespace penstock

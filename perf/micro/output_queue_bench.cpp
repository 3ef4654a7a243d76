// What an answer costs on its way through the queue, without the send: a small one, a burst of pipelined
// ones, one with a body of its own, and a long copy.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <string>

#include "micro/allocations.h"
#include "penstock/engine/config.h"
#include "penstock/engine/output_queue.h"

namespace penstock {

namespace {

constexpr std::size_t kAnswerBytes = 150;

void send_all(OutputQueue& queue, BlockPool& pool) {
    while (!queue.empty()) {
        std::array<platform::SendPiece, platform::kMaxSendPieces> pieces;
        bool file_follows = false;
        const std::size_t count = queue.gather(pieces, &file_follows);
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < count; ++i) {
            bytes += pieces[i].size;
        }
        queue.consume(pool, bytes);
    }
}

void write_answer(OutputQueue& queue, BlockPool& pool) {
    const std::span<char> room = queue.try_reserve(pool, 512);
    std::memset(room.data(), 'a', kAnswerBytes);
    queue.commit(kAnswerBytes);
}

void output_queue_answers(benchmark::State& state) {
    BlockPool pool(kIoBlockBytes, 64, 64);
    OutputQueue queue;
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        for (std::int64_t i = 0; i < state.range(0); ++i) {
            write_answer(queue, pool);
        }
        send_all(queue, pool);
    }
    allocations.report(state);
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(output_queue_answers)->Arg(1)->Arg(16)->Arg(512);

void output_queue_external_body(benchmark::State& state) {
    BlockPool pool(kIoBlockBytes, 64, 64);
    OutputQueue queue;
    const std::string body(100'000, 'b');
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        write_answer(queue, pool);
        benchmark::DoNotOptimize(queue.try_append_external(pool, body, nullptr, nullptr));
        send_all(queue, pool);
    }
    allocations.report(state);
}
BENCHMARK(output_queue_external_body);

void output_queue_copy(benchmark::State& state) {
    BlockPool pool(kIoBlockBytes, 64, 64);
    OutputQueue queue;
    const std::string body(static_cast<std::size_t>(state.range(0)), 'b');
    const perf::AllocationCounter allocations;
    for (auto step : state) {
        benchmark::DoNotOptimize(queue.try_append_copy(pool, body));
        send_all(queue, pool);
    }
    allocations.report(state);
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(output_queue_copy)->Arg(1'000)->Arg(100'000);

}  // namespace

}  // namespace penstock

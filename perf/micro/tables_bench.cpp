// Looking up what every request names: fields, status lines, list members.
#include <array>
#include <string_view>

#include <benchmark/benchmark.h>

#include "micro/allocations.h"
#include "penstock/protocols/http/tables.h"

namespace {

using namespace penstock;

// As a browser sends them, then some that the table does not know.
constexpr std::array<std::string_view, 10> kKnown = {
    "Host",   "Connection",      "User-Agent",    "Accept",        "Accept-Encoding",
    "Cookie", "Accept-Language", "If-None-Match", "Cache-Control", "If-Modified-Since",
};
constexpr std::array<std::string_view, 5> kUnknown = {
    "Sec-Fetch-Mode", "Sec-CH-UA", "DNT", "X-Request-Id", "Upgrade-Insecure-Requests",
};

template <std::size_t count>
void find_names(benchmark::State& state, const std::array<std::string_view, count>& names) {
    const perf::AllocationCounter allocations;
    for (auto _ : state) {
        for (std::string_view name : names) {
            benchmark::DoNotOptimize(name);
            benchmark::DoNotOptimize(find_header_name(name));
        }
    }
    allocations.report(state);
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

void header_known(benchmark::State& state) {
    find_names(state, kKnown);
}
BENCHMARK(header_known);

void header_unknown(benchmark::State& state) {
    find_names(state, kUnknown);
}
BENCHMARK(header_unknown);

void status_lines(benchmark::State& state) {
    unsigned status = 200;
    const perf::AllocationCounter allocations;
    for (auto _ : state) {
        benchmark::DoNotOptimize(status);
        benchmark::DoNotOptimize(status_line(status));
    }
    allocations.report(state);
}
BENCHMARK(status_lines);

void connection_list(benchmark::State& state) {
    std::string_view list = "keep-alive, Upgrade";
    const perf::AllocationCounter allocations;
    for (auto _ : state) {
        benchmark::DoNotOptimize(list);
        benchmark::DoNotOptimize(list_has_token(list, "upgrade"));
    }
    allocations.report(state);
}
BENCHMARK(connection_list);

}  // namespace

// llhttp alone, on the heads that the budgets ask with: what a parser costs that records nothing.
#include <llhttp.h>

#include <string_view>

#include <benchmark/benchmark.h>

#include "budget/scenarios.h"
#include "micro/allocations.h"

namespace {

void parse_head(benchmark::State& state, std::string_view name) {
    const std::string_view request = penstock::perf::find_scenario(name)->request;
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    const penstock::perf::AllocationCounter allocations;
    for (auto step : state) {
        llhttp_t parser;
        llhttp_init(&parser, HTTP_REQUEST, &settings);
        if (llhttp_execute(&parser, request.data(), request.size()) != HPE_OK) {
            state.SkipWithError("the head is refused");
            break;
        }
    }
    allocations.report(state);
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(request.size()));
}
BENCHMARK_CAPTURE(parse_head, plaintext, "plaintext");
BENCHMARK_CAPTURE(parse_head, browser, "browser");

}  // namespace

// Whole requests on the simulated platform: everything but the kernel. The scenarios of the budgets, and how what is around a
// handler grows with the number of middlewares.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "budget/scenarios.h"
#include "budget/simulation.h"
#include "micro/allocations.h"

namespace penstock::perf {

namespace {

void serve_scenario(benchmark::State& state, const Scenario& scenario) {
    Simulation simulation(scenario, [] { return make_router("/site"); });
    const AllocationCounter allocations;
    for (auto step : state) {
        simulation.serve_together();
    }
    allocations.report(state);
    state.SetItemsProcessed(state.iterations() * scenario.depth);
}

void serve_through_middleware(benchmark::State& state) {
    Simulation simulation(*find_scenario("plaintext"), [layers = state.range(0)] {
        Router router;
        for (std::int64_t i = 0; i < layers; ++i) {
            router.use({.before = [](Request&, Response&) {},
                        .head = [](const Request&, Response&) {},
                        .done = [](const Request&, const Response&) {}});
        }
        router.get("/plaintext", [](Request&, Response& response) { response.send_static("Hello, World!"); });
        return router;
    });
    const AllocationCounter allocations;
    for (auto step : state) {
        simulation.serve_together();
    }
    allocations.report(state);
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(serve_through_middleware)->Arg(0)->Arg(3)->Arg(10);

const bool g_registered = [] {
    for (const Scenario& scenario : scenarios()) {
        if (!scenario.tls) {
            benchmark::RegisterBenchmark(("serve/" + std::string(scenario.name)).c_str(),
                                         [&scenario](benchmark::State& state) { serve_scenario(state, scenario); });
        }
    }
    return true;
}();

}  // namespace

}  // namespace penstock::perf

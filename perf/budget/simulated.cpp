// Serves requests of one scenario on the simulated platform, so that a tool which counts instructions finds the same number
// each time:
//
//     penstock_budget_simulated SCENARIO REQUESTS
//     penstock_budget_simulated                     lists the scenarios, as JSON
//
// Everything that is to be counted happens within Reactor::run_turn, less what is within penstock::platform.
#include <charconv>
#include <cstdio>
#include <string_view>

#include "scenarios.h"
#include "simulation.h"

namespace {

using namespace penstock;

void list_scenarios() {
    std::printf("[");
    const char* separator = "\n";
    for (const perf::Scenario& scenario : perf::scenarios()) {
        std::printf(R"(%s{"name": "%.*s", "depth": %d, "body_bytes": %zu, "closes": %s, "has_file": %s, "tls": %s, "request": ")",
                    separator, static_cast<int>(scenario.name.size()), scenario.name.data(), scenario.depth,
                    scenario.body_bytes, scenario.closes ? "true" : "false", scenario.has_file ? "true" : "false",
                    scenario.tls ? "true" : "false");
        for (const char c : scenario.request) {
            if (c == '"') {
                std::printf("\\\"");
            } else if (c < ' ') {
                std::printf("\\u%04x", static_cast<unsigned>(c));
            } else {
                std::putchar(c);
            }
        }
        std::printf("\"}");
        separator = ",\n";
    }
    std::printf("\n]\n");
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 1) {
        list_scenarios();
        return 0;
    }
    const perf::Scenario* const scenario = perf::find_scenario(arguments[1]);
    int requests = 0;
    const std::string_view number = count == 3 ? arguments[2] : "";
    std::from_chars(number.data(), number.data() + number.size(), requests);
    if (scenario == nullptr || requests <= 0) {
        std::fprintf(stderr, "usage: penstock_budget_simulated SCENARIO REQUESTS; without arguments it lists the scenarios\n");
        return 2;
    }
    perf::Simulation simulation(*scenario, [] { return perf::make_router("/site"); });
    for (int served = 0; served < requests; served += scenario->depth) {
        simulation.serve_together();
    }
    return 0;
}

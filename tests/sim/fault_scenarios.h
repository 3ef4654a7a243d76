// Internal.
// What is done with scenarios for faults: each call fails in turn, and storms are drawn from seeds. A scenario checks for itself that
// nothing is left. Owned by one test; its thread alone.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>

#include "penstock/platform/sim/world.h"
#include "support/seed.h"

namespace penstock::test {

struct FaultScenario {
    const char* name;
    void (*run)(sim::World&);
    std::uint64_t least_calls;  // a sweep that ends sooner has not run its scenario
};

inline void check_sweeps(std::span<const FaultScenario> scenarios) {
    for (const FaultScenario& scenario : scenarios) {
        CAPTURE(std::string(scenario.name));
        const std::uint64_t runs = sim::sweep(scenario.run);
        MESSAGE(std::string(scenario.name) << ": " << runs << " runs");
        CHECK(runs >= scenario.least_calls);
    }
}

// Each scenario in each kind of storm, under so many seeds.
inline void check_storms(std::span<const FaultScenario> scenarios, std::span<const sim::Ratios> storms, std::uint64_t seeds) {
    const std::uint64_t first = test_seed();
    for (const FaultScenario& scenario : scenarios) {
        for (const sim::Ratios& ratios : storms) {
            for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
                sim::World world;
                world.seed(seed, ratios);
                CAPTURE(std::string(scenario.name));
                CAPTURE(seed);
                scenario.run(world);
            }
        }
    }
}

}  // namespace penstock::test

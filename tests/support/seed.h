// Internal.
// The seed of everything random in tests: the same each time unless the environment says otherwise, so
// that a red run repeats. Printed by main.cpp. Any thread.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace penstock {

// PENSTOCK_SEED, or 1.
[[nodiscard]] inline std::uint64_t test_seed() {
    const char* text = std::getenv("PENSTOCK_SEED");
    return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

}  // namespace penstock

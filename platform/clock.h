// Internal.
// The two clocks the engine reads, once a turn each. A backend of the seam: the real answer is in
// platform/posix, a manual clock in platform/sim. Any thread may call.
#pragma once

#include <cstdint>

namespace penstock::platform {

// Milliseconds since an arbitrary start; never goes back (man 3 clock_gettime, CLOCK_MONOTONIC).
[[nodiscard]] std::uint64_t monotonic_ms();

// Whole seconds since 1970-01-01 UTC, for the Date field only: may jump when the clock is set.
[[nodiscard]] std::int64_t wall_seconds();

}  // namespace penstock::platform

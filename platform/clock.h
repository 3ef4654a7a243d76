// Internal.
// The two clocks the engine reads: the first once a turn, the other about once a second. A backend of the seam: the
// real answer is in platform/posix, a manual clock in platform/sim. Any thread may call.
#pragma once

#include <cstdint>

namespace penstock::platform {

// Milliseconds since an arbitrary start; never goes back (man 3 clock_gettime, CLOCK_MONOTONIC).
[[nodiscard]] std::uint64_t monotonic_ms();

// Milliseconds since 1970-01-01 UTC, for dates only: may jump when the clock is set.
[[nodiscard]] std::int64_t wall_ms();

}  // namespace penstock::platform

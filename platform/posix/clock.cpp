#include "penstock/platform/clock.h"

#include <ctime>

namespace penstock::platform {

// Neither call can fail: both clocks are required by POSIX and the pointer is ours (man 2 clock_gettime).
std::uint64_t monotonic_ms() {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000U +
           static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000U;
}

std::int64_t wall_ms() {
    timespec now;
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace penstock::platform

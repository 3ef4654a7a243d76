// Internal.
// The parts of the simulated machine that any thread may touch: the clock, the core count, wake-ups,
// signals. Process-wide atomics, set back when a World begins; without a World they stand still.
#pragma once

#include <cstdint>

namespace penstock::sim {

void reset_machine();
void advance_clock(std::uint64_t milliseconds);
void set_wall_clock(std::int64_t seconds);
void set_core_count(unsigned count);
void deliver_signal(int number);
void count_wake();
[[nodiscard]] std::uint64_t wake_count();
void reset_wake_count();

}  // namespace penstock::sim

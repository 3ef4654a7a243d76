// Internal.
// Random numbers that nobody can guess. Any thread.
#pragma once

#include <cstddef>
#include <span>

namespace penstock::platform {

// Fills all of it. Returns 0 or errno.
[[nodiscard]] int fill_random(std::span<std::byte> bytes);

}  // namespace penstock::platform

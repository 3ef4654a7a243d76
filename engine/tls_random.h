// Internal.
// Random numbers for keys, from the kernel.
//
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// False when the kernel has none, which happens only before it has gathered its first (man 2 getrandom).
[[nodiscard]] bool random_bytes(std::uint8_t* bytes, std::size_t size);

}  // namespace penstock

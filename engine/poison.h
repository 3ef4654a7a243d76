// Internal.
// Tells AddressSanitizer which of our pooled bytes nobody may touch now, so that use after release is found
// although the memory never went back to the allocator. Costs nothing, and does nothing, without it. No
// state; whoever owns the bytes may call.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define PENSTOCK_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PENSTOCK_POISON 1
#endif
#endif

#ifdef PENSTOCK_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace penstock {

#ifdef PENSTOCK_POISON
inline constexpr bool kPoisonEnabled = true;
inline void poison(const void* start, std::size_t bytes) {
    ASAN_POISON_MEMORY_REGION(start, bytes);
}
inline void unpoison(const void* start, std::size_t bytes) {
    ASAN_UNPOISON_MEMORY_REGION(start, bytes);
}
[[nodiscard]] inline bool is_poisoned(const void* at) {
    return __asan_address_is_poisoned(at) != 0;
}
#else
inline constexpr bool kPoisonEnabled = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
[[nodiscard]] inline bool is_poisoned(const void*) {
    return false;
}
#endif

}  // namespace penstock

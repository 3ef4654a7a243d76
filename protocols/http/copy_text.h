// Internal.
// Copies short texts, as fields and heads are made of: in words that overlap at the end, where a call of memcpy would cost more
// than what it copies. No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace penstock {

namespace copy_text_detail {

template <std::size_t kBytes>
inline void copy_both_ends(char* out, const char* text, std::size_t size) {
    char front[kBytes];
    char back[kBytes];
    std::memcpy(front, text, kBytes);
    std::memcpy(back, text + size - kBytes, kBytes);
    std::memcpy(out, front, kBytes);
    std::memcpy(out + size - kBytes, back, kBytes);
}

}  // namespace copy_text_detail

// Returns where the copy ends. The two must not overlap.
[[gnu::always_inline]] inline char* copy_text(char* out, std::string_view text) {
    // Above it memcpy is worth its call.
    constexpr std::size_t kShortBytes = 128;
    const char* const from = text.data();
    const std::size_t size = text.size();
    if (size >= 16) {
        if (size > kShortBytes) {
            std::memcpy(out, from, size);
            return out + size;
        }
        for (std::size_t at = 0; at + 16 < size; at += 16) {
            std::memcpy(out + at, from + at, 16);
        }
        std::memcpy(out + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        copy_text_detail::copy_both_ends<8>(out, from, size);
    } else if (size >= 4) {
        copy_text_detail::copy_both_ends<4>(out, from, size);
    } else if (size >= 2) {
        copy_text_detail::copy_both_ends<2>(out, from, size);
    } else if (size == 1) {
        *out = *from;
    }
    return out + size;
}

// The same of a literal, whose size is known when this is compiled.
template <std::size_t kBytes>
[[gnu::always_inline]] inline char* copy_literal(char* out, const char (&text)[kBytes]) {
    std::memcpy(out, text, kBytes - 1);
    return out + kBytes - 1;
}

}  // namespace penstock

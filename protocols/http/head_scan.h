// Internal.
// How far the bytes of one kind go: of a field's name, of a field's value, of a target. Sixteen at a time where there is
// SSE2, which every x86-64 has, else one at a time; which of the two is chosen here and nowhere else.
//
// What it lets through is a part of what RFC 9110 and RFC 9112 allow, never more. Pure functions; any thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace penstock {

enum class HeadPart { name, value, target };

// Before `end` so many bytes must be readable, though they need not be of interest.
inline constexpr std::size_t kScanBytes = 16;

constexpr bool may_stand_in(HeadPart part, unsigned char byte) {
    switch (part) {
        case HeadPart::name:  // of a token (RFC 9110 §5.6.2) what names are made of
            return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
                   byte == '-';
        case HeadPart::value: return (byte >= 0x20 && byte != 0x7f) || byte == '\t';  // RFC 9110 §5.5
        default: return byte > 0x20 && byte < 0x7f && byte != '#';  // RFC 9112 §3.2: a fragment is none of it
    }
}

// The first byte at or behind `at` that may not stand in the part, or `end`.
template <HeadPart part>
[[nodiscard]] const char* find_part_end_bytewise(const char* at, const char* end) {
    static constexpr std::array<bool, 256> kMayStand = [] {
        std::array<bool, 256> table{};
        for (std::size_t byte = 0; byte < table.size(); ++byte) {
            table[byte] = may_stand_in(part, static_cast<unsigned char>(byte));
        }
        return table;
    }();
    while (at < end && kMayStand[static_cast<unsigned char>(*at)]) {
        ++at;
    }
    return at;
}

#if defined(__SSE2__)

// The same as `may_stand_in` for sixteen bytes: a set bit for each that may not. Comparing is signed there, so that bytes
// from 0x80 on are below all others, and a range up to 0x7f is one comparison once it has been moved to end there.
template <HeadPart part>
[[nodiscard]] unsigned find_strangers(const char* at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const auto all = [](int value) { return _mm_set1_epi8(static_cast<char>(value)); };
    const auto is_in_range = [&](__m128i given, char first, char last) {
        return _mm_cmpgt_epi8(_mm_add_epi8(given, all(0x7f - last)), all(0x7f - last + first - 1));
    };
    const auto places = [](__m128i marks) { return static_cast<unsigned>(_mm_movemask_epi8(marks)); };
    if constexpr (part == HeadPart::name) {
        const __m128i letter = is_in_range(_mm_or_si128(bytes, all(0x20)), 'a', 'z');
        const __m128i digit = is_in_range(bytes, '0', '9');
        const __m128i hyphen = _mm_cmpeq_epi8(bytes, all('-'));
        return places(_mm_or_si128(_mm_or_si128(letter, digit), hyphen)) ^ 0xffffu;
    } else if constexpr (part == HeadPart::value) {
        const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, all(0x1f)), bytes);
        const __m128i tab = _mm_cmpeq_epi8(bytes, all('\t'));
        const __m128i del = _mm_cmpeq_epi8(bytes, all(0x7f));
        return places(_mm_or_si128(_mm_andnot_si128(tab, control), del));
    } else {
        const __m128i visible_or_del = _mm_cmpgt_epi8(bytes, all(0x20));
        const __m128i wrong = _mm_or_si128(_mm_cmpeq_epi8(bytes, all('#')), _mm_cmpeq_epi8(bytes, all(0x7f)));
        return places(_mm_andnot_si128(wrong, visible_or_del)) ^ 0xffffu;
    }
}

template <HeadPart part>
[[nodiscard]] const char* find_part_end(const char* at, const char* end) {
    const char* const last = end - kScanBytes;
    for (; at <= last; at += kScanBytes) {
        if (const unsigned strangers = find_strangers<part>(at); strangers != 0) {
            return at + static_cast<unsigned>(std::countr_zero(strangers));
        }
    }
    // The last sixteen bytes, of which the first are behind us.
    const unsigned strangers = find_strangers<part>(last) >> (at - last);
    return strangers != 0 ? at + static_cast<unsigned>(std::countr_zero(strangers)) : end;
}

#else

template <HeadPart part>
[[nodiscard]] const char* find_part_end(const char* at, const char* end) {
    return find_part_end_bytewise<part>(at, end);
}

#endif

}  // namespace penstock

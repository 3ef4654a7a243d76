// Internal.
// How far the bytes of one kind go, sixteen at a time: of a field's name, of a field's value, of a target. Pure
// functions; any thread.
#pragma once

#include <bit>
#include <cstddef>

#include "penstock/protocols/http/characters.h"
#include "penstock/protocols/http/sixteen_bytes.h"

namespace penstock {

// Before `end` so many bytes must be readable, though they need not be of interest.
inline constexpr std::size_t kScanBytes = SixteenBytes::kSize;

// The first byte at or behind `at` that is not of the rule, or `end`.
template <class Rule, class Bytes = SixteenBytes>
[[nodiscard]] inline const char* find_part_end(const char* at, const char* end) {
    const char* const last = end - kScanBytes;
    for (; at <= last; at += kScanBytes) {
        if (const unsigned strangers = Rule::strangers(Bytes::load(at)); strangers != 0) {
            return at + static_cast<unsigned>(std::countr_zero(strangers));
        }
    }
    // The last sixteen bytes, of which the first are behind us.
    const unsigned strangers = Rule::strangers(Bytes::load(last)) >> (at - last);
    return strangers != 0 ? at + static_cast<unsigned>(std::countr_zero(strangers)) : end;
}

// What the decoding of a target's path or its end may hang on.
template <class Bytes>
[[nodiscard]] unsigned special_places(Bytes bytes) {
    return (bytes.equal('.') | bytes.equal('%') | bytes.equal('?')).places();
}

// The same of a target, and whether one of the special bytes is in front of that. No byte is strange and special, so
// `strangers - 1` leaves of the special ones those before the first stranger.
template <class Bytes = SixteenBytes>
[[nodiscard]] inline const char* find_target_end(const char* at, const char* end, bool* has_special) {
    const char* const last = end - kScanBytes;
    unsigned special = 0;
    for (; at <= last; at += kScanBytes) {
        const Bytes bytes = Bytes::load(at);
        const unsigned strangers = characters::Target::strangers(bytes);
        special |= special_places(bytes) & (strangers - 1);
        if (strangers != 0) {
            *has_special = special != 0;
            return at + static_cast<unsigned>(std::countr_zero(strangers));
        }
    }
    const Bytes bytes = Bytes::load(last);
    const auto behind_us = static_cast<unsigned>(at - last);
    const unsigned strangers = characters::Target::strangers(bytes) >> behind_us;
    special |= (special_places(bytes) >> behind_us) & (strangers - 1);
    *has_special = special != 0;
    return strangers != 0 ? at + static_cast<unsigned>(std::countr_zero(strangers)) : end;
}

}  // namespace penstock

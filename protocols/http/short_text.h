// Internal.
// Comparing and hashing texts of a few bytes, as most paths, segments and hosts are: words of eight bytes in
// line, where a call costs more than the work. Any length is right. Reads nothing outside the texts: the last
// word overlaps the one before. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace penstock {

// In the machine's byte order.
template <class Word>
[[nodiscard]] inline Word load_word(const char* bytes) {
    Word word;
    std::memcpy(&word, bytes, sizeof(word));
    return word;
}

[[nodiscard]] inline bool same_bytes(const char* left, const char* right, std::size_t size) {
    using Long = std::uint64_t;
    using Short = std::uint32_t;
    const auto same = [left, right](std::size_t at) { return load_word<Long>(left + at) == load_word<Long>(right + at); };
    if (size >= sizeof(Long)) {
        const std::size_t last = size - sizeof(Long);
        for (std::size_t i = sizeof(Long); i < last; i += sizeof(Long)) {
            if (!same(i)) {
                return false;
            }
        }
        return same(0) && same(last);
    }
    if (size >= sizeof(Short)) {
        const std::size_t last = size - sizeof(Short);
        return load_word<Short>(left) == load_word<Short>(right) &&
               load_word<Short>(left + last) == load_word<Short>(right + last);
    }
    for (std::size_t i = 0; i < size; ++i) {
        if (left[i] != right[i]) {
            return false;
        }
    }
    return true;
}

[[nodiscard]] inline bool same_text(std::string_view left, std::string_view right) {
    return left.size() == right.size() && same_bytes(left.data(), right.data(), left.size());
}

// For tables whose keys are the program's own: it withstands no one who chooses the keys. Its upper bits are the
// good ones. It differs between machines, so it must not leave the process.
[[nodiscard]] inline std::uint64_t hash_short_text(std::uint32_t seed, std::string_view text) {
    using Long = std::uint64_t;
    using Short = std::uint32_t;
    // Odd, with bits spread evenly: 2^64 divided by the golden ratio.
    constexpr Long kFactor = 0x9E3779B97F4A7C15;
    const char* const bytes = text.data();
    const std::size_t size = text.size();
    Long hash = (Long{seed} << 32) ^ size;
    // A product's upper half is where every byte arrives; the shift brings it to where the next word is.
    const auto mix = [&hash](Long word) {
        hash = (hash ^ word) * kFactor;
        hash ^= hash >> 32;
    };
    Long last_word = 0;
    if (size > sizeof(Long)) {
        const std::size_t last = size - sizeof(Long);
        mix(load_word<Long>(bytes));
        for (std::size_t i = sizeof(Long); i < last; i += sizeof(Long)) {
            mix(load_word<Long>(bytes + i));
        }
        last_word = load_word<Long>(bytes + last);
    } else if (size >= sizeof(Short)) {
        last_word = load_word<Short>(bytes) | Long{load_word<Short>(bytes + size - sizeof(Short))} << 32;
    } else {
        for (std::size_t i = 0; i < size; ++i) {
            last_word = last_word << 8 | static_cast<unsigned char>(bytes[i]);
        }
    }
    return (hash ^ last_word) * kFactor;
}

}  // namespace penstock

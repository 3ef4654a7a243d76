// Internal.
// Judges every byte of a text: sixteen at a time where the processor has SSE2, which all of x86-64 has, and one at a time
// elsewhere. For those who cannot afford the call of tables.h. No state; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace penstock::characters {

// ---- One at a time -------------------------------------------------------------------------------------

inline constexpr std::array<bool, 256> kTokenCharacters = [] {
    std::array<bool, 256> table{};
    for (const char letter : std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
        table[static_cast<unsigned char>(letter)] = true;
    }
    return table;
}();

[[nodiscard]] inline bool is_token_character(char letter) { return kTokenCharacters[static_cast<unsigned char>(letter)]; }

[[nodiscard]] inline bool is_text_character(char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return (byte >= 0x20 && byte != 0x7f) || letter == '\t';
}

#ifdef __SSE2__

// ---- Sixteen at a time ---------------------------------------------------------------------------------

using Bytes = __m128i;

[[nodiscard]] inline Bytes each(int value) { return _mm_set1_epi8(static_cast<char>(value)); }
[[nodiscard]] inline Bytes equal(Bytes bytes, char wanted) { return _mm_cmpeq_epi8(bytes, each(wanted)); }
// Those of `first` to `last`: what lies below `first` wraps round to a large distance.
[[nodiscard]] inline Bytes within(Bytes bytes, int first, int last) {
    const Bytes distance = _mm_sub_epi8(bytes, each(first));
    return _mm_cmpeq_epi8(_mm_subs_epu8(distance, each(last - first)), _mm_setzero_si128());
}
[[nodiscard]] inline bool is_none(Bytes marks) { return _mm_movemask_epi8(marks) == 0; }

// Every byte that no token has: what stands between the runs of tchar (RFC 9110 §5.6.2).
[[nodiscard]] inline bool all_token(Bytes bytes) {
    // As signed numbers, what is above 0x7e of unsigned ones is below the first tchar, all but DEL.
    Bytes bad = _mm_or_si128(_mm_cmplt_epi8(bytes, each('!')), equal(bytes, 0x7f));
    bad = _mm_or_si128(bad, _mm_or_si128(equal(bytes, '"'), within(bytes, '(', ')')));
    bad = _mm_or_si128(bad, _mm_or_si128(equal(bytes, ','), equal(bytes, '/')));
    bad = _mm_or_si128(bad, _mm_or_si128(within(bytes, ':', '@'), within(bytes, '[', ']')));
    return is_none(_mm_or_si128(bad, _mm_or_si128(equal(bytes, '{'), equal(bytes, '}'))));
}

[[nodiscard]] inline bool all_text(Bytes bytes) {
    const Bytes controls = _mm_andnot_si128(equal(bytes, '\t'), within(bytes, 0, 0x1f));
    return is_none(_mm_or_si128(controls, equal(bytes, 0x7f)));
}

[[nodiscard]] inline Bytes load(const char* at) {
    Bytes bytes;
    std::memcpy(&bytes, at, sizeof(bytes));
    return bytes;
}

template <class Word>
[[nodiscard]] inline std::uint64_t load_word(const char* at) {
    Word word;
    std::memcpy(&word, at, sizeof(Word));
    return word;
}

// 1 to 15 bytes and none from beyond them: by words that overlap, or with letters, which are in order anywhere.
[[nodiscard]] inline Bytes load_short(const char* at, std::size_t size) {
    std::uint64_t front = 0;
    std::uint64_t back = 0x4141414141414141;
    if (size >= 8) {
        front = load_word<std::uint64_t>(at);
        back = load_word<std::uint64_t>(at + size - 8);
    } else if (size >= 4) {
        front = load_word<std::uint32_t>(at) | load_word<std::uint32_t>(at + size - 4) << 32;
    } else {
        const std::uint64_t ends = load_word<std::uint8_t>(at) | load_word<std::uint8_t>(at + size - 1) << 8;
        front = ends | load_word<std::uint8_t>(at + size / 2) << 16 | back << 24;
    }
    return _mm_set_epi64x(static_cast<long long>(back), static_cast<long long>(front));
}

template <class All>
[[nodiscard]] [[gnu::always_inline]] inline bool all_of_text(std::string_view text, const All& all) {
    const char* const begin = text.data();
    const std::size_t size = text.size();
    if (size < sizeof(Bytes)) {
        return size == 0 || all(load_short(begin, size));
    }
    for (std::size_t at = 0; at + sizeof(Bytes) < size; at += sizeof(Bytes)) {
        if (!all(load(begin + at))) {
            return false;
        }
    }
    return all(load(begin + size - sizeof(Bytes)));  // of which some have been looked at
}

// As their namesakes in tables.h.
[[nodiscard]] inline bool is_token(std::string_view text) { return !text.empty() && all_of_text(text, all_token); }
[[nodiscard]] inline bool is_field_text(std::string_view text) { return all_of_text(text, all_text); }

#else

[[nodiscard]] inline bool is_token(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}
[[nodiscard]] inline bool is_field_text(std::string_view text) {
    return std::all_of(text.begin(), text.end(), is_text_character);
}

#endif

}  // namespace penstock::characters

// Internal.
// The known field names and how one is found: by one look into a table and one comparison, for the few callers that look up
// each field of each head, and so inline. All others call find_header_name() of tables.h, which is the same.
// Constant data; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "penstock/protocols/http/short_text.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

constexpr char lower_letter(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
}

struct Spelling {
    HeaderName name;
    std::string_view text;
};

inline constexpr std::array<Spelling, kKnownHeaders> kSpellings = {{
    {HeaderName::unknown, ""},
    {HeaderName::accept, "Accept"},
    {HeaderName::accept_encoding, "Accept-Encoding"},
    {HeaderName::accept_language, "Accept-Language"},
    {HeaderName::authorization, "Authorization"},
    {HeaderName::cache_control, "Cache-Control"},
    {HeaderName::connection, "Connection"},
    {HeaderName::content_encoding, "Content-Encoding"},
    {HeaderName::content_length, "Content-Length"},
    {HeaderName::content_type, "Content-Type"},
    {HeaderName::cookie, "Cookie"},
    {HeaderName::date, "Date"},
    {HeaderName::expect, "Expect"},
    {HeaderName::forwarded, "Forwarded"},
    {HeaderName::host, "Host"},
    {HeaderName::if_match, "If-Match"},
    {HeaderName::if_modified_since, "If-Modified-Since"},
    {HeaderName::if_none_match, "If-None-Match"},
    {HeaderName::if_range, "If-Range"},
    {HeaderName::if_unmodified_since, "If-Unmodified-Since"},
    {HeaderName::keep_alive, "Keep-Alive"},
    {HeaderName::origin, "Origin"},
    {HeaderName::range, "Range"},
    {HeaderName::referer, "Referer"},
    {HeaderName::sec_websocket_extensions, "Sec-WebSocket-Extensions"},
    {HeaderName::sec_websocket_key, "Sec-WebSocket-Key"},
    {HeaderName::sec_websocket_protocol, "Sec-WebSocket-Protocol"},
    {HeaderName::sec_websocket_version, "Sec-WebSocket-Version"},
    {HeaderName::te, "TE"},
    {HeaderName::trailer, "Trailer"},
    {HeaderName::transfer_encoding, "Transfer-Encoding"},
    {HeaderName::upgrade, "Upgrade"},
    {HeaderName::user_agent, "User-Agent"},
    {HeaderName::via, "Via"},
    {HeaderName::x_forwarded_for, "X-Forwarded-For"},
    {HeaderName::x_forwarded_host, "X-Forwarded-Host"},
    {HeaderName::x_forwarded_proto, "X-Forwarded-Proto"},
}};

inline constexpr std::size_t kShortestName = 2;
inline constexpr std::size_t kLongestName = 24;

// Whether the table may be indexed by HeaderName, and whether names are as `find_known_name` wants them: of letters
// and hyphens, within the lengths.
consteval bool spellings_are_sound() {
    for (std::size_t i = 0; i < kSpellings.size(); ++i) {
        if (kSpellings[i].name != static_cast<HeaderName>(i)) {
            return false;
        }
        const std::string_view text = kSpellings[i].text;
        if (i > 0 && (text.size() < kShortestName || text.size() > kLongestName)) {
            return false;
        }
        for (const char letter : text) {
            if (letter != '-' && (lower_letter(letter) < 'a' || lower_letter(letter) > 'z')) {
                return false;
            }
        }
    }
    return true;
}
static_assert(spellings_are_sound());

// What a name of any letter case is after `text[i] | case_bits[i]`. A letter may differ in that bit; a hyphen may not, or a
// carriage return would pass for it.
struct alignas(64) FoldedName {
    std::array<char, kLongestName> text{};
    std::array<char, kLongestName> case_bits{};
    std::size_t length = 0;
};

inline constexpr std::array<FoldedName, kKnownHeaders> kFoldedNames = [] {
    std::array<FoldedName, kKnownHeaders> names{};
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string_view text = kSpellings[i].text;
        names[i].length = text.size();
        std::transform(text.begin(), text.end(), names[i].text.begin(), lower_letter);
        std::transform(text.begin(), text.end(), names[i].case_bits.begin(),
                       [](char letter) { return letter == '-' ? '\0' : '\x20'; });
    }
    return names;
}();

// 128 slots for 36 names: with fewer a multiplier without a collision is rare, and the slots fill just two
// cache lines.
inline constexpr unsigned kSlotBits = 7;

// Length, first and last letter are different for each known name, so multiplying them can be made perfect.
// The letter case is folded by one bit; what else that bit folds together is told apart by `find_known_name`.
constexpr std::size_t header_slot(std::string_view name, std::uint32_t multiplier) {
    const std::uint32_t first = static_cast<unsigned char>(name.front()) | 0x20u;
    const std::uint32_t last = static_cast<unsigned char>(name.back()) | 0x20u;
    const std::uint32_t key = first | last << 8 | static_cast<std::uint32_t>(name.size()) << 16;
    return (key * multiplier) >> (32 - kSlotBits);
}

struct HeaderSlots {
    std::uint32_t multiplier = 0;  // 0: none was found
    std::array<HeaderName, 1u << kSlotBits> names{};
};

inline constexpr HeaderSlots kHeaderSlots = [] {
    // Far more tries than the search needs, few enough for the compilers' limits on constant evaluation.
    for (std::uint32_t attempt = 1; attempt <= 4096; ++attempt) {
        HeaderSlots slots{.multiplier = attempt * 0x9E3779B1u | 1u};
        std::size_t placed = 1;
        while (placed < kKnownHeaders) {
            HeaderName& slot = slots.names[header_slot(kSpellings[placed].text, slots.multiplier)];
            if (slot != HeaderName::unknown) {
                break;
            }
            slot = kSpellings[placed].name;
            ++placed;
        }
        if (placed == kKnownHeaders) {
            return slots;
        }
    }
    return HeaderSlots{};
}();
static_assert(kHeaderSlots.multiplier != 0,
              "two known names collide: hash another letter or raise kSlotBits");

// In words, which overlap where the length is no multiple of theirs; three of eight bytes are enough for the longest. Both
// have `known.length` bytes.
template <class Word>
[[nodiscard]] bool same_words(const char* name, const FoldedName& known) {
    const auto differ = [&](std::size_t at) {
        const auto folded = load_word<Word>(name + at) | load_word<Word>(known.case_bits.data() + at);
        return static_cast<Word>(folded ^ load_word<Word>(known.text.data() + at));
    };
    static_assert(kLongestName <= 3 * sizeof(std::uint64_t));
    const std::size_t last = known.length - sizeof(Word);
    if constexpr (sizeof(Word) == 8) {
        return (differ(0) | differ(std::min(last, sizeof(Word))) | differ(last)) == 0;
    } else {
        return static_cast<Word>(differ(0) | differ(last)) == 0;
    }
}

[[nodiscard]] inline HeaderName find_known_name(std::string_view name) {
    if (name.size() < kShortestName || name.size() > kLongestName) {
        return HeaderName::unknown;
    }
    const HeaderName candidate = kHeaderSlots.names[header_slot(name, kHeaderSlots.multiplier)];
    const FoldedName& known = kFoldedNames[static_cast<std::size_t>(candidate)];
    if (known.length != name.size()) {
        return HeaderName::unknown;  // as in an empty slot, whose length of 0 nothing here has
    }
    const char* const text = name.data();
    const bool same = name.size() >= 8   ? same_words<std::uint64_t>(text, known)
                      : name.size() >= 4 ? same_words<std::uint32_t>(text, known)
                                         : same_words<std::uint16_t>(text, known);
    return same ? candidate : HeaderName::unknown;
}

}  // namespace penstock

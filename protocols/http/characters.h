// Internal.
// What bytes the parts of a message may have, each kind once: a rule is written for any number of bytes
// (sixteen_bytes.h), and of one byte it is a constant expression. And with them every byte of a text judged, inline,
// for those who cannot afford the call of tables.h. No state; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "penstock/protocols/http/sixteen_bytes.h"

namespace penstock::characters {

// ---- Rules: a set bit for each byte that may not stand there ---------------------------------------------

// Of tchar (RFC 9110 §5.6.2): of what is visible, all that is no delimiter.
struct Token {
    template <class Bytes>
    [[nodiscard]] static constexpr unsigned strangers(Bytes bytes) {
        const auto round = bytes.template in_range<'(', ')'>() | bytes.equal('"');
        const auto early = bytes.equal(',') | bytes.equal('/');
        const auto middle = bytes.template in_range<':', '@'>() | bytes.template in_range<'[', ']'>();
        const auto late = bytes.equal('{') | bytes.equal('}');
        const auto visible = bytes.template in_range<'!', '~'>();
        return visible.without(round | early | middle | late).places() ^ Bytes::kAllPlaces;
    }
};

// What most tokens are made of.
struct Name {
    template <class Bytes>
    [[nodiscard]] static constexpr unsigned strangers(Bytes bytes) {
        const auto letter = bytes.small().template in_range<'a', 'z'>();
        const auto other = bytes.template in_range<'0', '9'>() | bytes.equal('-');
        return (letter | other).places() ^ Bytes::kAllPlaces;
    }
};

// Of HTAB, SP, VCHAR and obs-text (RFC 9110 §5.5).
struct Text {
    template <class Bytes>
    [[nodiscard]] static constexpr unsigned strangers(Bytes bytes) {
        const auto control = bytes.template in_range<0, 0x1f>();
        return (control.without(bytes.equal('\t')) | bytes.equal(0x7f)).places();
    }
};

// Of a request target (RFC 9112 §3.2): no fragment is part of it. It may have more than RFC 3986 takes ('"', '<',
// '|', …), since browsers send some of that unescaped and nothing here could be confused by it.
struct Target {
    template <class Bytes>
    [[nodiscard]] static constexpr unsigned strangers(Bytes bytes) {
        const auto visible = bytes.template in_range<0x21, 0x7e>();
        return visible.without(bytes.equal('#')).places() ^ Bytes::kAllPlaces;
    }
};

// ---- One at a time -------------------------------------------------------------------------------------

template <class Rule>
[[nodiscard]] constexpr bool may_stand_in(char letter) {
    return Rule::strangers(OneByte(static_cast<unsigned char>(letter))) == 0;
}

inline constexpr std::array<bool, 256> kTokenCharacters = [] {
    std::array<bool, 256> table{};
    for (std::size_t byte = 0; byte < table.size(); ++byte) {
        table[byte] = may_stand_in<Token>(static_cast<char>(byte));
    }
    return table;
}();

[[nodiscard]] inline bool is_token_character(char letter) {
    return kTokenCharacters[static_cast<unsigned char>(letter)];
}
[[nodiscard]] constexpr bool is_text_character(char letter) { return may_stand_in<Text>(letter); }
// OWS (RFC 9110 §5.6.3).
[[nodiscard]] constexpr bool is_white(char letter) { return letter == ' ' || letter == '\t'; }

// ---- Sixteen at a time ---------------------------------------------------------------------------------

// Looks at some bytes twice rather than at any outside the text.
template <class Rule, class Bytes = SixteenBytes>
[[nodiscard]] bool consists_of(std::string_view text) {
    const char* const begin = text.data();
    const std::size_t size = text.size();
    if (size < Bytes::kSize) {
        return (Rule::strangers(Bytes::load_short(begin, size)) & ((1u << size) - 1)) == 0;
    }
    const std::size_t last = size - Bytes::kSize;
    for (std::size_t at = 0; at < last; at += Bytes::kSize) {
        if (Rule::strangers(Bytes::load(begin + at)) != 0) {
            return false;
        }
    }
    return Rule::strangers(Bytes::load(begin + last)) == 0;
}

// As their namesakes in tables.h.
[[nodiscard]] inline bool is_token(std::string_view text) { return !text.empty() && consists_of<Token>(text); }
[[nodiscard]] inline bool is_field_text(std::string_view text) { return consists_of<Text>(text); }

}  // namespace penstock::characters

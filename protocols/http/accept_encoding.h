// Internal.
// Which content coding an answer gets: what the client accepts against what the server offers (RFC 9110 §12.5.3). It does
// not know which answers are worth encoding, and sets no Vary field; whoever asks does both. Pure; any thread. Never
// allocates, and takes time in proportion to the length of the field.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "penstock/protocols/http/content_coding.h"

namespace penstock {

// `accept_encoding` is the field's value, several fields joined by commas; a null view when the client sent none, which
// gives identity. `offered` is in the server's order of preference. Identity can always be offered: it comes last where
// `offered` does not name it.
//
// The highest weight wins, then the server's order. Identity that no element is about is acceptable, below all that is
// weighted. Elements that break the grammar are passed over, and so are codings that nobody here knows; of a coding that is
// there twice the lower weight counts. None when all are forbidden, identity by "identity;q=0" or "*;q=0" among them: what
// to answer then (406, or identity all the same) is the caller's choice.
[[nodiscard]] std::optional<ContentCoding> choose_content_coding(std::string_view accept_encoding,
                                                                 std::span<const ContentCoding> offered);

// Tries what the client accepts of what is `offered`, the best first, until `try_coding` takes one and returns true. False when
// nothing is left but identity, or nothing at all.
template <class TryCoding>
[[nodiscard]] bool use_best_coding(std::string_view accept_encoding, std::span<const ContentCoding> offered,
                                   const TryCoding& try_coding) {
    std::array<ContentCoding, kContentCodings> left{};
    auto end = std::copy(offered.begin(), offered.end(), left.begin());
    while (end != left.begin()) {
        const std::span<const ContentCoding> untried(left.begin(), end);
        const ContentCoding coding = choose_content_coding(accept_encoding, untried).value_or(ContentCoding::identity);
        if (coding == ContentCoding::identity) {
            return false;
        }
        if (try_coding(coding)) {
            return true;
        }
        end = std::remove(left.begin(), end, coding);
    }
    return false;
}

}  // namespace penstock

#include "penstock/protocols/http/target_scan.h"

#include <cstddef>

#include "penstock/protocols/http/characters.h"
#include "penstock/protocols/http/sixteen_bytes.h"

namespace penstock {

namespace {

// Of the first `size` bytes of sixteen.
unsigned kinds_of(SixteenBytes bytes, std::size_t size) {
    const unsigned places = (1u << size) - 1;
    const auto are_any = [places](auto marks, unsigned kind) { return (marks.places() & places) != 0 ? kind : 0u; };
    return ((characters::Target::strangers(bytes) & places) != 0 ? TargetBytes::kForbidden : 0u) |
           are_any(bytes.equal('.'), TargetBytes::kDot) | are_any(bytes.equal('%'), TargetBytes::kPercent) |
           are_any(bytes.equal('?'), TargetBytes::kQuestionMark);
}

}  // namespace

unsigned target_bytes(std::string_view text) {
    constexpr std::size_t kStep = SixteenBytes::kSize;
    unsigned kinds = TargetBytes::kPlain;
    std::size_t at = 0;
    for (; at + kStep <= text.size(); at += kStep) {
        kinds |= kinds_of(SixteenBytes::load(text.data() + at), kStep);
    }
    const std::size_t rest = text.size() - at;
    return rest == 0 ? kinds : kinds | kinds_of(SixteenBytes::load_short(text.data() + at, rest), rest);
}

}  // namespace penstock

#include "penstock/protocols/http/line_ends.h"

#include "penstock/protocols/http/sixteen_bytes.h"

namespace penstock {

// Shift the places of CR by one and they must be the places of LF; shift those of LF and they must miss those of
// white space. A bit carries over from block to block.
bool LineEndCheck::accept(const char* data, std::size_t size) {
    constexpr unsigned kLastPlace = SixteenBytes::kSize - 1;
    unsigned carry_cr = last_ == '\r' ? 1 : 0;
    unsigned carry_lf = last_ == '\n' ? 1 : 0;
    unsigned wrong = 0;
    for (std::size_t at = 0; at < size; at += SixteenBytes::kSize) {
        const std::size_t left = size - at;
        const bool whole = left >= SixteenBytes::kSize;
        const auto bytes = whole ? SixteenBytes::load(data + at) : SixteenBytes::load_short(data + at, left);
        // Behind the last byte there are zeros, which are no LF, though one may come yet.
        const unsigned counted = whole ? SixteenBytes::kAllPlaces : (1u << left) - 1;
        const unsigned cr = bytes.equal('\r').places();
        const unsigned lf = bytes.equal('\n').places();
        const unsigned white = (bytes.equal(' ') | bytes.equal('\t')).places();
        wrong |= ((cr << 1 | carry_cr) & counted) ^ lf;
        wrong |= (lf << 1 | carry_lf) & white;
        carry_cr = cr >> kLastPlace;
        carry_lf = lf >> kLastPlace;
    }
    if (size > 0) {
        last_ = data[size - 1];
    }
    return wrong == 0;
}

}  // namespace penstock

#include "penstock/protocols/http/line_ends.h"

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace penstock {

bool LineEndCheck::accept(const char* data, std::size_t size) {
#if defined(__SSE2__)
    // Sixteen bytes at a time: shift the places of CR by one and they must be the places of LF; shift those of LF and
    // they must miss those of white space. A bit carries over from block to block.
    unsigned carry_cr = last_ == '\r' ? 1 : 0;
    unsigned carry_lf = last_ == '\n' ? 1 : 0;
    unsigned wrong = 0;
    std::size_t done = 0;
    for (; done + 16 <= size; done += 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + done));
        const auto places = [&block](char c) {
            return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(c))));
        };
        const unsigned cr = places('\r');
        const unsigned lf = places('\n');
        const unsigned white = places(' ') | places('\t');
        wrong |= ((cr << 1 | carry_cr) & 0xffff) ^ lf;
        wrong |= (lf << 1 | carry_lf) & white;
        carry_cr = cr >> 15;
        carry_lf = lf >> 15;
    }
    if (wrong != 0) {
        return false;
    }
    if (done > 0) {
        last_ = data[done - 1];
    }
    return accept_slowly(data + done, size - done);
#else
    return accept_slowly(data, size);
#endif
}

bool LineEndCheck::accept_slowly(const char* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
        const char c = data[i];
        if ((last_ == '\r') != (c == '\n') || (last_ == '\n' && (c == ' ' || c == '\t'))) {
            return false;
        }
        last_ = c;
    }
    return true;
}

}  // namespace penstock

#include "penstock/protocols/http/target_scan.h"

#include <array>
#include <cstddef>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "penstock/protocols/http/short_text.h"

namespace penstock {

namespace {

constexpr std::array<std::uint8_t, 256> kKinds = [] {
    std::array<std::uint8_t, 256> kinds{};
    for (std::size_t byte = 0; byte < kinds.size(); ++byte) {
        kinds[byte] = byte > ' ' && byte < 0x7F ? TargetBytes::kPlain : TargetBytes::kForbidden;
    }
    kinds['.'] = TargetBytes::kDot;
    kinds['%'] = TargetBytes::kPercent;
    kinds['?'] = TargetBytes::kQuestionMark;
    kinds['#'] = TargetBytes::kForbidden;
    return kinds;
}();

unsigned kinds_one_by_one(std::string_view text) {
    unsigned kinds = 0;
    for (const char byte : text) {
        kinds |= kKinds[static_cast<unsigned char>(byte)];
    }
    return kinds;
}

#if defined(__SSE2__)

// Sixteen bytes at a time.
class KindScan {
public:
    void add(__m128i bytes) {
        const auto all = [](char byte) { return _mm_set1_epi8(byte); };
        // Signed, so that what is no ASCII is less as well.
        const __m128i above_space = _mm_cmpgt_epi8(bytes, all(' '));
        const __m128i misplaced = _mm_or_si128(_mm_cmpeq_epi8(bytes, all('#')), _mm_cmpeq_epi8(bytes, all(0x7F)));
        allowed_ = _mm_and_si128(allowed_, _mm_andnot_si128(misplaced, above_space));
        dots_ = _mm_or_si128(dots_, _mm_cmpeq_epi8(bytes, all('.')));
        percents_ = _mm_or_si128(percents_, _mm_cmpeq_epi8(bytes, all('%')));
        questions_ = _mm_or_si128(questions_, _mm_cmpeq_epi8(bytes, all('?')));
    }

    [[nodiscard]] unsigned kinds() const {
        const __m128i special = _mm_or_si128(_mm_or_si128(dots_, percents_), questions_);
        if (_mm_movemask_epi8(_mm_andnot_si128(special, allowed_)) == kAll) {
            return TargetBytes::kPlain;
        }
        return (_mm_movemask_epi8(allowed_) != kAll ? TargetBytes::kForbidden : 0u) |
               (is_any(dots_) ? TargetBytes::kDot : 0u) | (is_any(percents_) ? TargetBytes::kPercent : 0u) |
               (is_any(questions_) ? TargetBytes::kQuestionMark : 0u);
    }

private:
    static constexpr int kAll = 0xFFFF;
    static bool is_any(__m128i bytes) { return _mm_movemask_epi8(bytes) != 0; }

    __m128i allowed_ = _mm_set1_epi8(-1);
    __m128i dots_ = _mm_setzero_si128();
    __m128i percents_ = _mm_setzero_si128();
    __m128i questions_ = _mm_setzero_si128();
};

#endif

}  // namespace

#if defined(__SSE2__)

// Looks at some bytes twice rather than at any outside the text.
unsigned target_bytes(std::string_view text) {
    constexpr std::size_t kStep = sizeof(__m128i);
    const char* const bytes = text.data();
    KindScan scan;
    if (text.size() >= kStep) {
        const std::size_t last = text.size() - kStep;
        for (std::size_t i = 0; i < last; i += kStep) {
            scan.add(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i)));
        }
        scan.add(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + last)));
    } else if (text.size() >= 8) {
        const auto first = load_word<std::int64_t>(bytes);
        scan.add(_mm_set_epi64x(load_word<std::int64_t>(bytes + text.size() - 8), first));
    } else if (text.size() >= 4) {
        const auto first = load_word<std::int32_t>(bytes);
        const auto last = load_word<std::int32_t>(bytes + text.size() - 4);
        scan.add(_mm_set_epi32(last, first, last, first));
    } else {
        return kinds_one_by_one(text);
    }
    return scan.kinds();
}

#else

unsigned target_bytes(std::string_view text) {
    return kinds_one_by_one(text);
}

#endif

}  // namespace penstock

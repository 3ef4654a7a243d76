// Internal.
// Sixteen bytes looked at together: by SSE2, which every x86-64 has, and by an array elsewhere. Which of the two is
// chosen here and nowhere else, by the name SixteenBytes; both are compiled wherever they can be, so that each is
// tested against the other. What asks about bytes is written for any of them, and for one byte as well, of which it
// is a constant expression (characters.h has such rules). No state; any thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "penstock/protocols/http/short_text.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace penstock {

// One byte, and of it whether it is marked.
class OneByte {
public:
    static constexpr unsigned kAllPlaces = 1;

    class Marks {
    public:
        constexpr explicit Marks(bool marked) : marked_(marked) {}
        [[nodiscard]] constexpr unsigned places() const { return marked_ ? 1 : 0; }
        [[nodiscard]] constexpr Marks operator|(Marks other) const { return Marks(marked_ || other.marked_); }
        [[nodiscard]] constexpr Marks without(Marks other) const { return Marks(marked_ && !other.marked_); }

    private:
        bool marked_;
    };

    constexpr explicit OneByte(unsigned char byte) : byte_(byte) {}
    [[nodiscard]] constexpr Marks equal(char wanted) const {
        return Marks(byte_ == static_cast<unsigned char>(wanted));
    }
    // Of `first` to `last`, both among them.
    template <unsigned char first, unsigned char last>
    [[nodiscard]] constexpr Marks in_range() const {
        return Marks(byte_ >= first && byte_ <= last);
    }
    // With the bit by which small letters differ from capitals.
    [[nodiscard]] constexpr OneByte small() const { return OneByte(static_cast<unsigned char>(byte_ | 0x20)); }

private:
    unsigned char byte_;
};

class ArrayBytes {
public:
    static constexpr std::size_t kSize = 16;
    static constexpr unsigned kAllPlaces = 0xffff;  // what places() gives when all are marked

    class Marks {
    public:
        // A set bit for each byte that is marked, the first byte's being the lowest.
        [[nodiscard]] unsigned places() const { return bits_; }
        [[nodiscard]] Marks operator|(Marks other) const { return Marks(bits_ | other.bits_); }
        [[nodiscard]] Marks without(Marks other) const { return Marks(bits_ & ~other.bits_); }

    private:
        friend class ArrayBytes;
        explicit Marks(unsigned bits) : bits_(bits) {}
        unsigned bits_;
    };

    // Sixteen from there on.
    [[nodiscard]] static ArrayBytes load(const char* at) { return load_short(at, kSize); }
    // Fewer than sixteen and none from beyond them; zeros behind.
    [[nodiscard]] static ArrayBytes load_short(const char* at, std::size_t size) {
        ArrayBytes loaded;
        for (std::size_t i = 0; i < size; ++i) {
            loaded.bytes_[i] = static_cast<unsigned char>(at[i]);
        }
        return loaded;
    }
    [[nodiscard]] Marks equal(char wanted) const {
        return mark([wanted](OneByte byte) { return byte.equal(wanted); });
    }
    template <unsigned char first, unsigned char last>
    [[nodiscard]] Marks in_range() const {
        return mark([](OneByte byte) { return byte.in_range<first, last>(); });
    }
    [[nodiscard]] ArrayBytes small() const {
        ArrayBytes small = *this;
        for (unsigned char& byte : small.bytes_) {
            byte = static_cast<unsigned char>(byte | 0x20);
        }
        return small;
    }

private:
    template <class Rule>
    [[nodiscard]] Marks mark(const Rule& rule) const {
        unsigned bits = 0;
        for (std::size_t i = 0; i < kSize; ++i) {
            bits |= rule(OneByte(bytes_[i])).places() << i;
        }
        return Marks(bits);
    }

    std::array<unsigned char, kSize> bytes_{};
};

#if defined(__SSE2__)

class Sse2Bytes {
public:
    static constexpr std::size_t kSize = 16;
    static constexpr unsigned kAllPlaces = 0xffff;  // what places() gives when all are marked

    class Marks {
    public:
        [[nodiscard]] unsigned places() const { return static_cast<unsigned>(_mm_movemask_epi8(marks_)); }
        [[nodiscard]] Marks operator|(Marks other) const { return Marks(_mm_or_si128(marks_, other.marks_)); }
        [[nodiscard]] Marks without(Marks other) const { return Marks(_mm_andnot_si128(other.marks_, marks_)); }

    private:
        friend class Sse2Bytes;
        explicit Marks(__m128i marks) : marks_(marks) {}
        __m128i marks_;  // each byte all ones or all zeros
    };

    [[nodiscard]] static Sse2Bytes load(const char* at) {
        return Sse2Bytes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    }
    // By words that overlap in the middle, of which the second loses what the first has already. Shifted in two
    // steps, since by all of a word's bits none can be.
    [[nodiscard]] static Sse2Bytes load_short(const char* at, std::size_t size) {
        std::uint64_t front = 0;
        std::uint64_t back = 0;
        if (size >= 8) {
            front = load_word<std::uint64_t>(at);
            back = load_word<std::uint64_t>(at + size - 8) >> 8 >> (8 * (15 - size));
        } else if (size >= 4) {
            const std::uint64_t last = load_word<std::uint32_t>(at + size - 4);
            front = load_word<std::uint32_t>(at) | last >> (8 * (8 - size)) << 32;
        } else if (size > 0) {
            const auto byte = [at](std::size_t i) { return std::uint64_t{load_word<std::uint8_t>(at + i)} << (8 * i); };
            front = byte(0) | byte(size / 2) | byte(size - 1);
        }
        return Sse2Bytes(_mm_set_epi64x(static_cast<long long>(back), static_cast<long long>(front)));
    }
    [[nodiscard]] Marks equal(char wanted) const { return Marks(_mm_cmpeq_epi8(bytes_, _mm_set1_epi8(wanted))); }
    // Comparing is signed here: a range is one comparison once it has been moved so that it ends at the greatest
    // number.
    template <unsigned char first, unsigned char last>
    [[nodiscard]] Marks in_range() const {
        constexpr auto kWay = static_cast<char>(0x7f - last);
        constexpr auto kBelow = static_cast<char>(0x7f - (last - first) - 1);
        static_assert(first <= last && (first > 0 || last < 0xff), "nothing is below all");
        return Marks(_mm_cmpgt_epi8(_mm_add_epi8(bytes_, _mm_set1_epi8(kWay)), _mm_set1_epi8(kBelow)));
    }
    [[nodiscard]] Sse2Bytes small() const { return Sse2Bytes(_mm_or_si128(bytes_, _mm_set1_epi8(0x20))); }

private:
    explicit Sse2Bytes(__m128i bytes) : bytes_(bytes) {}
    __m128i bytes_;
};

using SixteenBytes = Sse2Bytes;

#else

using SixteenBytes = ArrayBytes;

#endif

}  // namespace penstock

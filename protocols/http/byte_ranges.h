// Internal.
// Which parts of a representation a Range field asks for (RFC 9110 §14), as offsets that lie inside it, and the values of
// Content-Range. Touches neither files nor responses, and allocates nothing. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "penstock/engine/config.h"

namespace penstock {

struct ByteRange {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;  // never 0 in what `parse_byte_ranges` gives
};

class ByteRanges {
public:
    enum class Kind : std::uint8_t {
        none,           // the field does not count: 200 with the whole
        unsatisfiable,  // 416
        ranges,         // 206
    };

    [[nodiscard]] Kind kind() const { return kind_; }
    // In the order asked for. None overlaps another or lies next to it, so together they are never more than the whole.
    [[nodiscard]] std::span<const ByteRange> ranges() const { return std::span(ranges_).first(count_); }
    // One range, which is all there is: 200 does as well.
    [[nodiscard]] bool is_whole() const { return is_whole_; }

private:
    friend ByteRanges parse_byte_ranges(std::string_view field, std::uint64_t size);

    void add(ByteRange range);

    std::array<ByteRange, kRangeLimit> ranges_{};
    std::size_t count_ = 0;
    Kind kind_ = Kind::none;
    bool is_whole_ = false;
};

// `field`: the value of Range; `size`: bytes of the representation. The field does not count when it is empty, malformed, of
// another unit than bytes, names more than kRangeLimit ranges, or when there are no bytes: a client that adds a range to all
// it asks for has every byte of an empty file. A number too large for its type is as good as the largest.
[[nodiscard]] ByteRanges parse_byte_ranges(std::string_view field, std::uint64_t size);

// "bytes ", three numbers of at most 20 digits, '-' and '/'.
inline constexpr std::size_t kContentRangeBytes = 68;

// "bytes 0-499/1234", in `out`. `range` lies inside `size` bytes and is not empty.
[[nodiscard]] std::string_view write_content_range(ByteRange range, std::uint64_t size,
                                                   std::span<char, kContentRangeBytes> out);
// "bytes */1234", in `out`: with 416 (RFC 9110 §15.5.17).
[[nodiscard]] std::string_view write_unsatisfied_range(std::uint64_t size, std::span<char, kContentRangeBytes> out);

}  // namespace penstock

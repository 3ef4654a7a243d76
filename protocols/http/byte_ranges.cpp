#include "penstock/protocols/http/byte_ranges.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "penstock/engine/ensure.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

namespace {

constexpr std::string_view kUnit = "bytes";
constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

std::string_view next_element(std::string_view* list);
std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t size);

}  // namespace

ByteRanges parse_byte_ranges(std::string_view field, std::uint64_t size) {
    const std::size_t equals = field.find('=');
    if (size == 0 || equals == std::string_view::npos || !equal_ignoring_case(field.substr(0, equals), kUnit)) {
        return {};
    }
    ByteRanges result;
    std::size_t asked = 0;
    for (std::string_view list = field.substr(equals + 1); !list.empty();) {
        const std::string_view element = next_element(&list);
        if (element.empty()) {
            continue;  // to be passed over (RFC 9110 §5.6.1.2)
        }
        const std::optional<ByteRange> range = parse_range(element, size);
        if (!range || ++asked > kRangeLimit) {
            return {};
        }
        if (range->size > 0) {
            result.add(*range);
        }
    }
    if (asked > 0) {
        result.kind_ = result.count_ > 0 ? ByteRanges::Kind::ranges : ByteRanges::Kind::unsatisfiable;
        result.is_whole_ = result.count_ == 1 && result.ranges_[0].size == size;
    }
    return result;
}

// Takes in all that the new range overlaps or touches (RFC 9110 §15.3.7.2 allows it), and puts it where the first of them
// stood. Those that are there do not touch one another, so what is taken in makes the range touch no further ones.
void ByteRanges::add(ByteRange range) {
    std::optional<std::size_t> place;
    std::size_t kept = 0;
    std::uint64_t begin = range.offset;
    std::uint64_t end = range.offset + range.size;
    for (std::size_t i = 0; i < count_; ++i) {
        const ByteRange other = ranges_[i];
        const std::uint64_t other_end = other.offset + other.size;
        if (other.offset > range.offset + range.size || range.offset > other_end) {
            ranges_[kept++] = other;
            continue;
        }
        begin = std::min(begin, other.offset);
        end = std::max(end, other_end);
        if (!place) {
            place = kept++;
        }
    }
    ranges_[place ? *place : kept++] = {begin, end - begin};
    count_ = kept;
}

namespace {

std::optional<std::uint64_t> parse_number(std::string_view digits);

// Up to the next comma, without the spaces around it.
std::string_view next_element(std::string_view* list) {
    const std::size_t comma = std::min(list->find(','), list->size());
    std::string_view element = list->substr(0, comma);
    list->remove_prefix(std::min(comma + 1, list->size()));
    const std::size_t first = std::min(element.find_first_not_of(" \t"), element.size());
    element.remove_prefix(first);
    return element.substr(0, element.find_last_not_of(" \t") + 1);
}

// "first-last", "first-" or "-length" (RFC 9110 §14.1.2), cut to `size`; none when it is malformed, of size 0 when it lies
// outside.
std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t size) {
    const std::size_t hyphen = text.find('-');
    if (hyphen == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view after = text.substr(hyphen + 1);
    if (hyphen == 0) {
        const std::optional<std::uint64_t> length = parse_number(after);
        if (!length) {
            return std::nullopt;
        }
        const std::uint64_t taken = std::min(*length, size);
        return ByteRange{size - taken, taken};
    }
    const std::optional<std::uint64_t> first = parse_number(text.substr(0, hyphen));
    const std::optional<std::uint64_t> last = after.empty() ? kLargest : parse_number(after);
    if (!first || !last || *last < *first) {
        return std::nullopt;
    }
    if (*first >= size) {
        return ByteRange{size, 0};
    }
    return ByteRange{*first, std::min(*last, size - 1) - *first + 1};
}

// Digits only, and one at least.
std::optional<std::uint64_t> parse_number(std::string_view digits) {
    if (digits.empty()) {
        return std::nullopt;
    }
    std::uint64_t number = 0;
    for (const char letter : digits) {
        if (letter < '0' || letter > '9') {
            return std::nullopt;
        }
        const auto digit = static_cast<std::uint64_t>(letter - '0');
        number = number > (kLargest - digit) / 10 ? kLargest : number * 10 + digit;
    }
    return number;
}

char* write_text(char* out, std::string_view text) {
    std::memcpy(out, text.data(), text.size());
    return out + text.size();
}

// kContentRangeBytes has room for the digits of every number.
char* write_number(char* out, std::uint64_t number) {
    return std::to_chars(out, out + std::numeric_limits<std::uint64_t>::digits10 + 1, number).ptr;
}

}  // namespace

std::string_view write_content_range(ByteRange range, std::uint64_t size, std::span<char, kContentRangeBytes> out) {
    ensure(range.size > 0 && range.offset < size && range.size <= size - range.offset,
           "a range to be written is empty or reaches outside");
    char* end = write_text(out.data(), "bytes ");
    end = write_number(end, range.offset);
    end = write_text(end, "-");
    end = write_number(end, range.offset + range.size - 1);
    end = write_text(end, "/");
    end = write_number(end, size);
    return {out.data(), static_cast<std::size_t>(end - out.data())};
}

std::string_view write_unsatisfied_range(std::uint64_t size, std::span<char, kContentRangeBytes> out) {
    char* const end = write_number(write_text(out.data(), "bytes */"), size);
    return {out.data(), static_cast<std::size_t>(end - out.data())};
}

}  // namespace penstock

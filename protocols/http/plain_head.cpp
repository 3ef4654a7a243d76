#include "penstock/protocols/http/plain_head.h"

#include <algorithm>
#include <array>
#include <bit>

#include "penstock/protocols/http/characters.h"
#include "penstock/protocols/http/head_scan.h"
#include "penstock/protocols/http/known_names.h"
#include "penstock/protocols/http/short_text.h"

namespace penstock {

namespace {

constexpr std::size_t kLeastHeadBytes = std::string_view("GET / HTTP/1.1\r\n\r\n").size();
static_assert(kLeastHeadBytes >= kScanBytes, "find_part_end looks at the last bytes together");
// Of Content-Length: too few to overflow 64 bits, and more than a body may have.
constexpr std::size_t kLengthDigits = 18;

// Text as it lies in memory, so that one comparison does for all of it.
template <class Word = std::uint64_t>
constexpr Word word_of(std::string_view text) {
    std::array<char, sizeof(Word)> bytes{};
    std::copy(text.begin(), text.end(), bytes.begin());
    return std::bit_cast<Word>(bytes);
}

constexpr auto kLineEnd = word_of<std::uint16_t>("\r\n");
constexpr std::ptrdiff_t kVersionBytes = sizeof(std::uint64_t);

struct MethodWord {
    std::uint64_t text;
    std::uint64_t mask;  // of its bytes
    std::size_t size;
    Method method;
};

constexpr MethodWord with_space(std::string_view text, Method method) {
    constexpr std::string_view kOnes = "\xff\xff\xff\xff\xff\xff\xff\xff";
    return {word_of(text), word_of(kOnes.substr(0, text.size())), text.size(), method};
}

// The usual ones first.
constexpr std::array<MethodWord, kRoutableMethods> kMethods = {
    with_space("GET ", Method::get),   with_space("POST ", Method::post),     with_space("HEAD ", Method::head),
    with_space("PUT ", Method::put),   with_space("DELETE ", Method::del),    with_space("PATCH ", Method::patch),
    with_space("OPTIONS ", Method::options),
};

struct Cursor {
    const char* at;
    const char* end;

    [[nodiscard]] bool has(std::ptrdiff_t bytes) const { return at <= end - bytes; }
};

struct FieldLine {
    std::string_view name;
    std::string_view value;
};

// Each moves behind what it has taken. False: give up.
bool take_request_line(Cursor& cursor, std::size_t target_limit, RequestLine* line);
bool take_method(Cursor& cursor, Method* method);
bool take_target(Cursor& cursor, std::size_t limit, RequestLine* line);
bool take_version(Cursor& cursor, RequestLine* line);
bool take_line_end(Cursor& cursor);
bool take_field(Cursor& cursor, FieldLine* line);

void trim(const char** begin, const char** end);
bool is_plain_length(std::string_view value);

}  // namespace

std::size_t PlainHead::try_read(std::string_view bytes, PlainHeadLimits limits, Request& request, RequestLine* line) {
    Cursor cursor{bytes.data(), bytes.data() + bytes.size()};
    if (bytes.size() < kLeastHeadBytes || !take_request_line(cursor, limits.target_bytes, line)) {
        return 0;
    }
    request.set_base(bytes.data());
    while (!take_line_end(cursor)) {
        FieldLine field;
        if (request.header_count() == limits.field_count || !take_field(cursor, &field) ||
            !request.add_field(field.name, field.value, find_known_name(field.name))) {
            request.forget_fields();
            return 0;
        }
    }
    if (request.has_any({HeaderName::transfer_encoding, HeaderName::content_length}) &&
        (request.has(HeaderName::transfer_encoding) || request.repeated(HeaderName::content_length) ||
         !is_plain_length(request.header(HeaderName::content_length)))) {
        request.forget_fields();
        return 0;
    }
    return static_cast<std::size_t>(cursor.at - bytes.data());
}

namespace {

bool take_request_line(Cursor& cursor, std::size_t target_limit, RequestLine* line) {
    return take_method(cursor, &line->method) && take_target(cursor, target_limit, line) &&
           take_version(cursor, line) && take_line_end(cursor);
}

bool take_method(Cursor& cursor, Method* method) {
    const auto word = load_word<std::uint64_t>(cursor.at);
    for (const MethodWord& known : kMethods) {
        if ((word & known.mask) == known.text) {
            *method = known.method;
            cursor.at += known.size;
            return true;
        }
    }
    return false;
}

bool take_target(Cursor& cursor, std::size_t limit, RequestLine* line) {
    const char* const begin = cursor.at;
    bool has_special = false;
    cursor.at = find_target_end(begin, cursor.end, &has_special);
    line->target = {begin, cursor.at};
    line->is_plain_path = !has_special;
    return *begin == '/' && line->target.size() <= limit;
}

bool take_version(Cursor& cursor, RequestLine* line) {
    if (!cursor.has(1 + kVersionBytes) || *cursor.at != ' ') {
        return false;
    }
    const auto version = load_word<std::uint64_t>(cursor.at + 1);
    line->major_version = 1;
    line->minor_version = version == word_of("HTTP/1.1") ? 1 : 0;
    cursor.at += 1 + kVersionBytes;
    return line->minor_version == 1 || version == word_of("HTTP/1.0");
}

bool take_line_end(Cursor& cursor) {
    if (!cursor.has(2) || load_word<std::uint16_t>(cursor.at) != kLineEnd) {
        return false;
    }
    cursor.at += 2;
    return true;
}

bool take_field(Cursor& cursor, FieldLine* line) {
    const char* const name = cursor.at;
    const char* const name_end = find_part_end<characters::Name>(name, cursor.end);
    if (name_end == name || name_end > cursor.end - 2 || *name_end != ':') {
        return false;
    }
    const char* value = name_end + 1;
    if (*value == ' ') {
        ++value;  // nearly everybody's one space
    }
    const char* value_end = find_part_end<characters::Text>(value, cursor.end);
    cursor.at = value_end;
    const auto is_low = [](char c) { return static_cast<unsigned char>(c) <= ' '; };  // of a value's bytes: is white
    if (value < value_end && (is_low(*value) || is_low(value_end[-1]))) {
        trim(&value, &value_end);
    }
    line->name = {name, name_end};
    line->value = {value, value_end};
    return take_line_end(cursor);
}

void trim(const char** begin, const char** end) {
    while (*begin < *end && characters::is_white(**begin)) {
        ++*begin;
    }
    while (*begin < *end && characters::is_white((*end)[-1])) {
        --*end;
    }
}

bool is_plain_length(std::string_view value) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    return !value.empty() && value.size() <= kLengthDigits && std::all_of(value.begin(), value.end(), is_digit);
}

}  // namespace

}  // namespace penstock

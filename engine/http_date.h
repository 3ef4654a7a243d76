// Internal.
// Dates as HTTP writes them (RFC 9110 §5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT", and as it has ever written them. Knows no
// clock: who needs one says what time it is. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock {

inline constexpr std::size_t kHttpDateBytes = 29;

// `seconds` since 1970-01-01 UTC; years 1970 to 9999. Writes kHttpDateBytes characters.
void write_http_date(std::int64_t seconds, char* out);

// Seconds since 1970-01-01 UTC, negative before. All three forms, each to the letter and with nothing around it:
//
//     Sun, 06 Nov 1994 08:49:37 GMT     IMF-fixdate
//     Sunday, 06-Nov-94 08:49:37 GMT    RFC 850; `now` decides on the century
//     Sun Nov  6 08:49:37 1994          asctime
//
// None for anything else, and for days and times that do not exist. A leap second, 23:59:60, is the second after it.
// The day of the week must be one, but not the right one: the rest says the moment without it, and to ignore such a date in
// If-Unmodified-Since would let a change through that its client wanted stopped.
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now);

}  // namespace penstock

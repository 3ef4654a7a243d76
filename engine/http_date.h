// Internal.
// Dates as HTTP writes them (RFC 9110 §5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT". Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock {

inline constexpr std::size_t kHttpDateBytes = 29;

// `seconds` since 1970-01-01 UTC; years 1970 to 9999. Writes kHttpDateBytes characters.
void write_http_date(std::int64_t seconds, char* out);

}  // namespace penstock

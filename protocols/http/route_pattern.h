// Internal.
// A route's pattern, checked and taken apart. Used while routes are built, by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/platform/error.h"

namespace penstock {

// Far above any path that a person would write down; it bounds how deep matching goes on the stack.
inline constexpr std::size_t kMaxRouteSegments = 64;

struct PatternSegment {
    enum class Kind : std::uint8_t { exact, parameter, wildcard };

    Kind kind = Kind::exact;
    std::string_view text;  // the name of a parameter or wildcard, without its mark
};

struct RoutePattern {
    std::vector<PatternSegment> segments;           // at least one; "/" has an empty one
    std::vector<std::string_view> parameter_names;  // in order, the wildcard's last
};

// Views point into `pattern`. The error says what is wrong and what to do, but not where: the caller knows
// which route it is.
[[nodiscard]] Result<RoutePattern> parse_route_pattern(std::string_view pattern);

// In double quotes, for a message: control characters as "\x0a".
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace penstock

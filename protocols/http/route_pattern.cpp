#include "penstock/protocols/http/route_pattern.h"

#include <algorithm>

#include "penstock/protocols/http/route_table.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

namespace {

std::string character_mistake(std::string_view pattern);
PatternSegment parse_segment(std::string_view text);
std::string segment_mistake(const PatternSegment& segment, bool is_last);
std::string name_mistake(const RoutePattern& pattern);

}  // namespace

Result<RoutePattern> parse_route_pattern(std::string_view pattern) {
    std::string mistake = character_mistake(pattern);
    RoutePattern parsed;
    std::size_t position = 0;
    while (mistake.empty() && position < pattern.size()) {
        const std::size_t end = std::min(pattern.find('/', position + 1), pattern.size());
        const PatternSegment segment = parse_segment(pattern.substr(position + 1, end - position - 1));
        mistake = segment_mistake(segment, end == pattern.size());
        if (segment.kind != PatternSegment::Kind::exact) {
            parsed.parameter_names.push_back(segment.text);
        }
        parsed.segments.push_back(segment);
        position = end;
    }
    if (mistake.empty()) {
        mistake = name_mistake(parsed);
    }
    if (!mistake.empty()) {
        return Error{std::move(mistake)};
    }
    return parsed;
}

std::string quoted(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string result = "\"";
    for (const char letter : text) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte < 0x20 || byte == 0x7F) {
            result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
        } else {
            result += letter;
        }
    }
    return result + '"';
}

namespace {

std::string character_mistake(std::string_view pattern) {
    if (!pattern.starts_with('/')) {
        return "a pattern begins with '/'; write " + quoted("/" + std::string(pattern));
    }
    for (const char letter : pattern) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte < 0x20 || byte == 0x7F) {
            return "a pattern has no control characters; remove them";
        }
        if (letter == '%') {
            return "a pattern is compared with the decoded path; write the character that the percent escape "
                   "means";
        }
        if (letter == '?' || letter == '#') {
            return std::string("a pattern is a path only; remove what begins with '") + letter +
                   "' and read the query in the handler";
        }
    }
    return {};
}

PatternSegment parse_segment(std::string_view text) {
    if (text.starts_with(':')) {
        return {PatternSegment::Kind::parameter, text.substr(1)};
    }
    if (text.starts_with('*')) {
        return {PatternSegment::Kind::wildcard, text.substr(1)};
    }
    return {PatternSegment::Kind::exact, text};
}

std::string segment_mistake(const PatternSegment& segment, bool is_last) {
    if (segment.kind == PatternSegment::Kind::exact) {
        // The path that is matched has them resolved, so such a route would never be found.
        const bool is_dots = segment.text == "." || segment.text == "..";
        return is_dots ? "a pattern has no \".\" or \"..\"; write the path that they lead to" : "";
    }
    const bool is_wildcard = segment.kind == PatternSegment::Kind::wildcard;
    if (segment.text.empty()) {
        return is_wildcard ? "the wildcard has no name; write for example \"*rest\""
                           : "a parameter has no name; write for example \":id\"";
    }
    // ":id.json" would else be a parameter of that name, which nobody means.
    if (!std::all_of(segment.text.begin(), segment.text.end(), [](char letter) {
            return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                   (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
        })) {
        return "a parameter takes a whole segment and its name is of letters, digits, '_' and '-'; rename " +
               quoted(segment.text);
    }
    if (is_wildcard && !is_last) {
        return "the wildcard " + quoted("*" + std::string(segment.text)) +
               " is not the last segment; end the pattern there, or use a parameter " +
               quoted(":" + std::string(segment.text));
    }
    return {};
}

std::string name_mistake(const RoutePattern& pattern) {
    const std::vector<std::string_view>& names = pattern.parameter_names;
    for (auto name = names.begin(); name != names.end(); ++name) {
        if (std::find(names.begin(), name, *name) != name) {
            return "two parameters are named " + quoted(*name) + "; give each a name of its own";
        }
    }
    if (names.size() > kMaxRouteParameters) {
        return "it has " + std::to_string(names.size()) + " parameters and may have " +
               std::to_string(kMaxRouteParameters) + "; take the rest by a wildcard";
    }
    if (pattern.segments.size() > kMaxRouteSegments) {
        return "it has " + std::to_string(pattern.segments.size()) + " segments and may have " +
               std::to_string(kMaxRouteSegments) + "; take the rest by a wildcard";
    }
    return {};
}

}  // namespace
}  // namespace penstock

// Internal.
// What the tests of routing share: routers built or refused, and the outcome of a match as a text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "penstock/protocols/http/route_table.h"
#include "penstock/protocols/http/router.h"

namespace penstock::routing_test {

inline constexpr auto nothing = [](Request&, Response&) {
};

// A handler that can be told from others without being called.
struct TaggedHandler {
    int tag;
    void operator()(Request&, Response&) const {}
};

inline std::shared_ptr<const RouteTable> built(const Router& router) {
    const auto table = router.build();
    if (!table) {
        FAIL(table.error().message);
    }
    return table.value();
}

// Empty when the router can be built.
inline std::string mistake_of(const Router& router) {
    const auto table = router.build();
    return table ? std::string() : table.error().message;
}

// "pattern name=value name=value", or "404", or "405 GET, HEAD, OPTIONS".
inline std::string outcome(const RouteTable& table, Method method, std::string_view path) {
    const RouteMatch match = table.match(method, path);
    if (match.route == nullptr) {
        return match.allow.empty() ? "404" : "405 " + std::string(match.allow);
    }
    std::string text = match.route->pattern;
    for (std::size_t i = 0; i < match.parameter_count(); ++i) {
        const RouteParameter parameter = match.parameter(i);
        text += " " + std::string(parameter.name) + "=" + std::string(parameter.value);
    }
    return text;
}

}  // namespace penstock::routing_test

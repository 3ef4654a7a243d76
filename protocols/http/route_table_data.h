// Internal.
// What a RouteTable holds: filled by RouteTableBuilder, walked by RouteTable::match. Views point into the
// patterns of `routes`, which a deque keeps in place.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/protocols/http/route_index.h"
#include "penstock/protocols/http/route_table.h"

namespace penstock {

struct StoredRoute {
    Route route;
    std::vector<std::string_view> parameter_names;
};

// All routes of one pattern, parameter names left aside.
struct RouteEndpoint {
    // Where a method's route stands. Behind the routable methods: what `any` gave, while the table is built; then
    // nothing, for the methods that no route can have.
    static constexpr std::size_t kAny = kRoutableMethods;

    std::array<const StoredRoute*, kRoutableMethods + 1> routes{};
    std::uint8_t methods = 0;  // a bit for each routable method that is answered
};

// A segment of the patterns that have parameters. Exact children are found by RouteTable::Data::edges.
struct RouteNode {
    static constexpr std::uint32_t kNone = RouteIndex::kNone;

    std::string_view segment;  // of an exact node
    std::uint32_t exact_children = 0;
    std::uint32_t only_child = kNone;  // the exact child when there is just one, to spare hashing
    std::uint32_t parameter_child = kNone;
    std::uint32_t endpoint = kNone;           // for a path that ends with this segment
    std::uint32_t wildcard_endpoint = kNone;  // for any rest behind this segment

    // Nothing is below it but, perhaps, its endpoint.
    [[nodiscard]] bool is_leaf() const {
        return exact_children == 0 && parameter_child == kNone && wildcard_endpoint == kNone;
    }
};

struct RouteTable::Data {
    std::deque<Middleware> middleware;
    std::deque<StoredRoute> routes;
    std::optional<Route> fallback;

    std::vector<RouteEndpoint> endpoints;
    RouteIndex exact;              // whole patterns without parameters → endpoint
    std::vector<RouteNode> nodes;  // the first is the root
    RouteIndex edges;              // parent node and segment → node
    RouteIndex starts;             // what stands in front of a pattern's first parameter, its slash left out → node

    // By a set of methods as in RouteEndpoint::methods: the value of Allow, with OPTIONS; empty for the empty
    // set. A few KB for every set there can be, so that a refusal which joins several patterns needs no
    // memory.
    std::array<std::string, 1u << kRoutableMethods> allow_values;
    std::uint8_t all_methods = 0;
};

}  // namespace penstock

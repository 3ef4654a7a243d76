// Internal.
// Makes a RouteTable and collects the mistakes that stand in its way. Owned and used by Router::build.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/platform/error.h"
#include "penstock/protocols/http/route_pattern.h"
#include "penstock/protocols/http/route_table.h"
#include "penstock/protocols/http/route_table_data.h"

namespace penstock {

class RouteTableBuilder {
public:
    RouteTableBuilder();

    // The table's copy.
    [[nodiscard]] const Middleware* keep(const Middleware& middleware);

    // No method: `any`.
    void add(std::optional<Method> method, std::string pattern, const Handler& handler,
             const std::vector<const Middleware*>& middleware);
    void set_fallback(const Handler& handler, const std::vector<const Middleware*>& middleware);
    void report(std::string mistake);
    void check_options(const RouteOptions& options, const std::string& label);

    // The table, or every mistake. Call it once.
    [[nodiscard]] Result<std::shared_ptr<const RouteTable>> finish();

private:
    // The endpoint of the pattern, made where it is new.
    [[nodiscard]] std::uint32_t endpoint_of(const StoredRoute& stored, const RoutePattern& pattern);
    // The node is where the pattern's first parameter or wildcard follows, which is `segment`.
    void keep_start(std::string_view pattern, const PatternSegment& segment, std::uint32_t node);
    [[nodiscard]] std::uint32_t exact_child(std::uint32_t parent, std::string_view segment);
    [[nodiscard]] std::uint32_t parameter_child(std::uint32_t parent);
    [[nodiscard]] std::uint32_t new_node(std::string_view segment);

    std::shared_ptr<RouteTable> table_;
    RouteTable::Data& data_;
    std::map<std::string_view, std::uint32_t> exact_;
    std::map<std::string_view, std::uint32_t> starts_;
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> edges_;
    std::vector<std::string> mistakes_;
};

}  // namespace penstock

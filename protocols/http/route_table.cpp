#include "penstock/protocols/http/route_table.h"

#include <algorithm>

#include "penstock/protocols/http/route_table_data.h"

namespace penstock {

namespace {

// One walk through the table. A node stands for one segment of one pattern's beginning, and a tree has one
// way to each, so a walk that tries all alternatives enters a node at most once: its work is bounded by the
// nodes that fit the path's beginning, never by the alternatives multiplied. The peer's path adds nothing to
// that, and its length only the search for slashes as deep as the patterns go.
struct Search {
    const std::vector<RouteEndpoint>& endpoints;
    const std::vector<RouteNode>& nodes;
    const RouteIndex& edges;
    const std::string_view path;
    const std::size_t place;  // in RouteEndpoint::routes
    RouteMatch* const result;
    std::uint8_t methods = 0;  // of all endpoints that fit the path and lack the method

    // Whether the endpoint, kNone included, answers the method; `count` parameter values have been set.
    bool take(std::uint32_t endpoint, std::size_t count);
    // Whether something at or below the node answers. `position` is where the path's next segment begins: one
    // behind its end when there is none. Recursion is as deep as the patterns (kMaxRouteSegments).
    bool visit(std::uint32_t index, std::size_t position, std::size_t count);

private:
    [[nodiscard]] std::uint32_t exact_child(std::uint32_t index, std::string_view segment) const;
};

}  // namespace

RouteTable::RouteTable() : data_(std::make_unique<Data>()) {
    data_->nodes.emplace_back();
}

RouteTable::~RouteTable() = default;

void RouteTable::match(Method method, std::string_view path, RouteMatch* result) const {
    result->route = nullptr;
    result->allow = {};
    result->parameter_count = 0;
    // "*" and the target of CONNECT have no path.
    if (!path.starts_with('/')) {
        return;
    }
    const std::size_t place = std::min(static_cast<std::size_t>(method), RouteEndpoint::kAny);
    Search search{data_->endpoints, data_->nodes, data_->edges, path, place, result};
    if (!search.take(data_->exact.find(0, path), 0) && !search.visit(0, 1, 0)) {
        result->allow = data_->allow_values[search.methods];
    }
}

const Route* RouteTable::fallback() const {
    return data_->fallback ? &*data_->fallback : nullptr;
}

std::string_view RouteTable::all_methods() const {
    return data_->allow_values[data_->all_methods];
}

namespace {

bool Search::visit(std::uint32_t index, std::size_t position, std::size_t count) {
    const RouteNode& node = nodes[index];
    if (position > path.size()) {
        return take(node.endpoint, count);
    }
    const std::size_t end = std::min(path.find('/', position), path.size());
    const std::string_view segment = path.substr(position, end - position);
    if (node.exact_children > 0) {
        const std::uint32_t child = exact_child(index, segment);
        if (child != RouteNode::kNone && visit(child, end + 1, count)) {
            return true;
        }
    }
    if (node.parameter_child != RouteNode::kNone && !segment.empty()) {
        result->parameters[count].value = segment;
        if (visit(node.parameter_child, end + 1, count + 1)) {
            return true;
        }
    }
    if (node.wildcard_endpoint != RouteNode::kNone) {
        result->parameters[count].value = path.substr(position);
        return take(node.wildcard_endpoint, count + 1);
    }
    return false;
}

std::uint32_t Search::exact_child(std::uint32_t index, std::string_view segment) const {
    const std::uint32_t only = nodes[index].only_child;
    if (only != RouteNode::kNone) {
        return nodes[only].segment == segment ? only : RouteNode::kNone;
    }
    return edges.find(index, segment);
}

bool Search::take(std::uint32_t endpoint, std::size_t count) {
    if (endpoint == RouteNode::kNone) {
        return false;
    }
    const StoredRoute* const stored = endpoints[endpoint].routes[place];
    if (stored == nullptr) {
        methods |= endpoints[endpoint].methods;
        return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
        result->parameters[i].name = stored->parameter_names[i];
    }
    result->route = &stored->route;
    result->parameter_count = count;
    return true;
}

}  // namespace
}  // namespace penstock

#include "penstock/protocols/http/router.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/protocols/http/route_pattern.h"
#include "penstock/protocols/http/route_table_builder.h"

namespace penstock {

namespace {

std::string prefix_mistake(std::string_view prefix);

}  // namespace

struct Router::Node {
    struct Declaration {
        std::optional<Method> method;  // none: `any`
        std::string pattern;
        Handler handler;
    };

    std::string prefix;
    std::vector<Declaration> routes;
    std::vector<Middleware> middleware;
    std::vector<std::unique_ptr<Router>> groups;
    std::vector<Handler> fallbacks;

    // Under what the routers around it add.
    void declare(RouteTableBuilder& builder, const std::string& outer_prefix,
                 std::vector<const Middleware*> around) const;
    void declare_group(RouteTableBuilder& builder, const std::string& outer_prefix,
                       const std::vector<const Middleware*>& around) const;
};

Router::Router() : node_(std::make_unique<Node>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

Router& Router::get(std::string_view pattern, Handler handler, RouteOptions options) {
    return route(Method::get, pattern, std::move(handler), options);
}

Router& Router::head(std::string_view pattern, Handler handler, RouteOptions options) {
    return route(Method::head, pattern, std::move(handler), options);
}

Router& Router::post(std::string_view pattern, Handler handler, RouteOptions options) {
    return route(Method::post, pattern, std::move(handler), options);
}

Router& Router::put(std::string_view pattern, Handler handler, RouteOptions options) {
    return route(Method::put, pattern, std::move(handler), options);
}

Router& Router::del(std::string_view pattern, Handler handler, RouteOptions options) {
    return route(Method::del, pattern, std::move(handler), options);
}

Router& Router::patch(std::string_view pattern, Handler handler, RouteOptions options) {
    return route(Method::patch, pattern, std::move(handler), options);
}

Router& Router::options(std::string_view pattern, Handler handler, RouteOptions options) {
    return route(Method::options, pattern, std::move(handler), options);
}

Router& Router::any(std::string_view pattern, Handler handler, RouteOptions options) {
    handler.options = options;
    node_->routes.push_back({std::nullopt, std::string(pattern), std::move(handler)});
    return *this;
}

Router& Router::route(Method method, std::string_view pattern, Handler handler, RouteOptions options) {
    handler.options = options;
    node_->routes.push_back({method, std::string(pattern), std::move(handler)});
    return *this;
}

Router& Router::group(std::string_view prefix) {
    Router& group = *node_->groups.emplace_back(std::make_unique<Router>());
    group.node_->prefix = prefix;
    return group;
}

Router& Router::use(Middleware middleware) {
    node_->middleware.push_back(std::move(middleware));
    return *this;
}

Router& Router::fallback(Handler handler) {
    node_->fallbacks.push_back(std::move(handler));
    return *this;
}

Result<std::shared_ptr<const RouteTable>> Router::build() const {
    RouteTableBuilder builder;
    node_->declare(builder, "", {});
    return builder.finish();
}

void Router::Node::declare(RouteTableBuilder& builder, const std::string& outer_prefix,
                           std::vector<const Middleware*> around) const {
    for (const Middleware& hooks : middleware) {
        around.push_back(builder.keep(hooks));
    }
    const std::string full_prefix = outer_prefix + prefix;
    for (const Declaration& declared : routes) {
        // Joined, "users" under "/api" would read as a pattern in order.
        if (!full_prefix.empty() && !declared.pattern.starts_with('/')) {
            builder.report(quoted(declared.pattern) + " in the group " + quoted(full_prefix) +
                           ": a pattern begins with '/' in a group as well; write " +
                           quoted("/" + declared.pattern) + ", or add " + quoted(full_prefix) +
                           " to the router around the group");
            continue;
        }
        builder.add(declared.method, full_prefix + declared.pattern, declared.handler, around);
    }
    for (const Handler& fallback : fallbacks) {
        builder.set_fallback(fallback, around);
    }
    for (const std::unique_ptr<Router>& group : groups) {
        group->node_->declare_group(builder, full_prefix, around);
    }
}

void Router::Node::declare_group(RouteTableBuilder& builder, const std::string& outer_prefix,
                                 const std::vector<const Middleware*>& around) const {
    if (!fallbacks.empty()) {
        builder.report("the group " + quoted(outer_prefix + prefix) +
                       " has a fallback; set it on the outermost router, or add a wildcard to the group");
        return;
    }
    const std::string mistake = prefix_mistake(prefix);
    if (!mistake.empty()) {
        builder.report("the group " + quoted(outer_prefix + prefix) + ": " + mistake);
        return;
    }
    declare(builder, outer_prefix, around);
}

namespace {

// An empty prefix is in order: such a group is for its middleware.
std::string prefix_mistake(std::string_view prefix) {
    if (prefix.empty()) {
        return {};
    }
    if (prefix.front() == '/' && prefix.back() == '/') {
        return "its prefix ends with '/', which its patterns begin with; write " +
               quoted(prefix.substr(0, prefix.size() - 1));
    }
    const Result<RoutePattern> parsed = parse_route_pattern(prefix);
    if (!parsed) {
        return "its prefix " + quoted(prefix) + " is no pattern: " + parsed.error().message;
    }
    if (parsed.value().segments.back().kind == PatternSegment::Kind::wildcard) {
        return "its prefix ends with a wildcard, behind which no route can be; use a parameter, or a route";
    }
    return {};
}

}  // namespace
}  // namespace penstock

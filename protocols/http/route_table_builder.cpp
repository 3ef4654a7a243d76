#include "penstock/protocols/http/route_table_builder.h"

#include "penstock/engine/config.h"
#include "penstock/engine/timer_wheel.h"

namespace penstock {

namespace {

constexpr std::uint32_t kNone = RouteNode::kNone;
// Enough to see what is wrong; a mistake in a prefix can repeat in every route under it.
constexpr std::size_t kReportedMistakes = 10;

std::string label_of(std::size_t place, std::string_view pattern);
bool is_missing(const Handler& handler);
void complete(RouteEndpoint& endpoint);
std::string allow_value(std::size_t methods);
std::vector<RouteIndex::Item> items_of(const std::map<std::string_view, std::uint32_t>& texts);
std::vector<RouteIndex::Item>
items_of(const std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t>& texts);

}  // namespace

RouteTableBuilder::RouteTableBuilder() : table_(std::make_shared<RouteTable>()), data_(*table_->data_) {}

const Middleware* RouteTableBuilder::keep(const Middleware& middleware) {
    return &data_.middleware.emplace_back(middleware);
}

void RouteTableBuilder::add(std::optional<Method> method, std::string pattern, const Handler& handler,
                            const std::vector<const Middleware*>& middleware) {
    const std::size_t place = method ? static_cast<std::size_t>(*method) : RouteEndpoint::kAny;
    if (method && place >= kRoutableMethods) {
        const std::string_view name = method_name(*method);
        report("a route for " + std::string(name.empty() ? "Method::other" : name) + " at " +
               quoted(pattern) + ": no route can have this method, and neither can `any`");
        return;
    }
    const std::string label = label_of(place, pattern);
    if (is_missing(handler)) {
        report(label + ": the handler is empty; give it a function");
        return;
    }
    check_options(handler.options, label);
    StoredRoute& stored =
        data_.routes.emplace_back(StoredRoute{{std::move(pattern), handler, middleware}, {}});
    Result<RoutePattern> parsed = parse_route_pattern(stored.route.pattern);
    if (!parsed) {
        report(label + ": " + parsed.error().message);
        return;
    }
    stored.parameter_names = parsed.value().parameter_names;
    const StoredRoute*& route = data_.endpoints[endpoint_of(stored, parsed.value())].routes[place];
    if (route != nullptr) {
        const bool same_text = route->route.pattern == stored.route.pattern;
        report(label_of(place, route->route.pattern) + " and " + label + " are the same route" +
               (same_text ? "" : ", as the names of parameters do not tell paths apart") +
               "; remove one of them");
        return;
    }
    route = &stored;
}

// As `validate` does it for the same names in Config.
void RouteTableBuilder::check_options(const RouteOptions& options, const std::string& label) {
    const struct {
        const char* name;
        std::uint32_t value;
        std::uint32_t most;
    } limits[] = {
        {"body_timeout_ms", options.body_timeout_ms, TimerWheel::kMaxDelayMs},
        {"request_timeout_ms", options.request_timeout_ms == RouteOptions::kNoTimeout ? 0 : options.request_timeout_ms,
         TimerWheel::kMaxDelayMs},
        {"head_limit_bytes", options.head_limit_bytes, kIoBlockBytes},
    };
    for (const auto& limit : limits) {
        if (limit.value > limit.most) {
            report(label + ": " + limit.name + " is " + std::to_string(limit.value) + ": set it to " +
                   std::to_string(limit.most) + " or less, or to 0 for the server's own");
        }
    }
}

void RouteTableBuilder::set_fallback(const Handler& handler,
                                     const std::vector<const Middleware*>& middleware) {
    if (data_.fallback) {
        report("the fallback is set twice; remove one of them");
    } else if (is_missing(handler)) {
        report("the fallback's handler is empty; give it a function");
    } else {
        data_.fallback = Route{{}, handler, middleware};
    }
}

void RouteTableBuilder::report(std::string mistake) {
    mistakes_.push_back(std::move(mistake));
}

Result<std::shared_ptr<const RouteTable>> RouteTableBuilder::finish() {
    if (!mistakes_.empty()) {
        std::string message = "cannot build the routes: " + mistakes_.front();
        for (std::size_t i = 1; i < mistakes_.size() && i < kReportedMistakes; ++i) {
            message += "\n" + mistakes_[i];
        }
        if (mistakes_.size() > kReportedMistakes) {
            message += "\nand " + std::to_string(mistakes_.size() - kReportedMistakes) + " more";
        }
        return Error{std::move(message)};
    }
    for (RouteEndpoint& endpoint : data_.endpoints) {
        complete(endpoint);
        data_.all_methods |= endpoint.methods;
    }
    for (std::size_t methods = 1; methods < data_.allow_values.size(); ++methods) {
        data_.allow_values[methods] = allow_value(methods);
    }
    // An OPTIONS of the whole server is answered even where there is no route.
    data_.all_methods |= static_cast<std::uint8_t>(1u << static_cast<unsigned>(Method::options));
    data_.exact.assign(items_of(exact_));
    data_.edges.assign(items_of(edges_));
    data_.starts.assign(items_of(starts_));
    return std::shared_ptr<const RouteTable>(std::move(table_));
}

std::uint32_t RouteTableBuilder::endpoint_of(const StoredRoute& stored, const RoutePattern& pattern) {
    std::uint32_t* endpoint = nullptr;
    if (pattern.parameter_names.empty()) {
        endpoint = &exact_.try_emplace(stored.route.pattern, kNone).first->second;
    } else {
        std::uint32_t node = 0;
        bool is_start = true;
        for (const PatternSegment& segment : pattern.segments) {
            if (is_start && segment.kind != PatternSegment::Kind::exact) {
                keep_start(stored.route.pattern, segment, node);
                is_start = false;
            }
            switch (segment.kind) {
                case PatternSegment::Kind::exact: node = exact_child(node, segment.text); break;
                case PatternSegment::Kind::parameter: node = parameter_child(node); break;
                case PatternSegment::Kind::wildcard: endpoint = &data_.nodes[node].wildcard_endpoint; break;
            }
        }
        if (endpoint == nullptr) {
            endpoint = &data_.nodes[node].endpoint;
        }
    }
    if (*endpoint == kNone) {
        *endpoint = static_cast<std::uint32_t>(data_.endpoints.size());
        data_.endpoints.emplace_back();
    }
    return *endpoint;
}

void RouteTableBuilder::keep_start(std::string_view pattern, const PatternSegment& segment, std::uint32_t node) {
    // The name has its mark in front, and that a slash.
    const auto length = static_cast<std::size_t>(segment.text.data() - pattern.data()) - 2;
    if (length != 0) {  // every walk begins at the root anyway
        starts_.try_emplace(pattern.substr(0, length), node);
    }
}

std::uint32_t RouteTableBuilder::exact_child(std::uint32_t parent, std::string_view segment) {
    const auto [edge, is_new] = edges_.try_emplace({parent, segment}, kNone);
    if (is_new) {
        edge->second = new_node(segment);
        RouteNode& node = data_.nodes[parent];
        node.only_child = ++node.exact_children == 1 ? edge->second : kNone;
    }
    return edge->second;
}

std::uint32_t RouteTableBuilder::parameter_child(std::uint32_t parent) {
    if (data_.nodes[parent].parameter_child == kNone) {
        const std::uint32_t child = new_node({});
        data_.nodes[parent].parameter_child = child;
    }
    return data_.nodes[parent].parameter_child;
}

std::uint32_t RouteTableBuilder::new_node(std::string_view segment) {
    data_.nodes.emplace_back().segment = segment;
    return static_cast<std::uint32_t>(data_.nodes.size() - 1);
}

namespace {

std::string label_of(std::size_t place, std::string_view pattern) {
    const std::string_view name =
        place == RouteEndpoint::kAny ? std::string_view("any") : method_name(static_cast<Method>(place));
    return std::string(name) + " " + quoted(pattern);
}

bool is_missing(const Handler& handler) {
    return !handler.plain && !handler.task;
}

// HEAD falls to GET, and whatever is left to `any`. TRACE would let a script read what its browser sends, so nothing takes
// it (RFC 9110 §9.3.8).
void complete(RouteEndpoint& endpoint) {
    constexpr auto kGet = static_cast<std::size_t>(Method::get);
    constexpr auto kHead = static_cast<std::size_t>(Method::head);
    if (endpoint.routes[kHead] == nullptr) {
        endpoint.routes[kHead] = endpoint.routes[kGet];
    }
    for (std::size_t method = 0; method < kRoutableMethods; ++method) {
        if (endpoint.routes[method] == nullptr) {
            endpoint.routes[method] = endpoint.routes[RouteEndpoint::kAny];
        }
        if (endpoint.routes[method] != nullptr) {
            endpoint.methods |= static_cast<std::uint8_t>(1u << method);
        }
    }
    endpoint.routes[RouteEndpoint::kAny] = nullptr;
}

// OPTIONS is answered for every path that exists.
std::string allow_value(std::size_t methods) {
    methods |= std::size_t{1} << static_cast<unsigned>(Method::options);
    std::string value;
    for (std::size_t method = 0; method < kRoutableMethods; ++method) {
        if ((methods >> method & 1) != 0) {
            value += value.empty() ? "" : ", ";
            value += method_name(static_cast<Method>(method));
        }
    }
    return value;
}

std::vector<RouteIndex::Item> items_of(const std::map<std::string_view, std::uint32_t>& texts) {
    std::vector<RouteIndex::Item> items;
    for (const auto& [text, value] : texts) {
        items.push_back({0, text, value});
    }
    return items;
}

std::vector<RouteIndex::Item>
items_of(const std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t>& texts) {
    std::vector<RouteIndex::Item> items;
    for (const auto& [key, value] : texts) {
        items.push_back({key.first, key.second, value});
    }
    return items;
}

}  // namespace
}  // namespace penstock

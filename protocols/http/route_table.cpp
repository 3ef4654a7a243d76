#include "penstock/protocols/http/route_table.h"

#include <algorithm>
#include <bit>

#include "penstock/protocols/http/route_table_data.h"
#include "penstock/protocols/http/short_text.h"
#include "penstock/protocols/http/sixteen_bytes.h"

namespace penstock {

namespace {

// Of a path's bytes, so many are looked through for slashes at once; most paths have no more.
constexpr std::size_t kMapped = 64;
// How many starts of patterns a path is compared with before the walk begins at the root. Mostly the first is the one;
// the second is for a path with one more slash, at which another pattern's start would end. The peer chooses where its
// slashes stand, so there is an end to it, and the walk finds the rest.
constexpr int kStartTries = 2;

// A bit for each of the first kMapped bytes.
std::uint64_t first_slashes(std::string_view path);

}  // namespace

// One walk through the table. A node stands for one segment of one pattern's beginning, and a tree has one
// way to each, so a walk that tries all alternatives enters a node at most once: its work is bounded by the
// nodes that fit the path's beginning, never by the alternatives multiplied. The peer's path adds nothing to
// that, and its length only the search for slashes as deep as the patterns go. At most two walks are made.
class RouteSearch {
public:
    // Sets what `path` has among the patterns with parameters. `exact_methods` are those of an exact pattern that fits
    // and lacks the method. Not inlined, so that exact patterns, which do without, have no registers saved for it.
    [[gnu::noinline]] static void run(const RouteTable::Data& data, std::size_t place, std::string_view path,
                                      std::uint8_t exact_methods, RouteMatch* result);

private:
    RouteSearch(const RouteTable::Data& data, std::size_t place, std::string_view path, RouteMatch* result)
        : data_(data), nodes_(data.nodes.data()), path_(path), place_(place), result_(result) {}

    // The node of a start of patterns that fits, and its length; nullptr when none was found.
    static const RouteNode* find_start(const RouteTable::Data& data, std::string_view path, std::uint64_t slashes,
                                       std::size_t* length);
    // The route of a path that has one segment behind a start, where that can only be a parameter; or nullptr. What is
    // usual is so told without a walk.
    static const StoredRoute* only_parameter(const RouteTable::Data& data, const RouteNode& node, std::size_t place);
    // Whether something at or below the node answers. `position` is where the path's next segment begins: one
    // behind its end when there is none. Goes down in a loop as long as there is one way only.
    bool visit(const RouteNode* node, std::size_t position, std::size_t count);
    // The same from a segment on, which ends at `end`, where there are several ways; `exact` is one of them or kNone.
    // Calls `visit`, by a recursion as deep as the patterns (kMaxRouteSegments).
    bool try_all(const RouteNode& node, std::uint32_t exact, std::size_t begin, std::size_t end, std::size_t count);
    // Whether the endpoint, kNone included, answers the method; `count` parameter values have been set.
    bool take(std::uint32_t endpoint, std::size_t count);
    // Of a node that has some.
    [[nodiscard]] std::uint32_t exact_child(const RouteNode& node, std::string_view segment) const;
    // The next slash, or the path's end.
    [[nodiscard]] std::size_t segment_end(std::size_t begin) const;
    [[nodiscard]] std::size_t far_segment_end(std::size_t begin) const;
    static void set_value(RouteMatch& result, std::size_t number, std::size_t begin, std::size_t end) {
        result.pieces_[number] = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin)};
    }
    static void set_route(RouteMatch& result, const StoredRoute& stored, std::string_view path, std::size_t count) {
        result.route = &stored.route;
        result.names_ = stored.parameter_names.data();
        result.path_ = path.data();
        result.count_ = count;
    }

    const RouteTable::Data& data_;
    const RouteNode* const nodes_;
    const std::string_view path_;
    const std::size_t place_;  // in RouteEndpoint::routes
    RouteMatch* const result_;
    std::uint64_t ends_ = 0;    // the first slashes, and the path's end if it is among those bytes
    std::uint8_t methods_ = 0;  // of all endpoints that fit the path and lack the method
};

RouteTable::RouteTable() : data_(std::make_unique<Data>()) {
    data_->nodes.emplace_back();
}

RouteTable::~RouteTable() = default;

RouteMatch RouteTable::match(Method method, std::string_view path) const {
    RouteMatch result;
    // "*" and the target of CONNECT have no path.
    if (!path.starts_with('/') || path.size() > kLongestPath) {
        return result;
    }
    const std::size_t place = std::min(static_cast<std::size_t>(method), RouteEndpoint::kAny);
    std::uint8_t methods = 0;
    if (const std::uint32_t exact = data_->exact.find(0, path); exact != RouteIndex::kNone) {
        const RouteEndpoint& endpoint = data_->endpoints[exact];
        if (const StoredRoute* const stored = endpoint.routes[place]; stored != nullptr) {
            result.route = &stored->route;
            return result;
        }
        methods = endpoint.methods;
    }
    if (data_->nodes.front().is_leaf()) {  // no pattern has parameters
        result.allow = data_->allow_values[methods];
    } else {
        RouteSearch::run(*data_, place, path, methods, &result);
    }
    return result;
}

const Route* RouteTable::fallback() const {
    return data_->fallback ? &*data_->fallback : nullptr;
}

std::string_view RouteTable::all_methods() const {
    return data_->allow_values[data_->all_methods];
}

void RouteSearch::run(const RouteTable::Data& data, std::size_t place, std::string_view path,
                      std::uint8_t exact_methods, RouteMatch* result) {
    const std::uint64_t slashes = first_slashes(path);
    std::size_t length = 0;
    const RouteNode* const start = find_start(data, path, slashes, &length);
    const bool is_last = slashes >> length == 1 && path.size() <= kMapped && path.size() > length + 1;
    if (start != nullptr && is_last) {
        if (const StoredRoute* const stored = only_parameter(data, *start, place); stored != nullptr) {
            set_value(*result, 0, length + 1, path.size());
            set_route(*result, *stored, path, 1);
            return;
        }
    }
    RouteSearch search(data, place, path, result);
    search.ends_ = path.size() < kMapped ? slashes | std::uint64_t{1} << path.size() : slashes;
    search.methods_ = exact_methods;
    if ((start == nullptr || !search.visit(start, length + 1, 0)) && !search.visit(search.nodes_, 1, 0)) {
        result->allow = data.allow_values[search.methods_];
    }
}

// Exact segments come first at every step, so wherever a pattern's start fits, the walk from the root would come by
// its node before it tried anything else, and what answers there answers. Most patterns with parameters are found so
// by one look into a table. When nothing answers there the walk from the root is made after all.
inline const RouteNode* RouteSearch::find_start(const RouteTable::Data& data, std::string_view path,
                                                std::uint64_t slashes, std::size_t* length) {
    // A slash's position is the length of what is in front of it.
    std::uint64_t lengths = slashes & data.starts.lengths();
    for (int tries = 0; lengths != 0 && tries < kStartTries; ++tries) {
        *length = static_cast<std::size_t>(63 - std::countl_zero(lengths));
        const std::uint32_t start = data.starts.find(0, {path.data(), *length});
        if (start != RouteNode::kNone) {
            return data.nodes.data() + start;
        }
        lengths ^= std::uint64_t{1} << *length;
    }
    return nullptr;
}

inline const StoredRoute* RouteSearch::only_parameter(const RouteTable::Data& data, const RouteNode& node,
                                                      std::size_t place) {
    if (node.exact_children != 0 || node.wildcard_endpoint != RouteNode::kNone) {
        return nullptr;
    }
    // A start is followed by a parameter where it is not by a wildcard.
    const std::uint32_t endpoint = data.nodes[node.parameter_child].endpoint;
    return endpoint == RouteNode::kNone ? nullptr : data.endpoints[endpoint].routes[place];
}

bool RouteSearch::visit(const RouteNode* node, std::size_t position, std::size_t count) {
    while (position <= path_.size()) {
        const std::size_t end = segment_end(position);
        const std::uint32_t exact =
            node->exact_children == 0 ? RouteNode::kNone
                                      : exact_child(*node, {path_.data() + position, end - position});
        const std::uint32_t parameter = end > position ? node->parameter_child : RouteNode::kNone;
        const bool is_one = exact == RouteNode::kNone || parameter == RouteNode::kNone;
        if (!is_one || node->wildcard_endpoint != RouteNode::kNone) {
            return try_all(*node, exact, position, end, count);
        }
        if (exact != RouteNode::kNone) {
            node = nodes_ + exact;
        } else if (parameter != RouteNode::kNone) {
            set_value(*result_, count++, position, end);
            node = nodes_ + parameter;
        } else {
            return false;
        }
        position = end + 1;
    }
    return take(node->endpoint, count);
}

bool RouteSearch::try_all(const RouteNode& node, std::uint32_t exact, std::size_t begin, std::size_t end,
                          std::size_t count) {
    if (exact != RouteNode::kNone && visit(nodes_ + exact, end + 1, count)) {
        return true;
    }
    if (node.parameter_child != RouteNode::kNone && end > begin) {
        set_value(*result_, count, begin, end);
        if (visit(nodes_ + node.parameter_child, end + 1, count + 1)) {
            return true;
        }
    }
    if (node.wildcard_endpoint == RouteNode::kNone) {
        return false;
    }
    set_value(*result_, count, begin, path_.size());
    return take(node.wildcard_endpoint, count + 1);
}

inline bool RouteSearch::take(std::uint32_t endpoint, std::size_t count) {
    if (endpoint == RouteNode::kNone) {
        return false;
    }
    const RouteEndpoint& found = data_.endpoints[endpoint];
    const StoredRoute* const stored = found.routes[place_];
    if (stored == nullptr) {
        methods_ |= found.methods;
        return false;
    }
    set_route(*result_, *stored, path_, count);
    return true;
}

std::uint32_t RouteSearch::exact_child(const RouteNode& node, std::string_view segment) const {
    if (const std::uint32_t only = node.only_child; only != RouteNode::kNone) {
        return same_text(nodes_[only].segment, segment) ? only : RouteNode::kNone;
    }
    return data_.edges.find(static_cast<std::uint32_t>(&node - nodes_), segment);
}

inline std::size_t RouteSearch::segment_end(std::size_t begin) const {
    const std::uint64_t left = begin < kMapped ? ends_ >> begin : 0;
    return left != 0 ? begin + static_cast<std::size_t>(std::countr_zero(left)) : far_segment_end(begin);
}

std::size_t RouteSearch::far_segment_end(std::size_t begin) const {
    return std::min(path_.find('/', std::max(begin, kMapped)), path_.size());
}

namespace {

std::uint64_t first_slashes(std::string_view path) {
    constexpr std::size_t kStep = SixteenBytes::kSize;
    const auto found = [](SixteenBytes bytes) { return std::uint64_t{bytes.equal('/').places()}; };
    const char* const bytes = path.data();
    const std::size_t size = std::min(path.size(), kMapped);
    if (size < kStep) {
        return found(SixteenBytes::load_short(bytes, size));
    }
    // The last ones overlap those in front of them rather than reach behind the path.
    const std::size_t last = size - kStep;
    std::uint64_t slashes = found(SixteenBytes::load(bytes + last)) << last;
    for (std::size_t i = 0; i < last; i += kStep) {
        slashes |= found(SixteenBytes::load(bytes + i)) << i;
    }
    return slashes;
}

}  // namespace
}  // namespace penstock

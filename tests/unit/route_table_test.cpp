#include "penstock/protocols/http/route_table.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "penstock/protocols/http/router.h"
#include "support/routing.h"
#include "support/seed.h"

using namespace penstock;
using namespace penstock::routing_test;

namespace {

std::vector<std::string_view> segments_of(std::string_view path) {
    std::vector<std::string_view> segments;
    std::size_t position = 0;
    while (position < path.size()) {
        const std::size_t end = std::min(path.find('/', position + 1), path.size());
        segments.push_back(path.substr(position + 1, end - position - 1));
        position = end;
    }
    return segments;
}

// How specific the pattern is for the path, in letters that compare as wanted: 'a' exact, 'b' parameter, 'c'
// wildcard; none when it does not fit.
std::optional<std::string> rank_of(std::string_view pattern, std::string_view path) {
    if (pattern.find(':') == std::string_view::npos && pattern.find('*') == std::string_view::npos) {
        return pattern == path ? std::optional<std::string>("") : std::nullopt;
    }
    const auto wanted = segments_of(pattern);
    const auto given = segments_of(path);
    std::string rank;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (i == given.size()) {
            return std::nullopt;
        }
        if (wanted[i].starts_with('*')) {
            return rank + 'c';
        }
        const bool is_parameter = wanted[i].starts_with(':');
        if (is_parameter ? given[i].empty() : given[i] != wanted[i]) {
            return std::nullopt;
        }
        rank += is_parameter ? 'b' : 'a';
    }
    return wanted.size() == given.size() ? std::optional(rank) : std::nullopt;
}

struct Declared {
    Method method;
    std::string pattern;
};

// As `outcome` puts it, of a pattern that fits.
std::string with_values(std::string_view pattern, std::string_view path) {
    std::string text(pattern);
    const auto given = segments_of(path);
    std::size_t number = 0;
    for (const std::string_view segment : segments_of(pattern)) {
        if (segment.starts_with(':')) {
            text += " " + std::string(segment.substr(1)) + "=" + std::string(given[number]);
        } else if (segment.starts_with('*')) {
            const auto begin = static_cast<std::size_t>(given[number].data() - path.data());
            text += " " + std::string(segment.substr(1)) + "=" + std::string(path.substr(begin));
        }
        ++number;
    }
    return text;
}

// As `outcome` puts it.
std::string expected_outcome(const std::vector<Declared>& routes, Method method, std::string_view path) {
    std::optional<std::string> best;
    std::string pattern;
    bool takes_post = false;
    bool takes_put = false;
    for (const Declared& route : routes) {
        const auto rank = rank_of(route.pattern, path);
        takes_post |= rank && route.method == Method::post;
        takes_put |= rank && route.method == Method::put;
        if (rank && route.method == method && (!best || *rank < *best)) {
            best = rank;
            pattern = route.pattern;
        }
    }
    if (best) {
        return with_values(pattern, path);
    }
    return !takes_post && !takes_put ? "404"
                                     : std::string("405 ") + (takes_post ? "POST, " : "") + (takes_put ? "PUT, " : "") +
                                           "OPTIONS";
}

// Lengths around the words and blocks that matching looks at.
const std::string kLong = "abcdefghijklmno";
const std::string kLonger(47, 'x');

class RandomRoutes {
public:
    explicit RandomRoutes(std::uint64_t seed) : random_(seed) {}

    unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

    // Of exact segments in front, and then of all kinds.
    std::string pattern() {
        const std::string_view pieces[] = {"a", "b", "", kLong, kLonger, ":", ":", "*"};
        const unsigned exact = below(4);
        const unsigned depth = exact + 1 + below(4);
        std::string pattern;
        for (unsigned segment = 1; segment <= depth; ++segment) {
            std::string piece(pieces[below(segment <= exact ? 5 : 8)]);
            if (piece == "*" && segment < depth) {
                piece = ":";
            }
            const bool is_named = piece == ":" || piece == "*";
            pattern += "/" + piece + (is_named ? "p" + std::to_string(segment) : "");
        }
        return pattern;
    }

    std::string path() {
        const std::string_view pieces[] = {"a", "b", "c", "", kLong, kLonger, "abcdefghijklmnp"};
        std::string path;
        for (unsigned segment = 1 + below(8); segment > 0; --segment) {
            path += "/" + std::string(pieces[below(7)]);
        }
        return path;
    }

    // One that fits the pattern, unless a wildcard is given nothing.
    std::string path_for(std::string_view pattern) {
        std::string path;
        for (const std::string_view segment : segments_of(pattern)) {
            const bool is_named = segment.starts_with(':') || segment.starts_with('*');
            path += "/" + (is_named ? std::string(1 + below(70), 'v') : std::string(segment));
        }
        return path;
    }

    // Without the same route twice.
    std::vector<Declared> routes() {
        std::vector<Declared> routes;
        for (unsigned i = below(40); i > 0; --i) {
            const Declared made{below(2) == 0 ? Method::post : Method::put, pattern()};
            if (std::none_of(routes.begin(), routes.end(), [&made](const Declared& route) {
                    return route.method == made.method && route.pattern == made.pattern;
                })) {
                routes.push_back(made);
            }
        }
        return routes;
    }

private:
    std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("random tables answer as trying every pattern would") {
    RandomRoutes random(test_seed());
    for (int round = 0; round < 300; ++round) {
        const std::vector<Declared> routes = random.routes();
        Router router;
        for (const Declared& route : routes) {
            router.route(route.method, route.pattern, nothing);
        }
        const auto table = built(router);
        for (std::size_t i = 0; i < 200; ++i) {
            const bool is_meant = !routes.empty() && random.below(2) == 0;
            const std::string path = is_meant ? random.path_for(routes[i % routes.size()].pattern) : random.path();
            for (const Method method : {Method::post, Method::put, Method::get}) {
                const std::string expected = expected_outcome(routes, method, path);
                const std::string given = outcome(*table, method, path);
                if (given != expected) {
                    FAIL_CHECK("round " << round << ", " << path << ": " << given << " instead of " << expected);
                }
            }
        }
    }
}

TEST_CASE("a table made to be searched through stays as fast as it is small") {
    Router router;
    // Every mix of exact segment and parameter over ten segments: a path of ten "a" fits all 1,024.
    for (unsigned mix = 0; mix < 1024; ++mix) {
        std::string pattern;
        for (unsigned segment = 0; segment < 10; ++segment) {
            pattern += (mix >> segment & 1) != 0 ? "/a" : "/:p" + std::to_string(segment);
        }
        router.post(pattern, nothing);
    }
    const auto table = built(router);
    CHECK(outcome(*table, Method::get, "/a/a/a/a/a/a/a/a/a/a") == "405 POST, OPTIONS");
    std::string longer;
    for (int i = 0; i < 4000; ++i) {
        longer += "/a";
    }
    CHECK(outcome(*table, Method::get, longer) == "404");
}

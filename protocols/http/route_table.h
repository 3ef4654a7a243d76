// Internal.
// The immutable form of a Router: exact patterns in a hash table by XXH3 of the path, the others in a tree by
// segment. Shared by all reactors; read only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/protocols/http/router.h"

namespace penstock {

// One handler with all that runs around it.
struct Route {
    std::string pattern;
    Handler handler;
    std::vector<const Middleware*> middleware;  // outer first; owned by the table
};

struct RouteParameter {
    std::string_view name;   // lives in the table
    std::string_view value;  // a piece of the matched path
};

inline constexpr std::size_t kMaxRouteParameters = 16;

struct RouteMatch {
    const Route* route = nullptr;    // nullptr: see `allow`
    std::string_view allow;          // with no route: the Allow value of the path's other methods, or empty: 404
    std::size_t parameter_count = 0;
    std::array<RouteParameter, kMaxRouteParameters> parameters;  // only the first parameter_count are set
};

class RouteTable {
public:
    RouteTable();
    ~RouteTable();

    // `path` in the form of Target::path (a NUL stands for an encoded slash). HEAD finds GET's route where it has
    // none. Does not allocate.
    void match(Method method, std::string_view path, RouteMatch* result) const;

    // nullptr when none was set.
    [[nodiscard]] const Route* fallback() const;
    // What `OPTIONS *` may say: every method that some route takes.
    [[nodiscard]] std::string_view all_methods() const;

private:
    friend class RouteTableBuilder;
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace penstock

// Internal.
// The immutable form of a Router: exact patterns in a hash table by the whole path, the others in a tree by
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

// What `match` finds. It has room for the most parameters, so nothing is set that was not found.
class RouteMatch {
public:
    const Route* route = nullptr;  // nullptr: see `allow`
    std::string_view allow;        // with no route: the Allow value of the path's other methods, or empty: 404

    [[nodiscard]] std::size_t parameter_count() const { return count_; }
    // Of those that were found: index < parameter_count().
    [[nodiscard]] RouteParameter parameter(std::size_t index) const {
        return {names_[index], {path_ + pieces_[index].begin, pieces_[index].size}};
    }

private:
    friend class RouteSearch;
    struct Piece {
        std::uint32_t begin;
        std::uint32_t size;
    };

    std::size_t count_ = 0;
    // The rest is set as far as there are parameters.
    const std::string_view* names_;
    const char* path_;
    std::array<Piece, kMaxRouteParameters> pieces_;
};

class RouteTable {
public:
    RouteTable();
    ~RouteTable();

    // `path` in the form of Target::path (a NUL stands for an encoded slash). HEAD finds GET's route where it has
    // none. Does not allocate. What was found lasts as long as the table and the path do.
    [[nodiscard]] RouteMatch match(Method method, std::string_view path) const;

    // nullptr when none was set.
    [[nodiscard]] const Route* fallback() const;
    // What `OPTIONS *` may say: every method that some route takes.
    [[nodiscard]] std::string_view all_methods() const;

private:
    friend class RouteTableBuilder;
    friend class RouteSearch;
    // Of what a head may hold it is far above; places in a path are kept in 32 bits.
    static constexpr std::size_t kLongestPath = 0xFFFFFFFF;
    struct Data;

    std::unique_ptr<Data> data_;
};

}  // namespace penstock

// Internal.
// What the budgets are counted of: some requests, and the routes that answer them. One table for the simulated platform and
// for real sockets.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "penstock/penstock.h"

namespace penstock::perf {

struct Scenario {
    std::string_view name;
    std::string_view request;
    std::size_t body_bytes;  // of the answer
    int depth = 1;           // requests that are sent together, before their answers are read
    bool closes = false;     // a connection for each request
    bool has_file = false;   // it needs the site
    bool tls = false;        // TLS 1.3, on real sockets alone
};

[[nodiscard]] std::span<const Scenario> scenarios();
// nullptr when there is none of that name.
[[nodiscard]] const Scenario* find_scenario(std::string_view name);

// Files of the site: their names below it, and how large they are.
struct SiteFile {
    std::string_view name;
    std::size_t bytes;
};
[[nodiscard]] std::span<const SiteFile> site_files();

// `site`: the directory of these files, or "" for none.
[[nodiscard]] Router make_router(const std::string& site);

}  // namespace penstock::perf

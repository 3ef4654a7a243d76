// Internal.
// Routes to try the server and to measure it with.
#pragma once

#include <string>

#include "penstock/protocols/http/router.h"

namespace penstock::program {

// Answers any method with the request's own body.
[[nodiscard]] Handler echo_handler();

// "/" is among them only where `directory` has no index.html.
void add_demo_routes(Router& router, const std::string& directory);

}  // namespace penstock::program

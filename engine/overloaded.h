// Public.
// Thrown when there is more work than room for it: by `co_await offload(…)`, and by any handler that has a limit of its
// own. A handler that does not catch it is answered with 503 and Retry-After, which is counted (`overloaded`) and not
// logged: it is load, and no fault of the handler. A value; any thread.
#pragma once

#include <stdexcept>

namespace penstock {

class Overloaded : public std::runtime_error {
public:
    // A sentence that names the limit and the way out. Clients do not see it.
    using std::runtime_error::runtime_error;
};

}  // namespace penstock

// Internal.
// For tests of what must abort. One thread may run when it is called, as it forks.
#pragma once

#include <functional>
#include <string>

namespace penstock {

// Runs `body` in a child process and returns what it wrote to stderr when it aborted, or "" when it did not.
[[nodiscard]] std::string abort_message(const std::function<void()>& body);

}  // namespace penstock

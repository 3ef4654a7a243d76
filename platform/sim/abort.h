// Internal.
// How the simulation refuses a test's mistakes. Always on; any thread.
#pragma once

namespace penstock::sim {

[[noreturn]] void abort_with(const char* what);

inline void require(bool holds, const char* what) {
    if (!holds) {
        abort_with(what);
    }
}

}  // namespace penstock::sim

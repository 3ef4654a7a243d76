#include "penstock/engine/ensure.h"

#include <cstdio>
#include <cstdlib>

namespace penstock {

void ensure_failed(const char* sentence, const char* file, int line) {
    // One call, so that the line stays whole when several threads fail at once; stderr is not buffered.
    std::fprintf(stderr, "penstock: %s:%d: %s\n", file, line, sentence);
    std::abort();
}

}  // namespace penstock

// Internal.
// Assertions about what our own code controls. What the kernel or a peer controls is never asserted but
// handled. `ensure` is on in every build; `ensure_debug` is for checks too costly for the hot path.
#pragma once

#include <concepts>

namespace penstock {

// Prints the place and the sentence to stderr and aborts.
[[noreturn]] void ensure_failed(const char* sentence, const char* file, int line);

// The place is the caller's: the compiler fills in default arguments there. (std::source_location would read
// better, but clang 14 has none with libstdc++.)
inline void ensure(bool holds, const char* sentence, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
    if (!holds) [[unlikely]] {
        ensure_failed(sentence, file, line);
    }
}

#ifdef NDEBUG
inline void ensure_debug(bool, const char*) {}
template <std::invocable Check>
void ensure_debug(const Check&, const char*) {}
#else
inline void ensure_debug(bool holds, const char* sentence, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
    ensure(holds, sentence, file, line);
}
// For what costs something to find out: only here it is called.
template <std::invocable Check>
void ensure_debug(const Check& holds, const char* sentence, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
    ensure(holds(), sentence, file, line);
}
#endif

}  // namespace penstock

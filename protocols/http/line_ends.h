// Internal.
// What a parser may let pass and RFC 9112 §2.2 forbids: a CR or LF that is not part of a CRLF, and a line that
// begins with white space (obs-fold, §5.2). Checked over heads.
// Any thread.
#pragma once

#include <cstddef>

namespace penstock {

// Remembers the last byte across calls, so that input may be split anywhere.
class LineEndCheck {
public:
    // False as soon as the bytes so far hold a bare CR, a bare LF, or a line beginning with SP or HTAB.
    [[nodiscard]] bool accept(const char* data, std::size_t size);

private:
    [[nodiscard]] bool accept_slowly(const char* data, std::size_t size);

    char last_ = 0;
};

}  // namespace penstock

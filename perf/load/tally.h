// Internal.
// What went wrong, by kind. No request is counted twice, but for one whose answer is wrong and whose connection is then not
// ended.
#pragma once

#include <cstdint>

namespace penstock::load {

struct Tally {
    std::uint64_t wrong_status = 0;
    std::uint64_t wrong_length = 0;
    // Requests whose response is none, those that are lost behind one, and responses that nobody asked for: the connection is
    // closed.
    std::uint64_t malformed = 0;
    std::uint64_t closed = 0;      // requests that the server had not answered when it ended their connection
    std::uint64_t refused = 0;     // requests whose connection could not be opened
    std::uint64_t unanswered = 0;  // requests for which the patience was over
    std::uint64_t unended = 0;     // connections that the server should have ended after its answer, until it was over

    std::uint64_t sum() const {
        return wrong_status + wrong_length + malformed + closed + refused + unanswered + unended;
    }
};

}  // namespace penstock::load

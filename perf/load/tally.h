// Internal.
// What went wrong, by kind. Nothing is counted twice.
#pragma once

#include <cstdint>

namespace penstock::load {

struct Tally {
    std::uint64_t wrong_status = 0;
    std::uint64_t wrong_length = 0;
    std::uint64_t malformed =
        0;                      // a response that is none, or that nobody asked for; its connection is closed
    std::uint64_t closed = 0;   // by the server, with requests that it had not answered
    std::uint64_t refused = 0;  // connections that could not be opened
    std::uint64_t unanswered = 0;  // requests for which the patience was over

    std::uint64_t sum() const {
        return wrong_status + wrong_length + malformed + closed + refused + unanswered;
    }
};

}  // namespace penstock::load

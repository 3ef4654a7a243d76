// Internal.
// What a plain handler has asked for beyond its return. Made when it first does so, in the exchange's arena, which owns it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/protocols/http/response.h"

namespace penstock {

struct Callbacks {
    std::function<void(std::string_view)> on_piece;
    std::function<void()> on_written;
    std::function<void()> on_abort;
    std::optional<ResponseWrite> write;  // what on_written waits for
    std::string bytes;                   // of it, where the handler does not keep them
    bool waits_for_piece = false;        // it has been asked for, and has not come
    bool body_given = false;             // all of it, at once
    bool deferred = false;               // the answer may come from anywhere
    bool aborted = false;                // they were dropped before the response was complete
};

}  // namespace penstock

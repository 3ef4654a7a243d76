// Internal.
// Reads plain heads: those of nearly all requests, with nothing unusual about them. It takes nothing that llhttp and
// the checks around it (http1_parser.h) would not take as well and in the same way. On anything else, whether wrong,
// rare or not all there yet, it gives up: llhttp then begins at the first byte and alone decides. So it refuses no
// request, and doing without it would cost time and nothing else.
//
// A plain head is
//
//     method SP target SP version CRLF    a method that a route can name; "/" and visible ASCII without "#"; HTTP/1.0
//                                         or 1.1
//     name ":" white value white CRLF     letters, digits and hyphens; spaces and tabs, or none; no control but tab; as
//                                         many such lines as may be
//     CRLF
//
// in which no line begins with white space and none is empty before the last. It has no Transfer-Encoding, and of
// Content-Length at most one, of few digits and nothing else. Whether Host is there and right, whether there is such a
// path, and all that other fields mean is judged behind it, as it is behind llhttp.
//
// Fills in the Request that it is given; owns nothing. Its reactor's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "penstock/protocols/http/request.h"

namespace penstock {

struct RequestLine {
    std::string_view target;
    bool is_plain_path = false;  // is_plain_path(target) is known to hold
    Method method;
    std::uint8_t major_version;
    std::uint8_t minor_version;
};

struct PlainHeadLimits {
    std::uint32_t target_bytes;
    std::uint32_t field_count;
};

class PlainHead {
public:
    PlainHead() = delete;

    // `bytes` begin where the head does and may go on behind it. The size of the head, its empty line included, or 0:
    // it gave up, and no field is left in the request.
    [[nodiscard]] static std::size_t try_read(std::string_view bytes, PlainHeadLimits limits, Request& request,
                                              RequestLine* line);
};

}  // namespace penstock

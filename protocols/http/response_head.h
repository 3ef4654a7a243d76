// Internal.
// A response as HTTP/1 bytes: head and body into a connection's output, small ones in one piece. Used by the
// reactor's thread that owns the output.
#pragma once

#include <string_view>

#include "penstock/engine/block_pool.h"
#include "penstock/engine/output_queue.h"
#include "penstock/protocols/http/codec.h"
#include "penstock/protocols/http/response.h"

namespace penstock {

class Connection;

struct ResponseFraming {
    bool keep_alive = true;
    bool say_keep_alive = false;  // HTTP/1.0 must be told (RFC 9112 §9.3)
    bool head_only = false;       // the request was HEAD
    std::string_view date_field;  // "Date: …\r\n"
    bool has_body = true;  // not even an empty one: no Content-Type is needed
    bool chunked = false;
    bool has_length = true;
    std::uint64_t length = 0;
};

// A whole 503 for a client whose request is not even read. Lives for ever.
[[nodiscard]] std::string_view refusal_text();
// A whole 400 for one that speaks in plain text where TLS is expected. Lives for ever.
[[nodiscard]] std::string_view plain_text_refusal();
// The head of a response whose body follows in parts; `length` or chunked, or neither (until the connection ends).
[[nodiscard]] bool write_head(OutputQueue& output, BlockPool& blocks, const Response& response,
                              const ResponseFraming& framing);
// 1xx, 204 and 304 have no body and no length that would announce one (RFC 9110 §6.4.1, §8.6).
[[nodiscard]] inline bool may_have_body(unsigned status) { return status >= 200 && status != 204 && status != 304; }
// What ends a chunked body: the chunk of no bytes, and the response's trailers (RFC 9112 §7.1.2).
[[nodiscard]] bool write_last_chunk(OutputQueue& output, BlockPool& blocks, const Response& response);

// All of one that may have a body, with one of kCopyBodyLimitBytes at most, on a connection that goes on and needs
// not be told. False when it is too large for one block together with its head, or there is no block for it: nothing
// is queued then.
[[nodiscard]] bool try_write_small_response(Connection& connection, const Response& response, std::string_view body);

// Takes over body.file. False when there is no block for it: the output may then hold a part, and the connection must
// be closed.
[[nodiscard]] bool write_response(OutputQueue& output, BlockPool& blocks, const Response& response,
                                  const ResponseFraming& framing, const ResponseBody& body);

}  // namespace penstock

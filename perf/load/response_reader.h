// Internal.
// Where responses end in what a connection receives, and whether each is the expected one. A response needs a
// Content-Length, unless it cannot have a body: this measures servers that answer one thing again and again.
//
// ResponseShape is shared by all connections of a run: what is expected, and the last head that was read.
// Equal bytes mean the same, so as long as nothing but the body differs, a head is compared and not read.
// ResponseReader is one connection's. It owns no socket and keeps no body. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "load/tally.h"

namespace penstock::load {

struct ResponseHead {
    unsigned status = 0;
    std::uint64_t content_length = 0;
    bool is_last = false;  // "Connection: close"
};

class ResponseShape {
public:
    // Without a length, that of the first response is the expected one.
    ResponseShape(unsigned status, std::optional<std::uint64_t> length, bool to_head_requests)
        : status_(status), length_(length), to_head_requests_(to_head_requests) {}

    // Of bytes that begin a response and hold all of its head: the head, or nothing when it is none.
    std::optional<ResponseHead> read(std::string_view head);
    void check(const ResponseHead& head, Tally& tally);
    std::uint64_t body_bytes(const ResponseHead& head) const;
    std::string_view known() const { return known_; }

private:
    unsigned status_;
    std::optional<std::uint64_t> length_;
    bool to_head_requests_;
    std::string known_;  // with the empty line at its end; parsed_ is what it says
    ResponseHead parsed_;
};

class ResponseReader {
public:
    explicit ResponseReader(ResponseShape& shape) : shape_(&shape) {}

    // Takes what was received and gives how many responses ended in it. After bytes that are no response
    // has_failed() is true, and the rest is not looked at.
    std::size_t take(std::string_view bytes, Tally& tally);

    bool has_failed() const { return has_failed_; }
    // Nothing of a response has come whose end has not.
    bool is_between_responses() const { return body_left_ == 0 && partial_head_.empty(); }
    // The server has said that it closes the connection behind the response that ended, or that has begun.
    bool announces_end() const { return announces_end_; }
    void reset();

private:
    bool take_head(std::string_view& bytes, Tally& tally);
    bool complete_partial_head(std::string_view& bytes);

    ResponseShape* shape_;
    std::string partial_head_;
    std::uint64_t body_left_ = 0;
    bool has_failed_ = false;
    bool announces_end_ = false;
};

}  // namespace penstock::load

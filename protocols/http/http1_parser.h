// Internal.
// The HTTP/1 parser: PlainHead for heads that lie there whole and are beyond doubt, llhttp in strict mode for all
// others, with what it lets pass and RFC 9112 forbids refused on top, and the body's framing, which is read here:
// llhttp refuses chunk extensions that are legal and bounds none. Records the head and the trailers into the exchange's
// Request and hands body bytes to the exchange.
// The outcome for a stream of bytes does not depend on how it was cut.
//
// Part of an Exchange. Third-party types stay in the .cpp: the parser's state is opaque here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "penstock/protocols/http/chunk_framing.h"
#include "penstock/protocols/http/line_ends.h"
#include "penstock/protocols/http/plain_head.h"

namespace penstock {

class Exchange;

class Http1Parser {
public:
    // head: the head is complete, and a handler that reads its body by itself is to be started.
    enum class Outcome : std::uint8_t { need_more, head, complete, failed };

    explicit Http1Parser(Exchange& exchange);
    Http1Parser(const Http1Parser&) = delete;
    Http1Parser& operator=(const Http1Parser&) = delete;

    // Goes on at `base + from` up to `base + to`. Until the head is complete `base` is its first byte, though
    // it may lie elsewhere than at the call before; afterwards it is any buffer. `*end` is where parsing
    // stopped: behind the message when complete.
    Outcome parse(const char* base, std::size_t from, std::size_t to, std::size_t* end);

    [[nodiscard]] bool head_complete() const { return phase_ == Phase::body; }
    // The status that answers a failed request.
    [[nodiscard]] unsigned error_status() const { return error_status_; }
    // The status that answers a head which outgrows its block.
    [[nodiscard]] unsigned overflow_status() const;

private:
    friend struct ParserCallbacks;
    enum class Phase : std::uint8_t { target, fields, body };

    [[nodiscard]] Outcome begin_head(std::size_t to, std::size_t* end);
    [[nodiscard]] Outcome parse_head(std::size_t from, std::size_t to, std::size_t* end);
    void begin_llhttp();
    [[nodiscard]] Outcome judge_method(std::size_t to, std::size_t* end);
    [[nodiscard]] Outcome finish_head(std::size_t head_end);
    [[nodiscard]] Outcome take_head(const RequestLine& line, std::size_t head_bytes);
    [[nodiscard]] Outcome parse_sized_body(std::size_t to, std::size_t* end);
    [[nodiscard]] Outcome parse_chunks(std::size_t to, std::size_t* end);
    [[nodiscard]] unsigned read_framing(std::string_view bytes, const BodyLimits& limits, std::size_t* used);
    [[nodiscard]] bool keep_trailers(std::string_view bytes);
    void replace_length_tabs(std::size_t from);
    [[nodiscard]] bool version_follows_target(std::size_t to) const;
    [[nodiscard]] unsigned classify(int llhttp_error, std::size_t stopped) const;
    [[nodiscard]] unsigned record_field();
    [[nodiscard]] int fail(unsigned status);
    [[nodiscard]] Outcome failed(unsigned status);

    alignas(8) std::byte state_[96];  // an llhttp_t, once it has begun
    Exchange& exchange_;
    const char* base_ = nullptr;
    std::uint64_t body_left_ = 0;  // of a body with a length
    ChunkFraming chunks_;
    char* trailers_ = nullptr;  // their lines, in the arena, as many as have come
    std::uint16_t trailer_capacity_ = 0;
    std::uint16_t head_to_ = 0;  // how far the head's bytes have come
    std::uint16_t target_offset_ = 0;
    std::uint16_t target_size_ = 0;
    std::uint16_t name_offset_ = 0;
    std::uint16_t name_size_ = 0;
    std::uint16_t value_offset_ = 0;
    std::uint16_t value_size_ = 0;
    std::uint16_t error_status_ = 0;
    Phase phase_ = Phase::target;
    bool llhttp_begun_ = false;
    bool chunked_ = false;
    bool unknown_method_ = false;  // and where it ends has not come yet
    bool in_length_ = false;       // the value of Content-Length is coming
    LineEndCheck line_ends_;
};

}  // namespace penstock

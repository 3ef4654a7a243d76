// Internal.
// The HTTP/1 parser: llhttp in strict mode, with what it lets pass and RFC 9112 forbids refused on top. Records the head
// into the exchange's Request and hands body bytes to the exchange.
//
// Part of an Exchange. Third-party types stay in the .cpp: the parser's state is opaque here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/protocols/http/line_ends.h"

namespace penstock {

class Exchange;

class Http1Parser {
public:
    enum class Outcome : std::uint8_t { need_more, complete, failed };

    explicit Http1Parser(Exchange& exchange);
    Http1Parser(const Http1Parser&) = delete;
    Http1Parser& operator=(const Http1Parser&) = delete;

    // Goes on at `base + from` up to `base + to`. Until the head is complete `base` is its first byte, though it may
    // lie elsewhere than at the call before; afterwards it is any buffer. `*end` is where parsing stopped: behind
    // the message when complete.
    Outcome parse(const char* base, std::size_t from, std::size_t to, std::size_t* end);

    [[nodiscard]] bool head_complete() const { return phase_ >= Phase::body; }
    // The status that answers a failed request.
    [[nodiscard]] unsigned error_status() const { return error_status_; }
    // From the head: the client's wish by version and Connection field.
    [[nodiscard]] bool keep_alive() const;
    [[nodiscard]] bool chunked() const;
    // Of Content-Length, 0 without one.
    [[nodiscard]] std::uint64_t content_length() const;

private:
    friend struct ParserCallbacks;
    enum class Phase : std::uint8_t { target, name, value, body, trailer };

    [[nodiscard]] bool record_field();
    [[nodiscard]] int fail(unsigned status);
    [[nodiscard]] unsigned classify(int llhttp_error, const char* base, std::size_t to) const;

    alignas(8) std::byte state_[96];  // an llhttp_t
    Exchange& exchange_;
    const char* base_ = nullptr;
    const char* framing_ = nullptr;  // up to here line ends are checked or bytes are body
    std::uint16_t target_offset_ = 0;
    std::uint16_t target_size_ = 0;
    std::uint16_t name_offset_ = 0;
    std::uint16_t name_size_ = 0;
    std::uint16_t value_offset_ = 0;
    std::uint16_t value_size_ = 0;
    std::uint16_t error_status_ = 0;
    Phase phase_ = Phase::target;
    LineEndCheck line_ends_;
    std::uint32_t trailer_count_ = 0;
};

}  // namespace penstock

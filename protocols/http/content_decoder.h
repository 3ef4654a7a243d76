// Internal.
// Decodes a body that was sent as gzip, deflate, br or zstd, piece by piece, and stops where more would come out than is
// wanted: a few kilobytes can decode to gigabytes. It reads no fields. Whoever reads the body owns it. One thread at a time;
// moved never, since the libraries keep its address.
//
// Memory: kDecoderMemoryLimitBytes at most, whatever the body says. gzip and deflate take 40 KiB; with Brotli and Zstandard
// the client's window decides, up to 16 MiB and 8 MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "penstock/protocols/http/coding_stream.h"
#include "penstock/protocols/http/content_coding.h"

namespace penstock {

// Brotli's largest window is 16 MiB (RFC 7932 §9.1), and its tables come on top.
inline constexpr std::size_t kDecoderMemoryLimitBytes = std::size_t{17} << 20;

class ContentDecoder {
public:
    // Null when there is no memory, when the coding is not compiled in, and for identity, which needs no decoder.
    [[nodiscard]] static std::unique_ptr<ContentDecoder> create(
        ContentCoding coding, std::uint64_t decoded_limit_bytes,
        std::size_t memory_limit_bytes = kDecoderMemoryLimitBytes);
    ContentDecoder(const ContentDecoder&) = delete;
    ContentDecoder& operator=(const ContentDecoder&) = delete;

    // The next bytes of the body, all of which are taken; gives what they mean to `sink`, in pieces of kPieceBytes at most and
    // never more than the limit in all. False when the body is broken or too large, there is no memory or the sink has
    // refused; every later call is false too.
    [[nodiscard]] bool decode(std::string_view input, ByteSink sink);
    // The same a step at a time, for those who cannot take all that comes at once: takes bytes from the front of `input` and
    // writes `size` at most, which is not 0. While its state is `more`, call it again with what is left of the input. A state
    // other than `more` and `done` is a failure, of which `error_status` tells.
    [[nodiscard]] CodingStep step(std::string_view& input, char* output, std::size_t size);
    // There are no more bytes. False when the body is not whole, which one of no bytes at all is not either.
    [[nodiscard]] bool finish();

    // A sentence that lives for ever, and a status: 400 for a broken body, 413 for one above the limit, 503 without memory,
    // 500 when the sink has refused. "" and 0 unless failed.
    [[nodiscard]] const char* error() const { return error_; }
    [[nodiscard]] unsigned error_status() const { return error_status_; }
    [[nodiscard]] std::uint64_t decoded_bytes() const { return decoded_bytes_; }
    // For tests and figures: the most memory it has had so far.
    [[nodiscard]] std::size_t peak_memory_bytes() const { return stream_->peak_bytes(); }

    static constexpr std::size_t kPieceBytes = 8'192;  // on the stack

private:
    ContentDecoder(std::unique_ptr<DecodingStream> stream, std::uint64_t decoded_limit_bytes)
        : stream_(std::move(stream)), decoded_limit_bytes_(decoded_limit_bytes) {}

    bool fail(unsigned status, const char* sentence);

    std::unique_ptr<DecodingStream> stream_;
    const std::uint64_t decoded_limit_bytes_;
    std::uint64_t decoded_bytes_ = 0;
    const char* error_ = "";
    unsigned error_status_ = 0;
};

}  // namespace penstock

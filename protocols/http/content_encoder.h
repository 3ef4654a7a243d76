// Internal.
// Encodes a body piece by piece as gzip, deflate (in the zlib format), Brotli or Zstandard. It does not choose the coding
// (accept_encoding.h) and writes no fields. Whoever sends the body owns it. One thread at a time; moved never, since the
// libraries keep its address.
//
// Memory: kEncoderMemoryLimitBytes at most, and what it takes depends on the coding and the level, not on the body. All
// of it is asked for without throwing.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "penstock/protocols/http/coding_stream.h"
#include "penstock/protocols/http/content_coding.h"

namespace penstock {

// Beyond all that any level takes. content_encoder_test.cpp measures them.
inline constexpr std::size_t kEncoderMemoryLimitBytes = std::size_t{8} << 20;
// What one of that coding and level takes at the most, rounded up: gzip and deflate 0.3 MiB; Zstandard 2 to 5 MiB; Brotli
// 0.3 to 7 MiB, the more the more often its body changes. 0 for identity.
[[nodiscard]] std::size_t encoder_memory_bytes(ContentCoding coding, int level);

class ContentEncoder {
public:
    // Levels are 1, the fastest, to 9, zlib's slowest; others become the nearest of them. The 7 to 9 of Brotli and Zstandard
    // are their 6: above that their memory doubles with each. Null when there is no memory, when the coding is not compiled
    // in, and for identity, which needs no encoder.
    [[nodiscard]] static std::unique_ptr<ContentEncoder> create(
        ContentCoding coding, int level, std::size_t memory_limit_bytes = kEncoderMemoryLimitBytes);
    ContentEncoder(const ContentEncoder&) = delete;
    ContentEncoder& operator=(const ContentEncoder&) = delete;

    // Takes all of `input` and gives what is ready to `sink`, in pieces of kPieceBytes at most. An empty `input` with
    // Flush::flush gives what was kept back. Nothing may come behind Flush::finish. False when there is no memory or the sink
    // has refused: the body cannot be completed any more, and every later call is false too.
    [[nodiscard]] bool encode(std::string_view input, Flush flush, ByteSink sink);
    // The same a step at a time, for those who cannot take all that comes at once: takes bytes from the front of `input` and
    // writes `size` at most, which is not 0. While its state is `more`, call it again with what is left of the input and the
    // same flush. A state other than `more` and `done` is a failure.
    [[nodiscard]] CodingStep step(std::string_view& input, Flush flush, char* output, std::size_t size);
    // For tests and figures: the most memory it has had so far.
    [[nodiscard]] std::size_t peak_memory_bytes() const { return stream_->peak_bytes(); }

    static constexpr std::size_t kPieceBytes = 8'192;  // on the stack; half of an output block

private:
    explicit ContentEncoder(std::unique_ptr<EncodingStream> stream) : stream_(std::move(stream)) {}

    std::unique_ptr<EncodingStream> stream_;
    bool finished_ = false;
    bool failed_ = false;
};

}  // namespace penstock

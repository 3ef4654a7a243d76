#include "penstock/protocols/http/content_encoder.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "penstock/engine/ensure.h"

namespace penstock {

namespace {

std::unique_ptr<EncodingStream> make_stream(ContentCoding coding, int level, std::size_t memory_limit_bytes) {
    switch (coding) {
        case ContentCoding::identity: return nullptr;
        case ContentCoding::gzip: return make_zlib_encoder(true, level, memory_limit_bytes);
        case ContentCoding::deflate: return make_zlib_encoder(false, level, memory_limit_bytes);
        case ContentCoding::brotli: return make_brotli_encoder(level, memory_limit_bytes);
        case ContentCoding::zstd: return make_zstd_encoder(level, memory_limit_bytes);
    }
    return nullptr;
}

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

}  // namespace

std::size_t encoder_memory_bytes(ContentCoding coding, int level) {
    switch (coding) {
        case ContentCoding::identity: return 0;
        case ContentCoding::gzip:
        case ContentCoding::deflate: return 300 << 10;
        case ContentCoding::brotli: return level <= 1 ? kMebibyte / 3 : level <= 3 ? 3 * kMebibyte : (level == 4 ? 5 : 7) * kMebibyte;
        case ContentCoding::zstd: return (level <= 3 ? 2 : 5) * kMebibyte;
    }
    return kEncoderMemoryLimitBytes;
}

std::unique_ptr<ContentEncoder> ContentEncoder::create(ContentCoding coding, int level, std::size_t memory_limit_bytes) {
    auto stream = make_stream(coding, std::clamp(level, 1, 9), memory_limit_bytes);
    if (stream == nullptr) {
        return nullptr;
    }
    return std::unique_ptr<ContentEncoder>(new (std::nothrow) ContentEncoder(std::move(stream)));
}

bool ContentEncoder::encode(std::string_view input, Flush flush, ByteSink sink) {
    std::array<char, kPieceBytes> piece;
    for (;;) {
        const CodingStep done = step(input, flush, piece.data(), piece.size());
        if (done.produced > 0 && !sink({piece.data(), done.produced})) {
            failed_ = true;
            return false;
        }
        if (done.state != CodingStep::State::more) {
            return done.state == CodingStep::State::done;
        }
    }
}

CodingStep ContentEncoder::step(std::string_view& input, Flush flush, char* output, std::size_t size) {
    if (failed_) {
        return {CodingStep::State::no_memory, 0};
    }
    ensure(!finished_, "a body is encoded beyond its end");
    const CodingStep step = stream_->step(input, flush, output, size);
    failed_ = step.state != CodingStep::State::more && step.state != CodingStep::State::done;
    finished_ = flush == Flush::finish && step.state == CodingStep::State::done;
    return step;
}

}  // namespace penstock

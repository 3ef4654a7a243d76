#include "penstock/protocols/http/content_decoder.h"

#include <algorithm>
#include <array>
#include <new>

namespace penstock {

namespace {

std::unique_ptr<DecodingStream> make_stream(ContentCoding coding, std::size_t memory_limit_bytes) {
    switch (coding) {
        case ContentCoding::identity: return nullptr;
        case ContentCoding::gzip: return make_zlib_decoder(true, memory_limit_bytes);
        case ContentCoding::deflate: return make_zlib_decoder(false, memory_limit_bytes);
        case ContentCoding::brotli: return make_brotli_decoder(memory_limit_bytes);
        case ContentCoding::zstd: return make_zstd_decoder(memory_limit_bytes);
    }
    return nullptr;
}

}  // namespace

std::unique_ptr<ContentDecoder> ContentDecoder::create(ContentCoding coding, std::uint64_t decoded_limit_bytes,
                                                       std::size_t memory_limit_bytes) {
    auto stream = make_stream(coding, memory_limit_bytes);
    if (stream == nullptr) {
        return nullptr;
    }
    return std::unique_ptr<ContentDecoder>(new (std::nothrow) ContentDecoder(std::move(stream), decoded_limit_bytes));
}

bool ContentDecoder::decode(std::string_view input, ByteSink sink) {
    std::array<char, kPieceBytes> piece;
    for (;;) {
        const CodingStep done = step(input, piece.data(), piece.size());
        if (done.produced > 0 && !sink({piece.data(), done.produced})) {
            return fail(500, "body: its bytes could not be taken");
        }
        if (done.state != CodingStep::State::more) {
            return done.state == CodingStep::State::done;
        }
    }
}

CodingStep ContentDecoder::step(std::string_view& input, char* output, std::size_t size) {
    if (error_status_ != 0) {
        return {CodingStep::State::corrupt, 0};
    }
    // Room for one byte more than is allowed: it tells a body at the limit from one above.
    const std::uint64_t room = decoded_limit_bytes_ - decoded_bytes_;
    CodingStep step = stream_->step(input, output, static_cast<std::size_t>(std::min<std::uint64_t>(size - 1, room)) + 1);
    if (step.produced > room) {
        fail(413, "body: more bytes than allowed when decoded");
        return {CodingStep::State::corrupt, 0};
    }
    decoded_bytes_ += step.produced;
    if (step.state == CodingStep::State::no_memory) {
        fail(503, "body: no memory to decode it");
    } else if (step.state == CodingStep::State::corrupt) {
        fail(400, "body: it is not encoded as its Content-Encoding says");
    }
    return step;
}

bool ContentDecoder::finish() {
    if (error_status_ == 0 && !stream_->is_at_end()) {
        return fail(400, "body: it ends within what its Content-Encoding says");
    }
    return error_status_ == 0;
}

bool ContentDecoder::fail(unsigned status, const char* sentence) {
    error_status_ = status;
    error_ = sentence;
    return false;
}

}  // namespace penstock

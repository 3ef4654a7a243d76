// Zstandard, where it is compiled in. make_zstd_encoder and make_zstd_decoder of coding_stream.h. The library's interface
// for allocators of others is for static linking only, so here memory is bounded by the parameters alone: a limit
// below what they may take is refused at once.
#include "penstock/protocols/http/coding_stream.h"

#if PENSTOCK_HAS_ZSTD

#include <algorithm>

#include <zstd.h>
#include <zstd_errors.h>

namespace penstock {

namespace {

constexpr int kEncoderWindowBits = 18;                             // 256 KiB, as with Brotli
constexpr std::size_t kEncoderMemoryBytes = std::size_t{5} << 20;  // of any level with that window
// Above it the tables double with each, whatever the window, when the body's length is not known: 7 to 13 MiB.
constexpr int kHighestLevel = 6;
constexpr int kDecoderWindowBits = 23;                             // 8 MiB: no encoder may ask for more (RFC 9659 §3)
constexpr std::size_t kDecoderMemoryBytes = std::size_t{9} << 20;  // with that window
constexpr unsigned kMagicBytes = 4;

class ZstdEncoder final : public EncodingStream {
public:
    ~ZstdEncoder() override { ZSTD_freeCCtx(context_); }

    [[nodiscard]] bool begin(int level) {
        context_ = ZSTD_createCCtx();
        return context_ != nullptr &&
               ZSTD_isError(ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, std::min(level, kHighestLevel))) == 0 &&
               ZSTD_isError(ZSTD_CCtx_setParameter(context_, ZSTD_c_windowLog, kEncoderWindowBits)) == 0;
    }
    [[nodiscard]] CodingStep step(std::string_view& input, Flush flush, char* output, std::size_t size) override;
    [[nodiscard]] std::size_t peak_bytes() const override { return peak_bytes_; }

private:
    ZSTD_CCtx* context_ = nullptr;
    std::size_t peak_bytes_ = 0;
};

class ZstdDecoder final : public DecodingStream {
public:
    ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }

    [[nodiscard]] bool begin() {
        context_ = ZSTD_createDCtx();
        return context_ != nullptr &&
               ZSTD_isError(ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kDecoderWindowBits)) == 0;
    }
    [[nodiscard]] CodingStep step(std::string_view& input, char* output, std::size_t size) override;
    [[nodiscard]] bool is_at_end() const override { return is_at_end_; }
    [[nodiscard]] std::size_t peak_bytes() const override { return peak_bytes_; }

private:
    [[nodiscard]] bool accept_magic(std::string_view input);

    ZSTD_DCtx* context_ = nullptr;
    std::uint32_t magic_ = 0;  // of the frame that has begun
    unsigned magic_bytes_ = 0;  // how much of that has come
    bool is_at_end_ = false;  // of a frame; another may follow
    bool has_pending_ = false;  // it may hold more output than there was room for
    std::size_t peak_bytes_ = 0;
};

ZSTD_EndDirective directive_of(Flush flush) {
    switch (flush) {
        case Flush::none: return ZSTD_e_continue;
        case Flush::flush: return ZSTD_e_flush;
        case Flush::finish: return ZSTD_e_end;
    }
    return ZSTD_e_continue;
}

CodingStep ZstdEncoder::step(std::string_view& input, Flush flush, char* output, std::size_t size) {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output, size, 0};
    const std::size_t left = ZSTD_compressStream2(context_, &out, &in, directive_of(flush));
    peak_bytes_ = std::max(peak_bytes_, ZSTD_sizeof_CCtx(context_));
    if (ZSTD_isError(left) != 0) {
        return {CodingStep::State::no_memory, out.pos};
    }
    input.remove_prefix(in.pos);
    const bool done = flush == Flush::none ? input.empty() && out.pos < out.size : left == 0;
    return {done ? CodingStep::State::done : CodingStep::State::more, out.pos};
}

CodingStep ZstdDecoder::step(std::string_view& input, char* output, std::size_t size) {
    // It takes calls that cannot get on for a mistake of ours, and the first byte of none for a new frame.
    if (input.empty() && !has_pending_) {
        return {CodingStep::State::done, 0};
    }
    if (!accept_magic(input)) {
        return {CodingStep::State::corrupt, 0};
    }
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output, size, 0};
    const std::size_t left = ZSTD_decompressStream(context_, &out, &in);
    peak_bytes_ = std::max(peak_bytes_, ZSTD_sizeof_DCtx(context_));
    if (ZSTD_isError(left) != 0) {
        const bool is_memory = ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation;
        return {is_memory ? CodingStep::State::no_memory : CodingStep::State::corrupt, out.pos};
    }
    input.remove_prefix(in.pos);
    is_at_end_ = left == 0;
    has_pending_ = !is_at_end_ && out.pos == out.size;
    if (is_at_end_) {
        magic_bytes_ = 0;
    }
    return {CodingStep::State::more, out.pos};
}

// The library may have been built to read what it wrote before RFC 8878 too, by code that obeys no limit of the window.
// Frames begin with these bytes alone, and the library takes all that there are of a frame's first bytes at once.
bool ZstdDecoder::accept_magic(std::string_view input) {
    for (std::size_t i = 0; magic_bytes_ < kMagicBytes && i < input.size(); ++i, ++magic_bytes_) {
        const std::uint32_t byte = static_cast<unsigned char>(input[i]);
        magic_ = magic_bytes_ == 0 ? byte : magic_ | byte << (8 * magic_bytes_);
    }
    return magic_bytes_ < kMagicBytes || magic_ == ZSTD_MAGICNUMBER ||
           (magic_ & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

}  // namespace

std::unique_ptr<EncodingStream> make_zstd_encoder(int level, std::size_t memory_limit_bytes) {
    if (memory_limit_bytes < kEncoderMemoryBytes) {
        return nullptr;
    }
    return begun(std::unique_ptr<ZstdEncoder>(new (std::nothrow) ZstdEncoder()), level);
}

std::unique_ptr<DecodingStream> make_zstd_decoder(std::size_t memory_limit_bytes) {
    if (memory_limit_bytes < kDecoderMemoryBytes) {
        return nullptr;
    }
    return begun(std::unique_ptr<ZstdDecoder>(new (std::nothrow) ZstdDecoder()));
}

}  // namespace penstock

#else

namespace penstock {

std::unique_ptr<EncodingStream> make_zstd_encoder(int, std::size_t) {
    return nullptr;
}

std::unique_ptr<DecodingStream> make_zstd_decoder(std::size_t) {
    return nullptr;
}

}  // namespace penstock

#endif

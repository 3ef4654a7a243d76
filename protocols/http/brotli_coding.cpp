// Brotli, where it is compiled in. make_brotli_encoder and make_brotli_decoder of coding_stream.h.
#include "penstock/protocols/http/coding_stream.h"

#if PENSTOCK_HAS_BROTLI

#include <algorithm>
#include <csetjmp>

#include <brotli/decode.h>
#include <brotli/encode.h>

namespace penstock {

namespace {

// 256 KiB. The library's default of 4 MiB makes pages hardly smaller and an encoder several times larger.
constexpr std::uint32_t kWindowBits = 18;
// Above it the tables for searching double with each: 8, 16 and 32 MiB.
constexpr int kHighestQuality = 6;
// The library takes larger tables for bodies above 1 MiB, and takes the length of the first piece for that of the body.
// With a hint of ours memory depends on the level alone.
constexpr std::uint32_t kSizeHintBytes = 65'536;

// As it is built by default, the encoder of Brotli 1.0 ends the process when it gets no memory
// (BROTLI_ENCODER_EXIT_ON_OOM). So it never sees such an answer: `allocate` jumps back to where the encoder was called, over
// frames of the library, which is C and holds nothing but memory of ours. From then on the encoder is not touched any
// more, and what it had is released as a whole.
class BrotliEncoder final : public EncodingStream {
public:
    explicit BrotliEncoder(std::size_t memory_limit_bytes) : memory_(memory_limit_bytes) {}
    [[nodiscard]] bool begin(int level);
    [[nodiscard]] CodingStep step(std::string_view& input, Flush flush, char* output, std::size_t size) override;
    [[nodiscard]] std::size_t peak_bytes() const override { return memory_.peak_bytes(); }

private:
    static void* allocate(void* encoder, std::size_t size);
    static void release(void* encoder, void* block);
    template <class Call>
    [[nodiscard]] bool try_call(const Call& call);

    CodingMemory memory_;  // whose destructor ends the encoder: all of it is in there
    std::jmp_buf no_memory_{};
    BrotliEncoderState* state_ = nullptr;
};

class BrotliDecoder final : public DecodingStream {
public:
    explicit BrotliDecoder(std::size_t memory_limit_bytes) : memory_(memory_limit_bytes) {}
    ~BrotliDecoder() override { BrotliDecoderDestroyInstance(state_); }

    [[nodiscard]] bool begin() {
        state_ = BrotliDecoderCreateInstance(CodingMemory::allocate, CodingMemory::release, &memory_);
        return state_ != nullptr;
    }
    [[nodiscard]] CodingStep step(std::string_view& input, char* output, std::size_t size) override;
    [[nodiscard]] bool is_at_end() const override { return BrotliDecoderIsFinished(state_) == BROTLI_TRUE; }
    [[nodiscard]] std::size_t peak_bytes() const override { return memory_.peak_bytes(); }

private:
    CodingMemory memory_;
    BrotliDecoderState* state_ = nullptr;
};

BrotliEncoderOperation operation_of(Flush flush) {
    switch (flush) {
        case Flush::none: return BROTLI_OPERATION_PROCESS;
        case Flush::flush: return BROTLI_OPERATION_FLUSH;
        case Flush::finish: return BROTLI_OPERATION_FINISH;
    }
    return BROTLI_OPERATION_PROCESS;
}

bool BrotliEncoder::begin(int level) {
    const auto quality = static_cast<std::uint32_t>(std::min(level, kHighestQuality));
    return try_call([this] { state_ = BrotliEncoderCreateInstance(allocate, release, this); }) && state_ != nullptr &&
           BrotliEncoderSetParameter(state_, BROTLI_PARAM_QUALITY, quality) == BROTLI_TRUE &&
           BrotliEncoderSetParameter(state_, BROTLI_PARAM_LGWIN, kWindowBits) == BROTLI_TRUE &&
           BrotliEncoderSetParameter(state_, BROTLI_PARAM_SIZE_HINT, kSizeHintBytes) == BROTLI_TRUE;
}

void* BrotliEncoder::allocate(void* encoder, std::size_t size) {
    auto& self = *static_cast<BrotliEncoder*>(encoder);
    void* block = CodingMemory::allocate(&self.memory_, size);
    if (block == nullptr) {
        std::longjmp(self.no_memory_, 1);
    }
    return block;
}

void BrotliEncoder::release(void* encoder, void* block) {
    CodingMemory::release(&static_cast<BrotliEncoder*>(encoder)->memory_, block);
}

// False when there was no memory, and never call again then. `call` must hold nothing that a destructor would have to
// give back; none of its results counts after a jump.
template <class Call>
bool BrotliEncoder::try_call(const Call& call) {
    if (setjmp(no_memory_) != 0) {
        memory_.release_all();
        return false;
    }
    call();
    return true;
}

CodingStep BrotliEncoder::step(std::string_view& input, Flush flush, char* output, std::size_t size) {
    std::size_t input_left = input.size();
    std::size_t output_left = size;
    const auto* next_in = reinterpret_cast<const std::uint8_t*>(input.data());
    auto* next_out = reinterpret_cast<std::uint8_t*>(output);
    BROTLI_BOOL worked = BROTLI_FALSE;
    const bool has_memory = try_call([&] {
        worked = BrotliEncoderCompressStream(state_, operation_of(flush), &input_left, &next_in, &output_left, &next_out,
                                             nullptr);
    });
    if (!has_memory) {
        return {CodingStep::State::no_memory, 0};
    }
    input.remove_prefix(input.size() - input_left);
    const std::size_t produced = size - output_left;
    if (worked == BROTLI_FALSE) {
        return {CodingStep::State::no_memory, produced};
    }
    const bool is_complete = flush != Flush::finish || BrotliEncoderIsFinished(state_) == BROTLI_TRUE;
    const bool done = input.empty() && is_complete && BrotliEncoderHasMoreOutput(state_) == BROTLI_FALSE;
    return {done ? CodingStep::State::done : CodingStep::State::more, produced};
}

CodingStep BrotliDecoder::step(std::string_view& input, char* output, std::size_t size) {
    std::size_t input_left = input.size();
    std::size_t output_left = size;
    const auto* next_in = reinterpret_cast<const std::uint8_t*>(input.data());
    auto* next_out = reinterpret_cast<std::uint8_t*>(output);
    if (is_at_end()) {
        return {input.empty() ? CodingStep::State::done : CodingStep::State::corrupt, 0};
    }
    const BrotliDecoderResult result =
        BrotliDecoderDecompressStream(state_, &input_left, &next_in, &output_left, &next_out, nullptr);
    input.remove_prefix(input.size() - input_left);
    const std::size_t produced = size - output_left;
    if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) {
        // The library says so as well when it has decoded more than there was room for.
        const bool has_more = BrotliDecoderHasMoreOutput(state_) == BROTLI_TRUE;
        return {has_more ? CodingStep::State::more : CodingStep::State::done, produced};
    }
    if (result != BROTLI_DECODER_RESULT_ERROR) {
        return {CodingStep::State::more, produced};
    }
    // Its errors of allocation stand together, between these two.
    const BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(state_);
    const bool is_memory = code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
                           code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
    return {is_memory ? CodingStep::State::no_memory : CodingStep::State::corrupt, produced};
}

}  // namespace

std::unique_ptr<EncodingStream> make_brotli_encoder(int level, std::size_t memory_limit_bytes) {
    return begun(std::unique_ptr<BrotliEncoder>(new (std::nothrow) BrotliEncoder(memory_limit_bytes)), level);
}

std::unique_ptr<DecodingStream> make_brotli_decoder(std::size_t memory_limit_bytes) {
    return begun(std::unique_ptr<BrotliDecoder>(new (std::nothrow) BrotliDecoder(memory_limit_bytes)));
}

}  // namespace penstock

#else

namespace penstock {

std::unique_ptr<EncodingStream> make_brotli_encoder(int, std::size_t) {
    return nullptr;
}

std::unique_ptr<DecodingStream> make_brotli_decoder(std::size_t) {
    return nullptr;
}

}  // namespace penstock

#endif

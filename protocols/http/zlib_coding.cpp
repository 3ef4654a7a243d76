// gzip and deflate by zlib. make_zlib_encoder and make_zlib_decoder of coding_stream.h.
#include "penstock/protocols/http/coding_stream.h"

#include <algorithm>

#include <zlib.h>

namespace penstock {

namespace {

constexpr int kWindowBits = 15;  // 32 KiB, zlib's largest: a decoder must take what any encoder chose
constexpr int kGzipBits = 16;    // added to the window's bits, it asks for a gzip header and trailer
constexpr int kMemoryLevel = 8;  // zlib's default: 128 KiB for hashes and as much again for what is pending
// zlib counts in 32 bits.
constexpr std::size_t kInputLimitBytes = std::size_t{1} << 30;

void* allocate(void* memory, unsigned items, unsigned size) {
    return CodingMemory::allocate(memory, std::size_t{items} * size);
}

void release(void* memory, void* block) {
    CodingMemory::release(memory, block);
}

// What both directions have in common.
class ZlibState {
public:
    explicit ZlibState(std::size_t memory_limit_bytes) : memory_(memory_limit_bytes) {
        stream_.zalloc = allocate;
        stream_.zfree = release;
        stream_.opaque = &memory_;
    }
    ZlibState(const ZlibState&) = delete;
    ZlibState& operator=(const ZlibState&) = delete;

protected:
    ~ZlibState() = default;
    // How many bytes of the input zlib has now.
    std::size_t set_buffers(std::string_view input, char* output, std::size_t size) {
        const std::size_t taken = std::min(input.size(), kInputLimitBytes);
        // zlib reads only, but says so only when compiled with ZLIB_CONST.
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
        stream_.avail_in = static_cast<uInt>(taken);
        stream_.next_out = reinterpret_cast<Bytef*>(output);
        stream_.avail_out = static_cast<uInt>(size);
        return taken;
    }

    CodingMemory memory_;
    z_stream stream_{};
};

class ZlibEncoder final : public EncodingStream, private ZlibState {
public:
    explicit ZlibEncoder(std::size_t memory_limit_bytes) : ZlibState(memory_limit_bytes) {}
    ~ZlibEncoder() override { deflateEnd(&stream_); }

    [[nodiscard]] bool begin(bool gzip, int level) {
        return deflateInit2(&stream_, level, Z_DEFLATED, kWindowBits + (gzip ? kGzipBits : 0), kMemoryLevel,
                            Z_DEFAULT_STRATEGY) == Z_OK;
    }
    [[nodiscard]] CodingStep step(std::string_view& input, Flush flush, char* output, std::size_t size) override;
    [[nodiscard]] std::size_t peak_bytes() const override { return memory_.peak_bytes(); }
};

class ZlibDecoder final : public DecodingStream, private ZlibState {
public:
    ZlibDecoder(bool gzip, std::size_t memory_limit_bytes) : ZlibState(memory_limit_bytes), is_gzip_(gzip) {}
    ~ZlibDecoder() override { inflateEnd(&stream_); }

    [[nodiscard]] bool begin() { return inflateInit2(&stream_, kWindowBits + (is_gzip_ ? kGzipBits : 0)) == Z_OK; }
    [[nodiscard]] CodingStep step(std::string_view& input, char* output, std::size_t size) override;
    [[nodiscard]] bool is_at_end() const override { return is_at_end_; }
    [[nodiscard]] std::size_t peak_bytes() const override { return memory_.peak_bytes(); }

private:
    bool is_gzip_;
    bool is_at_end_ = false;
};

CodingStep ZlibEncoder::step(std::string_view& input, Flush flush, char* output, std::size_t size) {
    const std::size_t given = set_buffers(input, output, size);
    int mode = Z_NO_FLUSH;
    if (given == input.size() && flush != Flush::none) {
        mode = flush == Flush::finish ? Z_FINISH : Z_SYNC_FLUSH;
    }
    const int result = deflate(&stream_, mode);
    input.remove_prefix(given - stream_.avail_in);
    const std::size_t produced = size - stream_.avail_out;
    // Z_BUF_ERROR only means that there was nothing to do, as with a second flush.
    if (result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END) {
        return {CodingStep::State::no_memory, produced};
    }
    const bool done = flush == Flush::finish ? result == Z_STREAM_END : input.empty() && stream_.avail_out > 0;
    return {done ? CodingStep::State::done : CodingStep::State::more, produced};
}

CodingStep ZlibDecoder::step(std::string_view& input, char* output, std::size_t size) {
    if (is_at_end_) {
        if (input.empty()) {
            return {CodingStep::State::done, 0};
        }
        // Members of gzip may follow each other (RFC 1952 §2.2); behind a zlib stream there must be nothing.
        if (!is_gzip_ || inflateReset(&stream_) != Z_OK) {
            return {CodingStep::State::corrupt, 0};
        }
        is_at_end_ = false;
    }
    const std::size_t given = set_buffers(input, output, size);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input.remove_prefix(given - stream_.avail_in);
    const std::size_t produced = size - stream_.avail_out;
    if (result == Z_STREAM_END) {
        is_at_end_ = true;
        return {CodingStep::State::more, produced};
    }
    if (result == Z_MEM_ERROR) {
        return {CodingStep::State::no_memory, produced};
    }
    if (result != Z_OK && result != Z_BUF_ERROR) {
        return {CodingStep::State::corrupt, produced};
    }
    const bool done = input.empty() && stream_.avail_out > 0;
    return {done ? CodingStep::State::done : CodingStep::State::more, produced};
}

}  // namespace

std::unique_ptr<EncodingStream> make_zlib_encoder(bool gzip, int level, std::size_t memory_limit_bytes) {
    return begun(std::unique_ptr<ZlibEncoder>(new (std::nothrow) ZlibEncoder(memory_limit_bytes)), gzip, level);
}

std::unique_ptr<DecodingStream> make_zlib_decoder(bool gzip, std::size_t memory_limit_bytes) {
    return begun(std::unique_ptr<ZlibDecoder>(new (std::nothrow) ZlibDecoder(gzip, memory_limit_bytes)));
}

}  // namespace penstock

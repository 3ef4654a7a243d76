// Internal.
// What the encoder and the decoder of bodies share: where their bytes go, the memory that a library for compression may
// have, and the two interfaces behind which each of these libraries is. A stream belongs to the ContentEncoder or
// ContentDecoder that holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "penstock/protocols/http/content_coding.h"

namespace penstock {

// A reference to a function that takes a piece of bytes, or to a string that gets them behind what it holds. The bytes are
// the sink's during the call only. False says that it cannot take them. It owns nothing, and what it refers to must
// outlive it.
class ByteSink {
public:
    ByteSink(std::string& text) : target_(&text), call_(append) {}
    template <class Function>
        requires(std::is_invocable_r_v<bool, Function&, std::string_view> &&
                 !std::is_same_v<std::remove_cv_t<Function>, ByteSink>)
    ByteSink(Function& function)
        : target_(&function),
          call_([](void* target, std::string_view bytes) -> bool { return (*static_cast<Function*>(target))(bytes); }) {}

    [[nodiscard]] bool operator()(std::string_view bytes) const { return call_(target_, bytes); }

private:
    static bool append(void* target, std::string_view bytes);

    void* target_;
    bool (*call_)(void*, std::string_view);
};

// Memory of one stream, taken from malloc and never more than a limit. `allocate` and `release` have the form that zlib and
// Brotli ask of such functions; `memory` is the CodingMemory. It must outlive what was taken from it.
class CodingMemory {
public:
    explicit CodingMemory(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
    ~CodingMemory() { release_all(); }
    CodingMemory(const CodingMemory&) = delete;
    CodingMemory& operator=(const CodingMemory&) = delete;

    // Null when the limit or the machine says no.
    [[nodiscard]] static void* allocate(void* memory, std::size_t size);
    static void release(void* memory, void* given);
    // For what a library left behind.
    void release_all();
    [[nodiscard]] std::size_t peak_bytes() const { return peak_bytes_; }

private:
    struct Block;

    std::size_t limit_bytes_;
    Block* first_ = nullptr;
    std::size_t used_bytes_ = 0;
    std::size_t peak_bytes_ = 0;
};

enum class Flush : std::uint8_t {
    none,    // what is kept back may make later bytes smaller
    flush,   // all that came so far can be decoded from what went out
    finish,  // there is no more
};

// `produced` bytes were written. Unless `state` is `more`, nothing is left to do with this input.
struct CodingStep {
    enum class State : std::uint8_t {
        more,       // call again with what is left of the input
        done,
        corrupt,    // of decoders
        no_memory,  // or, of encoders, whatever else may fail
    };

    State state = State::more;
    std::size_t produced = 0;
};

class EncodingStream {
public:
    virtual ~EncodingStream() = default;
    // Takes bytes from the front of `input`. `flush` stays the same until the step that is `done`.
    [[nodiscard]] virtual CodingStep step(std::string_view& input, Flush flush, char* output, std::size_t size) = 0;
    // The most memory it had so far, itself not counted.
    [[nodiscard]] virtual std::size_t peak_bytes() const = 0;
};

class DecodingStream {
public:
    virtual ~DecodingStream() = default;
    // `size` is not 0.
    [[nodiscard]] virtual CodingStep step(std::string_view& input, char* output, std::size_t size) = 0;
    // The input so far is whole.
    [[nodiscard]] virtual bool is_at_end() const = 0;
    [[nodiscard]] virtual std::size_t peak_bytes() const = 0;
};

// Null when there is no memory, or when the library is not compiled in. `level` must be one that the library knows.
[[nodiscard]] std::unique_ptr<EncodingStream> make_zlib_encoder(bool gzip, int level, std::size_t memory_limit_bytes);
[[nodiscard]] std::unique_ptr<EncodingStream> make_brotli_encoder(int level, std::size_t memory_limit_bytes);
[[nodiscard]] std::unique_ptr<EncodingStream> make_zstd_encoder(int level, std::size_t memory_limit_bytes);
[[nodiscard]] std::unique_ptr<DecodingStream> make_zlib_decoder(bool gzip, std::size_t memory_limit_bytes);
[[nodiscard]] std::unique_ptr<DecodingStream> make_brotli_decoder(std::size_t memory_limit_bytes);
[[nodiscard]] std::unique_ptr<DecodingStream> make_zstd_decoder(std::size_t memory_limit_bytes);

// How all of these begin: the stream, or nullptr when there was no memory for it or it could not begin.
template <class Stream, class... Arguments>
[[nodiscard]] std::unique_ptr<Stream> begun(std::unique_ptr<Stream> stream, Arguments... arguments) {
    return stream != nullptr && stream->begin(arguments...) ? std::move(stream) : nullptr;
}

}  // namespace penstock

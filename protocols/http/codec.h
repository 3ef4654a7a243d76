// Internal.
// How a response leaves: the second of the two interfaces of the data path. HTTP/1 implements it now; another
// version of HTTP does later, with Request, Response, Router and middleware as they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "penstock/engine/output_queue.h"
#include "penstock/protocols/http/response.h"

namespace penstock {

class Exchange;

// What follows the head. `kind` tells which of the members below counts.
struct ResponseBody {
    enum class Kind : std::uint8_t { none, copied, fixed, owned, kept, file, parts };  // in memory, but for the last two

    Kind kind = Kind::none;
    std::string_view bytes = {};   // copied: until the call returns; fixed: for ever; kept: until `release(owner)`
    std::string* owned = nullptr;  // taken over where it is worth it
    void* owner = nullptr;
    void (*release)(void*) = nullptr;
    FileRange file = {};           // taken over always; of parts, the descriptor alone counts
    std::span<const FilePart> parts = {};  // until the call returns

    [[nodiscard]] bool is_in_memory() const { return kind < Kind::file; }
    // Of one that is.
    [[nodiscard]] std::string_view in_memory() const { return kind == Kind::owned ? std::string_view(*owned) : bytes; }
    [[nodiscard]] std::uint64_t size() const { return is_in_memory() ? in_memory().size() : file_bytes(); }
    // Of one that is not.
    [[nodiscard]] std::uint64_t file_bytes() const;
    // Closes or releases what does not leave.
    void drop() const;
};

class Codec {
public:
    // Hands a whole response over to the connection's output. Called once for an exchange, with its head hooks run.
    virtual void send_response(Exchange& exchange, const ResponseBody& body) = 0;

    // The same in parts. `length`: what is announced, or kNoLength. The head hooks have run; true when the body is chunked.
    static constexpr std::uint64_t kNoLength = ~std::uint64_t{0};
    virtual bool begin_response(Exchange& exchange, std::uint64_t length) = 0;
    // As much of `bytes` as the output has room for; returns how many.
    virtual std::size_t write_piece(Exchange& exchange, std::string_view bytes) = 0;
    // All of `bytes`, whether there is room or not: for the few that end a coding.
    virtual void write_last_piece(Exchange& exchange, std::string_view bytes) = 0;
    // Of a chunked body, with the trailers that were set.
    virtual void end_response(Exchange& exchange) = 0;

protected:
    ~Codec() = default;
};

}  // namespace penstock

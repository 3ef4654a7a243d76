// Internal.
// Encodes the body of one response while it leaves: decides whether and how (RFC 9110 §8.4, §12.5.3), sets the fields that say
// so, and feeds the encoder. Small bodies at once, by way of a cache; larger ones and files piece by piece from here, with
// Response::write_some for a pump; those that the handler writes as it writes them. Does not frame: that is the codec's.
//
// Attached by the middleware of compress.h, in the exchange's arena; its Response destroys it. Its reactor's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/protocols/http/codec.h"
#include "penstock/protocols/http/compress_policy.h"
#include "penstock/protocols/http/content_encoder.h"
#include "penstock/protocols/http/response.h"

namespace penstock {

class CompressCache;
class Reactor;

class ResponseEncoding {
public:
    // The policy that is attached last counts. Without memory for it the response leaves as it is.
    static void attach(Response& response, const CompressPolicy& policy);
    ~ResponseEncoding();
    ResponseEncoding(const ResponseEncoding&) = delete;
    ResponseEncoding& operator=(const ResponseEncoding&) = delete;

    // With the head hooks run. Puts the encoded body in the place of `*body`, or takes it over and sends it piece by piece:
    // then true, and the head has left. The body that it puts there lives as long as this, or the next use of the cache.
    [[nodiscard]] bool take_over(Response& response, ResponseBody* body);
    // The same for a body that the handler writes. True when it is encoded; what it announced as its length is kept here.
    [[nodiscard]] bool begin_stream(Response& response);

    // What is written goes through it.
    [[nodiscard]] bool is_active() const { return use_ != Use::none; }
    // A whole body leaves piece by piece: nobody else may write.
    [[nodiscard]] bool delivers() const { return use_ == Use::whole; }
    // As Response::write_some, at most a piece at a time.
    [[nodiscard]] std::string_view write_some(Response& response, std::string_view bytes);
    // What is left when all is written. False when the body is not whole; the response is cut then.
    [[nodiscard]] bool finish(Response& response);
    // The encoder and its memory are not needed any more; what is still written leads to nothing.
    void release();

private:
    // Which pieces are encoded: those of the handler, or of a whole body, which are taken from here.
    enum class Use : std::uint8_t { none, handler, whole };
    enum class Outcome : std::uint8_t { done, wait, failed };
    // An encoder's output before there is room for it; half of an output block.
    static constexpr std::size_t kPieceBytes = ContentEncoder::kPieceBytes;

    ResponseEncoding(Reactor& reactor, const CompressPolicy& policy) : reactor_(reactor), policy_(&policy) {}

    [[nodiscard]] bool try_take_over(Response& response, ResponseBody* body);
    [[nodiscard]] bool judge(Response& response, std::uint64_t size);
    [[nodiscard]] bool is_encodable(const Response& response, std::uint64_t size) const;
    static void add_vary(Response& response);
    static void weaken_tag(Response& response);
    [[nodiscard]] static bool has_weak_form(const Response& response);
    void describe(Response& response, ContentCoding coding) const;
    // `use_best_coding` of what the policy offers.
    template <class TryCoding>
    [[nodiscard]] bool choose(const Response& response, const TryCoding& try_coding) const;
    [[nodiscard]] bool start_encoder(Response& response, std::size_t more_bytes);
    [[nodiscard]] bool make_encoder(ContentCoding coding, std::size_t more_bytes);

    [[nodiscard]] bool encode_at_once(Response& response, ResponseBody* body);
    [[nodiscard]] bool find_encoded(Response& response, ContentCoding coding, std::string_view plain,
                                    std::string_view* encoded);
    [[nodiscard]] CompressCache* cache() const;

    [[nodiscard]] bool deliver(Response& response, ResponseBody* body);
    [[nodiscard]] bool keep_body(const ResponseBody& body);
    [[nodiscard]] Outcome next_slice(Response& response, std::string_view bytes);
    [[nodiscard]] Outcome read_slice(Response& response);
    void open_slice(std::string_view bytes, Flush flush);
    [[nodiscard]] Outcome run_slice(Response& response);
    // All of a whole body has been encoded and found room.
    [[nodiscard]] bool is_drawn() const { return slice_flush_ == Flush::finish && slice_.empty(); }
    static void cut(Response& response, const char* reason);

    Reactor& reactor_;
    const CompressPolicy* policy_;
    std::unique_ptr<ContentEncoder> encoder_;
    std::unique_ptr<char[]> memory_;  // a piece, and behind it, for files, a slice
    std::uint64_t charged_bytes_ = 0;
    std::string text_;  // a body that is owned, or what one was encoded to

    Use use_ = Use::none;
    ResponseBody left_{};  // of a whole body, taken over; the rest of one in memory is its `bytes`

    // Of the handler's own bytes.
    std::uint64_t plain_bytes_ = 0;
    std::uint64_t announced_bytes_ = Codec::kNoLength;

    // What the encoder works on: the front of what is being written, until all of its output has found room. Empty: nothing.
    std::string_view slice_{};
    std::string_view slice_left_{};  // what the encoder has not taken
    Flush slice_flush_ = Flush::none;
    bool slice_open_ = false;   // the encoder has not done with it
    std::string_view piece_{};  // output that has found no room yet
};

}  // namespace penstock

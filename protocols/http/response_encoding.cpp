// The part of a ResponseEncoding that decides, says so in the fields, and encodes small bodies at once.
#include "penstock/protocols/http/response_encoding.h"

#include <array>
#include <new>
#include <random>
#include <span>
#include <utility>

#include "penstock/engine/reactor.h"
#include "penstock/platform/net.h"
#include "penstock/protocols/http/accept_encoding.h"
#include "penstock/protocols/http/compress_cache.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/file_response.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/response_head.h"

namespace penstock {

namespace {

constexpr std::string_view kAcceptEncoding = "Accept-Encoding";
constexpr std::string_view kWeak = "W/";

// A file of so many bytes is read in one step, and is then a body in memory.
[[nodiscard]] bool fits_one_step(const ResponseBody& body) {
    return body.kind == ResponseBody::Kind::file && body.file.size <= kEncodeStepBytes;
}

// What a reactor keeps for the responses of one policy.
struct KeptForPolicy {
    explicit KeptForPolicy(std::shared_ptr<const CompressPolicy> owner)
        : policy(std::move(owner)), cache(policy->cache_bytes(), std::random_device{}()) {}

    const std::shared_ptr<const CompressPolicy> policy;  // so that no other has its address
    CompressCache cache;
};

}  // namespace

void ResponseEncoding::attach(Response& response, const CompressPolicy& policy) {
    if (response.encoding_ != nullptr) {
        response.encoding_->policy_ = &policy;
        return;
    }
    Exchange& exchange = response.exchange_;
    if (void* const memory = exchange.arena().try_allocate(sizeof(ResponseEncoding), alignof(ResponseEncoding))) {
        response.encoding_ = ::new (memory) ResponseEncoding(exchange.http().reactor(), policy);
    }
}

ResponseEncoding::~ResponseEncoding() { release(); }

void ResponseEncoding::release() {
    encoder_.reset();
    memory_.reset();
    reactor_.return_encoder_memory(std::exchange(charged_bytes_, 0));
    std::exchange(left_, {}).drop();
    slice_ = slice_left_ = piece_ = {};
    slice_open_ = false;
    text_ = std::string();
}

// ---- Deciding ------------------------------------------------------------------------------------------

// Without memory it is 500 instead: the fields may say already what does not come to pass. With the head gone the body is ours,
// and whoever caught what the handler threw cuts it.
bool ResponseEncoding::take_over(Response& response, ResponseBody* body) {
    try {
        return try_take_over(response, body);
    } catch (const std::bad_alloc&) {
        if (response.streaming()) {
            throw;
        }
        response.failed_ = true;
        return false;
    }
}

bool ResponseEncoding::try_take_over(Response& response, ResponseBody* body) {
    const std::uint64_t size = body->size();
    if (!response.exchange_.is_connected() || !judge(response, size)) {
        return false;
    }
    const bool is_small = body->is_in_memory() ? size <= kEncodeAtOnceLimitBytes : fits_one_step(*body);
    if (is_small && encode_at_once(response, body)) {
        return false;
    }
    return body->kind != ResponseBody::Kind::parts && deliver(response, body);
}

bool ResponseEncoding::begin_stream(Response& response) {
    const std::uint64_t size = response.has_length_ ? response.length_ : Codec::kNoLength;
    if (!response.exchange_.is_connected() || !judge(response, size)) {
        return false;
    }
    if (!start_encoder(response, 0)) {
        return false;
    }
    announced_bytes_ = size;
    use_ = Use::handler;
    return true;
}

// The fields say so as well. HEAD needs no encoder.
bool ResponseEncoding::start_encoder(Response& response, std::size_t more_bytes) {
    const bool is_head = response.exchange_.request().method() == Method::head;
    return choose(response, [&](ContentCoding coding) {
        if (!is_head && !make_encoder(coding, more_bytes)) {
            return false;
        }
        describe(response, coding);
        return true;
    });
}

// Whether another client could get this response encoded; then it says that it varies. 206 and 304 must say what 200 would
// (RFC 9110 §15.3.7, §15.4.5), and of which type that is cannot always be told from them.
bool ResponseEncoding::judge(Response& response, std::uint64_t size) {
    const unsigned status = response.status();
    if (status == 206 || status == 304) {
        if (response.header(HeaderName::content_encoding).data() == nullptr) {
            add_vary(response);
            if (status == 304 && has_weak_form(response)) {
                weaken_tag(response);  // it is about the compressed form, which the client has
            }
        }
        return false;
    }
    if (!may_have_body(status) || !is_encodable(response, size)) {
        return false;
    }
    add_vary(response);
    return true;
}

bool ResponseEncoding::is_encodable(const Response& response, std::uint64_t size) const {
    if (size == 0 || size < policy_->min_size_bytes() || response.header(HeaderName::content_encoding).data() != nullptr ||
        response.header("Content-Range").data() != nullptr || !policy_->fits(response.header(HeaderName::content_type))) {
        return false;
    }
    for (const Response::Field* field = response.first_; field != nullptr; field = field->next) {
        if (field->known == HeaderName::cache_control && list_has_token(field->value(), "no-transform")) {
            return false;
        }
    }
    return true;
}

template <class TryCoding>
bool ResponseEncoding::choose(const Response& response, const TryCoding& try_coding) const {
    std::string memory;
    const std::string_view accepted = joined_field(response.exchange_.request(), HeaderName::accept_encoding, &memory);
    // Where nothing is acceptable it leaves as it is, too: better than a 406 that nobody expects.
    return use_best_coding(accepted, policy_->codings(), try_coding);
}

// ---- The fields ----------------------------------------------------------------------------------------

void ResponseEncoding::add_vary(Response& response) {
    std::string value;
    for (const Response::Field* field = response.first_; field != nullptr; field = field->next) {
        if (!equal_ignoring_case(field->name(), "Vary")) {
            continue;
        }
        const std::string_view list = field->value();
        if (list_has_token(list, "*") || list_has_token(list, kAcceptEncoding)) {
            return;
        }
        value.append(list).append(list.empty() ? "" : ", ");
    }
    response.header("Vary", value.append(kAcceptEncoding));
}

// The bytes are no longer those that a strong tag named, nor can a part of them be asked for (RFC 9110 §8.8.1, §14.3).
void ResponseEncoding::describe(Response& response, ContentCoding coding) const {
    response.header(HeaderName::content_encoding, content_coding_name(coding));
    response.remove("Accept-Ranges");
    weaken_tag(response);
}

void ResponseEncoding::weaken_tag(Response& response) {
    const std::string_view tag = response.header("ETag");
    if (!tag.empty() && !tag.starts_with(kWeak)) {
        response.header("ETag", std::string(kWeak).append(tag));
    }
}

// Whether the client has named the response's strong tag in its weak form.
bool ResponseEncoding::has_weak_form(const Response& response) {
    const std::string_view tag = response.header("ETag");
    if (tag.data() == nullptr || tag.starts_with(kWeak)) {
        return false;
    }
    std::string memory;
    const std::string_view tags = joined_field(response.exchange_.request(), HeaderName::if_none_match, &memory);
    return tags.data() != nullptr && tags.find(std::string(kWeak).append(tag)) != std::string_view::npos;
}

// ---- At once -------------------------------------------------------------------------------------------

// False, with the next best to be tried, when its memory is spent.
bool ResponseEncoding::make_encoder(ContentCoding coding, std::size_t more_bytes) {
    const int level = policy_->level_of(coding);
    const std::uint64_t bytes = encoder_memory_bytes(coding, level) + more_bytes + kPieceBytes + kEncodeStepBytes;
    if (reactor_.try_take_encoder_memory(bytes)) {
        charged_bytes_ = bytes;
        memory_.reset(new (std::nothrow) char[kPieceBytes + kEncodeStepBytes]);
        encoder_ = memory_ != nullptr ? ContentEncoder::create(coding, level) : nullptr;
        if (encoder_ != nullptr) {
            return true;
        }
        release();
    }
    reactor_.count().encoders_refused.add();
    return false;
}

// False when it is a file that cannot be read at once: piece by piece its disk is waited for.
bool ResponseEncoding::encode_at_once(Response& response, ResponseBody* body) {
    std::array<char, kEncodeStepBytes> buffer;  // left as it is until read into
    std::string_view plain = body->in_memory();
    if (body->kind == ResponseBody::Kind::file) {
        const std::span<char> bytes(buffer.data(), static_cast<std::size_t>(body->file.size));
        const IoResult read = platform::read_file(body->file.fd, body->file.offset, std::as_writable_bytes(bytes),
                                                  platform::DiskWait::never);
        if (!read.ok() || static_cast<std::size_t>(read.count) != bytes.size()) {
            return false;
        }
        plain = {bytes.data(), bytes.size()};
    }
    std::string_view encoded;
    ContentCoding used = ContentCoding::identity;
    const bool found = choose(response, [&](ContentCoding coding) {
        used = coding;
        return find_encoded(response, coding, plain, &encoded);
    });
    if (!found || encoded.empty()) {
        return true;
    }
    describe(response, used);
    body->drop();
    *body = encoded.data() == text_.data() ? ResponseBody{.kind = ResponseBody::Kind::owned, .owned = &text_}
                                           : ResponseBody{.kind = ResponseBody::Kind::copied, .bytes = encoded};
    return true;
}

// Empty when the body gets no smaller. False when there is no memory for an encoder.
bool ResponseEncoding::find_encoded(Response& response, ContentCoding coding, std::string_view plain, std::string_view* encoded) {
    const int level = policy_->level_of(coding);
    CompressCache* const kept = cache();
    if (kept != nullptr) {
        if (const std::optional<std::string_view> hit = kept->find(plain, coding, level)) {
            reactor_.count().compress_cache_hits.add();
            *encoded = *hit;
            return true;
        }
    }
    if (!make_encoder(coding, 2 * plain.size())) {
        return false;
    }
    response.exchange_.http().count_coding(kEncodingCost * plain.size());
    std::string out;
    auto sink = [&out, &plain](std::string_view piece) {
        return out.size() + piece.size() < plain.size() && ByteSink(out)(piece);
    };
    const bool is_smaller = encoder_->encode(plain, Flush::finish, sink);
    release();
    text_ = is_smaller ? std::move(out) : std::string();
    if (kept != nullptr) {
        reactor_.count().compress_cache_misses.add();
        kept->put(plain, coding, level, text_);
    }
    *encoded = text_;
    return true;
}

CompressCache* ResponseEncoding::cache() const {
    if (policy_->cache_bytes() == 0) {
        return nullptr;
    }
    const auto make = [this] { return std::make_shared<KeptForPolicy>(policy_->shared_from_this()); };
    return &reactor_.local<KeptForPolicy>(policy_, make).cache;
}

}  // namespace penstock

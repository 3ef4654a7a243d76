#include "penstock/protocols/http/http1_parser.h"

#include <llhttp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>

#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/characters.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"

namespace penstock {

static_assert(sizeof(llhttp_t) == 96 || sizeof(void*) != 8,
              "llhttp_t has another size: adapt Http1Parser::state_");
static_assert(kIoBlockBytes < std::numeric_limits<std::uint16_t>::max(), "head offsets are 16 bits");

namespace {

// Longer than any method that is registered. What is longer is none that is known, wherever it ends.
constexpr std::size_t kMethodLimit = 64;
constexpr std::string_view kLengthName = "Content-Length";
// The first memory for trailers: a checksum or two.
constexpr std::size_t kTrailerBytes = 256;

[[nodiscard]] llhttp_t* llhttp_of(std::byte* state) {
    return std::launder(reinterpret_cast<llhttp_t*>(state));
}
[[nodiscard]] const llhttp_t* llhttp_of(const std::byte* state) {
    return std::launder(reinterpret_cast<const llhttp_t*>(state));
}

[[nodiscard]] Method method_of(std::uint8_t method) {
    switch (method) {
        case HTTP_GET: return Method::get;
        case HTTP_HEAD: return Method::head;
        case HTTP_POST: return Method::post;
        case HTTP_PUT: return Method::put;
        case HTTP_DELETE: return Method::del;
        case HTTP_PATCH: return Method::patch;
        case HTTP_OPTIONS: return Method::options;
        case HTTP_CONNECT: return Method::connect;
        case HTTP_TRACE: return Method::trace;
        default: return Method::other;
    }
}

}  // namespace

// llhttp reports a target, name or value in pieces wherever its input was cut. The pieces lie behind one
// another, so start and size are enough; a piece that does not follow is a folded line. Limits are judged
// when a whole one has come, so that it does not matter where the input was cut.
struct ParserCallbacks {
    using Phase = Http1Parser::Phase;

    static Http1Parser& self(llhttp_t* state) { return *static_cast<Http1Parser*>(state->data); }
    static std::uint16_t offset(const Http1Parser& parser, const char* at) {
        return static_cast<std::uint16_t>(at - parser.base_);
    }

    static int on_url(llhttp_t* state, const char* at, std::size_t size) {
        Http1Parser& parser = self(state);
        if (parser.target_size_ == 0) {
            parser.target_offset_ = offset(parser, at);
        }
        parser.target_size_ = static_cast<std::uint16_t>(parser.target_size_ + size);
        return 0;
    }

    static int on_url_complete(llhttp_t* state) {
        Http1Parser& parser = self(state);
        parser.phase_ = Phase::fields;
        if (state->method == HTTP_PRI) {
            return parser.fail(505);  // the preface of HTTP/2: llhttp would wait for the rest of it
        }
        const std::uint32_t limit = parser.exchange_.http().reactor().config().target_limit_bytes;
        return parser.target_size_ > limit ? parser.fail(414) : 0;
    }

    static int on_header_field(llhttp_t* state, const char* at, std::size_t size) {
        Http1Parser& parser = self(state);
        if (parser.name_size_ == 0) {
            parser.name_offset_ = offset(parser, at);
        }
        parser.name_size_ = static_cast<std::uint16_t>(parser.name_size_ + size);
        return 0;
    }

    static int on_header_field_complete(llhttp_t* state) {
        Http1Parser& parser = self(state);
        parser.value_size_ = 0;
        parser.value_offset_ = parser.name_offset_;
        if (parser.name_size_ == kLengthName.size() &&
            equal_ignoring_case({parser.base_ + parser.name_offset_, parser.name_size_}, kLengthName)) {
            parser.replace_length_tabs(std::size_t{parser.name_offset_} + parser.name_size_);
        }
        return parser.name_size_ == 0 ? parser.fail(400) : 0;
    }

    static int on_header_value(llhttp_t* state, const char* at, std::size_t size) {
        Http1Parser& parser = self(state);
        if (parser.value_size_ == 0) {
            parser.value_offset_ = offset(parser, at);
        } else if (offset(parser, at) != parser.value_offset_ + parser.value_size_) {
            return parser.fail(400);  // obs-fold, RFC 9112 §5.2
        }
        parser.value_size_ = static_cast<std::uint16_t>(parser.value_size_ + size);
        return 0;
    }

    static int on_header_value_complete(llhttp_t* state) {
        Http1Parser& parser = self(state);
        const unsigned status = parser.record_field();
        parser.name_size_ = 0;
        return status != 0 ? parser.fail(status) : 0;
    }

    // llhttp has done its part: an upgrade that nobody takes is no upgrade (RFC 9110 §7.8), and bodies are
    // read here.
    static int on_headers_complete(llhttp_t*) { return HPE_PAUSED; }

    static llhttp_settings_t make_settings() {
        llhttp_settings_t settings;
        llhttp_settings_init(&settings);
        settings.on_url = on_url;
        settings.on_url_complete = on_url_complete;
        settings.on_header_field = on_header_field;
        settings.on_header_field_complete = on_header_field_complete;
        settings.on_header_value = on_header_value;
        settings.on_header_value_complete = on_header_value_complete;
        settings.on_headers_complete = on_headers_complete;
        return settings;
    }
};

namespace {

const llhttp_settings_t kSettings = ParserCallbacks::make_settings();

}  // namespace

Http1Parser::Http1Parser(Exchange& exchange) : exchange_(exchange) {}

Http1Parser::Outcome Http1Parser::parse(const char* base, std::size_t from, std::size_t to,
                                        std::size_t* end) {
    base_ = base;
    *end = from;
    if (!head_complete()) {
        // Nothing behind the limit is looked at, so that it does not matter how much of it has come.
        const std::size_t limit = exchange_.http().reactor().config().head_limit_bytes;
        const std::size_t head_to = std::min(to, limit);
        const Outcome outcome = llhttp_begun_ ? parse_head(from, head_to, end) : begin_head(head_to, end);
        if (outcome != Outcome::complete) {
            return outcome == Outcome::need_more && to >= limit ? failed(overflow_status()) : outcome;
        }
        if ((chunked_ || body_left_ > 0) && exchange_.streams_body()) {
            return Outcome::head;
        }
    }
    return chunked_ ? parse_chunks(to, end) : parse_sized_body(to, end);
}

// ---- The head ------------------------------------------------------------------------------------------

// Called at one place, for each request: inline, as are a few others on its way.
inline Http1Parser::Outcome Http1Parser::begin_head(std::size_t to, std::size_t* end) {
    const Config& config = exchange_.http().reactor().config();
    const PlainHeadLimits limits{config.target_limit_bytes, config.header_count_limit};
    RequestLine line;
    *end = PlainHead::try_read({base_, to}, limits, exchange_.request(), &line);
    if (*end != 0) {
        return take_head(line, *end);
    }
    begin_llhttp();
    return parse_head(0, to, end);
}

Http1Parser::Outcome Http1Parser::parse_head(std::size_t from, std::size_t to, std::size_t* end) {
    *end = to;
    if (unknown_method_) {
        return judge_method(to, end);
    }
    head_to_ = static_cast<std::uint16_t>(to);
    if (in_length_) {
        replace_length_tabs(from);
    }
    llhttp_t* const state = llhttp_of(state_);
    const llhttp_errno_t error = llhttp_execute(state, base_ + from, to - from);
    const auto stopped = error == HPE_OK ? to : static_cast<std::size_t>(llhttp_get_error_pos(state) - base_);
    if (!line_ends_.accept(base_ + from, stopped - from)) {
        return failed(400);  // it came before whatever llhttp stopped at
    }
    switch (error) {
        case HPE_OK: return Outcome::need_more;
        case HPE_PAUSED: *end = stopped; return finish_head(stopped);
        case HPE_INVALID_METHOD: unknown_method_ = true; return judge_method(to, end);
        default: return failed(error_status_ != 0 ? error_status_ : classify(error, stopped));
    }
}

void Http1Parser::begin_llhttp() {
    auto* const state = ::new (static_cast<void*>(state_)) llhttp_t;
    llhttp_init(state, HTTP_REQUEST, &kSettings);
    state->data = this;
    llhttp_begun_ = true;
}

// Behind a length llhttp takes spaces and no tabs. Both mean the same around it and both are wrong inside of it
// (RFC 9112 §5), so what has arrived of the value is given spaces for its tabs before llhttp comes there.
void Http1Parser::replace_length_tabs(std::size_t from) {
    char* const end = const_cast<char*>(base_) + head_to_;
    char* const line_end = std::find(const_cast<char*>(base_) + from, end, '\r');
    std::replace(const_cast<char*>(base_) + from, line_end, '\t', ' ');
    in_length_ = line_end == end;
}

// An unknown method is a parse error to llhttp, where 501 is right as long as it is a token (RFC 9110
// §15.6.2).
Http1Parser::Outcome Http1Parser::judge_method(std::size_t to, std::size_t* end) {
    std::size_t begin = 0;
    while (begin < to && (base_[begin] == '\r' || base_[begin] == '\n')) {
        ++begin;
    }
    const std::size_t limit = std::min(to, begin + kMethodLimit);
    std::size_t at = begin;
    while (at < limit && characters::is_token_character(base_[at])) {
        ++at;
    }
    if (at == to && at < begin + kMethodLimit) {
        *end = to;
        return Outcome::need_more;
    }
    return failed(at == begin + kMethodLimit || (at > begin && base_[at] == ' ') ? 501 : 400);
}

Http1Parser::Outcome Http1Parser::finish_head(std::size_t head_end) {
    const llhttp_t* const state = llhttp_of(state_);
    // One space on either side of the target, and HTTP: llhttp takes several, and RTSP and ICE as well.
    if (state->http_major == 1 && (base_[target_offset_ - 2] == ' ' || !version_follows_target(head_end))) {
        return failed(400);
    }
    const RequestLine line{.target = {base_ + target_offset_, target_size_},
                           .method = method_of(state->method),
                           .major_version = state->http_major,
                           .minor_version = state->http_minor};
    return take_head(line, head_end);
}

// Whether PlainHead has read it or llhttp.
inline Http1Parser::Outcome Http1Parser::take_head(const RequestLine& line, std::size_t head_bytes) {
    phase_ = Phase::body;
    exchange_.request().set_base(base_);  // since the last field the head may have moved
    unsigned status = exchange_.head_arrived(line);
    status = status != 0 ? status : exchange_.apply_route_limits(head_bytes);
    if (status != 0) {
        return failed(status);
    }
    chunked_ = exchange_.request().has(HeaderName::transfer_encoding);
    body_left_ = exchange_.content_length();
    return Outcome::complete;
}

bool Http1Parser::version_follows_target(std::size_t to) const {
    const std::size_t target_end = std::size_t{target_offset_} + target_size_;
    return std::string_view(base_ + target_end, to - target_end).starts_with(" HTTP/");
}

unsigned Http1Parser::classify(int llhttp_error, std::size_t stopped) const {
    const llhttp_t* const state = llhttp_of(state_);
    switch (llhttp_error) {
        // Also what follows a version that is supported.
        case HPE_INVALID_VERSION: return state->http_major == 1 && state->http_minor <= 1 ? 400 : 505;
        // Also a method of RTSP.
        case HPE_INVALID_CONSTANT: return target_size_ > 0 && version_follows_target(stopped) ? 501 : 400;
        default: return 400;
    }
}

unsigned Http1Parser::overflow_status() const {
    const std::uint32_t limit = exchange_.http().reactor().config().target_limit_bytes;
    return phase_ == Phase::target && target_size_ > limit ? 414 : 431;
}

unsigned Http1Parser::record_field() {
    Request& request = exchange_.request();
    if (request.header_count() >= exchange_.http().reactor().config().header_count_limit) {
        return 431;
    }
    // White space behind a value is none of it (RFC 9112 §5.1); that before it llhttp skips.
    while (value_size_ > 0 && characters::is_white(base_[value_offset_ + value_size_ - 1])) {
        --value_size_;
    }
    request.set_base(base_);
    const std::string_view name(base_ + name_offset_, name_size_);
    return request.add_field(name, {base_ + value_offset_, value_size_}, find_header_name(name)) ? 0 : 503;
}

int Http1Parser::fail(unsigned status) {
    error_status_ = static_cast<std::uint16_t>(status);
    return -1;
}

Http1Parser::Outcome Http1Parser::failed(unsigned status) {
    error_status_ = static_cast<std::uint16_t>(status);
    return Outcome::failed;
}

// ---- The body ------------------------------------------------------------------------------------------

Http1Parser::Outcome Http1Parser::parse_sized_body(std::size_t to, std::size_t* end) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, to - *end));
    if (size > 0) {
        if (const unsigned status = exchange_.body_arrived(base_ + *end, size); status != 0) {
            return failed(status);
        }
        *end += size;
        body_left_ -= size;
    }
    return body_left_ == 0 ? Outcome::complete : Outcome::need_more;
}

Http1Parser::Outcome Http1Parser::parse_chunks(std::size_t to, std::size_t* end) {
    const BodyLimits limits{exchange_.body_limit_bytes(), exchange_.http().reactor().config().header_count_limit};
    while (*end < to && !chunks_.ended()) {
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(chunks_.data_left(), to - *end));
        std::size_t used = size;
        unsigned status = 0;
        if (size > 0) {
            status = exchange_.body_arrived(base_ + *end, size);
            chunks_.take_data(size);
        } else {
            status = read_framing({base_ + *end, to - *end}, limits, &used);
        }
        if (status != 0) {
            return failed(status);
        }
        *end += used;
    }
    return chunks_.ended() ? Outcome::complete : Outcome::need_more;
}

unsigned Http1Parser::read_framing(std::string_view bytes, const BodyLimits& limits, std::size_t* used) {
    const std::size_t before = chunks_.trailer_bytes();
    const unsigned status = chunks_.read(bytes, limits, used);
    if (status != 0 || chunks_.trailer_count() == 0) {
        return status;
    }
    const std::size_t more = chunks_.trailer_bytes() - before;
    if (!keep_trailers(bytes.substr(*used - more, more))) {
        return 503;
    }
    const std::string_view lines(trailers_, chunks_.trailer_bytes());
    return !chunks_.ended() || exchange_.request().set_trailers(lines, chunks_.trailer_count()) ? 0 : 503;
}

// The input that they arrive in does not stay, so they are copied, into memory that doubles: a peer must send bytes
// before it pins any. `bytes` are the last of those that `chunks_` has counted.
bool Http1Parser::keep_trailers(std::string_view bytes) {
    const std::size_t size = chunks_.trailer_bytes();
    const std::size_t before = size - bytes.size();
    if (size > trailer_capacity_) {
        const std::size_t capacity = std::max({size, std::size_t{trailer_capacity_} * 2, kTrailerBytes});
        auto* const grown = static_cast<char*>(exchange_.arena().try_allocate(capacity, 1));
        if (grown == nullptr) {
            return false;
        }
        std::copy_n(trailers_, before, grown);
        trailers_ = grown;
        trailer_capacity_ = static_cast<std::uint16_t>(capacity);
    }
    bytes.copy(trailers_ + before, bytes.size());
    return true;
}

}  // namespace penstock

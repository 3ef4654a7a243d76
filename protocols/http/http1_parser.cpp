#include "penstock/protocols/http/http1_parser.h"

#include <llhttp.h>

#include <cstring>
#include <limits>
#include <new>
#include <string_view>

#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"

namespace penstock {

static_assert(sizeof(llhttp_t) == 96 || sizeof(void*) != 8, "llhttp_t has another size: adapt Http1Parser::state_");
static_assert(kIoBlockBytes <= std::numeric_limits<std::uint16_t>::max(), "head offsets are 16 bits");

namespace {

[[nodiscard]] llhttp_t* llhttp_of(std::byte* state) { return std::launder(reinterpret_cast<llhttp_t*>(state)); }
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

// llhttp reports a name or value in pieces wherever its input was cut. The pieces lie behind one another, so
// start and size are enough; a piece that does not follow is a folded line.
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
        const std::uint32_t limit = parser.exchange_.http().reactor().config().target_limit_bytes;
        return parser.target_size_ > limit ? parser.fail(414) : 0;
    }

    static int on_header_field(llhttp_t* state, const char* at, std::size_t size) {
        Http1Parser& parser = self(state);
        if (parser.phase_ >= Phase::body) {
            return 0;
        }
        if (parser.phase_ != Phase::name) {
            if (parser.phase_ == Phase::value && !parser.record_field()) {
                return parser.fail(431);
            }
            parser.phase_ = Phase::name;
            parser.name_offset_ = offset(parser, at);
            parser.name_size_ = 0;
        }
        parser.name_size_ = static_cast<std::uint16_t>(parser.name_size_ + size);
        return 0;
    }

    static int on_header_field_complete(llhttp_t* state) {
        Http1Parser& parser = self(state);
        if (parser.phase_ >= Phase::body) {
            const std::uint32_t limit = parser.exchange_.http().reactor().config().header_count_limit;
            return ++parser.trailer_count_ > limit ? parser.fail(431) : 0;
        }
        parser.phase_ = Phase::value;
        parser.value_size_ = 0;
        parser.value_offset_ = parser.name_offset_;
        return 0;
    }

    static int on_header_value(llhttp_t* state, const char* at, std::size_t size) {
        Http1Parser& parser = self(state);
        if (parser.phase_ >= Phase::body) {
            return 0;
        }
        if (parser.value_size_ == 0) {
            parser.value_offset_ = offset(parser, at);
        } else if (offset(parser, at) != parser.value_offset_ + parser.value_size_) {
            return parser.fail(400);  // obs-fold, RFC 9112 §5.2
        }
        parser.value_size_ = static_cast<std::uint16_t>(parser.value_size_ + size);
        return 0;
    }

    static int on_headers_complete(llhttp_t* state) {
        Http1Parser& parser = self(state);
        if (parser.phase_ == Phase::value && !parser.record_field()) {
            return parser.fail(431);
        }
        parser.phase_ = Phase::body;
        state->upgrade = 0;  // an upgrade that nobody takes is no upgrade: what follows is HTTP (RFC 9110 §7.8)
        const unsigned status = parser.exchange_.head_arrived(
            {parser.base_ + parser.target_offset_, parser.target_size_}, state->http_major, state->http_minor,
            method_of(state->method));
        return status != 0 ? parser.fail(status) : 0;
    }

    static int on_body(llhttp_t* state, const char* at, std::size_t size) {
        Http1Parser& parser = self(state);
        if (!parser.line_ends_.accept(parser.framing_, static_cast<std::size_t>(at - parser.framing_))) {
            return parser.fail(400);
        }
        parser.framing_ = at + size;
        const unsigned status = parser.exchange_.body_arrived(at, size);
        return status != 0 ? parser.fail(status) : 0;
    }

    static int on_message_complete(llhttp_t*) { return HPE_PAUSED; }

    static llhttp_settings_t make_settings() {
        llhttp_settings_t settings;
        llhttp_settings_init(&settings);
        settings.on_url = on_url;
        settings.on_header_field = on_header_field;
        settings.on_header_field_complete = on_header_field_complete;
        settings.on_header_value = on_header_value;
        settings.on_headers_complete = on_headers_complete;
        settings.on_body = on_body;
        settings.on_message_complete = on_message_complete;
        return settings;
    }
};

namespace {

const llhttp_settings_t kSettings = ParserCallbacks::make_settings();

}  // namespace

Http1Parser::Http1Parser(Exchange& exchange) : exchange_(exchange) {
    auto* const state = ::new (static_cast<void*>(state_)) llhttp_t;
    llhttp_init(state, HTTP_REQUEST, &kSettings);
    state->data = this;
}

Http1Parser::Outcome Http1Parser::parse(const char* base, std::size_t from, std::size_t to, std::size_t* end) {
    llhttp_t* const state = llhttp_of(state_);
    base_ = base;
    framing_ = base + from;
    const llhttp_errno_t error = llhttp_execute(state, base + from, to - from);
    const char* stopped = base + to;
    if (error != HPE_OK) {
        stopped = llhttp_get_error_pos(state);
    }
    const bool complete = error == HPE_PAUSED || error == HPE_PAUSED_UPGRADE;
    if (error != HPE_OK && !complete) {
        if (error_status_ == 0) {
            error_status_ = static_cast<std::uint16_t>(classify(error, base, to));
        }
        *end = to;
        return Outcome::failed;
    }
    *end = static_cast<std::size_t>(stopped - base);
    if (stopped > framing_ && !line_ends_.accept(framing_, static_cast<std::size_t>(stopped - framing_))) {
        error_status_ = 400;
        return Outcome::failed;
    }
    return complete ? Outcome::complete : Outcome::need_more;
}

// An unknown method is a parse error to llhttp, where 501 is right as long as it is a token (RFC 9110 §15.6.2).
unsigned Http1Parser::classify(int llhttp_error, const char* base, std::size_t to) const {
    if (llhttp_error == HPE_INVALID_VERSION || llhttp_error == HPE_PAUSED_H2_UPGRADE) {
        return 505;
    }
    if (llhttp_error != HPE_INVALID_METHOD) {
        return 400;
    }
    std::string_view head(base, to);
    while (!head.empty() && (head.front() == '\r' || head.front() == '\n')) {
        head.remove_prefix(1);
    }
    const std::size_t space = head.find(' ');
    const bool cut_off = space == std::string_view::npos;
    return is_token(cut_off ? head : head.substr(0, space)) ? 501 : 400;
}

bool Http1Parser::record_field() {
    Request& request = exchange_.request();
    if (request.header_count() >= exchange_.http().reactor().config().header_count_limit) {
        return false;
    }
    // White space behind a value is none of it (RFC 9112 §5.1); that before it llhttp skips.
    while (value_size_ > 0 && (base_[value_offset_ + value_size_ - 1] == ' ' ||
                               base_[value_offset_ + value_size_ - 1] == '\t')) {
        --value_size_;
    }
    return request.add_field({name_offset_, name_size_, value_offset_, value_size_,
                              find_header_name({base_ + name_offset_, name_size_})}, base_);
}

int Http1Parser::fail(unsigned status) {
    error_status_ = static_cast<std::uint16_t>(status);
    return -1;
}

bool Http1Parser::keep_alive() const { return llhttp_should_keep_alive(llhttp_of(state_)) != 0; }

bool Http1Parser::chunked() const { return (llhttp_of(state_)->flags & F_CHUNKED) != 0; }

std::uint64_t Http1Parser::content_length() const {
    const llhttp_t* const state = llhttp_of(state_);
    return (state->flags & F_CONTENT_LENGTH) != 0 ? state->content_length : 0;
}

}  // namespace penstock

// The part of an Exchange that takes a request's head in: fields, framing, route and limits.
#include <algorithm>
#include <charconv>
#include <new>

#include "penstock/engine/alarm.h"
#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/route_table.h"
#include "penstock/protocols/http/target.h"

namespace penstock {

namespace {

[[nodiscard]] bool has_dot_segment(std::string_view path) {
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('/'), path.size());
        const std::string_view segment = path.substr(0, end);
        if (segment == "." || segment == "..") {
            return true;
        }
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    return false;
}

// What a route sets, or else the server.
template <class Number>
[[nodiscard]] Number own_or(Number own, Number general) {
    return own != 0 ? own : general;
}

}  // namespace

unsigned Exchange::head_arrived(const RequestLine& line) {
    if (line.major_version != 1 || line.minor_version > 1) {
        return 505;
    }
    request_.minor_version_ = line.minor_version;
    request_.method_ = line.method;
    if (line.method == Method::other || line.method == Method::connect) {
        return 501;  // nothing here is a proxy (RFC 9110 §9.3.6)
    }
    if (const unsigned status = check_fields(); status != 0) {
        return status;
    }
    if (const unsigned status = check_framing(); status != 0) {
        return status;
    }
    return find_route(line);
}

const RouteOptions& Exchange::route_options() const {
    static constexpr RouteOptions kNone;
    return route_ != nullptr ? route_->handler.options : kNone;
}

std::uint64_t Exchange::body_limit_bytes() const {
    return own_or(route_options().body_limit_bytes, http_.reactor().config().body_limit_bytes);
}

std::uint32_t Exchange::body_timeout_ms() const {
    return own_or(route_options().body_timeout_ms, http_.reactor().config().body_timeout_ms);
}

std::uint32_t Exchange::body_rate_min_bytes_per_s() const {
    return own_or(route_options().body_rate_min_bytes_per_s, http_.reactor().config().body_rate_min_bytes_per_s);
}

unsigned Exchange::apply_route_limits(std::size_t head_bytes) {
    const RouteOptions& own = route_options();
    const std::uint32_t limits = own.head_limit_bytes | own.header_count_limit | own.request_timeout_ms |
                                 http_.reactor().config().request_timeout_ms;
    if (limits == 0 && content_length_ == 0 && !own.length_required && !own.decode_body) [[likely]] {
        return 0;
    }
    return judge_route_limits(head_bytes);
}

unsigned Exchange::judge_route_limits(std::size_t head_bytes) {
    const RouteOptions& own = route_options();
    if ((own.head_limit_bytes != 0 && head_bytes > own.head_limit_bytes) ||
        (own.header_count_limit != 0 && request_.header_count() > own.header_count_limit)) {
        return 431;
    }
    if (own.length_required && may_lack_length()) {
        return 411;
    }
    if (content_length_ > body_limit_bytes()) {
        return 413;
    }
    if (own.decode_body) {
        if (const unsigned status = prepare_decoding(); status != 0) {
            return status;
        }
    }
    const std::uint32_t limit_ms = own_or(own.request_timeout_ms, http_.reactor().config().request_timeout_ms);
    return limit_ms != 0 && limit_ms != RouteOptions::kNoTimeout ? start_request_time(limit_ms) : 0;
}

// It has a body of a length that is not known, or should have one and does not say.
bool Exchange::may_lack_length() const {
    const Method method = request_.method_;
    const bool has_body = method == Method::post || method == Method::put || method == Method::patch ||
                          request_.header(HeaderName::transfer_encoding).data() != nullptr;
    return has_body && request_.header(HeaderName::content_length).data() == nullptr;
}

unsigned Exchange::start_request_time(std::uint32_t limit_ms) {
    void* const memory = arena_.try_allocate(sizeof(Alarm), alignof(Alarm));
    if (memory == nullptr) {
        return 503;
    }
    request_alarm_ = ::new (memory) Alarm;
    request_alarm_->context = this;
    request_alarm_->ring = [](void* self) {
        auto& exchange = *static_cast<Exchange*>(self);
        exchange.http_.end_for_time(exchange);
    };
    const std::uint32_t gone_ms = http_.reactor().now_ms() - begin_ms_;
    http_.reactor().set_alarm(*request_alarm_, limit_ms > gone_ms ? limit_ms - gone_ms : 0);
    return 0;
}

void Exchange::stop_request_time() {
    if (request_alarm_ != nullptr) {
        http_.reactor().cancel(*request_alarm_);
    }
}

inline unsigned Exchange::check_fields() {
    if (!request_.has(HeaderName::host)) {
        if (request_.minor_version_ == 1) {
            return 400;  // RFC 9112 §3.2
        }
    } else {
        request_.host_ = request_.header(HeaderName::host);
        if (request_.repeated(HeaderName::host) || !http_.hosts().is_valid(request_.host_)) {
            return 400;  // likewise
        }
    }
    client_keeps_alive_ = request_.minor_version_ == 1;
    if (request_.has(HeaderName::connection)) {
        client_keeps_alive_ = read_connection_field();
    }
    if (request_.has(HeaderName::expect) && request_.minor_version_ == 1) {
        if (request_.repeated(HeaderName::expect) ||
            !equal_ignoring_case(request_.header(HeaderName::expect), "100-continue")) {
            return 417;
        }
        expects_continue = true;
    }
    return 0;
}

// RFC 9112 §9.3: "close" wins over everything.
bool Exchange::read_connection_field() const {
    bool keeps = request_.minor_version_ == 1;
    if (!request_.repeated(HeaderName::connection) && request_.header(HeaderName::connection) == "keep-alive") {
        return true;  // as nearly everybody says it
    }
    for (std::size_t i = 0; i < request_.header_count(); ++i) {
        if (request_.fields_[i].known == HeaderName::connection) {
            const std::string_view options = request_.header_at(i).value;
            if (list_has_token(options, "close")) {
                return false;
            }
            keeps = keeps || list_has_token(options, "keep-alive");
        }
    }
    return keeps;
}

// RFC 9112 §6.1 to §6.3. Much of it llhttp has checked; so do we, since it must not depend on its version.
inline unsigned Exchange::check_framing() {
    if (!request_.has_any({HeaderName::transfer_encoding, HeaderName::content_length})) {
        return 0;
    }
    const std::string_view coding = request_.header(HeaderName::transfer_encoding);
    const std::string_view length = request_.header(HeaderName::content_length);
    if (coding.data() != nullptr) {
        if (length.data() != nullptr || request_.minor_version_ == 0) {
            return 400;
        }
        if (request_.repeated(HeaderName::transfer_encoding) || !equal_ignoring_case(coding, "chunked")) {
            return chunked_comes_last() ? 501 : 400;  // 400: nobody can tell where the body ends
        }
    }
    if (length.data() != nullptr) {
        const char* const end = length.data() + length.size();
        const auto [stopped, error] = std::from_chars(length.data(), end, content_length_);
        if (request_.repeated(HeaderName::content_length) || error != std::errc() || stopped != end) {
            return 400;
        }
    }
    return 0;
}

bool Exchange::chunked_comes_last() const {
    std::string_view last;
    for (std::size_t i = 0; i < request_.header_count(); ++i) {
        if (request_.fields_[i].known == HeaderName::transfer_encoding) {
            last = request_.header_at(i).value;
        }
    }
    last.remove_prefix(last.rfind(',') + 1);  // npos + 1 is 0
    last.remove_prefix(std::min(last.find_first_not_of(" \t"), last.size()));
    return equal_ignoring_case(last, "chunked");
}

unsigned Exchange::find_route(const RequestLine& line) {
    bool has_encoded_slash = false;
    if (line.is_plain_path || is_plain_path(line.target)) {
        request_.path_ = line.target;
    } else if (const unsigned status = take_target(line.target, &has_encoded_slash); status != 0) {
        return status;
    }
    request_.target_ = line.target;
    if (request_.path_.empty()) {  // "*"
        allow = http_.routes().all_methods();
        return 0;
    }
    const RouteMatch match = http_.routes().match(request_.method_, request_.path_);
    allow = match.allow;
    route_ = match.route;
    if (route_ == nullptr && allow.empty()) {
        route_ = http_.routes().fallback();
    }
    return match.parameter_count() == 0 ? 0 : keep_parameters(match, has_encoded_slash);
}

// One that has to be taken apart.
unsigned Exchange::take_target(std::string_view text, bool* has_encoded_slash) {
    Target target;
    const TargetError error = parse_target(text, false, request_.method_ == Method::options, arena_, &target);
    if (error != TargetError::none) {
        return error == TargetError::malformed ? 400 : 503;
    }
    request_.path_ = target.path;
    request_.query_ = target.query;
    if (target.form == TargetForm::absolute) {
        if (!is_valid_host(target.authority)) {
            return 400;
        }
        request_.host_ = target.authority;
    }
    *has_encoded_slash = target.has_encoded_slash;
    return 0;
}

unsigned Exchange::keep_parameters(const RouteMatch& match, bool has_encoded_slash) {
    const std::size_t count = match.parameter_count();
    auto* const kept = static_cast<HeaderField*>(arena_.try_allocate(count * sizeof(HeaderField), alignof(HeaderField)));
    if (kept == nullptr) {
        return 503;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const RouteParameter found = match.parameter(i);
        ::new (static_cast<void*>(kept + i)) HeaderField{found.name, found.value};
    }
    request_.parameters_ = kept;
    request_.parameter_count_ = count;
    return has_encoded_slash ? restore_slashes() : 0;
}

// In the values of parameters, where a NUL stands for each.
unsigned Exchange::restore_slashes() {
    for (std::size_t i = 0; i < request_.parameter_count_; ++i) {
        std::string_view& value = request_.parameters_[i].value;
        if (value.find('\0') == std::string_view::npos) {
            continue;
        }
        const std::string_view copy = arena_.try_copy(value);
        if (copy.data() == nullptr) {
            return 503;
        }
        value = copy;
        std::replace(const_cast<char*>(copy.data()), const_cast<char*>(copy.data()) + copy.size(), '\0', '/');
        if (has_dot_segment(copy)) {
            return 400;  // "..%2f" would climb in the hands of whoever opens the value as a path
        }
    }
    return 0;
}

}  // namespace penstock

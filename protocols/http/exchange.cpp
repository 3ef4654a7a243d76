#include "penstock/protocols/http/exchange.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "penstock/engine/alarm.h"
#include "penstock/engine/connection.h"
#include "penstock/engine/ensure.h"
#include "penstock/engine/reactor.h"
#include "penstock/engine/task_scope.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/route_table.h"
#include "penstock/protocols/http/target.h"

namespace penstock {

static_assert(sizeof(Exchange) <= kPageBytes / 2, "half of an exchange's page is left to its arena");

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

}  // namespace

Exchange* Exchange::try_create(Http1& http, Connection& connection) {
    std::byte* const page = http.reactor().pages().try_acquire();
    return page != nullptr ? ::new (page) Exchange(http, connection, page) : nullptr;
}

Exchange::Exchange(Http1& http, Connection& connection, std::byte* page)
    : arena_(http.reactor().pages(), page, sizeof(Exchange)), http_(http), connection_(&connection), parser_(*this),
      begin_ms_(http.reactor().now_ms()), response_(*this), request_(arena_, *this) {
    request_.peer_ = connection.peer();
}

Exchange::~Exchange() {
    ensure(pins_ == 0, "exchange: destroyed while an offloaded function refers into it");
    task_.reset();
    destroy_callbacks();
    stop_request_time();
    release_body();
    for (std::byte* const block : {head_block_, parked_block_}) {
        if (block != nullptr) {
            http_.reactor().blocks().release(block);
        }
    }
}

void Exchange::destroy() {
    BlockPool& pages = http_.reactor().pages();
    this->~Exchange();
    pages.release(reinterpret_cast<std::byte*>(this));
}

void Exchange::change_state(ExchangeState to) {
    const bool forward = to > state_;
    const bool handled_first = to != ExchangeState::done || state_ == ExchangeState::handling;
    ensure(forward && handled_first, "exchange: no such step from its state");
    state_ = to;
}

std::string_view Exchange::route_name() const { return route_ != nullptr ? route_->pattern : std::string_view(); }

// ---- Arriving ------------------------------------------------------------------------------------------

Http1Parser::Outcome Exchange::parse() {
    Input& input = connection_->input();
    std::size_t end = parsed_bytes_;
    const auto outcome =
        parser_.parse(reinterpret_cast<const char*>(input.data()), parsed_bytes_, input.size(), &end);
    parsed_bytes_ = static_cast<std::uint32_t>(end);
    return outcome;
}

// Called when all input is parsed and the message is not complete.
unsigned Exchange::make_room() {
    Input& input = connection_->input();
    if (heap_body_ != nullptr) {
        // The body is in the heap, so the input holds nothing that is still wanted, except in the head's block.
        if (head_block_ == nullptr) {
            head_block_ = connection_->detach_input_block();
        } else {
            input.consume(parsed_bytes_);
        }
        parsed_bytes_ = 0;
        return 0;
    }
    if (!parser_.head_complete()) {
        if (input.room().size() < Input::capacity() / 4) {
            input.compact();  // only offsets are kept while a head arrives, and one that fills a block was refused
        }
        return 0;
    }
    const std::uint64_t missing =
        content_length_ > request_.body_.size() ? content_length_ - request_.body_.size() : 0;
    if (missing > input.room().size() || input.room().empty()) {
        const unsigned status = move_body_to_heap(std::max<std::size_t>(2 * request_.body_.size(), kIoBlockBytes));
        return status != 0 ? status : make_room();
    }
    return 0;
}

unsigned Exchange::body_arrived(const char* data, std::size_t size) {
    const std::size_t before = request_.body_.size();
    received_body_bytes_ += size;
    if (received_body_bytes_ > body_limit_bytes()) {
        return 413;
    }
    if (heap_body_ != nullptr && !streams_body()) {
        if (const unsigned status = grow_body(before + size); status != 0) {
            return status;
        }
        std::memcpy(heap_body_ + before, data, size);
        request_.body_ = {heap_body_, before + size};
        return 0;
    }
    if (before == 0) {
        request_.body_ = {data, size};
        return 0;
    }
    // In the block: a chunk moves down to the end of the one before, over framing that is parsed already.
    char* const end = const_cast<char*>(request_.body_.data()) + before;
    if (end != data) {
        std::memmove(end, data, size);
    }
    request_.body_ = {request_.body_.data(), before + size};
    return 0;
}

unsigned Exchange::move_body_to_heap(std::size_t capacity) {
    const std::string_view body = request_.body_;
    if (const unsigned status = grow_body(capacity); status != 0) {
        return status;
    }
    std::copy_n(body.data(), body.size(), heap_body_);  // where memcpy may not be given the null of an empty view
    request_.body_ = {heap_body_, body.size()};
    return 0;
}

// Doubles, so that a peer must send bytes before it pins memory, and never beyond what the body may be.
unsigned Exchange::grow_body(std::size_t wanted) {
    if (wanted <= heap_capacity_) {
        return 0;
    }
    Reactor& reactor = http_.reactor();
    std::uint64_t capacity = std::max<std::uint64_t>(wanted, heap_capacity_ * 2);
    capacity = std::min(capacity, std::max<std::uint64_t>(wanted, body_limit_bytes()));
    const std::uint64_t more = capacity - heap_capacity_;
    if (!reactor.try_take_body_memory(more) && !http_.make_body_memory(*this, more)) {
        return 503;
    }
    auto* const grown = static_cast<char*>(std::realloc(heap_body_, capacity));
    if (grown == nullptr) {
        reactor.return_body_memory(more);
        return 503;
    }
    heap_body_ = grown;
    heap_capacity_ = capacity;
    return 0;
}

void Exchange::release_body() {
    if (heap_body_ != nullptr) {
        std::free(std::exchange(heap_body_, nullptr));
        http_.reactor().return_body_memory(std::exchange(heap_capacity_, 0));
        request_.body_ = {};
    }
}

void Exchange::consume_message() {
    connection_->input().consume(parsed_bytes_);
    parsed_bytes_ = 0;
}

// ---- The head ------------------------------------------------------------------------------------------

unsigned Exchange::head_arrived(std::string_view target, unsigned major, unsigned minor, Method method) {
    if (major != 1 || minor > 1) {
        return 505;
    }
    request_.minor_version_ = static_cast<std::uint8_t>(minor);
    request_.method_ = method;
    if (method == Method::other || method == Method::connect) {
        return 501;  // nothing here is a proxy (RFC 9110 §9.3.6)
    }
    if (const unsigned status = check_fields(); status != 0) {
        return status;
    }
    if (const unsigned status = check_framing(); status != 0) {
        return status;
    }
    return find_route(target);
}

unsigned Exchange::apply_route_limits(std::size_t head_bytes) {
    static constexpr RouteOptions kNone;
    const RouteOptions& own = route_ != nullptr ? route_->handler.options : kNone;
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
    const std::uint32_t limit_ms =
        own.request_timeout_ms != 0 ? own.request_timeout_ms : http_.reactor().config().request_timeout_ms;
    return limit_ms != 0 ? start_request_time(limit_ms) : 0;
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

unsigned Exchange::check_fields() {
    const std::string_view host = request_.header(HeaderName::host);
    if (request_.repeated(HeaderName::host) || (host.data() == nullptr && request_.minor_version_ == 1) ||
        (host.data() != nullptr && !is_valid_host(host))) {
        return 400;  // RFC 9112 §3.2
    }
    request_.host_ = host;
    client_keeps_alive_ = read_connection_field();
    const std::string_view expectation = request_.header(HeaderName::expect);
    if (expectation.data() != nullptr && request_.minor_version_ == 1) {
        if (request_.repeated(HeaderName::expect) || !equal_ignoring_case(expectation, "100-continue")) {
            return 417;
        }
        expects_continue = true;
    }
    return 0;
}

// RFC 9112 §9.3: "close" wins over everything.
bool Exchange::read_connection_field() const {
    bool keeps = request_.minor_version_ == 1;
    if (request_.header(HeaderName::connection).data() == nullptr) {
        return keeps;
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
unsigned Exchange::check_framing() {
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

unsigned Exchange::find_route(std::string_view target_text) {
    Target target;
    const TargetError error =
        parse_target(target_text, false, request_.method_ == Method::options, arena_, &target);
    if (error != TargetError::none) {
        return error == TargetError::malformed ? 400 : 503;
    }
    request_.target_ = target_text;
    request_.path_ = target.path;
    request_.query_ = target.query;
    if (target.form == TargetForm::absolute) {
        if (!is_valid_host(target.authority)) {
            return 400;
        }
        request_.host_ = target.authority;
    }
    if (target.form == TargetForm::asterisk) {
        allow = http_.routes().all_methods();
        return 0;
    }
    RouteMatch match;
    http_.routes().match(request_.method_, target.path, &match);
    allow = match.allow;
    route_ = match.route;
    if (route_ == nullptr && allow.empty()) {
        route_ = http_.routes().fallback();
    }
    if (match.parameter_count == 0) {
        return 0;
    }
    request_.parameters_ = static_cast<HeaderField*>(
        arena_.try_allocate(match.parameter_count * sizeof(HeaderField), alignof(HeaderField)));
    if (request_.parameters_ == nullptr) {
        return 503;
    }
    for (std::size_t i = 0; i < match.parameter_count; ++i) {
        std::string_view value = match.parameters[i].value;
        if (value.find('\0') != std::string_view::npos) {
            value = arena_.try_copy(value);
            if (value.data() == nullptr) {
                return 503;
            }
            std::replace(const_cast<char*>(value.data()), const_cast<char*>(value.data()) + value.size(), '\0', '/');
            if (has_dot_segment(value)) {
                return 400;  // "..%2f" would climb in the hands of whoever opens the value as a path
            }
        }
        ::new (static_cast<void*>(&request_.parameters_[i])) HeaderField{match.parameters[i].name, value};
    }
    request_.parameter_count_ = match.parameter_count;
    return 0;
}

// ---- Handling ------------------------------------------------------------------------------------------

void Exchange::start_task() {
    const TaskScope scope(this, &arena_);
    task_ = route_->handler.task(request_, response_);
}

void Exchange::resume(std::coroutine_handle<> handle) {
    if (connection_ == nullptr) {
        return;  // parked: another branch of the task waited for something else, and goes no further
    }
    {
        const TaskScope scope(this, nullptr);
        handle.resume();
    }
    http_.handler_advanced(*this);
}

void Exchange::resume_pinned(std::coroutine_handle<> handle) {
    --pins_;
    if (connection_ != nullptr) {
        if (handle) {
            resume(handle);
        }
    } else if (pins_ == 0) {
        http_.reactor().count().tasks_parked.subtract();
        destroy();
    }
}

void Exchange::abandon() {
    run_abort_callback();
    run_done_hooks();
    if (pins_ == 0) {
        destroy();
        return;
    }
    if (connection_->input().has_block()) {
        parked_block_ = connection_->detach_input_block();  // views into it may be in use elsewhere
    }
    park();
}

void Exchange::park() {
    connection_ = nullptr;
    stop_request_time();
    http_.reactor().count().tasks_parked.add();
}

void Exchange::run_before_hooks() {
    for (const Middleware* middleware : route_->middleware) {
        if (middleware->before && !response_.answered()) {
            middleware->before(request_, response_);
        }
    }
}

void Exchange::run_head_hooks() {
    if (route_ != nullptr && is_connected()) {
        for (auto it = route_->middleware.rbegin(); it != route_->middleware.rend(); ++it) {
            if ((*it)->head) {
                http_.guard(*this, [&] { (*it)->head(request_, response_); });
            }
        }
    }
}

void Exchange::run_done_hooks() {
    if (route_ != nullptr && !std::exchange(done_hooks_run_, true)) {
        for (auto it = route_->middleware.rbegin(); it != route_->middleware.rend(); ++it) {
            if ((*it)->done) {
                http_.guard(*this, [&] { (*it)->done(request_, response_); });
            }
        }
    }
}

void Exchange::answer(const ResponseBody& body) {
    if (is_connected()) {
        http_.send_response(*this, body);
    } else if (body.kind == ResponseBody::Kind::file) {
        http_.close_file(body.file.fd);
    }
}

// Answers to earlier requests that are still on their way are not for this one to cut.
void Exchange::abort() {
    if (connection_ == nullptr) {
        return;
    }
    must_close = true;
    if (connection_->output().empty()) {
        connection_->close();
    } else {
        end_task_later();
    }
}

}  // namespace penstock

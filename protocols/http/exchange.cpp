#include "penstock/protocols/http/exchange.h"

#include <algorithm>
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

namespace penstock {

static_assert(sizeof(Exchange) <= kPageBytes / 2, "half of an exchange's page is left to its arena");

inline Exchange::Exchange(Http1& http, Connection& connection, std::byte* page)
    : arena_(http.reactor().pages(), page, sizeof(Exchange)), http_(http), connection_(&connection), parser_(*this),
      begin_ms_(http.reactor().now_ms()), response_(*this), request_(arena_, *this) {
    request_.peer_ = connection.peer();
}

Exchange* Exchange::try_create(Http1& http, Connection& connection) {
    std::byte* const page = http.reactor().pages().try_acquire();
    return page != nullptr ? ::new (page) Exchange(http, connection, page) : nullptr;
}

void Exchange::release_more() {
    ensure(pins_ == 0, "exchange: destroyed while an offloaded function refers into it");
    task_.reset();
    destroy_callbacks();
    response_.destroy_encoding();
    stop_request_time();
    release_body();
    for (std::byte* const block : {head_block_, parked_block_}) {
        if (block != nullptr) {
            http_.reactor().blocks().release(block);
        }
    }
}

void Exchange::destroy() {
    if (holds_more()) {
        release_more();
    }
    destroy_empty();
}

std::string_view Exchange::route_name() const { return route_ != nullptr ? route_->pattern : std::string_view(); }

// ---- Arriving ------------------------------------------------------------------------------------------

Http1Parser::Outcome Exchange::parse() {
    Input& input = connection_->input();
    std::size_t end = parsed_bytes_;
    const auto outcome =
        parser_.parse(reinterpret_cast<const char*>(input.data()), parsed_bytes_, input.size(), &end);
    parsed_bytes_ = static_cast<std::uint32_t>(end);
    message_complete = outcome == Http1Parser::Outcome::complete;
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
    if (decodes_as_it_comes()) {
        return decode_arrived({data, size});
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
    release_decoding();
    if (heap_body_ != nullptr) {
        std::free(std::exchange(heap_body_, nullptr));
        http_.reactor().return_body_memory(std::exchange(heap_capacity_, 0));
        request_.body_ = {};
    }
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
    must_close = true;
    park();
}

void Exchange::park() {
    if (must_close && connection_->input().has_block()) {
        parked_block_ = connection_->detach_input_block();  // views into it may be in use elsewhere
    }
    connection_ = nullptr;
    response_.release_encoding();
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

// Answers to earlier requests that are still on their way are not for this one to cut.
void Exchange::abort() {
    if (connection_ == nullptr) {
        return;
    }
    must_close = true;
    if (!connection_->output().empty()) {
        end_handler_later();
    } else if (response_.is_cut() && response_.ends_with_connection()) {
        connection_->reset();
    } else {
        connection_->close();
    }
}

}  // namespace penstock

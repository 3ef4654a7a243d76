// The part of an Exchange that serves plain handlers which go on after they have returned: by callbacks, or by a response
// that comes from elsewhere.
#include <new>
#include <stdexcept>
#include <utility>

#include "penstock/engine/connection.h"
#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/callbacks.h"
#include "penstock/protocols/http/deferred_response.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"

namespace penstock {

// Called by handlers and callbacks, where what is thrown is caught.
Callbacks& Exchange::make_callbacks() {
    if (callbacks_ == nullptr) {
        void* const memory = arena_.try_allocate(sizeof(Callbacks), alignof(Callbacks));
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        callbacks_ = ::new (memory) Callbacks;
    }
    return *callbacks_;
}

void Exchange::destroy_callbacks() {
    while (callbacks_ != nullptr) {  // what they hold may ask for new ones in its destructor
        std::exchange(callbacks_, nullptr)->~Callbacks();
    }
}

DeferredResponse Exchange::defer() {
    make_callbacks().deferred = true;
    if (connection_ == nullptr) {
        return {};
    }
    const ConnectionToken token = connection_->token();
    return DeferredResponse(http_, token.index, token.generation, connection_->message_count());
}

void Exchange::call_with_piece(std::function<void(std::string_view)> function) {
    Callbacks& callbacks = make_callbacks();
    if (callbacks.on_piece || body_reader_) {
        throw std::logic_error("request.read: called while another read of this request waits");
    }
    callbacks.on_piece = std::move(function);
    notice_change();
}

// As much as there is room for is written now, so that a handler may end the body right behind its last piece.
void Exchange::call_when_written(std::string_view bytes, std::function<void()> function) {
    start_write(std::move(function)).write.emplace(response_, response_.write_some(bytes));
    notice_change();
}

void Exchange::call_when_written(std::string&& bytes, std::function<void()> function) {
    Callbacks& callbacks = start_write(std::move(function));
    callbacks.bytes = std::move(bytes);
    callbacks.write.emplace(response_, response_.write_some(callbacks.bytes));
    notice_change();
}

Callbacks& Exchange::start_write(std::function<void()> function) {
    Callbacks& callbacks = make_callbacks();
    if (callbacks.write || writer_ != nullptr) {
        throw std::logic_error("response.write: called while another write of this response waits");
    }
    callbacks.on_written = std::move(function);
    return callbacks;
}

bool Exchange::has_unwritten_bytes() const {
    return (writer_ != nullptr && !writer_->rest_.empty()) ||
           (callbacks_ != nullptr && callbacks_->write && !callbacks_->write->rest_.empty());
}

void Exchange::call_on_abort(std::function<void()> function) { make_callbacks().on_abort = std::move(function); }

// From a handler or a callback nothing is to be done: Http1 looks at what they have left. From elsewhere (a timer, a posted
// function) the connection has its turn by the ready list, so that nothing ends under the caller's feet.
void Exchange::come_back_for_callbacks() {
    if (!in_callback_ && connection_ != nullptr && attention_ == Attention::none) {
        attention_ = Attention::callbacks;
        connection_->resume_reading();
    }
}

bool Exchange::waits_for_body() const {
    return body_reader_ || (callbacks_ != nullptr && callbacks_->waits_for_piece);
}

bool Exchange::handler_done() const {
    if (task_runs()) {
        return false;
    }
    return callbacks_ == nullptr || response_.complete() ||
           (!callbacks_->deferred && !callbacks_->on_piece && !callbacks_->write);
}

void Exchange::run_callbacks() {
    if (callbacks_ == nullptr) {
        return;
    }
    if (attention_ == Attention::callbacks) {
        attention_ = Attention::none;
    }
    for (int calls = 0; is_connected() && !response_.complete(); ++calls) {
        if (calls == kCallbacksPerTurn) {
            notice_change();  // others have waited for long enough
            return;
        }
        if (!read_for_callback() && !write_for_callback()) {
            return;
        }
    }
}

// The next piece goes to the callback that asked for it. False when there is none, or nobody asked.
bool Exchange::read_for_callback() {
    if (!callbacks_->on_piece || callbacks_->waits_for_piece) {
        return false;
    }
    if (!streams_body()) {
        give_piece(std::exchange(callbacks_->body_given, true) ? std::string_view() : request_.body_);
        return true;
    }
    if (next_piece() == BodyStep::wait) {
        callbacks_->waits_for_piece = true;
        begin_body_wait();
        http_.body_wanted(*this);
        return false;
    }
    give_piece(request_.body_);
    return true;
}

void Exchange::give_piece(std::string_view piece) {
    const auto function = std::exchange(callbacks_->on_piece, nullptr);
    http_.call(*this, [&] { function(piece); });
}

bool Exchange::write_for_callback() {
    std::optional<ResponseWrite>& write = callbacks_->write;
    if (!write || writer_ == &*write) {
        return false;
    }
    if (write->await_ready()) {
        finish_write();
        return true;
    }
    if (response_.takes_more()) {
        wait_for_room(&*write);
    } else {
        response_.finish_stream();  // nobody takes what it writes
    }
    return false;
}

void Exchange::finish_write() {
    callbacks_->write.reset();
    callbacks_->bytes = std::string();  // what it kept has left
    if (const auto function = std::exchange(callbacks_->on_written, nullptr)) {
        http_.call(*this, function);
    }
}

void Exchange::continue_writer(std::coroutine_handle<> writer) {
    if (writer) {
        resume(writer);
        return;
    }
    if (is_connected()) {  // it may have been closed for want of memory
        finish_write();
    }
    http_.handler_advanced(*this);
}

void Exchange::run_deferred(const std::function<void(Response&)>& function) {
    http_.call(*this, [&] { function(response_); });
    http_.handler_advanced(*this);
}

void Exchange::drop_handler() {
    if (!pinned()) {
        task_.reset();
    }
    if (callbacks_ != nullptr) {
        callbacks_->aborted = !response_.complete();
        callbacks_->write.reset();
        callbacks_->waits_for_piece = callbacks_->deferred = false;
        // Destroyed when they are out of their places: what they hold may read or write in its destructor.
        const auto on_piece = std::exchange(callbacks_->on_piece, nullptr);
        const auto on_written = std::exchange(callbacks_->on_written, nullptr);
    }
}

void Exchange::run_abort_callback() {
    if (callbacks_ != nullptr && callbacks_->on_abort && (callbacks_->aborted || !response_.complete())) {
        const auto function = std::exchange(callbacks_->on_abort, nullptr);
        (void)http_.guard(*this, function);
    }
}

// ---- DeferredResponse ----------------------------------------------------------------------------------

DeferredResponse::DeferredResponse(Http1& http, std::uint32_t index, std::uint32_t generation, std::uint32_t message)
    : link_(http.reactor().link()), http_(&http), index_(index), generation_(generation), message_(message) {}

// On the reactor's thread.
Exchange* DeferredResponse::find() const {
    return http_->find_exchange(ConnectionToken{index_, generation_}, message_);
}

Response* DeferredResponse::get() const {
    const Reactor* const current = Reactor::current();
    if (link_ == nullptr) {
        return nullptr;
    }
    if (current == nullptr || current->link() != link_) {
        const std::lock_guard lock(link_->mutex);
        if (link_->reactor != nullptr) {
            throw std::logic_error("DeferredResponse::get: called off its reactor's thread; use post");
        }
        return nullptr;
    }
    Exchange* const exchange = find();
    return exchange != nullptr ? &exchange->response() : nullptr;
}

bool DeferredResponse::run(const std::function<void(Response&)>& function) const {
    if (get() == nullptr) {
        return false;
    }
    find()->run_deferred(function);
    return true;
}

bool DeferredResponse::post(std::function<void(Response&)> function) const {
    if (link_ == nullptr) {
        return false;
    }
    const std::lock_guard lock(link_->mutex);
    return link_->reactor != nullptr &&
           link_->reactor->try_post(Message([self = *this, answer = std::move(function)] {
               if (Exchange* const exchange = self.find()) {
                   exchange->run_deferred(answer);
               }
           }));
}

}  // namespace penstock

// The part of a Response that is written piece by piece.
#include <new>
#include <stdexcept>
#include <string>

#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/codec.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/field_rules.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/response.h"
#include "penstock/protocols/http/response_encoding.h"
#include "penstock/protocols/http/response_head.h"

namespace penstock {

Response& Response::content_length(std::uint64_t bytes) {
    if (answered_) {
        fail("a length is announced after the head has left", {});
    } else {
        has_length_ = true;
        length_ = bytes;
    }
    return *this;
}

ResponseWrite Response::write(std::string_view bytes) {
    refuse_second_body();
    return ResponseWrite(*this, bytes);
}

void Response::write(std::string_view bytes, std::function<void()> on_written) {
    refuse_second_body();
    exchange_.call_when_written(bytes, std::move(on_written));
}

void Response::write(std::string&& bytes, std::function<void()> on_written) {
    refuse_second_body();
    exchange_.call_when_written(std::move(bytes), std::move(on_written));
}

// What is written would stand in the middle of a body that is being compressed.
void Response::refuse_second_body() const {
    if (encoding_ != nullptr && encoding_->delivers()) {
        throw std::logic_error("response.write: called after the whole answer");
    }
}

bool Response::begin_stream() {
    if (stream_ != Stream::none) {
        return stream_ == Stream::open;
    }
    stream_ = Stream::ended;
    if (answered_) {
        fail("a piece is written after the whole answer", {});
        return false;
    }
    if (!failed_) {
        exchange_.run_head_hooks();
    }
    if (!failed_ && encoding_ != nullptr && encoding_->begin_stream(*this)) {
        has_length_ = false;  // that of what is encoded is not known
    }
    if (failed_) {
        send(std::string_view());  // what was set is wrong: 500 leaves in its place
        return false;
    }
    open_stream();
    return true;
}

// Its head leaves.
void Response::open_stream() {
    answered_ = true;
    stream_ = Stream::open;
    body_dropped_ = exchange_.request().method() == Method::head || !may_have_body(status_);
    chunked_ = exchange_.begin_response(has_length_ ? length_ : Codec::kNoLength);
}

std::string_view Response::write_some(std::string_view bytes) {
    if (!begin_stream()) {
        return {};
    }
    if (encoding_ != nullptr && encoding_->is_active()) {
        return encoding_->write_some(*this, bytes);
    }
    if (has_length_ && bytes.size() > length_ - body_bytes_) {
        fail("more is written than content_length announced:", std::to_string(length_));
        stream_ = Stream::ended;
        exchange_.must_close = true;
        return {};
    }
    const std::size_t written = body_dropped_ ? bytes.size() : exchange_.write_piece(bytes);
    body_bytes_ += written;
    return bytes.substr(written);
}

Response& Response::trailer(std::string_view name, std::string_view value) {
    const HeaderName known = find_header_name(name);
    if (const FieldFault fault = find_text_fault(known, name, value); fault.reason != nullptr) {
        fail(fault.reason, fault.about);
    } else if (complete()) {
        fail("a trailer is set after the end:", name);
    } else if (is_for_heads_only(known)) {
        fail("this field means nothing behind a body, leave it out:", name);
    } else if (Field* const field = make_trailer(known, name, value)) {
        (first_trailer_ != nullptr ? last_trailer_->next : first_trailer_) = field;
        last_trailer_ = field;
    }
    return *this;
}

void Response::end() {
    if (stream_ == Stream::open && encoding_ != nullptr && encoding_->delivers()) {
        fail("it is ended after the whole answer", {});
    } else {
        finish_stream();
    }
}

void Response::finish_stream() {
    if (!begin_stream()) {
        return;
    }
    const bool unwritten = exchange_.has_unwritten_bytes();
    stream_ = Stream::ended;
    if (unwritten) {
        fail("it is ended while a write waits:", "its last bytes are missing");
        stream_ = Stream::cut;
        exchange_.must_close = true;
    } else if (has_length_ && body_bytes_ != length_ && !body_dropped_) {
        fail("less is written than content_length announced:", std::to_string(length_));
        exchange_.must_close = true;  // how the client learns that something is missing
    } else if (encoding_ != nullptr && encoding_->is_active() && !encoding_->finish(*this)) {
        // cut already
    } else if (chunked_ && !body_dropped_) {
        exchange_.end_response();
    }
    release_encoding();
    exchange_.notice_change();
}

void Response::release_encoding() {
    if (encoding_ != nullptr) {
        encoding_->release();
    }
}

void Response::destroy_encoding() {
    if (encoding_ != nullptr) {
        std::exchange(encoding_, nullptr)->~ResponseEncoding();
    }
}

// A writer whose bytes nobody takes (HEAD, a length that is exceeded, a connection that has gone) never goes on: a loop that
// writes for ever would otherwise never give the reactor back.
bool ResponseWrite::await_ready() {
    rest_ = response_.write_some(rest_);
    return rest_.empty() && response_.takes_more() && !response_.exchange_.output_is_full();
}

void ResponseWrite::await_suspend(std::coroutine_handle<> writer) {
    if (response_.takes_more()) {
        writer_ = writer;
        response_.exchange_.wait_for_room(this);
    } else {
        response_.exchange_.end_handler_later();
    }
}

bool Response::takes_more() const { return stream_ == Stream::open && !body_dropped_ && exchange_.is_connected(); }

ResponseWrite::~ResponseWrite() {
    if (response_.exchange_.writer() == this) {
        response_.exchange_.wait_for_room(nullptr);
    }
}

}  // namespace penstock

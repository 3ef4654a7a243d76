// The part of an Exchange that serves handlers which read their request's body piece by piece.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "penstock/engine/connection.h"
#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/callbacks.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/route_table.h"

namespace penstock {

bool Exchange::streams_body() const {
    return route_ != nullptr && (route_->handler.task || route_->handler.options.stream_body);
}

Exchange::BodyStep Exchange::next_piece() { return decoding_ == nullptr ? next_sent_piece() : next_decoded_piece(); }

Exchange::BodyStep Exchange::next_sent_piece() {
    let_go_of_piece();
    if (message_complete || connection_ == nullptr) {
        return BodyStep::end;
    }
    if (body_error_ != 0 || connection_->input().size() == parsed_bytes_) {
        return BodyStep::wait;
    }
    const Http1Parser::Outcome outcome = parse();
    if (outcome == Http1Parser::Outcome::failed) {
        body_error_ = static_cast<std::uint16_t>(parser_.error_status());
        return BodyStep::wait;
    }
    if (!request_.body_.empty()) {
        return BodyStep::piece;
    }
    if (!message_complete) {
        let_go_of_piece();  // framing alone can fill a block: trailers, extensions
    }
    return message_complete ? BodyStep::end : BodyStep::wait;
}

// What was parsed is used up. Only the block that holds the head is kept.
void Exchange::let_go_of_piece() {
    request_.body_ = {};
    if (message_complete || !is_connected()) {
        return;
    }
    Input& input = connection_->input();
    if (head_block_ != nullptr) {
        input.consume(std::exchange(parsed_bytes_, 0));
    } else if (parsed_bytes_ == input.size() && input.has_block()) {
        head_block_ = connection_->detach_input_block();
        parsed_bytes_ = 0;
    }
}

void Exchange::wait_for_body(std::coroutine_handle<> reader) {
    if (waits_for_body()) {
        throw std::logic_error("request.read: awaited while another read of this request waits");
    }
    body_reader_ = reader;
    begin_body_wait();
    http_.body_wanted(*this);
}

void Exchange::begin_body_wait() {
    body_wait_begin_ms_ = http_.reactor().now_ms();
    body_time_runs_ = !waits_for_turn();
}

void Exchange::go_on_with_body_wait() {
    if (!body_time_runs_) {
        begin_body_wait();
    }
}

void Exchange::resume_body_reader() {
    end_body_wait();
    if (body_reader_) {
        resume(std::exchange(body_reader_, nullptr));
        return;
    }
    callbacks_->waits_for_piece = false;
    give_piece(request_.body_);
    http_.handler_advanced(*this);
}

void Exchange::end_body_wait() {
    if (std::exchange(body_time_runs_, false)) {
        body_waited_ms_ += http_.reactor().now_ms() - body_wait_begin_ms_;
    }
}

void Exchange::forget_body_reader() {
    body_reader_ = nullptr;
    end_body_wait();
    if (connection_ != nullptr) {
        http_.stop_arriving(*this);
    }
}

// Only the time in which the server waits counts: a slow handler does not use up its client's.
std::uint32_t Exchange::body_time_left_ms() const {
    const std::uint64_t earned = received_body_bytes_ * 1000 / body_rate_min_bytes_per_s();
    const std::uint64_t allowed = body_timeout_ms() + earned;
    const std::uint32_t waiting = body_time_runs_ ? http_.reactor().now_ms() - body_wait_begin_ms_ : 0;
    const std::uint64_t waited = std::uint64_t{body_waited_ms_} + waiting;
    return waited >= allowed ? 0 : static_cast<std::uint32_t>(std::min<std::uint64_t>(allowed - waited, TimerWheel::kMaxDelayMs));
}

unsigned Exchange::keep_piece(std::string_view piece) {
    if (const unsigned status = grow_body(kept_bytes_ + piece.size()); status != 0) {
        return status;
    }
    std::copy_n(piece.data(), piece.size(), heap_body_ + kept_bytes_);
    kept_bytes_ += piece.size();
    return 0;
}

// ---- Writing -------------------------------------------------------------------------------------------

void Exchange::wait_for_room(ResponseWrite* writer) {
    if (writer != nullptr && writer_ != nullptr) {
        throw std::logic_error("response.write: awaited while another write of this response waits");
    }
    writer_ = writer;
    if (writer != nullptr && connection_ != nullptr) {
        connection_->want_room();
    }
}

bool Exchange::output_is_full() const { return connection_ != nullptr && http_.output_is_full(*connection_); }

void Exchange::end_handler_later() {
    attention_ = Attention::end;
    if (connection_ != nullptr) {
        connection_->resume_reading();  // by way of on_input; of a connection that has gone on_close takes care
    }
}

bool Exchange::begin_response(std::uint64_t length) {
    return is_connected() && http_.begin_response(*this, length);
}

std::size_t Exchange::write_piece(std::string_view bytes) {
    return is_connected() ? http_.write_piece(*this, bytes) : bytes.size();
}

void Exchange::write_last_piece(std::string_view bytes) {
    if (is_connected() && !bytes.empty()) {
        http_.write_last_piece(*this, bytes);
    }
}

void Exchange::end_response() {
    if (is_connected()) {
        http_.end_response(*this);
    }
}

void Exchange::skip_arrived_body() {
    stop_decoding();
    while (next_sent_piece() == BodyStep::piece) {
    }
}

}  // namespace penstock

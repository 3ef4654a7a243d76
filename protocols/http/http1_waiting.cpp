// The part of Http1 that waits: deadlines, the list of arriving requests, and who gives way when memory is short.
#include <algorithm>

#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/response_head.h"

namespace penstock {

void Http1::on_drained(Connection& connection) {
    Exchange* const exchange = exchange_of(connection);
    if (exchange != nullptr && exchange->writer() != nullptr && feed_writer(*exchange)) {
        return;  // its handler has run on, and has seen to the rest
    }
    if (connection.reading_paused() && !output_is_full(connection) &&
        (exchange == nullptr || exchange->arriving())) {
        connection.resume_reading();
    }
    rearm(connection);
}

// Of the phase in which the request is still arriving.
std::uint32_t Http1::time_left_ms(const Exchange& exchange) const {
    if (exchange.state() != ExchangeState::head) {
        return exchange.body_time_left_ms();
    }
    const std::uint32_t gone = reactor().now_ms() - exchange.begin_ms();
    const std::uint32_t allowed = reactor().config().head_timeout_ms;
    return allowed > gone ? allowed - gone : 0;
}

// The nearest of what its phase allows; the connection minds the write deadline itself. The deadline of one that waits for
// an input block stays.
void Http1::rearm(Connection& connection) {
    const Exchange* const exchange = exchange_of(connection);
    if (connection.starved()) {
        return;
    }
    std::uint32_t delay_ms = 0;
    if (exchange == nullptr) {
        delay_ms = connection.output_blocked() ? 0 : reactor().config().idle_timeout_ms;
    } else if (exchange->in_arriving_list) {
        delay_ms = std::max(time_left_ms(*exchange), 1u);
    }
    connection.set_deadline_in(delay_ms);
}

void Http1::start_arriving(Exchange& exchange) {
    exchange.in_arriving_list = true;
    exchange.arriving_next = nullptr;
    exchange.arriving_previous = arriving_last_;
    (arriving_last_ != nullptr ? arriving_last_->arriving_next : arriving_first_) = &exchange;
    arriving_last_ = &exchange;
    exchange.arrival = reactor().number_arrival();
    rearm(*exchange.connection());
}

void Http1::leave_arriving(Exchange& exchange) {
    exchange.in_arriving_list = false;
    Exchange* const next = exchange.arriving_next;
    Exchange* const previous = exchange.arriving_previous;
    (previous != nullptr ? previous->arriving_next : arriving_first_) = next;
    (next != nullptr ? next->arriving_previous : arriving_last_) = previous;
}

void Http1::on_deadline(Connection& connection) {
    Exchange* const exchange = exchange_of(connection);
    if (exchange != nullptr && exchange->in_arriving_list && time_left_ms(*exchange) == 0) {
        reactor().count().timeouts.add();
        end_early(*exchange, 408);  // behind answers that are still on their way
    } else if (connection.write_expired()) {
        reactor().count().timeouts.add();
        connection.reset();
    } else if (exchange == nullptr && connection.starved()) {
        refuse_unread(connection);
    } else if (exchange == nullptr && !connection.output_blocked()) {
        reactor().count().timeouts.add();
        connection.close();
    } else {
        rearm(connection);
    }
}

// All the time that a request and its answer may take is over.
void Http1::end_for_time(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    if (connection.is_open()) {
        reactor().count().timeouts.add();
        end_early(exchange, exchange.in_arriving_list ? 408 : 503);  // who is waited for
        connection.flush_later();
    }
}

// It has waited for an input block for too long: what it asks is not known, only that it cannot be served.
void Http1::refuse_unread(Connection& connection) {
    reactor().count().request_errors.add();
    if (connection.output().try_append_external(reactor().blocks(), refusal_text(), nullptr, nullptr)) {
        connection.finish(Linger::yes);
    } else {
        connection.close();
    }
}

void Http1::on_close(Connection& connection) {
    if (Exchange* const exchange = exchange_of(connection)) {
        connection.set_session(nullptr);
        stop_arriving(*exchange);
        exchange->abandon();
    }
}

// One whose offloaded function runs keeps what it holds: to end it would help nobody.
Exchange* Http1::oldest_arriving() const {
    Exchange* exchange = arriving_first_;
    while (exchange != nullptr && exchange->pinned()) {
        exchange = exchange->arriving_next;
    }
    return exchange;
}

std::uint64_t Http1::oldest_arrival() const {
    const Exchange* const exchange = oldest_arriving();
    return exchange != nullptr ? exchange->arrival : kNoArrival;
}

void Http1::end_oldest_arrival() {
    Exchange& exchange = *oldest_arriving();
    Connection& connection = *exchange.connection();
    end_early(exchange, 503);
    connection.flush_later();
}

bool Http1::make_body_memory(Exchange& wanting, std::uint64_t bytes) {
    std::uint64_t held = 0;
    for (const Exchange* other = arriving_first_; other != nullptr; other = other->arriving_next) {
        held += other != &wanting && !other->pinned() ? other->body_memory_bytes() : 0;
    }
    if (held + reactor().free_body_memory() < bytes) {
        return false;
    }
    for (Exchange* other = arriving_first_; !reactor().try_take_body_memory(bytes);) {
        if (other == nullptr) {
            return false;
        }
        Exchange* const next = other->arriving_next;
        if (other != &wanting && !other->pinned() && other->body_memory_bytes() > 0) {
            Connection& connection = *other->connection();
            end_early(*other, 503);
            connection.flush_later();
        }
        other = next;
    }
    return true;
}

void Http1::on_drain(Connection& connection) {
    if (exchange_of(connection) != nullptr || !connection.input().empty() || connection.may_receive_more()) {
        return;  // its next answer says that the connection ends
    }
    if (connection.output().empty()) {
        connection.close();
    } else {
        connection.finish(Linger::yes);  // when its last answer has left
    }
}

bool Http1::output_is_full(Connection& connection) const {
    return connection.output().memory_bytes() >= reactor().config().output_high_water_bytes ||
           connection.output().ends_with_file();
}

}  // namespace penstock

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
    if (connection.can_send()) {
        rearm(connection);
        return;
    }
    if (exchange != nullptr && exchange->in_arriving_list) {
        exchange->write_deadline_ms = reactor().now_ms() + connection.deadline_left_ms();
        connection.tighten_deadline_in(std::max(time_left_ms(*exchange), 1u));
    }
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

// One deadline per connection: the nearest of what its phase allows. While the peer does not take its output the
// write deadline stands, which `flush` has set.
void Http1::rearm(Connection& connection) {
    if (!connection.can_send()) {
        return;
    }
    const Exchange* const exchange = exchange_of(connection);
    if (exchange == nullptr) {
        connection.set_deadline_in(reactor().config().idle_timeout_ms);
    } else if (exchange->waits_for_body()) {
        connection.set_deadline_in(std::max(exchange->body_time_left_ms(), 1u));
    } else if (!exchange->arriving()) {
        connection.set_deadline_in(0);
    }
}

void Http1::start_arriving(Exchange& exchange) {
    exchange.in_arriving_list = true;
    exchange.arriving_next = nullptr;
    exchange.arriving_previous = arriving_last_;
    (arriving_last_ != nullptr ? arriving_last_->arriving_next : arriving_first_) = &exchange;
    arriving_last_ = &exchange;
    exchange.arrival = reactor().number_arrival();
    const std::uint32_t timeout_ms = std::max(time_left_ms(exchange), 1u);
    Connection& connection = *exchange.connection();
    if (connection.output_blocked()) {
        exchange.write_deadline_ms = reactor().now_ms() + connection.deadline_left_ms();
        connection.tighten_deadline_in(timeout_ms);
    } else {
        exchange.write_deadline_ms.reset();
        connection.set_deadline_in(timeout_ms);
    }
}

void Http1::stop_arriving(Exchange& exchange) {
    if (!exchange.in_arriving_list) {
        return;
    }
    exchange.in_arriving_list = false;
    if (Connection& connection = *exchange.connection(); connection.is_open() && connection.output_blocked()) {
        // Of the two only the time to write is left: what it had before, or all of it when it has begun since.
        const std::uint32_t now = reactor().now_ms();
        const std::uint32_t deadline = exchange.write_deadline_ms.value_or(now + reactor().config().write_timeout_ms);
        connection.set_deadline_in(static_cast<std::uint32_t>(std::max(static_cast<std::int32_t>(deadline - now), 1)));
    }
    Exchange* const next = exchange.arriving_next;
    Exchange* const previous = exchange.arriving_previous;
    (previous != nullptr ? previous->arriving_next : arriving_first_) = next;
    (next != nullptr ? next->arriving_previous : arriving_last_) = previous;
}

void Http1::on_deadline(Connection& connection) {
    Exchange* const exchange = exchange_of(connection);
    const bool blocked = connection.output_blocked();
    const bool waited_for = exchange != nullptr && exchange->in_arriving_list;
    const std::uint32_t left = waited_for ? time_left_ms(*exchange) : 0;
    if (waited_for && left == 0) {
        reactor().count().timeouts.add();
        end_early(*exchange, 408);  // behind answers that are still on their way
    } else if (exchange == nullptr && connection.starved()) {
        refuse_unread(connection);
    } else if (blocked) {
        reactor().count().timeouts.add();
        connection.reset();  // the peer has taken nothing for the whole of the write timeout
    } else if (exchange == nullptr) {
        reactor().count().timeouts.add();
        connection.close();
    } else if (waited_for) {
        connection.set_deadline_in(left);
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

std::uint64_t Http1::oldest_arrival() const {
    return arriving_first_ != nullptr ? arriving_first_->arrival : kNoArrival;
}

void Http1::end_oldest_arrival() {
    Connection& connection = *arriving_first_->connection();
    end_early(*arriving_first_, 503);
    connection.flush_later();
}

bool Http1::make_body_memory(Exchange& wanting, std::uint64_t bytes) {
    std::uint64_t held = 0;
    for (const Exchange* other = arriving_first_; other != nullptr; other = other->arriving_next) {
        held += other != &wanting ? other->body_memory_bytes() : 0;
    }
    if (held + reactor().free_body_memory() < bytes) {
        return false;
    }
    for (Exchange* other = arriving_first_; !reactor().try_take_body_memory(bytes);) {
        if (other == nullptr) {
            return false;
        }
        Exchange* const next = other->arriving_next;
        if (other != &wanting && other->body_memory_bytes() > 0) {
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

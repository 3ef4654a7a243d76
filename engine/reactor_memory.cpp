// The part of a Reactor that shares out memory: who waits for it, and who gives way when it is short.
#include <cstddef>

#include "penstock/engine/ensure.h"
#include "penstock/engine/reactor.h"
#include "penstock/engine/tls_session.h"
#include "penstock/engine/tls_work.h"

namespace penstock {

// Waiting readers get the blocks that came back. When none did, somebody must give way, since a budget that is spent
// must not stop the server: a peer that does not read its answers first, then the request that has been arriving for
// longest, then a peer that may just be slow.
void Reactor::relieve_starved() {
    const auto has_block = [this] { return blocks_.leased() + config_.io_block_reserve < config_.io_block_limit; };
    if (!has_block() && !end_stuck_output(kStuckOutputMs, nullptr) && !end_oldest_arrival(true)) {
        end_stuck_output(0, nullptr);
    }
    std::uint32_t room = has_block() ? config_.io_block_limit - config_.io_block_reserve - blocks_.leased() : 0;
    for (; room > 0 && !starved_.empty(); --room) {
        Connection* const connection = starved_.pop_front();
        connection->flags_ &= static_cast<std::uint8_t>(~Connection::kStarved);
        make_ready(*connection);
    }
}

// Looks at every slot: it happens only when the blocks are spent, and then each time frees some.
bool Reactor::end_stuck_output(std::uint32_t least_stuck_ms, const Connection* except) {
    Connection* stuckest = nullptr;
    std::int32_t most_left = static_cast<std::int32_t>(config_.write_timeout_ms - least_stuck_ms);
    connections_.for_each([&](Connection& connection) {
        const bool stuck = (connection.state_ == ConnectionState::open || connection.state_ == ConnectionState::closing) &&
                           connection.output_blocked() && connection.has_output();
        const auto left = static_cast<std::int32_t>(connection.write_deadline_ms_ - now_ms_);
        if (stuck && &connection != except && left <= most_left) {
            stuckest = &connection;
            most_left = left - 1;  // of equals the first
        }
    });
    if (stuckest == nullptr) {
        return false;
    }
    counters_.evicted.add();
    stuckest->reset();
    stuckest->output_.clear(blocks_);
    if (stuckest->tls_ != nullptr) {
        stuckest->tls_->unsent().clear(blocks_);
    }
    return true;
}

bool Reactor::end_oldest_arrival(bool keeps_block) {
    Protocol* holder = nullptr;
    std::uint64_t oldest = Protocol::kNoArrival;
    for (const auto& protocol : protocols_) {
        if (protocol->oldest_arrival() < oldest) {
            holder = protocol.get();
            oldest = protocol->oldest_arrival();
        }
    }
    if (TlsSession* const hello = keeps_block && tls_work_ != nullptr ? tls_work_->oldest_hello() : nullptr; hello != nullptr && hello->arrival() < oldest) {
        counters_.evicted.add();
        end_handshake(*hello);
        return true;
    }
    if (holder != nullptr) {
        counters_.evicted.add();
        holder->end_oldest_arrival();
    }
    return holder != nullptr;
}

void Reactor::note_handshake(TlsSession& session) {
    if (tls_work_->add(session, next_arrival_)) {
        ++next_arrival_;
        if (tls_work_->handshakes() > config_.tls_handshake_limit) {
            counters_.evicted.add();
            end_handshake(*tls_work_->oldest());
        }
    }
}

void Reactor::end_handshake(TlsSession& session) {
    tls_work_->remove(session);
    Connection& connection = session.connection();
    connection.reset();
    if (connection.input_.has_block()) {
        blocks_.release(connection.input_.detach());
    }
}

void Reactor::make_output_room(std::size_t blocks, const Connection& connection) {
    while (blocks_.limit() - blocks_.leased() < blocks && end_stuck_output(0, &connection)) {
    }
}

void Reactor::make_starved(Connection& connection) {
    if (connection.has(Connection::kReady)) {
        connection.flags_ &= static_cast<std::uint8_t>(~Connection::kReady);
        ready_.remove(connection);
    }
    if (!connection.has(Connection::kStarved)) {
        counters_.input_starved.add();
        connection.flags_ |= Connection::kStarved;
        starved_.push_back(connection);
        more_to_do_ = true;
        connection.tighten_deadline_in(kStarvedTimeoutMs);
    }
}

void Reactor::end_starvation(Connection& connection) {
    if (connection.has(Connection::kStarved)) {
        connection.flags_ &= static_cast<std::uint8_t>(~Connection::kStarved);
        starved_.remove(connection);
    }
}

bool Reactor::try_take_body_memory(std::uint64_t bytes) {
    if (bytes > config_.body_memory_limit_bytes - body_memory_bytes_) {
        return false;
    }
    body_memory_bytes_ += bytes;
    return true;
}

void Reactor::return_body_memory(std::uint64_t bytes) {
    ensure_debug(bytes <= body_memory_bytes_, "reactor: more body memory returned than taken");
    body_memory_bytes_ -= bytes;
}

bool Reactor::try_take_encoder_memory(std::uint64_t bytes) {
    const std::uint64_t limit = config_.encoder_memory_limit_bytes;
    if (encoder_memory_bytes_ > limit || bytes > limit - encoder_memory_bytes_) {
        return false;
    }
    encoder_memory_bytes_ += bytes;
    return true;
}

void Reactor::return_encoder_memory(std::uint64_t bytes) {
    ensure_debug(bytes <= encoder_memory_bytes_, "reactor: more encoder memory returned than taken");
    encoder_memory_bytes_ -= bytes;
}

}  // namespace penstock

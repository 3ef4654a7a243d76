// The client's end of a Connection: what Peer does to it.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "penstock/platform/sim/connection.h"
#include "penstock/platform/sim/kernel.h"

namespace penstock::sim {

bool Connection::peer_send(std::string_view bytes) {
    if (dead_ || peer_finished_ || phase_ == Phase::refused) {
        return false;
    }
    if (server_closed_) {
        if (is_unix()) {
            return false;
        }
        break_both();
        return true;
    }
    unsent_.push(bytes);
    move_unsent();
    if (phase_ != Phase::connecting) {
        settle_if_needed();
    }
    return true;
}

// Bytes, then the FIN behind them, go as far as the server's buffer has room.
void Connection::move_unsent() {
    if (phase_ == Phase::connecting || phase_ == Phase::refused || dead_) {
        return;
    }
    bool news = false;
    if (inbound_.size() < inbound_capacity_ && !unsent_.empty()) {
        const std::string_view part = unsent_.view(inbound_capacity_ - inbound_.size());
        inbound_.push(part);
        unsent_.pop(part.size());
        news = true;
    }
    if (unsent_.empty() && fin_on_its_way() && !read_held_) {
        fin_arrived_ = true;
        news = true;
        // A Unix socket knows at once that its peer is gone; TCP learns it from the answer to a send.
        if (peer_closed_ && is_unix()) {
            dead_ = true;
        }
    }
    if (news) {
        raise_edge();
    }
}

void Connection::peer_finish() {
    if (dead_ || phase_ == Phase::refused) {
        return;
    }
    peer_finished_ = true;
    move_unsent();
    if (phase_ != Phase::connecting) {
        settle_if_needed();
    }
}

void Connection::peer_close() {
    peer_look();
    if (unread_by_peer() > 0) {
        peer_reset();
        return;
    }
    peer_closed_ = true;
    peer_finish();
}

void Connection::peer_reset() {
    peer_look();
    if (phase_ == Phase::connecting) {
        refuse();
    }
    if (dead_ || phase_ == Phase::refused) {
        return;
    }
    peer_finished_ = true;
    die(reset_error());
}

std::string Connection::peer_read(std::size_t most) {
    std::string bytes(outbound_.view(most));
    peer_drain(most);
    return bytes;
}

void Connection::peer_look() {
    if (!manual_) {
        peer_drain(unread_by_peer());
    }
}

void Connection::peer_drain(std::size_t most) {
    const std::string_view bytes = outbound_.view(most);
    const std::size_t counted = std::min(most - bytes.size(), uncounted_);
    received_count_ += bytes.size() + counted;
    if (!bytes.empty()) {
        take(bytes);
    }
    outbound_.pop(bytes.size());
    uncounted_ -= counted;
    note_fin();
    raise_if_writable();
}

void Connection::take(std::string_view bytes) {
    if (keep_ == Keep::all) {
        received_.append(bytes);
    }
    if (keep_ == Keep::sink) {
        sink_(bytes);
    }
}

void Connection::note_fin() {
    if (reset_seen_by_peer_ || unread_by_peer() > 0) {
        return;
    }
    if (sending_shut_ || server_closed_) {
        fin_seen_by_peer_ = true;
    }
}

void Connection::set_manual(bool manual) {
    manual_ = manual;
    peer_look();
}

void Connection::set_outbound_capacity(std::size_t bytes) {
    outbound_capacity_ = bytes;
    raise_if_writable();
}

void Connection::set_inbound_capacity(std::size_t bytes) {
    inbound_capacity_ = bytes;
    move_unsent();
}

void Connection::discard_received() {
    keep_ = Keep::nothing;
}

void Connection::set_sink(Peer::Sink sink) {
    keep_ = sink ? Keep::sink : Keep::all;
    sink_ = std::move(sink);
}

bool Connection::closed_by_server() const {
    return phase_ == Phase::refused || (phase_ == Phase::accepted && !open()) ||
           (phase_ == Phase::queued && reset_seen_by_peer_);
}

}  // namespace penstock::sim

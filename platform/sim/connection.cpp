// The server's end: what a kernel does for a socket's descriptor. The client's end is in
// connection_peer.cpp.
#include "penstock/platform/sim/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "penstock/platform/sim/kernel.h"

namespace penstock::sim {

namespace {

bool breaks_connection(int error);

}  // namespace

void Connection::enter_queue() {
    phase_ = Phase::queued;
    move_unsent();
    settle_if_needed();
}

void Connection::accept_as(int fd) {
    phase_ = Phase::accepted;
    fd_ = fd;
}

void Connection::refuse() {
    phase_ = Phase::refused;
    unsent_.clear();
}

Readiness Connection::readiness() {
    Readiness now;
    now.readable = visible() > 0 || shut_for_reading();
    now.writable = shut_for_sending() || writable();
    now.hangup = shut_for_reading();
    now.error = (shut_for_reading() && shut_for_sending()) || error_ != 0;
    if (!now.writable) {
        wants_room_ = true;
    }
    return now;
}

// Data first, then the end of it: the order of tcp_recvmsg. A FIN that came before a reset hides it.
IoResult Connection::receive(std::span<std::byte> buffer, std::uint64_t most) {
    if (buffer.empty()) {
        return IoResult::success(0);
    }
    if (read_held_) {
        return IoResult::failure(EAGAIN);
    }
    if (!inbound_.empty()) {
        const std::size_t wanted = std::min(buffer.size(), inbound_.size());
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, most));
        std::memcpy(buffer.data(), inbound_.view(count).data(), count);
        inbound_.pop(count);
        read_held_ = count < wanted;
        settle_if_needed();
        if (count == 0) {
            return IoResult::failure(EAGAIN);
        }
        return IoResult::success(static_cast<std::int64_t>(count));
    }
    if (fin_arrived_) {
        return IoResult::success(0);
    }
    if (error_ != 0) {
        return IoResult::failure(take_error(0));
    }
    if (dead_) {
        return IoResult::success(0);
    }
    return IoResult::failure(EAGAIN);
}

IoResult Connection::send(std::span<const platform::SendPiece> pieces, std::uint64_t most) {
    if (shut_for_sending()) {
        return IoResult::failure(take_error(EPIPE));
    }
    pieces = pieces.first(std::min(pieces.size(), platform::kMaxSendPieces));
    std::uint64_t wanted = 0;
    for (const platform::SendPiece& piece : pieces) {
        wanted += piece.size;
    }
    if (wanted == 0) {
        return IoResult::success(0);
    }
    const std::size_t had_room = room();
    const std::uint64_t taken = std::min({wanted, std::uint64_t{had_room}, most});
    auto left = static_cast<std::size_t>(taken);
    for (const platform::SendPiece& piece : pieces) {
        const std::size_t part = std::min(left, piece.size);
        if (part > 0 && keep_ != Keep::nothing) {
            outbound_.push({static_cast<const char*>(piece.data), part});
        }
        left -= part;
    }
    if (keep_ == Keep::nothing) {
        uncounted_ += static_cast<std::size_t>(taken);
    }
    return end_send(wanted, taken, had_room);
}

IoResult Connection::send_file(const FileNode& file, std::uint64_t offset, std::uint64_t size,
                               std::uint64_t most) {
    // sendfile reads before it writes, so the file's end is seen before the socket's.
    const std::uint64_t wanted = std::min(size, file.size_from(offset));
    if (wanted == 0) {
        return IoResult::success(0);
    }
    if (shut_for_sending()) {
        return IoResult::failure(take_error(EPIPE));
    }
    const std::size_t had_room = room();
    const std::uint64_t taken = std::min({wanted, std::uint64_t{had_room}, most});
    if (keep_ == Keep::nothing) {
        uncounted_ += static_cast<std::size_t>(taken);
        return end_send(wanted, taken, had_room);
    }
    std::array<char, 16384> chunk;
    std::uint64_t done = 0;
    while (done < taken) {
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), taken - done));
        const std::size_t count = file.read(offset + done, std::span(chunk).first(part));
        outbound_.push({chunk.data(), count});
        done += count;
    }
    return end_send(wanted, taken, had_room);
}

IoResult Connection::end_send(std::uint64_t wanted, std::uint64_t sent, std::uint64_t had_room) {
    if (sent < wanted) {
        wants_room_ = true;
    }
    if (sent < std::min(wanted, had_room)) {
        send_blocked_ = true;
    }
    settle_if_needed();
    if (sent == 0) {
        return IoResult::failure(EAGAIN);
    }
    if (peer_closed_) {
        die(reset_error());
    }
    return IoResult::success(static_cast<std::int64_t>(sent));
}

int Connection::shut_sending() {
    if (dead_ || (sending_shut_ && fin_arrived_)) {
        return ENOTCONN;
    }
    sending_shut_ = true;
    note_fin();
    // inet_shutdown wakes whoever polls, although this is the poller's own doing.
    raise_edge();
    return 0;
}

std::size_t Connection::room() const {
    if (send_blocked_ || unread_by_peer() >= outbound_capacity_) {
        return 0;
    }
    return outbound_capacity_ - unread_by_peer();
}

// As sk_stream_is_writeable: a third of the buffer must be free, so that room comes in useful pieces.
bool Connection::writable() const {
    return !send_blocked_ && outbound_capacity_ > 0 &&
           unread_by_peer() + unread_by_peer() / 2 <= outbound_capacity_;
}

void Connection::raise_if_writable() {
    if (!wants_room_ || !writable()) {
        return;
    }
    wants_room_ = false;
    raise_edge();
}

int Connection::take_error(int otherwise) {
    const int error = error_ != 0 ? error_ : otherwise;
    error_ = 0;
    return error;
}

void Connection::fail_receive(int error) {
    if (is_would_block(error)) {
        read_held_ = true;
        settle_if_needed();
    } else if (breaks_connection(error)) {
        break_both();
    }
}

void Connection::fail_send(int error) {
    if (is_would_block(error)) {
        send_blocked_ = true;
        wants_room_ = true;
        settle_if_needed();
    } else if (breaks_connection(error)) {
        break_both();
    }
}

void Connection::break_both() {
    reset_seen_by_peer_ = true;
    inbound_.clear();
    die(0);
}

// As tcp_reset: what was received stays readable, what was not yet sent is dropped.
void Connection::die(int error) {
    dead_ = true;
    error_ = error;
    read_held_ = false;
    send_blocked_ = false;
    unsent_.clear();
    lose_outbound();
    raise_edge();
}

// A reset that finds the peer's FIN here already is a broken pipe (tcp_reset, TCP_CLOSE_WAIT).
int Connection::reset_error() const {
    return fin_arrived_ && !is_unix() ? EPIPE : ECONNRESET;
}

void Connection::lose_outbound() {
    outbound_.clear();
    uncounted_ = 0;
}

// man 7 tcp says little of it: tcp_close resets when received bytes are unread, otherwise sends a FIN
// and leaves what was sent to the kernel. After FINs both ways there is nothing left to reset.
void Connection::on_last_close() {
    read_held_ = false;
    send_blocked_ = false;
    if (dead_) {
        return;
    }
    const bool complete = fin_arrived_ && sending_shut_ && unread_by_peer() == 0;
    const bool unread = unread_by_server() > 0;
    if (!complete && (unread || (reset_on_close_ && !is_unix()))) {
        break_both();
        return;
    }
    server_closed_ = true;
    note_fin();
}

// ---- What was put off to the next wait

void Connection::settle_if_needed() {
    if (listed || !unsettled()) {
        return;
    }
    listed = true;
    Kernel::current().list_unsettled(shared_from_this());
}

bool Connection::unsettled() const {
    return read_held_ || send_blocked_ || !unsent_.empty() || fin_on_its_way() ||
           (!manual_ && unread_by_peer() > 0);
}

bool Connection::settles() const {
    const bool moves = unsent_.empty() ? fin_on_its_way() : inbound_.size() < inbound_capacity_;
    return read_held_ || send_blocked_ || moves || (!manual_ && unread_by_peer() > 0);
}

void Connection::settle() {
    if (read_held_) {
        read_held_ = false;
        if (!inbound_.empty() || shut_for_reading()) {
            raise_edge();
        }
    }
    if (send_blocked_) {
        send_blocked_ = false;
        raise_if_writable();
    }
    move_unsent();
    peer_look();
}

namespace {

// Errors after which the connection is gone, whichever call gives them.
bool breaks_connection(int error) {
    return error == ECONNRESET || error == EPIPE || error == ETIMEDOUT || error == ENOTCONN ||
           error == ECONNABORTED;
}

}  // namespace

}  // namespace penstock::sim

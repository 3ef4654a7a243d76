#include "penstock/engine/connection.h"

#include <algorithm>
#include <array>

#include "penstock/engine/reactor.h"
#include "penstock/platform/file.h"
#include "penstock/platform/net.h"

namespace penstock {

namespace {

// Between the last bytes and a reset that is to end them, so that it does not overtake them.
constexpr std::uint32_t kResetDelayMs = 1;

}  // namespace

void Connection::handle_event(const platform::PollEvent& event) {
    if (event.error || state_ == ConnectionState::closed) [[unlikely]] {
        handle_error_event();
        return;
    }
    // Numbers and not conditions, so that nothing branches.
    const unsigned readable = static_cast<unsigned>(event.readable) | static_cast<unsigned>(event.hangup);
    const unsigned to_end = static_cast<unsigned>(event.hangup) | static_cast<unsigned>(event.urgent);
    edges_ = static_cast<std::uint8_t>(edges_ | readable * kReadable | static_cast<unsigned>(event.writable) * kWritable |
                                       to_end * kReadToEnd);
    if (event.writable && has_output()) [[unlikely]] {
        flush_leftover();
    }
    if ((edges_ & kReadable) != 0) [[likely]] {
        read_some();
    }
}

void Connection::handle_error_event() {
    if (state_ == ConnectionState::closed) {
        return;  // earlier in this turn
    }
    if (state_ == ConnectionState::lingering) {
        // Both sides have ended, most likely. What came before the end is thrown away like the rest: left unread it would make
        // the kernel reset, and drop what is on its way to the peer.
        edges_ |= kReadable;
        discard_some();
        return;
    }
    reactor().count().peer_resets.add();
    close();
}

// What was left over when a bounded loop stopped early, or what a resumed reader finds: no edge will come for it.
void Connection::continue_work() {
    if (has_output()) {
        flush_leftover();
    } else if (has(kWantsRoom)) {
        flush();  // whoever wanted room has made nothing of it yet
    }
    if (state_ == ConnectionState::open && !has(kPaused) && !in_handshake()) {
        protocol_->on_input(*this);
        flush();
    }
    give_back_input();  // a handler that has waited for something held it until now
    read_some();
}

void Connection::read_some() {
    if (can_read() && read_once() && can_read()) [[unlikely]] {
        read_on();
    }
    if (state_ == ConnectionState::lingering) [[unlikely]] {
        discard_some();
    }
}

// The kernel may have more: a full block, an end, or news that came meanwhile.
void Connection::read_on() {
    for (int reads = 1; can_read(); ++reads) {
        if (reads == kReadsPerTurn) {
            reactor().make_ready(*this);
            return;
        }
        if (!read_once()) {
            return;
        }
    }
}

// One receive, and what the protocol makes of it. False when nothing was received.
inline bool Connection::read_once() {
    if (!input_.has_block() && !lease_input()) [[unlikely]] {
        return false;
    }
    const std::span<std::byte> room = input_.room();
    ensure(!room.empty(), "connection: reads on although its protocol left the input full");
    if (tls_ != nullptr) [[unlikely]] {
        return read_tls();
    }
    const IoResult received = platform::receive(fd_, room);
    if (!received.ok()) [[unlikely]] {
        receive_failed(received.error);
        return false;
    }
    if (received.count == 0) [[unlikely]] {
        flags_ |= kInputEnded;
        edges_ &= static_cast<std::uint8_t>(~kReadable);
    } else {
        input_.commit(static_cast<std::size_t>(received.count));
        reactor().count().received_bytes.add(static_cast<std::uint64_t>(received.count));
        // Less than asked for: the kernel has no more, and the next byte makes an edge. Unless the peer has finished, or sent
        // urgent data: then that may be what cut us short, and it makes no edge again.
        if (static_cast<std::size_t>(received.count) < room.size() && (edges_ & kReadToEnd) == 0) [[likely]] {
            edges_ &= static_cast<std::uint8_t>(~kReadable);
        }
    }
    protocol_->on_input(*this);
    give_back_input();
    flush();
    return true;
}

inline bool Connection::lease_input() {
    std::byte* const block = reactor().try_acquire_input();
    if (block == nullptr) [[unlikely]] {
        reactor().make_starved(*this);
        return false;
    }
    if (has(kStarved)) [[unlikely]] {
        reactor().end_starvation(*this);
    }
    input_.attach(block);
    return true;
}

void Connection::receive_failed(int error) {
    give_back_input();
    if (is_would_block(error)) {
        edges_ &= static_cast<std::uint8_t>(~kReadable);
        return;
    }
    reactor().count().peer_resets.add();
    close();
}

void Connection::give_wanted_room() {
    if (state_ == ConnectionState::open && output_.empty()) {
        flags_ &= static_cast<std::uint8_t>(~kWantsRoom);
        protocol_->on_drained(*this);  // no edge comes for what was never refused
    }
}

// What an earlier flush had to leave.
void Connection::flush_leftover() {
    const std::uint64_t taken_bytes = send_some();
    if (state_ == ConnectionState::open && taken_bytes > 0 && !in_handshake()) {
        protocol_->on_drained(*this);
    }
}

// Sends as much as the kernel takes now; how many bytes those were.
std::uint64_t Connection::send_some() {
    if (state_ != ConnectionState::open && state_ != ConnectionState::closing) [[unlikely]] {
        return 0;
    }
    std::uint64_t taken_bytes = 0;
    if (tls_ != nullptr) [[unlikely]] {
        taken_bytes = send_tls();
    } else if ((edges_ & (kWritable | kColdFile)) == kWritable) [[likely]] {
        const std::string_view bytes = output_.only_bytes();
        if (bytes.empty()) {
            taken_bytes = output_.empty() ? 0 : send_loop();
        } else {
            // Nearly always: an answer, which the kernel takes whole.
            const IoResult sent = platform::send(fd_, bytes);
            if (sent.ok() && static_cast<std::size_t>(sent.count) == bytes.size()) [[likely]] {
                taken_bytes = bytes.size();
                reactor().count().sent_bytes.add(taken_bytes);
                output_.drop_only_bytes(reactor().blocks());
            } else {
                note_sent(sent, true);
                taken_bytes = static_cast<std::uint64_t>(sent.count);
            }
        }
    }
    if (has_output() || state_ != ConnectionState::open) [[unlikely]] {
        after_sending(taken_bytes);
    } else {
        edges_ &= static_cast<std::uint8_t>(~kBlocked);
    }
    return taken_bytes;
}

void Connection::after_sending(std::uint64_t taken_bytes) {
    if (state_ == ConnectionState::closed) {
        return;
    }
    if (tls_ != nullptr && state_ == ConnectionState::closing && !has_output()) {
        finish_tls();
    }
    mind_write_deadline(taken_bytes);
    if (!has_output() && state_ == ConnectionState::closing) {
        end_output();
    }
}

// Several pieces, and files.
std::uint64_t Connection::send_loop() {
    std::uint64_t taken_bytes = 0;
    for (int sends = 0; !output_.empty() && (edges_ & (kWritable | kColdFile)) == kWritable; ++sends) {
        if (sends == kSendsPerTurn) {
            reactor().make_ready(*this);
            break;
        }
        bool cut_short = false;
        const IoResult sent = send_front(&cut_short);
        if (waits_for_disk()) {
            break;  // the reactor comes back when the disk has answered
        }
        note_sent(sent, cut_short);
        taken_bytes += static_cast<std::uint64_t>(sent.count);
        if (state_ == ConnectionState::closed) {
            break;
        }
    }
    return taken_bytes;
}

void Connection::note_sent(IoResult sent, bool cut_short) {
    if (!sent.ok() && !is_would_block(sent.error)) {
        reactor().count().peer_resets.add();
        close();
        return;
    }
    if (sent.ok()) {
        reactor().count().sent_bytes.add(static_cast<std::uint64_t>(sent.count));
        output_.consume(reactor().blocks(), static_cast<std::size_t>(sent.count));
    }
    if (!sent.ok() || cut_short) {
        edges_ &= static_cast<std::uint8_t>(~kWritable);
    }
}

// One call to the kernel for what stands in front: a file's slice, or all pieces of memory up to the next file.
IoResult Connection::send_front(bool* cut_short) {
    if (const FileRange* file = output_.front_file()) {
        return send_file_slice(*file);
    }
    std::array<platform::SendPiece, platform::kMaxSendPieces> pieces;
    bool file_follows = false;
    const std::size_t count = output_.gather(pieces, &file_follows);
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i) {
        size += pieces[i].size;
    }
    const IoResult sent = platform::send(fd_, std::span{pieces.data(), count}, file_follows);
    *cut_short = sent.ok() && static_cast<std::size_t>(sent.count) < size;
    return sent;
}

// A part of the file that is in memory as a whole, or else that is fetched first.
IoResult Connection::send_file_slice(const FileRange& file) {
    const auto slice = static_cast<std::size_t>(std::min<std::uint64_t>(file.size, kFileSliceBytes));
    const std::uint64_t end = file.offset + slice;
    if (end > file.warm_end) {
        // Disks are read ahead: when the last byte is there, so is most likely what lies before it. More cannot be asked for
        // without a call for each page.
        std::byte last{};
        const IoResult probe = platform::read_file(file.fd, end - 1, {&last, 1}, platform::DiskWait::never);
        if (!probe.ok() && is_would_block(probe.error) && reactor().warm_file(*this, file)) {
            return probe;
        }
    }
    const IoResult sent = platform::send_file(fd_, file.fd, file.offset, slice);
    if (sent.ok() && sent.count == 0) {
        return IoResult::failure(EPIPE);  // the file has shrunk: its promised length cannot be kept
    }
    // sendfile also stops early at the end of a pipe's worth of pages, so only EAGAIN means a full socket.
    return sent;
}

// Of the range in front, up to `end`, or of what the protocol reads.
void Connection::file_is_warm(std::uint64_t end) {
    edges_ &= static_cast<std::uint8_t>(~kColdFile);
    if (output_.front_file() != nullptr) {
        output_.set_front_file_warm(end);
    }
    want_room();
    come_back();
}

// The peer must take something of what waits within the write timeout, and what it takes puts the end of that off.
void Connection::mind_write_deadline(std::uint64_t taken_bytes) {
    if (!has_output() || can_send()) {
        edges_ &= static_cast<std::uint8_t>(~kBlocked);
        return;
    }
    output_.slim(reactor().blocks());
    const Config& config = reactor().config();
    const std::uint32_t now_ms = reactor().now_ms();
    if (!output_blocked()) {
        edges_ |= kBlocked;
        write_deadline_ms_ = now_ms + config.write_timeout_ms;
        tighten_deadline_in(config.write_timeout_ms);
    } else if (taken_bytes > 0) {
        const std::uint64_t left = write_expired() ? 0 : write_deadline_ms_ - now_ms;
        const std::uint64_t allowed = left + taken_bytes * 1000 / config.write_rate_min_bytes_per_s;
        write_deadline_ms_ = now_ms + static_cast<std::uint32_t>(std::min<std::uint64_t>(allowed, config.write_timeout_ms));
    }
}

bool Connection::write_expired() const {
    return output_blocked() && static_cast<std::int32_t>(write_deadline_ms_ - reactor().now_ms()) <= 0;
}

void Connection::handle_deadline() {
    if (state_ == ConnectionState::open && waits_for_disk()) {
        set_deadline_in(reactor().config().idle_timeout_ms);  // not the peer keeps us waiting, but we the peer
    } else if (state_ == ConnectionState::open && in_handshake()) {
        reactor().count().timeouts.add();
        close();
    } else if (state_ == ConnectionState::open) {
        protocol_->on_deadline(*this);
        flush();
    } else if ((edges_ & kResetAtEnd) != 0 && !has_output()) {
        reset();
    } else if (state_ == ConnectionState::closing && !write_expired()) {
        set_deadline_in(reactor().config().write_timeout_ms);  // it was late: the peer has taken something since
    } else if (state_ != ConnectionState::closed) {
        reactor().count().timeouts.add();
        if (!has_output()) {
            close();
        } else {
            reset();
        }
    }
}

void Connection::set_deadline_in(std::uint32_t delay_ms) {
    const std::uint32_t deadline = reactor().now_ms() + delay_ms;
    if (delay_ms == 0 || (edges_ & (kBlocked | kArriving)) != 0) [[unlikely]] {
        set_special_deadline(deadline, delay_ms != 0);
        return;
    }
    reactor().deadlines_.schedule(timer_, deadline);
}

void Connection::set_special_deadline(std::uint32_t deadline_ms, bool wanted) {
    if (output_blocked()) {
        const bool sooner = static_cast<std::int32_t>(deadline_ms - write_deadline_ms_) < 0;
        deadline_ms = wanted && sooner ? deadline_ms : write_deadline_ms_;
        wanted = true;
    }
    if ((edges_ & kArriving) != 0) {
        timer_.deadline = deadline_ms;
        edges_ = static_cast<std::uint8_t>(wanted ? edges_ | kDeadlineNoted : edges_ & ~kDeadlineNoted);
    } else if (wanted) {
        reactor().deadlines_.schedule(timer_, deadline_ms);
    } else {
        reactor().deadlines_.cancel(timer_);
    }
}

// The connection stays beyond the turn in which it came.
void Connection::link_noted_deadline() {
    const bool noted = (edges_ & kDeadlineNoted) != 0;
    edges_ &= static_cast<std::uint8_t>(~(kArriving | kDeadlineNoted));
    if (noted) {
        reactor().deadlines_.schedule(timer_, timer_.deadline);
    }
}

void Connection::tighten_deadline_in(std::uint32_t delay_ms) {
    const std::uint32_t deadline = reactor().now_ms() + delay_ms;
    const bool is_set = timer_.linked() || (edges_ & kDeadlineNoted) != 0;
    if (is_set && static_cast<std::int32_t>(timer_.deadline - deadline) <= 0) {
        return;
    }
    if ((edges_ & kArriving) != 0) {
        timer_.deadline = deadline;
        edges_ |= kDeadlineNoted;
    } else {
        reactor().deadlines_.schedule(timer_, deadline);
    }
}

void Connection::resume_reading() {
    flags_ &= static_cast<std::uint8_t>(~kPaused);
    if (state_ == ConnectionState::open) {
        reactor().make_ready(*this);
    }
}

void Connection::come_back() {
    if (state_ == ConnectionState::open || state_ == ConnectionState::closing) {
        reactor().make_ready(*this);
    }
}

void Connection::flush_later() {
    if (state_ == ConnectionState::open || state_ == ConnectionState::closing) {
        reactor().make_dirty(*this);
    }
}

void Connection::finish(Linger linger) {
    if (state_ != ConnectionState::open) {
        return;
    }
    change_state(ConnectionState::closing);
    if (linger == Linger::yes) {
        flags_ |= kLinger;
    } else if (linger == Linger::reset) {
        edges_ |= kResetAtEnd;
    }
    if (input_.has_block()) {
        reactor().blocks().release(input_.detach());
    }
    set_deadline_in(reactor().config().write_timeout_ms);
    flush_later();
}

// All is sent that will be.
void Connection::end_output() {
    if ((edges_ & kResetAtEnd) != 0) {
        set_deadline_in(kResetDelayMs);
        return;
    }
    if (!has(kLinger) || input_ended() || !reactor().may_linger() || reactor().config().linger_timeout_ms == 0) {
        close();
        return;
    }
    if (platform::shutdown_sending(fd_) != 0) {
        close();
        return;
    }
    change_state(ConnectionState::lingering);
    input_.set_tally(0);
    ++reactor().lingering_;
    set_deadline_in(reactor().config().linger_timeout_ms);
    discard_some();
}

void Connection::discard_some() {
    const std::span<std::byte> scratch = reactor().scratch();
    for (int reads = 0; (edges_ & kReadable) != 0; ++reads) {
        if (reads == kReadsPerTurn) {
            reactor().make_ready(*this);
            return;
        }
        const IoResult received = platform::receive(fd_, scratch);
        if (!received.ok() && is_would_block(received.error)) {
            edges_ &= static_cast<std::uint8_t>(~kReadable);
            return;
        }
        if (!received.ok() || received.count == 0) {
            close();
            return;
        }
        input_.set_tally(input_.tally() + static_cast<std::uint32_t>(received.count));
        if (input_.tally() > reactor().config().linger_limit_bytes) {
            close();
            return;
        }
    }
}

void Connection::reset() {
    if (fd_ >= 0 && state_ != ConnectionState::closed) {
        edges_ |= kResetAtEnd;
        platform::reset_on_close(fd_);
    }
    close();
}

void Connection::close() {
    if (state_ == ConnectionState::closed || state_ == ConnectionState::free) {
        return;
    }
    if (state_ == ConnectionState::lingering) {
        --reactor().lingering_;
    }
    change_state(ConnectionState::closed);
    reactor().make_closed(*this);
}

void Connection::change_state(ConnectionState to) {
    bool allowed = false;
    switch (to) {
        case ConnectionState::open: allowed = state_ == ConnectionState::free; break;
        case ConnectionState::closing: allowed = state_ == ConnectionState::open; break;
        case ConnectionState::lingering: allowed = state_ == ConnectionState::closing; break;
        case ConnectionState::closed: allowed = state_ != ConnectionState::free && state_ != to; break;
        case ConnectionState::free: allowed = state_ == ConnectionState::closed; break;
    }
    ensure(allowed, "connection: no such step from its state");
    state_ = to;
}

}  // namespace penstock

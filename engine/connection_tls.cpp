// The part of a Connection that speaks TLS: what it receives and sends goes through its TlsSession.
#include "penstock/engine/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "penstock/engine/client_hello.h"
#include "penstock/engine/reactor.h"
#include "penstock/engine/tls_session.h"
#include "penstock/engine/tls_work.h"
#include "penstock/platform/file.h"
#include "penstock/platform/net.h"

namespace penstock {

namespace {

// RFC 8446 §6.
constexpr std::uint8_t kUnexpectedMessage = 10;
constexpr std::uint8_t kDecodeError = 50;
constexpr std::uint8_t kInternalError = 80;
constexpr std::uint8_t kInappropriateFallback = 86;  // RFC 7507 §3

// A method, and so a request: no record of TLS begins like that.
[[nodiscard]] bool looks_like_text(std::byte first) { return first >= std::byte{'A'} && first <= std::byte{'z'}; }

}  // namespace

bool Connection::start_tls(const TlsAcceptor& acceptor) {
    tls_ = new (std::nothrow) TlsSession(*this, reactor(), acceptor);
    return tls_ != nullptr;
}

void Connection::end_tls(bool was_busy) {
    if (tls_ == nullptr) {
        return;
    }
    // Closed by us between two requests: the peer should know that nothing was cut off, if that costs no waiting. Of what ends in
    // the middle of one it must not look like that.
    const bool is_clean = !was_busy && (edges_ & (kWritable | kResetAtEnd)) == kWritable && output_.empty() && tls_->unsent().empty();
    if (tls_->state() == TlsState::open && is_clean) {
        tls_->say_goodbye();
        const std::span<const std::byte> records = reactor().tls().records();
        if (!records.empty()) {
            static_cast<void>(platform::send(fd_, {reinterpret_cast<const char*>(records.data()), records.size()}));
        }
    }
    reactor().tls().clear_records();
    drop_tls();
}

void Connection::drop_tls() {
    if (tls_->info() == nullptr) {
        reactor().count().tls_failures.add();
    }
    delete std::exchange(tls_, nullptr);
}

const TlsInfo* Connection::tls_info() const { return tls_ != nullptr ? tls_->info() : nullptr; }

bool Connection::in_handshake() const { return tls_ != nullptr && !tls_->past_handshake(); }

// The last record of a connection that ends: there is output for as long as the socket has not taken it.
void Connection::finish_tls() {
    if (tls_->state() == TlsState::open && (edges_ & kResetAtEnd) == 0) {
        tls_->say_goodbye();
        send_tls();
    }
}

bool Connection::has_unsent_records() const { return !tls_->unsent().empty(); }

// Called with room in the input, like what it stands for in read_once. False when nothing came for the protocol, and nothing more will.
bool Connection::read_tls() {
    TlsSession& tls = *tls_;
    TlsWork& work = reactor().tls();
    const bool must_wait = tls.unsent().memory_bytes() > kTlsUnsentLimitBytes;  // for a peer that only makes us answer
    if (input_ended() || tls.state() > TlsState::open || must_wait) {
        edges_ = must_wait ? edges_ : static_cast<std::uint8_t>(edges_ & ~kReadable);
        give_back_input();
        return false;
    }
    if (!tls.past_handshake() && !work.may_step()) {
        reactor().make_ready(*this);
        give_back_input();
        return false;
    }
    if (!tls.has_pending() && !receive_records()) {
        return false;
    }
    const bool goes_on = tls.past_handshake() ? read_plain_text() : shake_hands();
    if (goes_on && state_ == ConnectionState::open) {
        protocol_->on_input(*this);
    }
    give_back_input();
    flush();
    work.clear_records();  // there are some only where it is closed
    return state_ == ConnectionState::open;
}

// Into the input while a hello is collected there, and else to where the session takes it from. False when there is nothing to be
// made of it.
bool Connection::receive_records() {
    TlsSession& tls = *tls_;
    const bool in_hello = tls.state() == TlsState::hello;
    std::span<std::byte> room = reactor().scratch();
    room = in_hello ? input_.room() : room.first(std::min(room.size(), tls.wanted_bytes(input_.room().size())));
    const IoResult received = platform::receive(fd_, room);
    if (!received.ok()) {
        receive_failed(received.error);
        return false;
    }
    const auto count = static_cast<std::size_t>(received.count);
    if (count < room.size() && (edges_ & kReadToEnd) == 0) {
        edges_ &= static_cast<std::uint8_t>(~kReadable);
    }
    if (count == 0) {
        edges_ &= static_cast<std::uint8_t>(~kReadable);
        flags_ |= kInputEnded;
        if (!tls.past_handshake()) {
            tls.fail();
            close();
            return false;
        }
        reactor().count().tls_truncated.add();  // what has arrived whole is answered (RFC 9112 §9.8)
        return true;
    }
    reactor().count().received_bytes.add(count);
    if (in_hello) {
        input_.commit(count);
    } else {
        tls.feed(room.first(count));
    }
    return true;
}

// Every step of the handshake, up to the first plain text that came with its end. False when the protocol has nothing to look at.
bool Connection::shake_hands() {
    TlsSession& tls = *tls_;
    reactor().note_handshake(tls);
    if (tls.state() == TlsState::hello && !read_hello()) {
        return false;
    }
    reactor().tls().note_step();
    switch (tls.shake_hands()) {
        case TlsStep::wants_input: return false;
        case TlsStep::failed:
        case TlsStep::ended: fail_tls(); return false;
        case TlsStep::done: break;
    }
    set_deadline_in(reactor().first_deadline_ms());
    return read_plain_text();
}

// False while it is incomplete, and when it is none.
bool Connection::read_hello() {
    TlsSession& tls = *tls_;
    const std::span<std::byte> scratch = reactor().scratch();
    const std::span<const std::byte> received{input_.data(), input_.size()};
    ClientHello hello;
    switch (read_client_hello(received, scratch, &hello)) {
        case HelloStatus::complete:
            if (hello.falls_back() || !tls.begin(hello)) {
                tls.refuse(hello.falls_back() ? kInappropriateFallback : kInternalError);
                fail_tls();
                return false;
            }
            // Plain text may follow into the same block.
            std::memcpy(scratch.data(), received.data(), received.size());
            tls.feed(scratch.first(received.size()));
            input_.consume(received.size());
            return true;
        case HelloStatus::incomplete:
            if (!input_.room().empty()) {
                return false;
            }
            tls.refuse(kDecodeError);  // longer than any: 500 to 2,000 bytes are usual
            break;
        case HelloStatus::malformed: tls.refuse(kDecodeError); break;
        case HelloStatus::no_tls:
            if (looks_like_text(received[0]) && !tls.acceptor().plain_text_answer.empty()) {
                answer_plain_text();
                return false;
            }
            tls.refuse(kUnexpectedMessage);
            break;
    }
    fail_tls();
    return false;
}

void Connection::answer_plain_text() {
    const std::string_view answer = tls_->acceptor().plain_text_answer;
    drop_tls();  // what follows goes out as it is
    if (output_.try_append_external(reactor().blocks(), answer, nullptr, nullptr)) {
        finish(Linger::yes);
    } else {
        close();
    }
}

// Its alert is on its way; what else the peer has sent is thrown away, so that no reset overtakes that.
void Connection::fail_tls() {
    tls_->fail();
    output_.clear(reactor().blocks());
    finish(Linger::yes);
    flush();
}

// False when the protocol has nothing new to look at.
bool Connection::read_plain_text() {
    TlsSession& tls = *tls_;
    if (input_ended()) {
        return true;
    }
    std::size_t count = 0;
    const TlsStep step = tls.read(input_.room(), &count);
    input_.commit(count);
    if (tls.has_pending()) {
        edges_ |= kReadable;
    }
    switch (step) {
        case TlsStep::done: return true;
        case TlsStep::wants_input: return count > 0;
        case TlsStep::ended:
            flags_ |= kInputEnded;
            edges_ &= static_cast<std::uint8_t>(~kReadable);
            return true;
        case TlsStep::failed: break;
    }
    fail_tls();
    return false;
}

// Sends as much as the kernel takes now; how many bytes of records those were.
std::uint64_t Connection::send_tls() {
    TlsSession& tls = *tls_;
    TlsWork& work = reactor().tls();
    std::uint64_t taken_bytes = 0;
    for (int sends = 0; state_ != ConnectionState::closed; ++sends) {
        if (!tls.unsent().empty()) {
            keep_records();
            if (!can_send()) {
                break;
            }
            taken_bytes += send_unsent_records();
        } else {
            if (can_send() && !waits_for_disk() && tls.state() == TlsState::open) {
                encrypt_some();
            }
            if (work.records().empty() || state_ == ConnectionState::closed) {
                break;
            }
            taken_bytes += send_records();
        }
        if (sends + 1 == kSendsPerTurn && has_output()) {
            reactor().make_ready(*this);
            break;
        }
    }
    work.clear_records();
    return taken_bytes;
}

// What has just been made, in one send.
std::uint64_t Connection::send_records() {
    TlsWork& work = reactor().tls();
    const std::span<const std::byte> records = work.records();
    const std::string_view bytes(reinterpret_cast<const char*>(records.data()), records.size());
    IoResult sent = IoResult::failure(EAGAIN);
    if (can_send()) {
        sent = platform::send(fd_, bytes);
    }
    const std::size_t taken = note_records_sent(sent, bytes.size());
    if (state_ != ConnectionState::closed) {
        work.drop_records(taken);
        keep_records();
    }
    return taken;
}

// How many of `size` bytes the socket has taken. It may have closed the connection.
std::size_t Connection::note_records_sent(IoResult sent, std::size_t size) {
    if (!sent.ok() && !is_would_block(sent.error)) {
        reactor().count().peer_resets.add();
        tls_->fail();
        close();
        return 0;
    }
    const std::size_t taken = sent.ok() ? static_cast<std::size_t>(sent.count) : 0;
    reactor().count().sent_bytes.add(taken);
    if (taken < size) {
        edges_ &= static_cast<std::uint8_t>(~kWritable);
    }
    return taken;
}

// What the socket does not take now waits in blocks.
void Connection::keep_records() {
    TlsWork& work = reactor().tls();
    const std::span<const std::byte> records = work.records();
    if (records.empty()) {
        return;
    }
    if (!tls_->keep(records)) {
        reactor().count().output_refused.add();
        reset();
    }
    work.clear_records();
}

std::uint64_t Connection::send_unsent_records() {
    OutputQueue& unsent = tls_->unsent();
    std::array<platform::SendPiece, 8> pieces;
    bool file_follows = false;
    const std::size_t count = unsent.gather(pieces, &file_follows);
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i) {
        size += pieces[i].size;
    }
    const std::size_t taken = note_records_sent(platform::send(fd_, std::span{pieces.data(), count}, false), size);
    unsent.consume(reactor().blocks(), taken);
    return taken;
}

// Makes records of what is queued, as many as one send takes.
void Connection::encrypt_some() {
    while (state_ != ConnectionState::closed && !output_.empty() && reactor().tls().has_room_for_record() && !waits_for_disk()) {
        const bool well = output_.front_file() != nullptr ? encrypt_file() : encrypt_memory();
        if (!well) {
            tls_->fail();
            reset();
        }
    }
}

// False when the file has shrunk, or cannot be read: its promised length cannot be kept.
bool Connection::encrypt_file() {
    TlsWork& work = reactor().tls();
    const FileRange file = *output_.front_file();
    std::span<std::byte> room = work.plain();
    room = room.first(static_cast<std::size_t>(std::min<std::uint64_t>(file.size, work.plain_bytes_that_fit())));
    const bool is_warm = file.offset + room.size() <= file.warm_end;
    IoResult read = platform::read_file(file.fd, file.offset, room, is_warm ? platform::DiskWait::allowed : platform::DiskWait::never);
    if (!read.ok() && is_would_block(read.error)) {
        if (reactor().warm_file(*this, file)) {
            return true;
        }
        read = platform::read_file(file.fd, file.offset, room);
    }
    if (!read.ok() || read.count == 0) {
        return false;
    }
    std::span<const std::byte> bytes = room.first(static_cast<std::size_t>(read.count));
    std::size_t taken = 0;
    while (!bytes.empty() && work.has_room_for_record()) {
        const auto piece = bytes.first(std::min(bytes.size(), TlsWork::kRecordBytes));
        if (!tls_->encrypt(piece)) {
            return false;
        }
        taken += piece.size();
        bytes = bytes.subspan(piece.size());
    }
    output_.consume(reactor().blocks(), taken);
    return true;
}

// Short pieces share a record; a long one is not copied first.
bool Connection::encrypt_memory() {
    TlsWork& work = reactor().tls();
    std::array<platform::SendPiece, platform::kMaxSendPieces> pieces;
    bool file_follows = false;
    const std::size_t count = output_.gather(pieces, &file_follows);
    const std::span<std::byte> shared = work.plain().first(TlsWork::kRecordBytes);
    std::size_t filled = 0;
    std::size_t taken = 0;
    bool well = true;
    for (std::size_t i = 0; i < count && well; ++i) {
        std::span<const std::byte> left{static_cast<const std::byte*>(pieces[i].data), pieces[i].size};
        while (!left.empty() && well && work.has_room_for_record()) {
            const std::size_t size = std::min(left.size(), TlsWork::kRecordBytes - filled);
            const bool fills = filled + size == TlsWork::kRecordBytes || i + 1 == count;
            if (filled == 0 && fills) {
                well = tls_->encrypt(left.first(size));
            } else {
                std::memcpy(shared.data() + filled, left.data(), size);
                filled += size;
                if (fills) {
                    well = tls_->encrypt(shared.first(std::exchange(filled, 0)));
                }
            }
            taken += size;
            left = left.subspan(size);
        }
    }
    ensure_debug(filled == 0 || !well, "TLS: bytes are left out of every record");
    output_.consume(reactor().blocks(), taken);
    return well;
}

}  // namespace penstock

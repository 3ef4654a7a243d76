// Internal.
// The TLS of one connection: turns what the socket gives into plain text, and plain text into records.
//
//   hello ──► handshake ──► open ──► said_goodbye
//     └───────────┴───────────┴───► failed
//
// hello: the client's first message is collected in the connection's input; wolfSSL knows nothing of it yet. handshake, open: as in
// RFC 8446 and RFC 5246. said_goodbye: our close_notify is made, and nothing can follow. failed: an alert is made where one can be.
//
// Made with its Connection, whose slot points to it, and used by its reactor's thread. Makes records in the reactor's TlsWork, which
// are sent when the call is over; what the socket does not take stays here in leased blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/engine/output_queue.h"
#include "penstock/engine/tls.h"
#include "penstock/engine/tls_context.h"

struct WOLFSSL;

namespace penstock {

class Connection;
class Reactor;
class TlsWork;
struct TicketKeys;

enum class TlsState : std::uint8_t { hello, handshake, open, said_goodbye, failed };

// What a call that takes input has come to.
enum class TlsStep : std::uint8_t {
    done,         // the handshake is complete; plain text was read
    wants_input,  // nothing for the caller until the peer sends more
    ended,        // the peer has said close_notify; plain text may have been read before that
    failed,
};

// What a listener gives to its connections. Its context is another one when files were read again.
struct TlsAcceptor {
    std::shared_ptr<const TlsContext> context;
    // For a client that speaks in plain text; lives for ever.
    std::string_view plain_text_answer;
};

class TlsSession {
public:
    TlsSession(Connection& connection, Reactor& reactor, const TlsAcceptor& acceptor);
    ~TlsSession();
    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;

    [[nodiscard]] TlsState state() const { return state_; }
    // The handshake is over, well or not.
    [[nodiscard]] bool past_handshake() const { return state_ >= TlsState::open; }
    [[nodiscard]] Connection& connection() const { return connection_; }
    [[nodiscard]] const TlsAcceptor& acceptor() const { return acceptor_; }
    // When its handshake began (Reactor::number_arrival).
    [[nodiscard]] std::uint64_t arrival() const { return arrival_; }

    // The client's hello is complete: chooses a certificate. False without memory.
    [[nodiscard]] bool begin(const ClientHello& hello);
    // These bytes were received. They must stay there until the next calls of `shake_hands` and `read` want input or fail.
    void feed(std::span<const std::byte> records) { fed_ = records; }
    [[nodiscard]] TlsStep shake_hands();
    // Plain text into `room`, `*count` bytes of it.
    [[nodiscard]] TlsStep read(std::span<std::byte> room, std::size_t* count);
    // Plain text is left inside for which there was no room.
    [[nodiscard]] bool has_pending() const;
    // How much may be received so that all of it can be read into `room` bytes, or else is the rest of one record, of which wolfSSL
    // keeps what does not fit.
    [[nodiscard]] std::size_t wanted_bytes(std::size_t room) const;

    // Makes a record of at most TlsWork::kRecordBytes. False when that has failed.
    [[nodiscard]] bool encrypt(std::span<const std::byte> bytes);
    // close_notify (RFC 8446 §6.1), once, where there is something to close.
    void say_goodbye();
    // An alert in plain text to who has not said a hello that could be understood (RFC 8446 §6.2), and the end.
    void refuse(std::uint8_t alert);
    // Nothing more can be said.
    void fail();

    // Records that the socket has not taken.
    [[nodiscard]] OutputQueue& unsent() { return unsent_; }
    // More of them, behind those; peers that do not read give way to it. False when there is no room even so.
    [[nodiscard]] bool keep(std::span<const std::byte> records);
    // Once the handshake is complete.
    [[nodiscard]] const TlsInfo* info();

private:
    friend class TlsWork;
    friend struct TlsCallbacks;

    [[nodiscard]] bool configure(const ClientHello& hello);
    [[nodiscard]] TicketKeys* ticket_keys();
    [[nodiscard]] bool keep_subject(std::span<const std::uint8_t> certificate);
    [[nodiscard]] TlsStep step_of(int result);
    void note_complete();
    [[nodiscard]] std::size_t take_fed(std::span<std::byte> room);
    void note_framing(std::span<const std::byte> bytes);
    [[nodiscard]] bool prepare_second_hello(const ClientHello& hello);
    void drop_early_data();
    [[nodiscard]] bool holds_no_type() const;
    [[nodiscard]] bool add_records(std::span<const std::byte> bytes);
    [[nodiscard]] bool add(std::span<const std::byte> bytes);

    struct Names {
        TlsInfo info;
        std::string server_name;
        std::string client_subject;
    };

    Connection& connection_;
    Reactor& reactor_;
    const TlsAcceptor& acceptor_;
    std::shared_ptr<const TlsContext> context_;
    const TlsContext::Certificate* certificate_ = nullptr;
    WOLFSSL* ssl_ = nullptr;
    std::span<const std::byte> fed_;
    OutputQueue unsent_;
    std::unique_ptr<Names> names_;
    std::uint64_t arrival_ = 0;
    TlsSession* older_ = nullptr;  // in the list of handshakes
    TlsSession* newer_ = nullptr;
    // Of the record that wolfSSL has a part of: its head, and how many bytes of how many.
    std::array<std::byte, 5> head_{};
    TlsState state_ = TlsState::hello;
    bool listed_ = false;
    bool has_spoken_ = false;
    bool tells_change_of_cipher_ = false;
    bool has_shown_chain_ = false;  // of the client's, since the last step
    std::uint32_t record_has_ = 0;
    std::uint32_t record_size_ = 0;
    std::uint32_t early_bytes_left_ = 0;  // that may still be dropped
};

}  // namespace penstock

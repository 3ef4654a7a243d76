// Internal.
// One accepted socket: a slot of 128 bytes in the reactor's ConnectionPool. It leases memory only while bytes
// are under way; idle, the slot is all there is.
//
// Owned by its reactor's pool and used by that thread alone. It owns its descriptor, its input's block and its
// output; not its protocol, and not its session, which the protocol gives back in on_close.
#pragma once

#include <cstdint>

#include "penstock/engine/input.h"
#include "penstock/engine/output_queue.h"
#include "penstock/engine/protocol.h"
#include "penstock/engine/timer_wheel.h"
#include "penstock/platform/address.h"
#include "penstock/platform/poller.h"

namespace penstock {

class TlsSession;
struct TlsAcceptor;
struct TlsInfo;

//            finish(), output left                output sent, linger
//   open ───────────────────────► closing ───────────────────────────► lingering
//     │ close(), error               │ close(), deadline, no linger        │ end, limits, deadline
//     └──────────────────────────────┴──────────────► closed ◄─────────────┘
//
// open: the protocol reads and writes. closing: only output leaves. lingering: we have said all and ended our
// side; what still arrives is thrown away. closed: waits for the end of the turn to be taken apart.
enum class ConnectionState : std::uint8_t { free, open, closing, lingering, closed };

// Names a connection over time: a slot that is used again has another generation.
struct ConnectionToken {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;

    [[nodiscard]] std::uint64_t pack() const { return std::uint64_t{generation} << 32 | index; }
    [[nodiscard]] static ConnectionToken unpack(std::uint64_t value) {
        return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
    }
};

// How a connection ends when its output has left. reset: so that its peer cannot take the end of the connection for that of a
// body; what the kernel has not delivered by then is lost.
enum class Linger : std::uint8_t { no, yes, reset };

class Connection {
public:
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};

    Connection() = default;
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // ---- For protocols ----

    [[nodiscard]] Input& input() { return input_; }
    [[nodiscard]] OutputQueue& output() { return output_; }
    // The peer has finished sending; it may still be reading.
    [[nodiscard]] bool input_ended() const { return (flags_ & kInputEnded) != 0; }
    // Bytes may wait in the kernel that were not received yet.
    [[nodiscard]] bool may_receive_more() const { return (edges_ & kReadable) != 0; }
    [[nodiscard]] bool is_open() const { return state_ == ConnectionState::open; }
    [[nodiscard]] ConnectionState state() const { return state_; }
    [[nodiscard]] const PeerAddress& peer() const { return peer_; }
    // nullptr without TLS, and before its handshake is complete.
    [[nodiscard]] const TlsInfo* tls_info() const;
    // Messages that it has brought so far, counted by its protocol.
    [[nodiscard]] std::uint32_t message_count() const { return input_.tally(); }
    void count_message() { input_.set_tally(input_.tally() + 1); }
    [[nodiscard]] ConnectionToken token() const { return {index_, generation_}; }
    [[nodiscard]] Reactor& reactor() const { return protocol_->reactor(); }

    [[nodiscard]] const Protocol& protocol() const { return *protocol_; }
    [[nodiscard]] void* session() const { return session_; }
    void set_session(void* session) { session_ = session; }
    // Another protocol takes over, with the input as it stands; the former one has given its session back.
    void switch_to(Protocol& protocol, void* session) {
        protocol_ = &protocol;
        session_ = session;
    }

    // While paused nothing is received; the peer's edges are remembered.
    void pause_reading() { flags_ |= kPaused; }
    // A file that it sends, or that its protocol reads, is fetched by Reactor::warm_file. Nothing is sent until that is
    // done; then on_drained is called.
    [[nodiscard]] bool waits_for_disk() const { return (edges_ & kColdFile) != 0; }
    [[nodiscard]] bool reading_paused() const { return has(kPaused); }
    // False after the kernel took less than it was given, until it says that it takes more.
    [[nodiscard]] bool can_send() const { return (edges_ & kWritable) != 0; }
    // Reads on, in on_input, whose caller then does so at once.
    void keep_reading() { flags_ &= static_cast<std::uint8_t>(~kPaused); }
    // Reads on at the next turn, also when only the input's rest is there to be looked at.
    void resume_reading();

    // Calls on_drained when all of the output has left, also when the kernel has refused none of it.
    void want_room() { flags_ |= kWantsRoom; }
    // The reactor comes back to this connection in the next turn: sends, and looks at the input again.
    void come_back();
    // Calls on_deadline when so much time has passed, unless it is set again before; 0 sets none. While output waits
    // for the peer it is called at the write deadline at the latest.
    void set_deadline_in(std::uint32_t delay_ms);
    // The same, but an earlier deadline stays.
    void tighten_deadline_in(std::uint32_t delay_ms);
    // Output waits for the peer, whose time to take some of it runs.
    [[nodiscard]] bool output_blocked() const { return (edges_ & kBlocked) != 0; }
    // That time is over.
    [[nodiscard]] bool write_expired() const;
    // It waits for an input block, and what it has to say has not been read.
    [[nodiscard]] bool starved() const { return has(kStarved); }
    // Output was queued outside of on_input: it leaves at the end of this turn.
    void flush_later();
    // Hands the input's block to the caller, who gives it back to the reactor's blocks.
    [[nodiscard]] std::byte* detach_input_block() { return input_.detach(); }

    // Ends the connection when the output has left, at the end of this turn at the earliest. Nothing is read any more
    // except to throw it away, which `Linger::yes` does for a while so that no reset overtakes the last answer
    // (RFC 9112 §9.6).
    void finish(Linger linger);
    // The same as `close`, and by a reset: what the kernel still holds for a peer that does not take it is dropped as
    // well, instead of being kept for it without a limit of ours.
    void reset();
    // Ends it now; what is queued is dropped. Only marks: the reactor takes the slot apart at the end of the
    // turn. The one exit.
    void close();

private:
    friend class Reactor;
    friend class ConnectionPool;
    friend class ConnectionList;

    // kBlocked: output waits for the peer, and the write deadline runs. kColdFile: it waits for the disk. kArriving:
    // it has its first share of the turn in which it was accepted, when most of those for one request end; so its
    // deadline, if there is one (kDeadlineNoted), is only kept in the node, which is linked when the connection
    // stays.
    enum Edge : std::uint8_t {
        kReadable = 1,
        kWritable = 2,
        kReadToEnd = 4,
        kBlocked = 8,
        kColdFile = 16,
        kArriving = 32,
        kDeadlineNoted = 64,
        kResetAtEnd = 128,  // finish() asked for it
    };
    enum Flag : std::uint8_t {
        kInputEnded = 1,
        kPaused = 2,
        kReady = 4,      // on the ready list
        kDirty = 8,      // on the dirty list
        kStarved = 16,   // on the starved list, by the ready links
        kLinger = 32,    // finish() asked for it
        kRefused = 64,   // over the limit: counts among the refusals, not the connections
        kWantsRoom = 128,
    };

    // The steps of a turn; called by the reactor.
    void handle_event(const platform::PollEvent& event);
    void handle_error_event();
    void handle_deadline();
    void continue_work();
    void read_some();
    [[nodiscard, gnu::always_inline]] inline bool read_once();  // most reads end with the first
    void read_on();
    // Ready: the protocol left input for the next turn.
    [[nodiscard]] bool can_read() const {
        return (edges_ & kReadable) != 0 && (flags_ & (kPaused | kReady)) == 0 && state_ == ConnectionState::open;
    }
    void flush() {
        send_some();
        if (has(kWantsRoom)) {
            give_wanted_room();
        }
    }
    void give_wanted_room();
    void flush_leftover();
    std::uint64_t send_some();

    [[nodiscard]] inline bool lease_input();
    void receive_failed(int error);
    [[nodiscard]] IoResult send_front(bool* cut_short);
    std::uint64_t send_loop();
    void note_sent(IoResult sent, bool cut_short);
    void after_sending(std::uint64_t taken_bytes);
    [[nodiscard]] IoResult send_file_slice(const FileRange& file);
    void file_is_warm(std::uint64_t end);
    void mind_write_deadline(std::uint64_t taken_bytes);
    void set_special_deadline(std::uint32_t deadline_ms, bool wanted);
    void link_noted_deadline();
    void end_output();
    void discard_some();
    inline void give_back_input();
    // Bytes wait for the socket, be it in records.
    [[nodiscard]] bool has_output() const { return !output_.empty() || (tls_ != nullptr && has_unsent_records()); }

    // With TLS, in connection_tls.cpp.
    [[nodiscard]] bool start_tls(const TlsAcceptor& acceptor);
    void finish_tls();
    void end_tls(bool was_busy);
    void drop_tls();
    [[nodiscard]] bool in_handshake() const;
    [[nodiscard]] bool has_unsent_records() const;
    [[nodiscard]] bool read_tls();
    [[nodiscard]] bool receive_records();
    [[nodiscard]] bool shake_hands();
    [[nodiscard]] bool read_hello();
    [[nodiscard]] bool read_plain_text();
    void answer_plain_text();
    void fail_tls();
    std::uint64_t send_tls();
    std::uint64_t send_records();
    std::uint64_t send_unsent_records();
    [[nodiscard]] std::size_t note_records_sent(IoResult sent, std::size_t size);
    void keep_records();
    void encrypt_some();
    [[nodiscard]] bool encrypt_file();
    [[nodiscard]] bool encrypt_memory();
    void change_state(ConnectionState to);
    [[nodiscard]] bool has(Flag flag) const { return (flags_ & flag) != 0; }

    // The slot's table: offsets on 64-bit systems.
    Protocol* protocol_ = nullptr;                    //   0
    void* session_ = nullptr;                         //   8
    TlsSession* tls_ = nullptr;                       //  16  plain TCP: nullptr
    Input input_;                                     //  24  and the count of messages
    OutputQueue output_;                              //  40
    TimerNode timer_;                                 //  56
    std::int32_t fd_ = -1;                            //  80
    std::uint32_t index_ = 0;                         //  84
    std::uint32_t generation_ = 0;                    //  88
    std::uint32_t ready_next_ = kNone;                //  92  ready, starved, closed or free list
    std::uint32_t ready_previous_ = kNone;            //  96
    std::uint32_t write_deadline_ms_ = 0;             // 100  while kBlocked
    ConnectionState state_ = ConnectionState::free;   // 104
    std::uint8_t edges_ = 0;                          // 105
    std::uint8_t flags_ = 0;                          // 106
    PeerAddress peer_;                                // 108
};

static_assert(sizeof(void*) != 8 || sizeof(Connection) == 128, "a connection's slot is 128 bytes");

}  // namespace penstock

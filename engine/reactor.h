// Internal.
// One thread's whole world: poller, listeners, connections, timers and memory. Reactors share nothing; what
// another thread wants of one, it posts.
//
// Owned by a Server (or a test). Everything here belongs to the thread that calls `run` or `run_turn`, except what
// says "any thread".
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/engine/alarm.h"
#include "penstock/engine/block_pool.h"
#include "penstock/engine/config.h"
#include "penstock/engine/connection_list.h"
#include "penstock/engine/connection_pool.h"
#include "penstock/engine/listener.h"
#include "penstock/engine/mailbox.h"
#include "penstock/engine/metrics.h"
#include "penstock/engine/protocol.h"
#include "penstock/engine/timer_wheel.h"
#include "penstock/platform/poller.h"

namespace penstock {

class OffloadPool;
class Reactor;
class TlsContext;
class TlsSession;
class TlsWork;
struct TlsAcceptor;

// How others can hold on to a reactor that may end before they do: whoever has the mutex and sees the reactor may post to
// it. Any thread.
struct ReactorLink {
    std::mutex mutex;
    Reactor* reactor = nullptr;
};

class Reactor {
public:
    // `offload` may be nullptr: then nothing can be offloaded. Both must outlive the reactor.
    Reactor(const Config& config, unsigned number, OffloadPool* offload);
    ~Reactor();
    Reactor(const Reactor&) = delete;
    Reactor& operator=(const Reactor&) = delete;

    // Before run. `open` comes first.
    [[nodiscard]] Result<void> open();
    // Takes over the listening descriptor, also when it fails. `tls`: nullptr for plain TCP.
    [[nodiscard]] Result<void> add_listener(int fd, const ProtocolFactory& factory, std::shared_ptr<const TlsContext> tls = {});
    // For those who connect to that listener, which has TLS, from now on.
    void set_tls(std::size_t listener, std::shared_ptr<const TlsContext> tls);

    // Turns until drained after `request_stop`, then cuts what is left when the drain's time is up.
    void run();
    // One turn: waits for events up to `max_wait_ms` (-1: until something happens) and does all that is due.
    // False once the reactor has stopped.
    bool run_turn(int max_wait_ms);

    // Something is left to do that no event will announce: the next turn will not wait.
    [[nodiscard]] bool has_work() const;

    // Any thread, more than once: stop accepting, answer what is under way, end. `cut`: do not wait for the rest.
    void request_stop(bool cut);
    // Runs the message on the reactor's thread, in a later turn. False when the mailbox is full or the reactor has
    // stopped. Any thread.
    [[nodiscard]] bool try_post(Message&& message) { return mailbox_.try_post(std::move(message)); }
    // Any thread; a moment old.
    [[nodiscard]] const ReactorCounters& counters() const { return counters_; }

    [[nodiscard]] const std::shared_ptr<ReactorLink>& link() const { return link_; }
    // The reactor whose turn runs on this thread, or nullptr.
    [[nodiscard]] static Reactor* current();

    // ---- For connections, listeners, protocols and tasks ----

    [[nodiscard]] const Config& config() const { return config_; }
    [[nodiscard]] unsigned number() const { return number_; }
    [[nodiscard]] ReactorCounters& count() { return counters_; }
    [[nodiscard]] BlockPool& blocks() { return blocks_; }
    [[nodiscard]] BlockPool& pages() { return pages_; }
    [[nodiscard]] ConnectionPool& connections() { return connections_; }
    [[nodiscard]] bool draining() const { return draining_; }
    // Milliseconds since the reactor was made, as of this turn; wraps after 49 days.
    [[nodiscard]] std::uint32_t now_ms() const { return now_ms_; }
    // "Date: …\r\n" as of this turn (RFC 9110 §6.6.1).
    [[nodiscard]] std::string_view date_field() const { return {date_field_.data(), date_field_.size()}; }
    // What that shows, in seconds since 1970-01-01 UTC: the time for whatever must agree with it.
    [[nodiscard]] std::int64_t date_seconds() const { return date_seconds_; }

    // What something that reactors share keeps on each of them, found by its address: `make` gives a shared_ptr to it at the first
    // call. It lives until the reactor ends, and must keep alive what `key` points to, so that no other has that address. If
    // it has a function `close_spare_files`, that is called by the one below.
    template <class Kept, class Make>
    [[nodiscard]] Kept& local(const void* key, const Make& make) {
        for (const Local& local : locals_) {
            if (local.key == key) {
                return *static_cast<Kept*>(local.value.get());
            }
        }
        std::shared_ptr<Kept> made = make();
        Local& local = locals_.emplace_back(Local{key, made});
        if constexpr (requires { made->close_spare_files(); }) {
            local.close_spare_files = [](void* kept) { return static_cast<Kept*>(kept)->close_spare_files(); };
        }
        return *made;
    }

    // A receive buffer for bytes that nobody keeps.
    [[nodiscard]] std::span<std::byte> scratch() { return {scratch_.get(), kIoBlockBytes}; }

    void set_alarm(Alarm& alarm, std::uint32_t delay_ms) { alarms_.schedule(alarm, now_ms_ + delay_ms); }
    void cancel(Alarm& alarm) { alarms_.cancel(alarm); }

    // Bytes of request bodies, against `body_memory_limit_bytes`. False when there is no room.
    [[nodiscard]] bool try_take_body_memory(std::uint64_t bytes);
    void return_body_memory(std::uint64_t bytes);
    [[nodiscard]] std::uint64_t free_body_memory() const {
        return config_.body_memory_limit_bytes - body_memory_bytes_;
    }

    // Memory of encoders, against `encoder_memory_limit_bytes`. Likewise.
    [[nodiscard]] bool try_take_encoder_memory(std::uint64_t bytes);
    void return_encoder_memory(std::uint64_t bytes);
    [[nodiscard]] std::uint64_t encoder_memory_bytes() const { return encoder_memory_bytes_; }

    // Runs `job` on the offload pool and then `reply` here. False, with neither run, when the pool or this reactor's
    // share of it is full.
    [[nodiscard]] bool try_offload(Message&& job, Message&& reply);

    // The beginning of a range of a file is read on the offload pool, and then the connection, which waits for the disk until
    // then, goes on. False when nothing can read it there: then it has to be taken as it is.
    [[nodiscard]] bool warm_file(Connection& connection, const FileRange& file);

    // Descriptors are short: what is open only to be at hand is closed. False when there is nothing of that kind.
    bool close_spare_files();

    // An input block for a connection, or nullptr when there is none beside the reserve for output.
    [[nodiscard]] std::byte* try_acquire_input() { return blocks_.try_acquire(config_.io_block_reserve); }

    // Memory is short. Each ends one connection, which gives its blocks back at once: the one whose peer has taken nothing of
    // its output for longest, of those for whom that is `least_stuck_ms` or more; the one whose request has been
    // arriving for longest, of all listeners. False when there is none.
    bool end_stuck_output(std::uint32_t least_stuck_ms, const Connection* except);
    // `keeps_block`: a TLS hello will do as well, which keeps an input block and nothing else.
    bool end_oldest_arrival(bool keeps_block = false);
    // Numbers requests in the order in which they began to arrive, on whatever listener.
    [[nodiscard]] std::uint64_t number_arrival() { return next_arrival_++; }
    // Sees to it, as far as that helps, that output of `connection` finds so many blocks.
    void make_output_room(std::size_t blocks, const Connection& connection);

    // Clients may wait at a listener: this turn, or the next one, which will not wait, asks all of them.
    void expect_clients() { clients_wait_ = more_to_do_ = true; }
    // A new connection: takes a slot, reads and answers at once if bytes are there, and registers only what stays
    // open. With a `refusal` it says just that and lingers. Takes over `fd`, also when it fails.
    // `tls`: nullptr for plain TCP; lives as long as the reactor.
    void adopt(int fd, const PeerAddress& peer, Protocol& protocol, std::string_view refusal, const TlsAcceptor* tls = nullptr);
    // Before a listener closes a descriptor that others have duplicates of: closing one alone does not end its events.
    void stop_watching(int fd) { poller_.remove(fd); }
    [[nodiscard]] std::uint32_t refused_open() const { return refused_open_; }
    [[nodiscard]] bool may_linger() const { return lingering_ < config_.linger_limit; }

    // Only with a listener that has TLS.
    [[nodiscard]] TlsWork& tls() { return *tls_work_; }
    // A client has sent something for a handshake. Above `tls_handshake_limit` the oldest gives way.
    void note_handshake(TlsSession& session);
    // For a connection's first request.
    [[nodiscard]] std::uint32_t first_deadline_ms() const;

    // Does not log when nobody listens; the text is only made by who checks `logs`.
    [[nodiscard]] bool logs() const { return static_cast<bool>(config_.log); }
    void log(LogLevel level, std::string_view line) const;

    // As if the poller had given it: how tests make an event that comes too late.
    void dispatch_for_test(const platform::PollEvent& event);

private:
    friend class Connection;

    struct Local {
        const void* key;
        std::shared_ptr<void> value;
        bool (*close_spare_files)(void* value) = nullptr;
    };

    void make_ready(Connection& connection);
    void make_starved(Connection& connection);
    void end_starvation(Connection& connection);
    void make_dirty(Connection& connection);
    void make_closed(Connection& connection);
    // Those that are inline are parts of run_turn, defined beside it.
    [[nodiscard]] inline int choose_timeout(int max_wait_ms);
    inline void update_clock();
    void update_date();
    inline void dispatch(std::span<const platform::PollEvent> events);
    void dispatch_to_none(ConnectionToken token);
    inline void expire_timers();
    void run_due_timers();
    void run_messages();
    void accept_pending();
    void run_ready();
    void relieve_starved();
    void run_rest_of_turn(bool woken);
    void finish_turn();
    void flush_dirty();
    void take_apart_closed();
    void take_apart(Connection& connection);
    void register_with_poller(Connection& connection);
    [[nodiscard]] bool start_warming(Connection& connection, const FileRange& file);
    void file_warmed(ConnectionToken token, std::uint64_t end);
    void end_handshake(TlsSession& session);
    void begin_drain();
    void check_drain();
    void cut_all();
    void stop_for_fault(int error);
    // The last turn is over. The program may destroy its timers on any thread from now on, so none stays linked here.
    void end() {
        alarms_.clear();
        stopped_ = true;
    }
    [[nodiscard]] bool idle() const;

    const Config& config_;
    const unsigned number_;
    OffloadPool* const offload_;
    platform::Poller poller_;
    const std::uint64_t start_ms_;
    std::uint64_t clock_ms_ = 0;  // of the platform, when it was last read
    std::uint32_t now_ms_ = 0;
    std::uint32_t date_set_ms_ = 0;      // when the wall clock was looked at
    std::uint32_t date_holds_ms_ = 0;    // for how long the Date field is right from then on
    std::int64_t date_seconds_ = 0;      // what it shows
    std::array<char, 37> date_field_{};

    BlockPool blocks_;
    BlockPool pages_;
    ConnectionPool connections_;
    TimerWheel deadlines_;  // of connections
    TimerWheel alarms_;
    Mailbox mailbox_;
    Mailbox replies_;  // of the offload pool: each has its place before its job starts
    std::vector<std::unique_ptr<Protocol>> protocols_;
    std::vector<std::unique_ptr<Listener>> listeners_;
    std::vector<Local> locals_;  // a few: one for each handler that keeps something
    std::unique_ptr<std::byte[]> scratch_;
    std::unique_ptr<TlsWork> tls_work_;

    const std::shared_ptr<ReactorLink> link_ = std::make_shared<ReactorLink>();
    ConnectionList ready_;
    ConnectionList starved_;
    ConnectionList closed_;
    std::vector<std::uint32_t> dirty_;  // has room for every slot, so that it never grows
    std::deque<ConnectionToken> cold_;  // wait for their turn to have a file read, 2 * connection_limit at most
    std::uint32_t warming_ = 0;         // files that are being read, kFilesWarmedAtOnce at most
    std::uint32_t lingering_ = 0;
    std::uint32_t refused_open_ = 0;
    std::uint32_t offloads_in_flight_ = 0;
    std::uint64_t body_memory_bytes_ = 0;
    std::uint64_t encoder_memory_bytes_ = 0;
    std::uint64_t next_arrival_ = 0;
    // One of the lists is not empty, or one of the next two is set: set by whoever adds something, and looked at again at the end
    // of a turn. A turn that answers what it was told of, as most do, finds it false and asks none of them.
    bool more_to_do_ = false;
    bool messages_left_ = false;
    bool clients_wait_ = false;  // of a listener at least it may be so
    bool draining_ = false;
    bool cut_ = false;  // the drain's time was up
    bool stopped_ = false;
    std::uint32_t drain_deadline_ms_ = 0;
    std::atomic<std::uint8_t> stop_requested_{0};  // 1: drain, 2: cut
    ReactorCounters counters_;
};

inline void Connection::give_back_input() {
    if (input_.empty() && input_.has_block()) {
        reactor().blocks().release(input_.detach());
    }
}

}  // namespace penstock

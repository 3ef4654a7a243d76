// Public.
// A simulated kernel for tests: descriptors, sockets, files, a clock and faults, all in memory, all
// deterministic. A program linked with platform/sim instead of a real backend reaches this kernel by
// every platform call it makes; the test holds the World and the far end of each connection (Peer).
//
// A test owns its World on the stack, before anything that opens a descriptor. One World exists at a
// time. It does not own what the server under test holds: closing descriptors is the server's duty,
// and `open_descriptors` tells whether it did. One thread uses it, the one that made it; a platform
// call from another thread aborts with a message, except the clock, Poller::wake and
// StopSignals::notify, which any thread may call.
//
// Nothing ever blocks, and time stands still until `advance_ms`. Misuse by a test (a second World, an
// unknown path) aborts with a message; misuse by the server is answered as the kernel would, and
// counted (`bad_descriptor_calls`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/platform/address.h"

namespace penstock::sim {

class Connection;
class Kernel;

// The platform calls that are counted. All but close, poller_remove, wake and remove_file can be made to fail.
enum class Call : std::uint8_t {
    open_listener,
    duplicate,
    set_option,  // steer_by_cpu, drop_new_handshakes, reset_on_close
    accept,
    receive,
    send,
    send_file,
    shutdown,
    close,
    poller_open,
    poller_add,
    poller_remove,
    poller_wait,
    wake,
    open_directory,
    open_file,
    file_info,
    read_file,
    create_file,  // create_temporary_file
    write_file,
    name_file,
    remove_file,
    list_directory,
};
inline constexpr std::size_t kCallCount = 23;

[[nodiscard]] const char* to_string(Call call);

// The errors a real kernel gives for that call when nobody has made a mistake. Empty for calls that
// cannot fail.
[[nodiscard]] std::span<const int> plausible_errors(Call call);

// True while this thread is inside the simulation. A test that counts allocations by replacing
// operator new leaves out those of the simulation with it; safe to call from there. Once buffers have
// grown to their size, receive, send, send_file and wait allocate nothing anyway.
[[nodiscard]] bool inside_world();

// What a fault does to one call.
//
// EAGAIN, and a count cut short by `at_most`, keep the contract of edges: the bytes, the room or the
// connections that were withheld come back at the next wait with an edge of their own, and until then
// the call gives EAGAIN. ECONNRESET, EPIPE and ETIMEDOUT (ENOTCONN from shutdown) also break that
// connection for both ends. From accept, an error of exhaustion leaves the connection queued without a
// new edge, as Linux does, and any other error but EAGAIN loses it. EINTR from wait is an empty result.
// Every other error changes nothing.
struct Outcome {
    static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

    int error = 0;
    std::uint64_t most = kNoLimit;

    [[nodiscard]] static Outcome fail(int error) { return {error, kNoLimit}; }
    // Moves that many bytes at most: receive, send, send_file, read_file, write_file.
    [[nodiscard]] static Outcome at_most(std::uint64_t bytes) { return {0, bytes}; }
};

// One fault that was injected. `number` counts the calls that can fail, from 1, over the World's life.
struct Fault {
    std::uint64_t number = 0;
    Call call = Call::receive;
    int fd = -1;
    Outcome outcome;
};

// How often each fault is drawn, out of 1000 calls to which it applies.
struct Ratios {
    std::uint16_t short_read = 0;     // receive, read_file
    std::uint16_t short_write = 0;    // send, send_file, write_file
    std::uint16_t would_block = 0;    // receive, send, send_file, accept
    std::uint16_t reset = 0;          // receive, send, send_file; accept: ECONNABORTED
    std::uint16_t no_memory = 0;      // ENOMEM: accept, poller_add, opening; ENOBUFS: send
    std::uint16_t no_descriptor = 0;  // EMFILE: accept, duplicate, opening, list_directory
    std::uint16_t file_error = 0;     // EIO: open_file, file_info, list_directory, read_file, send_file, create_file, write_file, name_file
    std::uint16_t interrupted = 0;    // poller_wait returns nothing
    std::uint16_t no_space = 0;       // ENOSPC: create_file, write_file, name_file
};

// An address for ConnectOptions. IPv4 or IPv6 in the usual notation.
[[nodiscard]] PeerAddress make_address(const std::string& text, std::uint16_t port);

struct ConnectOptions {
    // Which socket of the port's group takes it, in the order they were opened, of those still open.
    std::optional<std::size_t> listener{};
    // The core the handshake is processed on, for a group set up with steer_by_cpu.
    std::optional<unsigned> cpu{};
    // Who the server sees; family none: 127.0.0.1 with the next free port.
    PeerAddress from{};
};

// The client's end of one connection. A cheap handle: copies mean the same connection, and dropping
// them closes nothing. Its functions abort once the connection's World is gone.
//
// What the server sends waits in a socket buffer (256 KiB) until the client reads it. By default the
// client reads everything at each wait of any poller and whenever the test looks. From
// `set_receive_window` on it reads only what `read` takes. A reset, by whichever side, loses what was
// not yet read: a server that wants its last answer to arrive must linger.
class Peer {
public:
    // Receives bytes in order; may throw nothing and call nothing of the World.
    using Sink = std::function<void(std::string_view)>;

    Peer() = default;

    // Arrives at once as far as the server's buffer (256 KiB) has room, the rest as it is read. Sent to
    // a closed server it is answered by a reset. False once the connection is gone or finished.
    bool send(std::string_view bytes);
    // FIN after the data: nothing more will be sent, reading goes on.
    void finish();
    // As close(2): FIN, and a reset in answer to whatever the server sends later. Resets at once if
    // bytes are unread.
    void close();
    void reset();

    // Everything the server has sent so far and that was read, since it was last taken.
    [[nodiscard]] const std::string& received();
    [[nodiscard]] std::string take_received();
    // Every byte ever read, whether kept or not.
    [[nodiscard]] std::uint64_t received_count();
    // Counts what comes and keeps nothing; a file of any size then costs neither memory nor time.
    void discard_received();
    // Hands over what comes and keeps nothing.
    void set_sink(Sink sink);

    // Manual reading, with that much room for what the server has sent and the client not read.
    void set_receive_window(std::size_t bytes);
    // Reads what is there, `most` bytes at most; it is also appended to `received`.
    std::string read(std::size_t most);
    // Back to reading everything.
    void read_freely();
    // The room for what the client has sent and the server not received.
    void set_send_window(std::size_t bytes);

    // The handshake is done (accepted or waiting in the listener's queue).
    [[nodiscard]] bool connected() const;
    // Nobody listened.
    [[nodiscard]] bool refused() const;
    // The server's descriptor, -1 before accept and after close.
    [[nodiscard]] int server_fd() const;
    // The server's FIN has arrived: everything before it was read.
    [[nodiscard]] bool finished_by_server();
    // The connection was broken, by the server or by an injected fault.
    [[nodiscard]] bool reset_by_server();
    // The server no longer holds a descriptor for it (or never will).
    [[nodiscard]] bool closed_by_server() const;
    // Bytes sent here and not yet received by the server.
    [[nodiscard]] std::size_t unread_by_server() const;
    // Bytes sent by the server and not yet read here.
    [[nodiscard]] std::size_t unread() const;

    // World::script, counted on this connection alone.
    void script(Call call, std::uint64_t nth, Outcome outcome, std::uint64_t times = 1);

private:
    friend class World;
    explicit Peer(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

    [[nodiscard]] Connection& checked() const;

    std::shared_ptr<Connection> connection_;
};

class World {
public:
    static constexpr int kAnyDescriptor = -1;
    static constexpr std::size_t kSocketBufferBytes = std::size_t{256} * 1024;
    static constexpr std::uint64_t kStartMs = 1'000'000;
    static constexpr std::int64_t kStartWallSeconds = 784'111'777;  // Sun, 06 Nov 1994 08:49:37 GMT

    // Fills bytes of a file from an offset; called as often as they are read.
    using Content = std::function<void(std::uint64_t offset, std::span<char> bytes)>;

    World();
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // ---- Time and the machine
    void advance_ms(std::uint64_t milliseconds);  // the wall clock goes along
    [[nodiscard]] std::uint64_t now_ms() const;
    void set_wall_seconds(std::int64_t seconds);
    void set_usable_cores(unsigned count);  // 1 unless told
    // Descriptors that may be open at once; accept and opening give EMFILE beyond.
    void set_descriptor_limit(std::size_t count);
    // Delivers a signal to every StopSignals.
    void raise_signal(int number);

    // ---- Clients
    // Round robin among the sockets that listen on the port, whatever their address. With no room in the
    // listener's queue, or while it drops new handshakes, the connection is made later; with no listener it
    // is refused.
    Peer connect(std::uint16_t port);
    Peer connect(std::uint16_t port, std::size_t listener);
    Peer connect(std::uint16_t port, const ConnectOptions& options);
    Peer connect_unix(const std::string& path);
    // Nothing is under way: no poller holds an event or a wake-up, nothing arrives at the next wait.
    [[nodiscard]] bool quiet() const;

    // ---- Files. Paths are absolute; missing directories are made.
    // Over an existing file this is a rename: open descriptors keep the old one.
    void add_file(const std::string& path, std::string content);
    void add_file(const std::string& path, std::uint64_t size, Content content);
    void add_directory(const std::string& path);
    void add_link(const std::string& path, const std::string& target);
    void add_special(const std::string& path);  // a FIFO
    // In place: open descriptors see it. Growing adds zeros (or what the Content gives).
    void truncate_file(const std::string& path, std::uint64_t size);
    void set_modified_ns(const std::string& path, std::int64_t nanoseconds);
    void set_permitted(const std::string& path, bool permitted);  // EACCES unless permitted
    void remove_file(const std::string& path);
    // What is there now is on disk only: to open it and to read it takes a wait, once for each part of it.
    void chill_file(const std::string& path);
    // Calls that have waited for the disk.
    [[nodiscard]] std::uint64_t disk_waits() const;
    [[nodiscard]] bool exists(const std::string& path) const;
    // What a directory holds, in order.
    [[nodiscard]] std::vector<std::string> names_in(const std::string& path) const;
    // From now on temporary files have a name, as on a file system without O_TMPFILE.
    void forbid_nameless_files();

    // ---- Accounting
    [[nodiscard]] std::uint64_t calls(Call call) const;
    // Those answered by EAGAIN.
    [[nodiscard]] std::uint64_t would_blocks(Call call) const;
    void reset_calls();
    // A poller counts two, itself and its wake-up.
    [[nodiscard]] std::size_t open_descriptors() const;
    // Calls on descriptors that were not open: always a mistake of the server.
    [[nodiscard]] std::uint64_t bad_descriptor_calls() const;

    // ---- Faults. Counting is from 1, from the moment of the call here.
    // The nth such call on that descriptor, and `times - 1` after it.
    void script(Call call, int fd, std::uint64_t nth, Outcome outcome, std::uint64_t times = 1);
    // The nth call that can fail, whichever it is.
    void fail_nth(std::uint64_t nth, int error);
    // Whether that call was reached.
    [[nodiscard]] bool fault_hit() const;
    // Draws faults from a generator whose sequence is the same everywhere.
    void seed(std::uint64_t seed, const Ratios& ratios);
    // Draws the same kinds from bytes, as a fuzzer gives them; none once they are used up. One byte per
    // call that can fail: below 128 no fault.
    void choose_from(std::span<const std::uint8_t> bytes);
    // Exactly these, as `faults` gave them in an earlier run.
    void replay(std::span<const Fault> faults);
    // A number below `limit` from the seed or the bytes, for what the test itself varies; 0 without.
    [[nodiscard]] std::uint64_t choose(std::uint64_t limit);
    // While paused nothing is injected and nothing counted, for setting up and tearing down.
    void pause_faults();
    void resume_faults();
    // What was injected so far, and the same for a person, the seed included.
    [[nodiscard]] const std::vector<Fault>& faults() const;
    [[nodiscard]] std::string fault_report() const;

private:
    friend std::uint64_t sweep(const std::function<void(World&)>&);

    std::unique_ptr<Kernel> kernel_;
};

// Runs the scenario in a fresh World once for each call that can fail and each of its plausible errors
// (and, for calls that move bytes, once moving a single byte), until a run ends before its call is
// reached. The scenario checks for itself, after pause_faults, that nothing is left open. Returns the
// number of runs.
std::uint64_t sweep(const std::function<void(World&)>& scenario);

}  // namespace penstock::sim

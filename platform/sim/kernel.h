// Internal.
// The simulated kernel behind a World: the table of descriptors, the network, the files, the faults and
// the counts. Owned by its World, one at a time; the World's thread alone. Clock and signals are not
// here (machine.h), because any thread may touch those.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "penstock/platform/error.h"
#include "penstock/platform/net.h"
#include "penstock/platform/sim/connection.h"
#include "penstock/platform/sim/description.h"
#include "penstock/platform/sim/faults.h"
#include "penstock/platform/sim/file_tree.h"
#include "penstock/platform/sim/listener.h"
#include "penstock/platform/sim/world.h"

namespace penstock::sim {

class Kernel {
public:
    Kernel();
    ~Kernel();
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    // Aborts when there is none, or when another thread asks.
    [[nodiscard]] static Kernel& current();

    Faults faults;
    FileTree files;

    // ---- Accounting
    // Counts the call and judges it; `bytes` is how many it would move.
    [[nodiscard]] Outcome begin(Call call, int fd, std::uint64_t bytes = 0);
    void count(Call call) { ++calls_[static_cast<std::size_t>(call)]; }
    // Counts an EAGAIN on its way out.
    [[nodiscard]] IoResult end(Call call, IoResult result);
    [[nodiscard]] std::uint64_t calls(Call call) const { return calls_[static_cast<std::size_t>(call)]; }
    [[nodiscard]] std::uint64_t would_blocks(Call call) const {
        return would_blocks_[static_cast<std::size_t>(call)];
    }
    void reset_calls();
    void count_disk_wait(bool waited = true) { disk_waits_ += waited ? 1 : 0; }
    [[nodiscard]] std::uint64_t disk_waits() const { return disk_waits_; }
    [[nodiscard]] std::uint64_t bad_descriptor_calls() const { return bad_calls_; }
    [[nodiscard]] std::uint64_t number() const { return number_; }

    // ---- Descriptors. The lowest free number is taken, from 3 (man 2 open).
    [[nodiscard]] IoResult open(std::shared_ptr<Description> description);
    void close(int fd);
    [[nodiscard]] std::size_t open_count() const { return open_count_; }
    void set_limit(std::size_t count) { limit_ = count; }
    [[nodiscard]] std::size_t limit() const { return limit_; }
    [[nodiscard]] bool at_limit() const { return open_count_ >= limit_; }
    // What the number stands for, or null, with `*error` set and a mistake counted.
    [[nodiscard]] std::shared_ptr<Description> share(int fd, int* error);
    [[nodiscard]] Description* find(int fd, int* error) { return share(fd, error).get(); }
    [[nodiscard]] Connection* find_connection(int fd, int* error);
    [[nodiscard]] Listener* find_listener(int fd, int* error);
    [[nodiscard]] OpenFile* find_file(int fd, int* error);

    // ---- Pollers
    void add_poller(PollerState* poller) { pollers_.push_back(poller); }
    void remove_poller(PollerState* poller);

    // ---- The network
    [[nodiscard]] IoResult listen(const platform::ListenTarget& target);
    [[nodiscard]] IoResult listen_unix(const std::string& path, int backlog);
    void remove_socket_file(const std::string& path);
    [[nodiscard]] std::shared_ptr<Connection> connect(std::uint16_t port, const ConnectOptions& options);
    [[nodiscard]] std::shared_ptr<Connection> connect_unix(const std::string& path);
    void list_unsettled(std::shared_ptr<Connection> connection) {
        unsettled_.push_back(std::move(connection));
    }
    // What happens in the world while the server waits.
    void settle();
    // Neither that nor any poller has anything to do.
    [[nodiscard]] bool quiet() const;

private:
    // Null if the number is free.
    [[nodiscard]] const Description* peek(int fd) const;

    // A connection that has not found room in a queue yet: its handshake is tried again and again.
    struct Knock {
        std::shared_ptr<Connection> connection;
        std::uint16_t port;  // 0: a Unix socket
        ConnectOptions options;
        std::weak_ptr<Listener> listener;
    };

    [[nodiscard]] std::uint16_t free_port() const;
    [[nodiscard]] bool port_taken(const BindAddress& address, std::uint16_t port) const;
    [[nodiscard]] std::vector<std::shared_ptr<Listener>> group(std::uint16_t port) const;
    [[nodiscard]] std::shared_ptr<Listener> choose_listener(std::uint16_t port,
                                                            const ConnectOptions& options);
    [[nodiscard]] std::shared_ptr<Connection> start(Knock knock, const PeerAddress& address);
    // True when that is the end of it: it is in a queue, or refused.
    [[nodiscard]] bool try_to_enter(Knock& knock);
    void settle_knocks();

    const std::uint64_t number_;
    const std::thread::id thread_;

    std::array<std::uint64_t, kCallCount> calls_{};
    std::array<std::uint64_t, kCallCount> would_blocks_{};
    std::uint64_t bad_calls_ = 0;
    std::uint64_t disk_waits_ = 0;

    std::vector<std::shared_ptr<Description>> table_;  // index: descriptor - kFirstDescriptor
    std::size_t open_count_ = 0;
    std::size_t limit_ = 1U << 20U;
    std::vector<PollerState*> pollers_;

    std::vector<std::weak_ptr<Listener>> listeners_;  // in the order of opening
    std::map<std::uint16_t, std::size_t> turns_;      // per port, whose turn it is
    std::uint64_t next_connection_ = 1;
    std::uint16_t next_client_port_ = 40000;
    std::vector<std::shared_ptr<Connection>> unsettled_;
    std::vector<Knock> knocks_;
};

// Every way in opens with one: it finds the Kernel and marks its thread as inside (inside_world).
class Scope {
public:
    Scope();
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    [[nodiscard]] Kernel* operator->() const { return kernel_; }

private:
    Kernel* kernel_;
};

// The same mark where there may be no Kernel.
class InsideMark {
public:
    InsideMark();
    ~InsideMark();
    InsideMark(const InsideMark&) = delete;
    InsideMark& operator=(const InsideMark&) = delete;
};

}  // namespace penstock::sim

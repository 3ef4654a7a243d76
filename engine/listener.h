// Internal.
// A listening socket of one reactor. Accepts a bounded batch a turn; rests, by timer, when the machine has no
// descriptors or memory; turns clients away above the connection limit.
//
// Owned by a Reactor, used by its thread. Owns its descriptor.
#pragma once

#include <cstdint>

#include "penstock/engine/alarm.h"
#include "penstock/platform/address.h"

namespace penstock {

class Connection;
class Protocol;
class ProtocolFactory;
class Reactor;

class Listener {
public:
    // Takes over `fd`. `number` is its place among the reactor's listeners.
    Listener(Reactor& reactor, int fd, std::uint8_t number, Protocol& protocol, const ProtocolFactory& factory);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    // The poller says that clients wait. They are accepted now or, above the batch, by later calls of `accept_some`.
    void on_readable() { pending_ = true; }
    // True while clients may wait that were not accepted because the batch was full.
    [[nodiscard]] bool pending() const { return pending_ && !resting_ && fd_ >= 0; }
    void accept_some();

    // No new handshakes; `accept_some` empties the queue and then closes.
    void begin_drain();
    void close();

    [[nodiscard]] int fd() const { return fd_; }

private:
    [[nodiscard]] bool accept_one();
    void handle_accept_error(int error);
    void refuse(int fd, const PeerAddress& peer);
    void rest();

    Reactor& reactor_;
    Protocol& protocol_;
    const ProtocolFactory& factory_;
    int fd_;
    const std::uint8_t number_;
    bool pending_ = false;
    bool resting_ = false;
    bool draining_ = false;
    Alarm alarm_;
};

}  // namespace penstock

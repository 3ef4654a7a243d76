// Internal.
// A listening socket of one reactor. Accepts a bounded batch a turn; rests, by timer, when the machine has no
// descriptors or memory; turns clients away above the connection limit.
//
// Owned by a Reactor, used by its thread. Owns its descriptor.
#pragma once

#include <cstdint>
#include <memory>

#include "penstock/engine/alarm.h"
#include "penstock/platform/address.h"

namespace penstock {

class Protocol;
class ProtocolFactory;
class Reactor;
class TlsContext;
struct TlsAcceptor;

class Listener {
public:
    // Takes over `fd`.
    Listener(Reactor& reactor, int fd, Protocol& protocol, const ProtocolFactory& factory, std::shared_ptr<const TlsContext> tls);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    // The poller says that clients wait: `accept_some` takes them, a batch at a time.
    void on_readable();
    // Clients may wait that are not accepted yet.
    [[nodiscard]] bool pending() const { return pending_ && !resting_ && fd_ >= 0; }
    void accept_some();

    // No new handshakes; `accept_some` empties the queue and then closes.
    void begin_drain();
    void close();

    [[nodiscard]] int fd() const { return fd_; }
    void set_tls(std::shared_ptr<const TlsContext> tls);

private:
    void accept_one();
    void handle_accept_error(int error);
    void refuse(int fd, const PeerAddress& peer);
    void rest();

    Reactor& reactor_;
    Protocol& protocol_;
    const ProtocolFactory& factory_;
    int fd_;
    std::unique_ptr<TlsAcceptor> tls_;  // plain TCP: nullptr
    bool pending_ = false;
    bool resting_ = false;
    bool draining_ = false;
    bool told_of_exhaustion_ = false;  // once, until accepting works again
    Alarm alarm_;
};

}  // namespace penstock

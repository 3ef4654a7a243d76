#include "penstock/engine/listener.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "penstock/engine/reactor.h"
#include "penstock/platform/net.h"

namespace penstock {

Listener::Listener(Reactor& reactor, int fd, std::uint8_t number, Protocol& protocol,
                   const ProtocolFactory& factory)
    : reactor_(reactor), protocol_(protocol), factory_(factory), fd_(fd), number_(number) {
    alarm_.context = this;
    alarm_.ring = [](void* context) {
        auto& self = *static_cast<Listener*>(context);
        self.resting_ = false;
        self.pending_ = true;  // no edge comes for those who came while it rested
    };
}

Listener::~Listener() {
    reactor_.cancel(alarm_);
    close();
}

void Listener::accept_some() {
    for (int accepts = 0; pending(); ++accepts) {
        if (accepts == kAcceptsPerTurn) {
            return;
        }
        if (!accept_one()) {
            return;
        }
    }
}

bool Listener::accept_one() {
    PeerAddress peer;
    const IoResult accepted = platform::accept(fd_, &peer);
    if (!accepted.ok()) {
        handle_accept_error(accepted.error);
        return true;
    }
    const int fd = static_cast<int>(accepted.count);
    const std::uint32_t open = reactor_.connections().in_use() - reactor_.refused_open();
    if (open >= reactor_.config().connection_limit) {
        refuse(fd, peer);
        return true;
    }
    reactor_.count().accepted.add();
    reactor_.adopt(fd, peer, number_, protocol_, {});
    return true;
}

void Listener::handle_accept_error(int error) {
    if (is_would_block(error)) {
        pending_ = false;
        if (draining_) {
            close();
        }
        return;
    }
    if (is_exhaustion(error) || error == EBADF || error == EINVAL || error == ENOTSOCK) {
        reactor_.count().accept_errors.add();
        reactor_.log(LogLevel::warning,
                     std::string("accepting rests for 50 ms: ") + std::strerror(error) +
                         "; raise the descriptor limit (ulimit -n) or lower connection_limit");
        rest();
    }
    // Anything else is one client's failed handshake, reported late; the next one may be well (man 2 accept).
}

// Turned away, but told so: the answer leaves at once, and the socket lingers so that it can be read.
void Listener::refuse(int fd, const PeerAddress& peer) {
    reactor_.count().refused.add();
    if (reactor_.refused_open() >= reactor_.config().refusal_limit || factory_.refusal().empty()) {
        platform::close_descriptor(fd);
        return;
    }
    reactor_.adopt(fd, peer, number_, protocol_, factory_.refusal());
}

void Listener::rest() {
    resting_ = true;
    reactor_.set_alarm(alarm_, kAcceptPauseMs);
}

void Listener::begin_drain() {
    draining_ = true;
    if (fd_ >= 0) {
        platform::drop_new_handshakes(fd_);
        pending_ = true;
    }
}

void Listener::close() {
    if (fd_ >= 0) {
        platform::close_descriptor(std::exchange(fd_, -1));
    }
    pending_ = false;
}

}  // namespace penstock

#include "penstock/engine/listener.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "penstock/engine/reactor.h"
#include "penstock/engine/tls_session.h"
#include "penstock/platform/net.h"

namespace penstock {

Listener::Listener(Reactor& reactor, int fd, Protocol& protocol, const ProtocolFactory& factory, std::shared_ptr<const TlsContext> tls)
    : reactor_(reactor), protocol_(protocol), factory_(factory), fd_(fd) {
    if (tls != nullptr) {
        tls_ = std::make_unique<TlsAcceptor>(TlsAcceptor{std::move(tls), factory.plain_text_answer()});
    }
    alarm_.context = this;
    alarm_.ring = [](void* context) {
        auto& self = *static_cast<Listener*>(context);
        self.resting_ = false;
        self.on_readable();  // no edge comes for those who came while it rested
    };
}

Listener::~Listener() {
    reactor_.cancel(alarm_);
    close();
}

void Listener::on_readable() {
    pending_ = true;
    reactor_.expect_clients();
}

void Listener::accept_some() {
    for (int accepts = 0; pending() && accepts < kAcceptsPerTurn; ++accepts) {
        accept_one();
    }
}

void Listener::accept_one() {
    PeerAddress peer;
    const IoResult accepted = platform::accept(fd_, &peer);
    if (!accepted.ok()) {
        handle_accept_error(accepted.error);
        return;
    }
    told_of_exhaustion_ = false;
    const int fd = static_cast<int>(accepted.count);
    const std::uint32_t open = reactor_.connections().in_use() - reactor_.refused_open();
    if (open >= reactor_.config().connection_limit) {
        refuse(fd, peer);
        return;
    }
    reactor_.count().accepted.add();
    reactor_.adopt(fd, peer, protocol_, {}, tls_.get());
}

void Listener::handle_accept_error(int error) {
    if (is_would_block(error)) {
        pending_ = false;
        if (draining_) {
            close();
        }
    } else if (is_exhaustion(error)) {
        if (reactor_.close_spare_files()) {
            return;  // then it is tried again
        }
        reactor_.count().accept_errors.add();
        if (!std::exchange(told_of_exhaustion_, true)) {
            reactor_.log(LogLevel::warning,
                         std::string("new clients wait until this is over: ") + std::strerror(error) +
                             "; raise the descriptor limit (ulimit -n) or lower connection_limit");
        }
        rest();
    } else if (error == EBADF || error == EINVAL || error == ENOTSOCK) {
        reactor_.count().accept_errors.add();
        reactor_.log(LogLevel::error, std::string("a listening socket is lost: ") + std::strerror(error));
        close();
    }
    // Anything else is one client's failed handshake, reported late; the next one may be well (man 2 accept).
}

// Turned away, but told so: the answer leaves at once, and the socket lingers so that it can be read. With TLS that would take a
// handshake, which is what there is no room for.
void Listener::refuse(int fd, const PeerAddress& peer) {
    reactor_.count().refused.add();
    if (reactor_.refused_open() >= reactor_.config().refusal_limit || factory_.refusal().empty() || tls_ != nullptr) {
        platform::close_descriptor(fd);
        return;
    }
    reactor_.adopt(fd, peer, protocol_, factory_.refusal());
}

void Listener::set_tls(std::shared_ptr<const TlsContext> tls) { tls_->context = std::move(tls); }

void Listener::rest() {
    resting_ = true;
    reactor_.set_alarm(alarm_, kAcceptPauseMs);
}

void Listener::begin_drain() {
    draining_ = true;
    if (fd_ >= 0) {
        platform::drop_new_handshakes(fd_);
        on_readable();
    }
}

void Listener::close() {
    if (fd_ >= 0) {
        reactor_.stop_watching(fd_);
        platform::close_descriptor(std::exchange(fd_, -1));
    }
    pending_ = false;
}

}  // namespace penstock

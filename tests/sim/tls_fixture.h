// Internal.
// An Engine whose listener has TLS, and clients for it on the simulated platform. Owned by one test; its thread alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine_fixture.h"
#include "penstock/engine/tls_context.h"
#include "support/certificates.h"
#include "support/tls_client.h"

namespace penstock::test {

// Both halves of a client: the connection, and the TLS on it.
class TlsPeer {
public:
    TlsPeer(sim::Peer peer, const TlsClientOptions& options = {}) : tls_(std::make_unique<TlsClient>(options)), peer_(std::move(peer)) {}

    [[nodiscard]] sim::Peer& wire() { return peer_; }
    [[nodiscard]] TlsClient& tls() { return *tls_; }

    // What TLS has to say, in one piece or byte by byte.
    void flush() { peer_.send(tls_->take_outgoing()); }
    // What has come.
    void take_in() { tls_->give(peer_.take_received()); }

    // One record, sent.
    void send(std::string_view plain_text) {
        tls_->write(plain_text);
        flush();
    }
    [[nodiscard]] std::string take_received() {
        take_in();
        return tls_->take_received();
    }

private:
    std::unique_ptr<TlsClient> tls_;
    sim::Peer peer_;
};

inline TlsOptions tls_options() {
    TlsOptions options;
    options.certificates = {TestCertificates::get().ecdsa};
    return options;
}

struct TlsEngine {
    sim::World world;
    ReactorUnderTest server;

    explicit TlsEngine(const Router& router, Config config = small_config(), const TlsOptions& options = tls_options())
        : server(world, router, std::move(config), options) {
        REQUIRE(server.start());
        server.settle();
    }

    // A client whose handshake is over.
    [[nodiscard]] TlsPeer connect(const TlsClientOptions& options = {}) {
        TlsPeer peer(world.connect(kPort), options);
        shake_hands(peer);
        REQUIRE_MESSAGE(peer.tls().established(), "wolfSSL says " << peer.tls().error());
        return peer;
    }
    // A client in the middle of its handshake: the server has answered the hello, and waits.
    [[nodiscard]] TlsPeer connect_half_way() {
        TlsPeer peer(world.connect(kPort));
        peer.tls().shake_hands();
        peer.flush();
        server.settle();
        return peer;
    }
    void shake_hands(TlsPeer& peer) {
        peer.tls().shake_hands();
        for (int flights = 0; flights < 4 && !peer.wire().finished_by_server(); ++flights) {
            peer.flush();
            server.settle();
            peer.take_in();
        }
    }
    std::string exchange(TlsPeer& peer, std::string_view plain_text) {
        peer.send(plain_text);
        server.settle();
        return peer.take_received();
    }
};

}  // namespace penstock::test

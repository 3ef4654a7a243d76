// Internal.
// What the tests of the engine on the simulated platform share: a World, one reactor that speaks HTTP on port 80,
// and an offload pool whose jobs run when the test says so. Owned by one test; its thread alone.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "http/http_text.h"
#include "penstock/engine/offload.h"
#include "penstock/engine/reactor.h"
#include "penstock/engine/tls_context.h"
#include "penstock/engine/tls_random.h"
#include "penstock/engine/tls_work.h"
#include "penstock/penstock.h"
#include "penstock/platform/net.h"
#include "penstock/platform/sim/world.h"

namespace penstock::test {

inline constexpr std::uint16_t kPort = 80;
// Turns after which a scenario that still has work is taken to spin.
inline constexpr int kTurnLimit = 20'000;

// Small enough that every limit is reached quickly.
inline Config small_config() {
    Config config;
    config.reactors = 1;
    config.connection_limit = 64;
    config.refusal_limit = 4;
    config.io_block_limit = 128;
    config.io_block_reserve = 32;
    config.page_limit = 256;
    config.free_block_limit = 16;
    return config;
}

struct LogLines {
    std::vector<std::string> lines;
    [[nodiscard]] bool mention(std::string_view text) const {
        for (const std::string& line : lines) {
            if (line.find(text) != std::string::npos) {
                return true;
            }
        }
        return false;
    }
};

// The reactor half, to be put into a World that somebody else made.
class ReactorUnderTest {
public:
    // With `tls` its listener speaks that.
    ReactorUnderTest(sim::World& world, const Router& router, Config config = small_config(), std::optional<TlsOptions> tls = {})
        : world_(world), config_(std::move(config)), factory_(make_protocol_factory(router)), tls_(std::move(tls)) {
        if (!config_.log) {
            config_.log = [this](LogLevel, std::string_view line) { log.lines.emplace_back(line); };
        }
        reactor_ = std::make_unique<Reactor>(config_, 0, &offload);
        const Result<void> prepared = factory_->prepare(config_);
        REQUIRE_MESSAGE(prepared.ok(), prepared.error().message);
    }

    // False when a fault kept it from starting, which leaves nothing open.
    [[nodiscard]] bool start() {
        if (!reactor_->open().ok()) {
            return false;
        }
        platform::ListenTarget target;
        target.port = kPort;
        const auto opened = platform::open_listener(target);
        return opened.ok() && reactor_->add_listener(opened.value(), *factory_, load_tls()).ok();
    }

    // As if the files of the certificates had become others.
    void replace_certificates(std::vector<TlsCertificate> certificates) {
        tls_->certificates = std::move(certificates);
        reactor_->set_tls(0, load_tls());
    }

    // Turns until nothing is left to do and nothing is under way. Time stands still.
    void settle() {
        for (int turns = 0; turns < kTurnLimit; ++turns) {
            reactor_->run_turn(0);
            if (world_.quiet() && !reactor_->has_work()) {
                return;
            }
        }
        FAIL("the reactor does not come to rest: it spins");
    }
    // The same, with all that is offloaded.
    void settle_offloads() {
        settle();
        while (offload.run_one()) {
            settle();
        }
    }
    void advance(std::uint64_t milliseconds) {
        world_.advance_ms(milliseconds);
        settle();
    }

    // Nothing is leased, linked or open any more but the listener and the poller.
    void check_nothing_left() {
        CHECK(reactor_->connections().in_use() == 0);
        CHECK(reactor_->blocks().leased() == 0);
        CHECK(reactor_->pages().leased() == 0);
        CHECK(reactor_->counters().active.get() == 0);
        CHECK(reactor_->counters().tasks_parked.get() == 0);
    }

    [[nodiscard]] Reactor& reactor() { return *reactor_; }
    void destroy() { reactor_.reset(); }

    LogLines log;
    OffloadPool offload{0, 16};

private:
    [[nodiscard]] std::shared_ptr<const TlsContext> load_tls() {
        if (!tls_.has_value()) {
            return nullptr;
        }
        const bool resumes = tls_->ticket_lifetime_s > 0 && tls_->client_certificate == ClientCertificate::none;
        if (resumes && tickets_ == nullptr) {
            tickets_ = std::make_shared<TlsTickets>(tls_->ticket_lifetime_s, &random_bytes);
        }
        auto loaded = TlsContext::load(*tls_, factory_->application_protocols(), tickets_);
        REQUIRE_MESSAGE(loaded.ok(), loaded.error().message);
        return loaded.value();
    }

    sim::World& world_;
    Config config_;
    std::shared_ptr<ProtocolFactory> factory_;
    std::optional<TlsOptions> tls_;
    std::shared_ptr<TlsTickets> tickets_;
    std::unique_ptr<Reactor> reactor_;
};

struct Engine {
    sim::World world;
    ReactorUnderTest server;

    explicit Engine(const Router& router, Config config = small_config()) : server(world, router, std::move(config)) {
        begin();
    }
    // For handlers that look at the disk when they are made: `make_router` is given the World and fills it.
    template <class MakeRouter>
        requires std::is_invocable_r_v<Router, const MakeRouter&, sim::World&>
    explicit Engine(const MakeRouter& make_router, Config config = small_config())
        : server(world, make_router(world), std::move(config)) {
        begin();
    }

    // Sends, lets the reactor work, and returns what came back.
    std::string exchange(sim::Peer& peer, std::string_view bytes) {
        peer.send(bytes);
        server.settle();
        return peer.take_received();
    }
    // On a connection of its own.
    std::string ask(std::string_view bytes) {
        sim::Peer peer = world.connect(kPort);
        return exchange(peer, bytes);
    }

private:
    void begin() {
        REQUIRE(server.start());
        server.settle();
    }
};

}  // namespace penstock::test

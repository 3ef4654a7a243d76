// Connections that come and go in waves, so that slabs of slots do as well: events that come too late, names that are used
// again, deadlines of many at once, over the wrap of the reactor's time, and a drain meanwhile.
#include <random>
#include <vector>

#include "engine_fixture.h"
#include "support/seed.h"

namespace penstock::test {
namespace {

constexpr std::uint64_t kSeeds = 40;

Router waves_router() {
    Router router;
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    router.get("/later", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(900);
        response.send("later");
    });
    router.post("/size", [](Request& request, Response& response) { response.send(std::to_string(request.body().size())); });
    return router;
}

struct Waves {
    explicit Waves(std::uint64_t seed) : random(static_cast<std::uint32_t>(seed)), engine(waves_router(), config()) {}

    std::uint32_t draw(std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); }
    static Config config() {
        Config config = small_config();
        config.connection_limit = 900;
        config.refusal_limit = 20;
        config.io_block_limit = 400;
        config.page_limit = 500;
        config.free_block_limit = 4;
        return config;
    }
    void note_tokens() {
        engine.server.reactor().connections().for_each([this](Connection& connection) {
            if (draw(4) == 0) {
                tokens.push_back(connection.token());
            }
        });
    }
    void come(std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            peers.push_back(engine.world.connect(kPort));
            switch (draw(6)) {
                case 0: peers.back().send(get("/ok")); break;
                case 1: peers.back().send("GET /ok HT"); break;
                case 2: peers.back().send(get("/later") + get("/ok")); break;
                case 3: peers.back().send("POST /size HTTP/1.1\r\nHost: t\r\nContent-Length: 40000\r\n\r\n" + std::string(draw(39'000), 'b')); break;
                case 4: peers.back().set_receive_window(1 + draw(40)); peers.back().send(get("/ok") + get("/ok")); break;
                default: break;
            }
            if (draw(40) == 0) {
                engine.server.reactor().run_turn(0);
            }
        }
    }
    void go(std::uint32_t percent) {
        for (std::size_t i = 0; i < peers.size();) {
            if (draw(100) >= percent) {
                ++i;
                continue;
            }
            switch (draw(3)) {
                case 0: peers[i].reset(); break;
                case 1: peers[i].close(); break;
                default: peers[i].finish(); peers[i].close(); break;
            }
            peers[i] = std::move(peers.back());
            peers.pop_back();
            if (draw(60) == 0) {
                engine.server.reactor().run_turn(0);
            }
        }
    }
    // Each for a connection that is gone, or that is there: neither may do more than look.
    void late_events() {
        Reactor& reactor = engine.server.reactor();
        std::uint64_t stale = reactor.counters().stale_events.get();
        for (std::uint32_t i = 0; i < 200 && !tokens.empty(); ++i) {
            const ConnectionToken token = tokens[draw(static_cast<std::uint32_t>(tokens.size()))];
            stale += reactor.connections().find(token) == nullptr ? 1 : 0;
            platform::PollEvent event;
            event.token = token.pack();
            event.readable = draw(2) == 0;
            event.writable = draw(2) == 0;
            event.hangup = draw(4) == 0;
            event.urgent = draw(8) == 0;
            reactor.dispatch_for_test(event);
        }
        CHECK(reactor.counters().stale_events.get() == stale);
    }

    std::mt19937 random;
    Engine engine;
    std::vector<sim::Peer> peers;
    std::vector<ConnectionToken> tokens;
};

}  // namespace

TEST_CASE("connections in waves, with late events, over the wrap of time: everybody new is served and nothing is left") {
    for (std::uint64_t i = 0; i < kSeeds; ++i) {
        const std::uint64_t seed = test_seed() + i;
        CAPTURE(seed);
        Waves waves(seed);
        if (seed % 2 == 0) {  // to within a minute of the wrap
            for (int step = 0; step < 16; ++step) {
                waves.engine.server.advance((1u << 28) - 1'000 - waves.draw(3'000));
            }
        }
        for (int wave = 0; wave < 12; ++wave) {
            waves.come(waves.draw(600));
            waves.note_tokens();
            waves.late_events();
            if (waves.draw(2) == 0) {
                waves.engine.server.settle();
            }
            waves.go(waves.draw(5) == 0 ? 100 : waves.draw(100));
            waves.late_events();
            waves.engine.server.settle();
            waves.engine.server.advance(waves.draw(7'000));
            if (waves.engine.server.reactor().connections().in_use() < 800) {
                CHECK(waves.engine.ask(get("/ok")).find("200 OK") != std::string::npos);
            }
        }
        if (seed % 3 == 0) {
            waves.engine.server.reactor().request_stop(false);
            waves.engine.server.settle();
            waves.late_events();
            for (int step = 0; step < 12; ++step) {
                waves.engine.server.advance(1'000);
            }
        } else {
            waves.go(100);
            for (int step = 0; step < 100; ++step) {
                waves.engine.server.advance(1'000);
            }
        }
        waves.engine.server.check_nothing_left();
        CHECK(waves.engine.server.reactor().connections().memory_bytes() < 5 * 64 * 128 + 40 * 64);
        CHECK(waves.engine.world.bad_descriptor_calls() == 0);
    }
}

}  // namespace penstock::test

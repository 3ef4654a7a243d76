// Handlers that do anything they may, in callbacks, timers, posted functions, destructors and coroutines, for clients
// that send, read, stop and leave at random. chaos_test.cpp rages at the server with handlers that behave; here the
// handlers are the storm. Nothing may spin, hang, leak or be used after its end, and every client's answers must
// be readable: framed as they say, in the order of the requests, with nothing of one within another. A red run names its
// seed, and PENSTOCK_SEED=seed begins with that one.
#include <cstdint>
#include <string>
#include <vector>

#include "storm_answers.h"
#include "storm_handlers.h"
#include "stream_fixture.h"
#include "support/seed.h"

namespace penstock::test {
namespace {

constexpr std::uint64_t kSeeds = 150;
constexpr int kSteps = 150;
constexpr std::size_t kClientLimit = 8;

struct StormClient {
    sim::Peer peer;
    bool finished = false;
    std::string unsent{};
    std::vector<bool> heads{};  // of each request
};

// One world under one seed. Every draw is a statement of its own or the only one in it, so that no compiler can change
// their order.
class HandlerStorm {
public:
    explicit HandlerStorm(std::uint64_t seed);
    HandlerStorm(const HandlerStorm&) = delete;
    HandlerStorm& operator=(const HandlerStorm&) = delete;

    void rage();
    // Nobody does anything any more, so only deadlines end what is left.
    void fall_silent();
    void drain();
    void check_answers();
    void check_nothing_left();

private:
    [[nodiscard]] std::uint32_t draw(std::uint32_t limit) { return weather_.draw(limit); }
    [[nodiscard]] Config config() const;
    void act(StormClient& client);
    void queue_request(StormClient& client);
    [[nodiscard]] std::string fields_and_body();
    void send_some(StormClient& client);
    void let_time_pass(int seconds);
    void run_offloaded() {
        while (server_.offload.run_one()) {
        }
    }

    const std::uint64_t seed_;
    StormWeather weather_{};
    sim::World world_;
    ReactorUnderTest server_;
    std::vector<StormClient> clients_{};
    int last_id_ = 0;
};

HandlerStorm::HandlerStorm(std::uint64_t seed) : seed_(seed), server_(world_, storm_handlers(weather_), config()) {
    weather_.random.seed(static_cast<std::uint32_t>(seed));
    weather_.destructors_act = seed % 3 == 0;
    REQUIRE(server_.start());
    server_.settle();
    if (seed % 3 == 1) {
        server_.advance(0xFFFF'FFFFull - 30'000 - seed % 40'000);  // the clock's 32 bits run over in the middle
    }
    if (seed % 4 == 0) {
        world_.seed(seed, {.short_read = 200,
                           .short_write = 200,
                           .would_block = 150,
                           .reset = static_cast<std::uint16_t>(seed % 8 == 0 ? 10 : 0),
                           .interrupted = 50});
    }
}

Config HandlerStorm::config() const {
    Config config = small_config();
    config.request_timeout_ms = seed_ % 2 == 1 ? 20'000 : 0;
    config.write_timeout_ms = 5'000;
    config.idle_timeout_ms = 8'000;
    config.head_timeout_ms = 2'000;
    config.drain_timeout_ms = 3'000;
    config.body_limit_bytes = 60'000;
    if (seed_ % 5 == 0) {
        config.io_block_limit = 12;
        config.io_block_reserve = 6;
        config.page_limit = 8;
        config.connection_limit = 16;
    }
    if (seed_ % 7 == 0) {
        config.requests_per_connection_limit = 1 + static_cast<std::uint32_t>(seed_ % 4);
    }
    if (seed_ % 11 == 0) {
        config.body_memory_limit_bytes = 100'000;
    }
    return config;
}

void HandlerStorm::rage() {
    for (int i = 0; i < 3; ++i) {
        clients_.push_back({world_.connect(kPort)});
    }
    for (int step = 0; step < kSteps; ++step) {
        act(clients_[draw(static_cast<std::uint32_t>(clients_.size()))]);
        if (clients_.size() < kClientLimit && draw(20) == 0) {
            clients_.push_back({world_.connect(kPort)});
        }
    }
}

void HandlerStorm::act(StormClient& client) {
    switch (draw(14)) {
        case 0:
        case 1:
        case 2:
        case 3:
            queue_request(client);
            send_some(client);
            break;
        case 4:
        case 5: send_some(client); break;
        case 6:
            if (draw(4) != 0) {
                client.peer.read_freely();
            } else {
                client.peer.set_receive_window(2'000 + draw(5'000));
            }
            break;
        case 7: (void)client.peer.read(draw(20'000)); break;
        case 8:
            if (draw(4) == 0 && !client.finished) {
                client.peer.finish();
                client.finished = true;
            }
            break;
        case 9:
            if (draw(4) == 0) {
                client.peer.reset();
                client = {world_.connect(kPort)};
            }
            break;
        case 10: server_.advance(draw(1'500)); break;
        case 11:
            while (draw(2) == 1 && server_.offload.run_one()) {
            }
            break;
        case 12:
            for (std::uint32_t turns = draw(4); turns > 0; --turns) {
                server_.reactor().run_turn(0);
            }
            break;
        default: server_.settle(); break;
    }
}

void HandlerStorm::queue_request(StormClient& client) {
    static constexpr const char* kPaths[] = {"/s/", "/s/", "/p/", "/c/", "/c/", "/k/"};
    static constexpr const char* kMethods[] = {"GET", "POST", "POST", "POST", "HEAD"};
    const std::string id = std::to_string(++last_id_);
    const std::string method = kMethods[draw(5)];
    const std::string path = kPaths[draw(6)] + id;
    const std::string version = draw(10) == 0 ? "0" : "1";
    client.unsent += method + " " + path + " HTTP/1." + version + "\r\nHost: t\r\nX-Key: key-of-" + id + "\r\n";
    client.unsent += method == "POST" ? fields_and_body() : "\r\n";
    client.heads.push_back(method == "HEAD");
}

// A few of them broken.
std::string HandlerStorm::fields_and_body() {
    const std::uint32_t most = draw(4) == 0 ? 70'000 : 60;
    const std::string body = pattern(draw(most));
    const std::string expect = draw(5) == 0 ? "Expect: 100-continue\r\n" : "";
    if (draw(2) == 0) {
        return expect + length_field(body.size()) + "\r\n" + body;
    }
    std::string chunks = chunked(body, 1 + draw(3'000));
    if (draw(8) == 0) {
        chunks[draw(static_cast<std::uint32_t>(chunks.size()))] = 'Z';
    }
    return expect + "Transfer-Encoding: chunked\r\n\r\n" + chunks;
}

void HandlerStorm::send_some(StormClient& client) {
    if (client.unsent.empty() || client.finished) {
        return;
    }
    const bool everything = draw(6) != 0;
    const std::size_t count = everything ? client.unsent.size() : draw(static_cast<std::uint32_t>(client.unsent.size()));
    client.peer.send(std::string_view(client.unsent).substr(0, count));
    client.unsent.erase(0, count);
}

void HandlerStorm::let_time_pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
        run_offloaded();
        server_.advance(1'000);
    }
}

void HandlerStorm::fall_silent() {
    let_time_pass(120);
    if (seed_ % 2 == 1) {
        CHECK(server_.reactor().connections().in_use() == 0);  // every request has a time limit
    }
}

void HandlerStorm::drain() {
    server_.reactor().request_stop(seed_ % 26 == 0);
    for (int second = 0; second < 20; ++second) {
        run_offloaded();
        world_.advance_ms(1'000);
        for (int turn = 0; turn < 200; ++turn) {
            server_.reactor().run_turn(0);
        }
    }
    CHECK(server_.reactor().connections().in_use() == 0);
}

void HandlerStorm::check_answers() {
    for (StormClient& client : clients_) {
        CHECK(StormAnswers(client.peer.received(), client.heads).fault() == "");
    }
}

void HandlerStorm::check_nothing_left() {
    for (StormClient& client : clients_) {
        client.peer.reset();
    }
    for (int second = 0; second < 20; ++second) {
        run_offloaded();
        world_.advance_ms(1'000);
        server_.reactor().run_turn(0);
    }
    server_.check_nothing_left();
    CHECK(world_.bad_descriptor_calls() == 0);
    stop_storm_timers(weather_);
    for (const std::weak_ptr<StormAgent>& agent : weather_.agents) {
        CHECK(agent.expired());  // nothing holds what a handler left
    }
}

}  // namespace

TEST_CASE("whatever handlers do, every client can read its answers, and nothing hangs or is left") {
    for (std::uint64_t i = 0; i < kSeeds; ++i) {
        const std::uint64_t seed = test_seed() + i;
        CAPTURE(seed);
        HandlerStorm storm(seed);
        storm.rage();
        if (seed % 13 == 0) {
            storm.drain();
        } else {
            storm.fall_silent();
        }
        storm.check_answers();
        storm.check_nothing_left();
    }
}

}  // namespace penstock::test

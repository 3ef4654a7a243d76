// Everything at once, drawn from a seed: small limits, faults, resets, half closes, narrow windows, sleeping handlers,
// offloaded work, bodies and files. The other tests try one thing at a time; this one looks for what only goes wrong
// when they meet. It does not ask what is answered, since with such limits any request may be refused or cut short: it
// asks that connections end by their deadlines, that answers come in the order of their requests, and that nothing is
// left. A red run names its seed, and PENSTOCK_SEED=seed begins with that one.
#include <wolfssl/options.h>
// Behind the options.
#include <wolfssl/error-ssl.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>

#include "penstock/protocols/http/static_files.h"
#include "stream_fixture.h"
#include "support/seed.h"
#include "tls_fixture.h"

namespace penstock::test {
namespace {

// Little more than a second, also without optimisation.
constexpr std::uint64_t kSeeds = 200;
constexpr std::uint64_t kTlsSeeds = 60;  // each client costs a handshake
// More than the largest connection_limit and refusal_limit drawn, together: 25 and 4.
constexpr std::size_t kClientLimit = 30;
// Bodies are drawn below it, so that none is refused for its size; two of them may be more than the body memory holds.
constexpr std::uint32_t kBodyLimitBytes = 60'000;

struct Client {
    sim::Peer peer;
    std::string unsent{};
    int next_number = 0;
    // It has a receive window of its own, and then reads only now and then; else it takes everything at once.
    bool windowed = false;
    std::string received{};
    // With TLS: what is on its way to the wire besides.
    std::shared_ptr<TlsClient> tls{};
    std::string wire{};

    void take_in(const std::string& bytes) {
        if (tls == nullptr) {
            received += bytes;
            return;
        }
        tls->give(bytes);
        received += tls->take_received();
        // Whatever ends a connection, no byte of another one is ever on it.
        CHECK(tls->error() != VERIFY_MAC_ERROR);
        CHECK(tls->error() != DECRYPT_ERROR);
    }
};

// One world under one seed, with a server and its clients. Answers carry the number of their request as "<7>".
// Every draw is a statement of its own or the only one in it, so that no compiler can change their order.
class Storm {
public:
    explicit Storm(std::uint64_t seed, std::optional<TlsOptions> tls = {});
    Storm(const Storm&) = delete;
    Storm& operator=(const Storm&) = delete;

    void rage();
    void calm_down();
    // How many answers came.
    std::size_t check_order();
    void check_nothing_left();
    // While its clients are still there.
    void stop() { server_.destroy(); }

private:
    // Below `limit`. Raw numbers of the generator, which the standard fixes; what its distributions make of them is
    // each library's own.
    std::uint32_t draw(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
    [[nodiscard]] Config config();
    [[nodiscard]] sim::Ratios ratios();
    void act(Client& client);
    [[nodiscard]] std::string next_request(Client& client);
    [[nodiscard]] std::string post_with_length(const std::string& number);
    [[nodiscard]] std::string post_in_chunks(const std::string& number);
    void send_some(Client& client);
    void send_records(Client& client);

    const bool has_tls_;
    std::mt19937 random_;
    sim::World world_;
    ReactorUnderTest server_;
    std::vector<Client> clients_;
};

Router storm_router(sim::World& world);

// How many answers came of it.
std::size_t weather(Storm& storm) {
    storm.rage();
    storm.calm_down();
    storm.check_nothing_left();
    const std::size_t answers = storm.check_order();
    storm.stop();
    return answers;
}

}  // namespace

TEST_CASE("whatever the weather, every connection ends, answers come in order and nothing is left") {
    std::size_t answers = 0;
    for (std::uint64_t i = 0; i < kSeeds; ++i) {
        const std::uint64_t seed = test_seed() + i;
        CAPTURE(seed);
        Storm storm(seed);
        answers += weather(storm);
    }
    CHECK(answers > kSeeds);
}

TEST_CASE("whatever the weather over TLS, likewise, and no session gets what is another's") {
    std::size_t answers = 0;
    for (std::uint64_t i = 0; i < kTlsSeeds; ++i) {
        const std::uint64_t seed = test_seed() + i;
        CAPTURE(seed);
        Storm storm(seed, tls_options());
        answers += weather(storm);
    }
    CHECK(answers > kTlsSeeds);
    MESSAGE(answers << " answers");
}

namespace {

Storm::Storm(std::uint64_t seed, std::optional<TlsOptions> tls)
    : has_tls_(tls.has_value()), random_(static_cast<std::uint32_t>(seed)), server_(world_, storm_router(world_), config(), std::move(tls)) {
    REQUIRE(server_.start());
    server_.settle();
    // Half of the worlds have limits only, so that what they do is not hidden by what faults do.
    if (draw(2) == 1) {
        world_.seed(seed, ratios());
    }
}

std::string numbered(const Request& request) { return "<" + std::string(request.parameter("n")) + ">"; }

// Short paths, so that many requests fit a block: now, medium, sleep, offload, all at once, echo, echo after a sleep, copy by
// callbacks, deferred, files.
Router storm_router(sim::World& world) {
    world.add_file("/site/big", std::string(3'000'000, 'b'));  // many slices of kFileSliceBytes
    world.add_file("/site/small", "small");
    const auto files = static_files("/site");
    REQUIRE(files.ok());
    Router router;
    router.get("/n/:n", [](Request& request, Response& response) { response.send(numbered(request)); });
    // Medium: above kCopyBodyLimitBytes, and few of them fill the output.
    router.get("/m/:n", [](Request& request, Response& response) {
        response.send(numbered(request) + std::string(9'000, 'm'));
    });
    router.get("/s/:n", [](Request& request, Response& response) -> Task<void> {
        co_await sleep_ms(700);
        response.send(numbered(request));
    });
    router.get("/o/:n", [](Request& request, Response& response) -> Task<void> {
        const std::string number = numbered(request);
        co_await offload([] {});  // or 503
        response.send(number);
    });
    router.post("/w/:n", [](Request& request, Response& response) -> Task<void> {
        const std::string number = numbered(request);
        const auto [nothing, part, body, rest] = co_await when_all(
            sleep_ms(700), offload([&number] { return number.size(); }), request.read_all(), response.write(number));
        co_await response.write(std::string(body.size(), 'e'));
    });
    router.post("/e/:n", [](Request& request, Response& response) {
        response.send(numbered(request) + std::string(request.body().size(), 'e'));
    });
    router.post("/es/:n", [](Request& request, Response& response) -> Task<void> {
        co_await sleep_ms(300);
        const std::size_t size = (co_await request.read_all()).size();
        response.send(numbered(request) + std::string(size, 'e'));
    });
    router.post("/c/:n", [](Request& request, Response& response) {
        std::make_shared<Copier>(request, response)->read();
    }, {.stream_body = true});
    router.get("/d/:n", [](Request& request, Response& response) {
        const DeferredResponse later = response.defer();
        // In a later turn; when the mailbox is full, a limit of time ends it.
        (void)later.post([number = numbered(request)](Response& answer) { answer.send(number); });
    }, {.request_timeout_ms = 5'000});
    router.get("/f/*path", files.value());
    return router;
}

// Each limit from where nearly everything meets it to where little does.
Config Storm::config() {
    Config config = small_config();
    config.connection_limit = 6 + draw(20);
    config.refusal_limit = draw(5);
    config.linger_limit = draw(6);
    config.io_block_reserve = 1 + draw(8);
    config.io_block_limit = config.io_block_reserve + 2 + draw(24);  // two blocks must be left for input
    config.output_high_water_bytes = 1 + draw(40'000);
    config.page_limit = 3 + draw(20);
    config.free_block_limit = draw(4);
    config.body_limit_bytes = kBodyLimitBytes;
    config.body_memory_limit_bytes = kBodyLimitBytes + draw(200'000);
    config.offload_limit = draw(4);
    return config;
}

// Up to 3 in 100 calls move less or nothing, which every connection survives; what ends one is rarer.
sim::Ratios Storm::ratios() {
    const auto often = static_cast<std::uint16_t>(draw(30));
    const auto seldom = static_cast<std::uint16_t>(often / 3);
    sim::Ratios ratios;
    ratios.short_read = often;
    ratios.short_write = often;
    ratios.would_block = often;
    ratios.interrupted = often;
    ratios.no_memory = seldom;
    ratios.no_descriptor = seldom;
    ratios.file_error = seldom;
    ratios.reset = static_cast<std::uint16_t>(often / 4);
    return ratios;
}

// A few clients come, one of them does something, all of them send a part of what they have to send, and the reactor
// has some turns, or none.
void Storm::rage() {
    const std::uint32_t steps = 60 + draw(200);  // so many that most worlds get all their clients
    for (std::uint32_t step = 0; step < steps; ++step) {
        if (clients_.size() < kClientLimit && draw(3) == 0) {
            clients_.push_back(Client{world_.connect(kPort)});
            if (has_tls_) {
                clients_.back().tls = std::make_shared<TlsClient>(TlsClientOptions{.only_tls12 = draw(3) == 0});
                clients_.back().tls->shake_hands();
            }
        }
        if (clients_.empty()) {
            continue;
        }
        act(clients_[draw(static_cast<std::uint32_t>(clients_.size()))]);
        for (Client& client : clients_) {
            send_some(client);
        }
        const std::uint32_t turns = draw(5);
        for (std::uint32_t turn = 0; turn < turns; ++turn) {
            server_.reactor().run_turn(0);
        }
    }
}

// What ends a connection is drawn a second time: it would leave few to live long enough for the rest.
void Storm::act(Client& client) {
    switch (draw(14)) {
        case 0:
        case 1:
        case 2:
        case 3: {
            const std::uint32_t pipelined = 1 + draw(8);
            for (std::uint32_t i = 0; i < pipelined; ++i) {
                client.unsent += next_request(client);
            }
            break;
        }
        case 4:
            if (!client.windowed) {
                client.windowed = true;
                client.peer.set_receive_window(1 + draw(30'000));
            }
            break;
        case 5:
            if (client.windowed) {
                client.take_in(client.peer.read(draw(100'000)));
            }
            break;
        case 6:
            if (draw(3) == 0) {
                client.peer.finish();
            }
            break;
        case 7:
            if (draw(3) == 0) {
                client.peer.reset();
            }
            break;
        case 8:
            if (draw(4) == 0) {
                client.peer.close();
            }
            break;
        case 9: world_.advance_ms(draw(3'000)); break;  // past the sleeps and the linger timeout, or not
        case 10:
            while (draw(3) != 0 && server_.offload.run_one()) {
            }
            break;
        case 11:
            if (draw(10) == 0) {
                (has_tls_ && draw(2) == 0 ? client.wire : client.unsent) += "garbage\r\n\r\n";
            }
            break;
        default: break;  // nobody does anything, but bytes and turns go on
    }
}

std::string Storm::next_request(Client& client) {
    const std::string number = std::to_string(client.next_number++);
    switch (draw(8)) {
        case 0:
        case 1: return get("/n/" + number);
        case 2: return get("/m/" + number);
        case 3: return get("/s/" + number);
        case 4: return get(draw(2) == 1 ? "/o/" + number : "/d/" + number);
        case 5: return post_with_length(number);
        case 6: return post_in_chunks(number);
        default: return get(draw(2) == 1 ? "/f/big" : "/f/small");
    }
}

std::string Storm::post_with_length(const std::string& number) {
    const std::string body(draw(50'000), 'B');
    const std::string expect = draw(4) == 0 ? "Expect: 100-continue\r\n" : "";
    const std::string path = draw(2) == 0 ? "/e/" : "/c/";
    return "POST " + path + number + " HTTP/1.1\r\nHost: t\r\n" + expect +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Up to 39 chunks of up to 900 bytes: two blocks or so, and below the limit of a body.
std::string Storm::post_in_chunks(const std::string& number) {
    std::string request = (draw(2) == 1 ? "POST /es/" : "POST /w/") + number + " HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::uint32_t chunks = draw(40);
    for (std::uint32_t i = 0; i < chunks; ++i) {
        const std::string data(1 + draw(900), 'C');
        char size_line[32];  // a size_t in hexadecimal has 16 digits
        std::snprintf(size_line, sizeof size_line, "%zx\r\n", data.size());
        request += size_line + data + "\r\n";
    }
    return request + "0\r\n\r\n";
}

// Heads are cut anywhere by the small pieces; the large ones hold several requests, or more than a block.
void Storm::send_some(Client& client) {
    if (has_tls_) {
        send_records(client);
        return;
    }
    if (client.unsent.empty() || draw(2) == 0) {
        return;
    }
    const std::uint32_t most = draw(2) == 1 ? 200 : 40'000;
    const std::size_t count = 1 + draw(most);
    client.peer.send(std::string_view(client.unsent).substr(0, count));
    client.unsent.erase(0, count);
}

// Records of any size, cut anywhere.
void Storm::send_records(Client& client) {
    if (!client.windowed) {
        client.take_in(client.peer.take_received());
    }
    if (client.tls->established() && !client.unsent.empty() && draw(2) == 0) {
        const std::size_t count = 1 + draw(draw(2) == 1 ? 200 : 16'000);
        client.tls->write(std::string_view(client.unsent).substr(0, count));
        client.unsent.erase(0, count);
    }
    client.wire += client.tls->take_outgoing();
    if (!client.wire.empty() && draw(3) != 0) {
        const std::size_t count = 1 + draw(draw(2) == 1 ? 200 : 40'000);
        client.peer.send(std::string_view(client.wire).substr(0, count));
        client.wire.erase(0, count);
    }
}

// No client does anything any more, and windowed ones take nothing: only deadlines can end what is left. 300 s are five
// times the longest of them; the steps are of 3 s because what one deadline sets off, another may have to end.
void Storm::calm_down() {
    world_.pause_faults();
    for (int i = 0; i < 100; ++i) {
        while (server_.offload.run_one()) {
        }
        server_.settle();
        server_.advance(3'000);
    }
}

void Storm::check_nothing_left() {
    server_.check_nothing_left();
    CHECK(world_.bad_descriptor_calls() == 0);
}

// Numbers may be missing, where a request was refused or a file was asked for, but none comes late or twice.
std::size_t Storm::check_order() {
    std::size_t answers = 0;
    for (Client& client : clients_) {
        if (!client.windowed) {
            client.take_in(client.peer.take_received());
        }
        const std::string& received = client.received;
        int least = 0;
        for (std::size_t at = received.find('<'); at != std::string::npos; at = received.find('<', at + 1)) {
            const int number = std::atoi(received.c_str() + at + 1);
            CHECK(number >= least);
            least = number + 1;
            ++answers;
        }
    }
    return answers;
}

}  // namespace
}  // namespace penstock::test

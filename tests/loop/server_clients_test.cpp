// How a running server treats its clients: draining, limits, large bodies, handlers that wait, and peers that leave.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <semaphore>
#include <vector>

#include "loop/loop_client.h"

namespace penstock {

namespace {

// A handler waits here until the test lets it go; the test sees how many wait.
struct Gate {
    std::atomic<int> waiting{0};
    std::atomic<int> destroyed{0};  // handlers that have ended, in whatever way
    std::atomic<bool> is_open{false};
};

class Presence {
public:
    explicit Presence(Gate& gate) : gate_(gate) { ++gate_.waiting; }
    ~Presence() { ++gate_.destroyed; }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;

private:
    Gate& gate_;
};

// "/" answers at once, "/wait" once the gate is open.
Router gated_router(Gate& gate) {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send("hello"); });
    router.get("/wait", [&gate](Request&, Response& response) -> Task<void> {
        const Presence presence(gate);
        while (!gate.is_open) {
            co_await sleep_ms(2);
        }
        response.send("waited");
    });
    return router;
}

struct GatedServer {
    explicit GatedServer(Config config) : server(std::move(config)) {
        server.listen({.address = "127.0.0.1"}, gated_router(gate));
        start_or_fail(server);
    }
    [[nodiscard]] LoopClient connect() const { return LoopClient(server.port()); }
    // A client whose request has reached the handler.
    [[nodiscard]] LoopClient connect_waiting() {
        LoopClient client = connect();
        const int before = gate.waiting;
        client.send(request_for("/wait"));
        REQUIRE(eventually([this, before] { return gate.waiting > before; }));
        return client;
    }
    [[nodiscard]] bool refuses_connections() const {
        return eventually([this] {
            const Fd probe = client_socket(AF_INET);
            return connect_ipv4(probe.get(), server.port()) == ECONNREFUSED;
        });
    }

    Gate gate;
    Server server;
};

// Not even an answer's end tells how large the kernel's buffers are, so it must be more than they hold.
constexpr std::size_t kLargeBytes = 24 << 20;

// No two stretches of it are alike.
std::string pattern_of(std::size_t bytes) {
    std::string text;
    text.reserve(bytes + 16);
    for (std::size_t i = 0; text.size() < bytes; ++i) {
        text.append(std::to_string(i)).append(",");
    }
    text.resize(bytes);
    return text;
}

// Takes the lowest number that is free and forbids all above it.
class NoDescriptorsLeft {
public:
    NoDescriptorsLeft() {
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &former_) == 0);
        filler_ = Fd(::dup(0));
        rlimit lowered = former_;
        lowered.rlim_cur = static_cast<rlim_t>(filler_.get()) + 1;
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &lowered) == 0);
    }
    NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
    NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;
    ~NoDescriptorsLeft() { ::setrlimit(RLIMIT_NOFILE, &former_); }

private:
    rlimit former_{};
    Fd filler_;
};

int cpu_ms_used() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto ms = [](const timeval& time) { return static_cast<int>(time.tv_sec * 1000 + time.tv_usec / 1000); };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
}

}  // namespace

// ---- Draining ------------------------------------------------------------------------------------------

TEST_CASE("drain: what is under way is answered, idle connections end, new ones are refused") {
    GatedServer gated(reactors(2));
    LoopClient idle = gated.connect();
    CHECK(idle.ask("/").field("Connection") == "");
    LoopClient busy = gated.connect_waiting();
    gated.server.stop();
    CHECK(idle.is_ended());
    CHECK(gated.refuses_connections());
    gated.gate.is_open = true;
    const Answer answer = busy.receive();
    CHECK(answer.status == 200);
    CHECK(answer.body == "waited");
    CHECK(answer.field("Connection") == "close");
    CHECK(busy.is_ended());
    busy.close();  // the server lingers for it
    CHECK(ends(gated.server));
    CHECK(gated.server.stats().cut_by_drain == 0);
}

TEST_CASE("drain: ends as soon as a slow reader has its answer") {
    Router router;
    router.get("/large", [](Request&, Response& response) { response.send(pattern_of(kLargeBytes)); });
    Config config = reactors(1);
    config.drain_timeout_ms = 60'000;
    Server server(config);
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);
    LoopClient reader(server.port());
    reader.send(request_for("/large"));
    REQUIRE(eventually([&server] { return server.stats().requests == 1; }));
    server.stop();
    CHECK(reader.receive().body.size() == kLargeBytes);
    CHECK(reader.is_ended());
    reader.close();
    CHECK(ends(server));
}

TEST_CASE("drain: cuts what is not done at its deadline") {
    constexpr int kDrainMs = 200;
    Config config = reactors(2);
    config.drain_timeout_ms = kDrainMs;
    GatedServer gated(config);
    LoopClient busy = gated.connect_waiting();
    const auto start = std::chrono::steady_clock::now();
    CHECK(stops(gated.server));
    CHECK(elapsed_ms_since(start) >= kDrainMs * 9 / 10);
    CHECK(busy.is_ended());
    CHECK(gated.gate.destroyed == 1);
    CHECK(gated.server.stats().cut_by_drain == 1);
}

TEST_CASE("drain: stop_now does not wait, also after stop") {
    Config config = reactors(2);
    config.drain_timeout_ms = 60'000;
    GatedServer gated(config);
    LoopClient busy = gated.connect_waiting();
    LoopClient idle = gated.connect();
    CHECK(idle.ask("/").status == 200);
    gated.server.stop();
    CHECK(idle.is_ended());
    CHECK_FALSE(busy.has_input_within(50));
    gated.server.stop_now();
    CHECK(ends(gated.server));
    CHECK(busy.is_ended());
    CHECK(gated.gate.destroyed == 1);
}

// ---- Limits --------------------------------------------------------------------------------------------

TEST_CASE("limits: a client above the connection limit is told 503, and counted") {
    constexpr std::uint32_t kLimit = 8;
    Config config = reactors(1);
    config.connection_limit = kLimit;
    GatedServer gated(config);
    std::vector<LoopClient> clients;
    for (std::uint32_t i = 0; i < kLimit; ++i) {
        clients.push_back(gated.connect());
        CHECK(clients.back().ask("/").status == 200);
    }
    for (int i = 0; i < 3; ++i) {
        LoopClient refused = gated.connect();
        const Answer answer = refused.receive();  // without having asked
        CHECK(answer.status == 503);
        CHECK(answer.field("Retry-After") == "1");
        CHECK(answer.field("Connection") == "close");
        CHECK(refused.is_ended());
    }
    CHECK(gated.server.stats().refused == 3);
    CHECK(gated.server.stats().active == kLimit);
    CHECK(clients[0].ask("/").status == 200);
    clients.pop_back();
    REQUIRE(eventually([&gated] { return gated.server.stats().active < kLimit; }));
    CHECK(gated.connect().ask("/").status == 200);
    CHECK(stops(gated.server));
}

TEST_CASE("limits: without descriptors accepting rests and goes on, and costs next to nothing meanwhile") {
    constexpr int kObservedMs = 500;
    GatedServer gated(reactors(1));
    LoopClient early = gated.connect();
    CHECK(early.ask("/").status == 200);
    Fd late = client_socket(AF_INET);
    int used_ms = 0;
    int elapsed_ms = 0;
    std::uint64_t tries = 0;
    bool is_answered = false;
    // accept takes a number even when nobody waits, for a moment. This comes in a turn after it.
    CHECK(memory_of(gated.server).connections == 1);
    {
        const NoDescriptorsLeft shortage;
        REQUIRE(connect_ipv4(late.get(), gated.server.port()) == 0);  // by the kernel, into its queue
        far_send(late.get(), request_for("/"));
        REQUIRE(eventually([&gated] { return gated.server.stats().accept_errors > 0; }));
        const auto start = std::chrono::steady_clock::now();
        used_ms = -cpu_ms_used();
        is_answered = ready_within(late.get(), POLLIN, kObservedMs);
        used_ms += cpu_ms_used();
        elapsed_ms = elapsed_ms_since(start);
        tries = gated.server.stats().accept_errors;
        CHECK(early.ask("/").status == 200);
        CHECK(gated.server.stats().accepted == 1);
    }
    // Not logged with CAPTURE while there are none: UndefinedBehaviorSanitizer needs some to look at its objects.
    CAPTURE(used_ms);
    CAPTURE(elapsed_ms);
    CHECK_FALSE(is_answered);
    CHECK(used_ms < kObservedMs / 5);
    CHECK(tries > 1);
    CHECK(tries <= static_cast<unsigned>(elapsed_ms) / kAcceptPauseMs + 2);
    CHECK(LoopClient(std::move(late)).receive().status == 200);
    CHECK(gated.server.stats().accepted == 2);
    CHECK(stops(gated.server));
}

TEST_CASE("limits: heads that come a byte at a time are all ended in time, and other clients are served meanwhile") {
    constexpr std::size_t kSlow = 50;
    constexpr int kHeadMs = kSanitized ? 1'500 : 500;
    Config config = reactors(1);
    config.head_timeout_ms = kHeadMs;
    GatedServer gated(config);
    std::vector<LoopClient> slow;
    for (std::size_t i = 0; i < kSlow; ++i) {
        slow.push_back(gated.connect());
    }
    const std::string head = request_for("/");
    const auto start = std::chrono::steady_clock::now();
    std::size_t rounds = 0;
    // A byte from each, somebody else's request, and a pause that the first answer ends.
    do {
        for (LoopClient& client : slow) {
            client.send(head.substr(rounds, 1));
        }
        ++rounds;
        CHECK(gated.connect().ask("/").status == 200);
    } while (!slow[0].has_input_within(kHeadMs / 10) && rounds < head.size() - 1);
    CHECK(rounds > 1);
    CHECK(rounds < head.size() - 1);  // bytes were still coming when the end came
    for (LoopClient& client : slow) {
        CHECK(client.receive().status == 408);
        CHECK(client.receive_rest().empty());
        CHECK(client.ended() == Ended::cleanly);
    }
    CHECK(elapsed_ms_since(start) >= kHeadMs * 9 / 10);
    CHECK(elapsed_ms_since(start) < kHeadMs + kWaitMs);
    CHECK(gated.server.stats().timeouts >= kSlow);
    slow.clear();
    CHECK(eventually([&gated] { return gated.server.stats().active == 0; }));
    CHECK(memory_of(gated.server).leased_bytes == 0);
    CHECK(stops(gated.server));
}

TEST_CASE("limits: a gigabyte that its client never reads is not held, and the write timeout ends it") {
    constexpr std::uint64_t kGigabyte = 1'000'000'000;
    constexpr int kWriteMs = 300;
    Gate gate;
    std::atomic<std::uint64_t> written{0};
    Router router;
    router.get("/", [](Request&, Response& response) { response.send("hello"); });
    router.get("/gigabyte", [&gate, &written](Request&, Response& response) -> Task<void> {
        const Presence presence(gate);
        const std::string piece(1'000'000, 'g');  // far above the mark
        while (written < kGigabyte) {
            co_await response.write(piece);
            written += piece.size();
        }
    });
    Config config = reactors(1);
    config.write_timeout_ms = kWriteMs;
    Server server(config);
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);
    LoopClient reader(server.port());
    reader.set_receive_buffer(64 << 10);
    LoopClient other(server.port());
    const auto start = std::chrono::steady_clock::now();
    reader.send(request_for("/gigabyte"));
    std::size_t most = 0;
    CHECK(eventually([&] {
        CHECK(other.ask("/").status == 200);
        most = std::max(most, memory_of(server).leased_bytes);
        return gate.destroyed == 1;
    }));
    CHECK(elapsed_ms_since(start) >= kWriteMs * 9 / 10);
    // A page may stand above the mark, in blocks that are used in part at both ends, and each of the two requests has a
    // block and a page of its own.
    CHECK(most <= config.output_high_water_bytes + 4 * kIoBlockBytes + 3 * kPageBytes);
    CHECK(written < kGigabyte / 10);
    CHECK(server.stats().timeouts == 1);
    CHECK(memory_of(server).leased_bytes == 0);
    (void)reader.receive_rest();  // what the kernel had
    CHECK(reader.ended() != Ended::no);
    CHECK(stops(server));
}

// ---- Bodies --------------------------------------------------------------------------------------------

TEST_CASE("bodies: large ones come whole, both ways") {
    Router router;
    router.post("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    Config config = reactors(1);
    config.body_limit_bytes = kLargeBytes;
    Server server(config);
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);
    LoopClient client(server.port());
    const std::string large = pattern_of(kLargeBytes);
    for (const std::size_t size : {kLargeBytes, std::size_t{1}, std::size_t{1} << 20, std::size_t{0}, kIoBlockBytes}) {
        CAPTURE(size);
        const Answer answer = client.post("/echo", std::string_view(large).substr(0, size));
        CHECK(answer.status == 200);
        const bool is_same = answer.body == std::string_view(large).substr(0, size);
        CHECK(is_same);
    }
    client.send("POST /echo HTTP/1.1\r\nHost: loop\r\nContent-Length: " + std::to_string(kLargeBytes + 1) + "\r\n\r\n");
    CHECK(client.receive().status == 413);
    CHECK(client.is_ended());
    client.close();
    REQUIRE(eventually([&server] { return memory_of(server).connections == 0; }));
    CHECK(memory_of(server).leased_bytes == 0);
    CHECK(stops(server));
}

// ---- Handlers that wait --------------------------------------------------------------------------------

TEST_CASE("tasks: many sleep and offload at once, and each gets its own answer") {
    constexpr int kClients = 64;
    Router router;
    router.get("/sum/:a", [](Request& request, Response& response) -> Task<void> {
        const std::string text(request.parameter("a"));
        co_await sleep_ms(5);
        std::string doubled = co_await offload([&text] { return text + text; });
        co_await sleep_ms(1);
        response.send(std::move(doubled));
    });
    Server server(reactors(2));
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);
    std::vector<LoopClient> clients;
    for (int i = 0; i < kClients; ++i) {
        clients.emplace_back(server.port());
    }
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < kClients; ++i) {
            clients[static_cast<std::size_t>(i)].send(request_for("/sum/" + std::to_string(i)));
        }
        for (int i = 0; i < kClients; ++i) {
            const std::string text = std::to_string(i);
            CHECK(clients[static_cast<std::size_t>(i)].receive().body == text + text);
        }
    }
    CHECK(memory_of(server).leased_bytes == 0);
    CHECK(stops(server));
}

TEST_CASE("tasks: many functions are awaited at once on the real pool") {
    Router router;
    router.get("/:count", [](Request& request, Response& response) -> Task<void> {
        std::vector<Task<std::size_t>> tasks;
        const auto square = [](std::size_t value) -> Task<std::size_t> {
            const std::string text(value, 'x');
            co_return co_await offload([&text, value] { return text.size() * value; });
        };
        for (std::size_t i = std::stoul(std::string(request.parameter("count"))); i > 0; --i) {
            tasks.push_back(square(i));
        }
        std::size_t sum = 0;
        for (const std::size_t value : co_await when_all(std::move(tasks))) {
            sum += value;
        }
        response.send(std::to_string(sum));
    });
    Server server(reactors(2));
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);
    for (int i = 0; i < 10; ++i) {
        CHECK(LoopClient(server.port()).ask("/20").body == "2870");
        LoopClient leaves(server.port());
        leaves.send(request_for("/20"));
        leaves.reset();
    }
    CHECK(LoopClient(server.port()).ask("/1000").status == 503);  // above offload_limit
    CHECK(eventually([&server] { return server.stats().tasks_parked == 0 && server.stats().active == 0; }));
    CHECK(server.stats().overloaded == 1);
    CHECK(stops(server));
}

TEST_CASE("tasks: the reset of a peer destroys the handler where it waits") {
    GatedServer gated(reactors(1));
    for (int i = 0; i < 10; ++i) {
        gated.connect_waiting().reset();
    }
    CHECK(eventually([&gated] { return gated.gate.destroyed == 10; }));
    CHECK(eventually([&gated] { return gated.server.stats().active == 0; }));
    CHECK(gated.server.stats().peer_resets == 10);
    CHECK(memory_of(gated.server).leased_bytes == 0);
    CHECK(gated.connect().ask("/").status == 200);
    CHECK(stops(gated.server));
}

TEST_CASE("tasks: a peer that leaves while a function is offloaded: the handler ends when that has ended") {
    std::binary_semaphore let_go(0);
    Gate gate;
    Router router;
    router.get("/offload", [&](Request&, Response& response) -> Task<void> {
        const Presence presence(gate);
        co_await offload([&let_go] { let_go.acquire(); });
        response.send_static("done");
    });
    Server server(reactors(1));
    server.listen({.address = "127.0.0.1"}, router);
    start_or_fail(server);
    LoopClient client(server.port());
    client.send(request_for("/offload"));
    CHECK(eventually([&gate] { return gate.waiting == 1; }));
    client.reset();
    CHECK(eventually([&server] { return server.stats().tasks_parked == 1 && server.stats().active == 0; }));
    CHECK(gate.destroyed == 0);
    server.stop_now();  // waits for it as well
    let_go.release();
    CHECK(ends(server));
    CHECK(gate.destroyed == 1);
    CHECK(server.stats().tasks_parked == 0);
}

TEST_CASE("peers: one that ends its side gets its answers all the same") {
    GatedServer gated(reactors(1));
    LoopClient plain = gated.connect();
    plain.send(request_for("/") + request_for("/") + request_for("/"));
    plain.end_sending();
    for (int i = 0; i < 3; ++i) {
        CHECK(plain.receive().body == "hello");
    }
    CHECK(plain.is_ended());
    LoopClient waiting = gated.connect_waiting();
    waiting.end_sending();
    CHECK_FALSE(waiting.has_input_within(20));
    CHECK(gated.gate.destroyed == 0);
    gated.gate.is_open = true;
    CHECK(waiting.receive().body == "waited");
    CHECK(waiting.is_ended());
    LoopClient silent = gated.connect();
    silent.end_sending();
    CHECK(silent.is_ended());
    LoopClient half = gated.connect();
    half.send("GET / HTTP/1.1\r\nHo");
    half.end_sending();
    CHECK(half.is_ended());
    CHECK(eventually([&gated] { return gated.server.stats().active == 0; }));
    CHECK(stops(gated.server));
}

}  // namespace penstock

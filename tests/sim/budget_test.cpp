// What one request may cost, exactly, and what happens when its memory is refused: whoever counts allocations can refuse
// them.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "engine_fixture.h"
#include "penstock/protocols/http/static_files.h"

namespace {

std::uint64_t g_allocations = 0;
int g_refuse_in = 0;  // the so many-th allocation from now on is refused; 0: none

}  // namespace

// The sanitizers bring their own operator new, and check that it meets its own delete; there nothing is counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PENSTOCK_COUNT_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PENSTOCK_COUNT_ALLOCATIONS 0
#endif
#endif
#ifndef PENSTOCK_COUNT_ALLOCATIONS
#define PENSTOCK_COUNT_ALLOCATIONS 1
#endif

#if PENSTOCK_COUNT_ALLOCATIONS
// Counts what the engine allocates; what the simulated kernel does for itself is its own business. The engine's
// pools go through aligned_alloc and malloc: their leases are checked by what they report.
// Never inlined: the compiler would see malloc on one side and delete on the other, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (!penstock::sim::inside_world()) {
        ++g_allocations;
        if (g_refuse_in > 0 && --g_refuse_in == 0) {
            throw std::bad_alloc();
        }
    }
    if (void* const memory = std::malloc(size != 0 ? size : 1)) {
        return memory;
    }
    throw std::bad_alloc();
}
// The pools' blocks.
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    if (!penstock::sim::inside_world()) {
        ++g_allocations;
    }
    const auto bytes = static_cast<std::size_t>(alignment);
    return std::aligned_alloc(bytes, (size + bytes - 1) / bytes * bytes);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace penstock::test {
namespace {

Router plain_router() {
    Router router;
    router.get("/plaintext", [](Request&, Response& response) { response.send_static("Hello, World!"); });
    router.get("/hello/:name", [](Request& request, Response& response) { response.send(request.parameter("name")); });
    router.post("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    router.get("/task", [](Request&, Response& response) -> Task<void> {
        response.send_static("from a task");
        co_return;
    });
    return router;
}

struct Cost {
    std::uint64_t receives, sends, adds, allocations;
};

// Of 1,000 requests on one connection, after 100 to warm up.
Cost cost_of_1000(Engine& engine, const std::string& request) {
    sim::Peer peer = engine.world.connect(kPort);
    for (int i = 0; i < 100; ++i) {
        REQUIRE(status_of(engine.exchange(peer, request)) == 200);
    }
    peer.discard_received();
    engine.world.reset_calls();
    const std::uint64_t allocations = g_allocations;
    for (int i = 0; i < 1000; ++i) {
        peer.send(request);
        engine.server.settle();
    }
    return {engine.world.calls(sim::Call::receive), engine.world.calls(sim::Call::send),
            engine.world.calls(sim::Call::poller_add), g_allocations - allocations};
}

void check_budget(const Cost& cost) {
    CHECK(cost.receives == 1000);
    CHECK(cost.sends == 1000);
    CHECK(cost.adds == 0);
    CHECK(cost.allocations == 0);
}

}  // namespace

TEST_CASE("the allocation counter counts") {
    const std::uint64_t before = g_allocations;
    ::operator delete(::operator new(1));  // called, not a new-expression: that the compiler may leave out
    CHECK(g_allocations == before + PENSTOCK_COUNT_ALLOCATIONS);
}

TEST_CASE("1,000 warmed keep-alive requests are 1,000 receives, 1,000 sends and nothing else") {
    Engine engine(plain_router());
    check_budget(cost_of_1000(engine, get("/plaintext")));
    check_budget(cost_of_1000(engine, get("/hello/you?and=more", "Accept: */*\r\nUser-Agent: test\r\n")));
    check_budget(cost_of_1000(engine, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello"));
    check_budget(cost_of_1000(engine, "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                                      "5\r\nhello\r\n0\r\n\r\n"));
    check_budget(cost_of_1000(engine, get("/task")));
}

TEST_CASE("a file that is known costs no more than any other answer, and a large one a look at it and at its last byte") {
    Engine engine([](sim::World& world) {
        world.add_file("/www/small.css", std::string(500, 's'));
        world.add_file("/www/middle.js", std::string(kCachedFileLimitBytes, 'm'));
        world.add_file("/www/large.bin", std::string(kCachedFileLimitBytes + 1, 'l'));
        const auto files = static_files("/www", {.precompressed = true});
        REQUIRE(files.ok());
        Router router;
        router.get("/*path", files.value());
        return router;
    });
    check_budget(cost_of_1000(engine, get("/small.css")));
    CHECK(engine.world.calls(sim::Call::open_file) == 0);
    check_budget(cost_of_1000(engine, get("/small.css", "Accept-Encoding: gzip, deflate, br\r\n")));
    CHECK(engine.world.calls(sim::Call::open_file) == 0);
    check_budget(cost_of_1000(engine, get("/middle.js")));
    check_budget(cost_of_1000(engine, get("/large.bin")));
    CHECK(engine.world.calls(sim::Call::open_file) == 0);
    CHECK(engine.world.calls(sim::Call::file_info) == 1000);
    CHECK(engine.world.calls(sim::Call::read_file) == 1000);
    CHECK(engine.world.calls(sim::Call::send_file) == 1000);
}

TEST_CASE("a body that was compressed before costs no more than any other") {
    Router router = plain_router();
    router.use(compress().value());
    router.get("/text", [](Request&, Response& response) {
        static const std::string text(10'000, 'x');
        response.send_static(text);
    });
    Engine engine(router);
    check_budget(cost_of_1000(engine, get("/text", "Accept-Encoding: gzip\r\n")));
    check_budget(cost_of_1000(engine, get("/plaintext", "Accept-Encoding: gzip\r\n")));
    CHECK(engine.server.reactor().counters().compress_cache_misses.get() == 1);
    CHECK(engine.server.reactor().counters().compress_cache_hits.get() == 1'099);
}

TEST_CASE("pipelined requests share one receive and one send") {
    Engine engine(plain_router());
    sim::Peer peer = engine.world.connect(kPort);
    std::string batch;
    for (int i = 0; i < 16; ++i) {
        batch += get("/plaintext");
    }
    REQUIRE(count_of(engine.exchange(peer, batch), "Hello, World!") == 16);
    engine.world.reset_calls();
    REQUIRE(count_of(engine.exchange(peer, batch), "Hello, World!") == 16);
    CHECK(engine.world.calls(sim::Call::receive) == 1);
    CHECK(engine.world.calls(sim::Call::send) == 1);
}

TEST_CASE("a connection for one request costs accept, receive, send and close, and never meets the poller") {
    Engine engine(plain_router());
    engine.world.reset_calls();
    sim::Peer peer = engine.world.connect(kPort);
    REQUIRE(status_of(engine.exchange(peer, get("/plaintext", "Connection: close\r\n"))) == 200);
    CHECK(peer.closed_by_server());
    CHECK_FALSE(peer.reset_by_server());
    CHECK(engine.world.calls(sim::Call::receive) == 1);
    CHECK(engine.world.calls(sim::Call::send) == 1);
    CHECK(engine.world.calls(sim::Call::close) == 1);
    CHECK(engine.world.calls(sim::Call::accept) == 2);  // and one to be told that nobody else waits
    CHECK(engine.world.calls(sim::Call::poller_add) == 0);
    CHECK(engine.world.calls(sim::Call::set_option) == 0);
    engine.server.check_nothing_left();
}

TEST_CASE("connections for one request that come together share all calls but their own four") {
    Engine engine(plain_router());
    constexpr std::uint64_t kClients = 50;
    std::vector<sim::Peer> peers;
    for (std::uint64_t i = 0; i < kClients; ++i) {
        peers.push_back(engine.world.connect(kPort));
        peers.back().send(get("/plaintext", "Connection: close\r\n"));
    }
    engine.world.reset_calls();
    engine.server.settle();
    for (sim::Peer& peer : peers) {
        CHECK(status_of(peer.take_received()) == 200);
        CHECK(peer.closed_by_server());
    }
    CHECK(engine.world.calls(sim::Call::accept) == kClients + 1);
    CHECK(engine.world.calls(sim::Call::receive) == kClients);
    CHECK(engine.world.calls(sim::Call::send) == kClients);
    CHECK(engine.world.calls(sim::Call::close) == kClients);
    CHECK(engine.world.calls(sim::Call::poller_add) == 0);
    engine.server.check_nothing_left();
}

namespace {

// The last thing that a handler starts: what is allocated after it is not refused.
struct EndOfRefusals {
    bool await_ready() const {
        g_refuse_in = 0;
        return true;
    }
    void await_suspend(std::coroutine_handle<>) const {}
    void await_resume() const {}
};

Task<int> offload_with_local(int value) {
    const std::string text(40, static_cast<char>('0' + value));  // beyond what a string holds without memory
    co_return co_await offload([&text] { return text[0] - '0'; });
}

}  // namespace

TEST_CASE("each allocation of a handler that awaits several things is refused in turn: 500, and all that runs is waited for") {
    constexpr int kMostRounds = 100;
    int rounds = 0;
    for (bool refused = true; refused && rounds < kMostRounds; ++rounds) {
        CAPTURE(rounds);
        Router router;
        router.get("/", [rounds](Request&, Response& response) -> Task<void> {
            g_refuse_in = rounds + 1;
            const auto [first, second, nothing, end] =
                co_await when_all(offload_with_local(1), offload([] { return 2; }), sleep_ms(5), EndOfRefusals());
            response.send(std::to_string(first + second));
        });
        Engine engine(router);
        sim::Peer peer = engine.world.connect(kPort);
        peer.send(get("/"));
        engine.server.settle();
        g_refuse_in = 0;
        engine.server.advance(5);
        while (engine.server.offload.run_one()) {
        }
        engine.server.settle();
        const std::string answer = peer.take_received();
        refused = status_of(answer) == 500;
        CHECK((refused || body_of(answer) == "3"));
        CHECK(engine.server.log.lines.size() == (refused ? 1 : 0));
        peer.close();
        engine.server.settle();
        engine.server.check_nothing_left();
    }
    CHECK(rounds < kMostRounds);
    CHECK(rounds > 8 * PENSTOCK_COUNT_ALLOCATIONS);  // frames, a string, jobs, messages
}

TEST_CASE("each allocation on the way of a file from a cold disk is refused in turn: it is answered, and nobody after it waits for ever") {
    constexpr int kMostRounds = 100;
    int rounds = 0;
    for (bool refused = true; refused && rounds < kMostRounds; ++rounds) {
        CAPTURE(rounds);
        bool armed = true;
        Engine engine([&](sim::World& world) {
            world.add_file("/www/known", "known");
            world.add_file("/www/a-name-too-long-for-a-string-without-memory.bin", kCachedFileLimitBytes + 1,
                           [](std::uint64_t, std::span<char> bytes) { std::fill(bytes.begin(), bytes.end(), 'x'); });
            const auto files = static_files("/www");
            REQUIRE(files.ok());
            Router router;
            router.get("/*path", [&armed, rounds, serve = files.value()](Request& request, Response& response) {
                if (std::exchange(armed, false)) {
                    g_refuse_in = rounds + 1;
                }
                serve(request, response);
            });
            return router;
        });
        armed = false;
        REQUIRE(status_of(engine.ask(get("/known"))) == 200);  // the cache is made
        engine.world.chill_file("/www/a-name-too-long-for-a-string-without-memory.bin");
        sim::Peer first = engine.world.connect(kPort);
        engine.server.settle();
        armed = true;
        const std::string request = get("/a-name-too-long-for-a-string-without-memory.bin");
        first.send(request);
        engine.server.settle_offloads();
        refused = g_refuse_in == 0 && PENSTOCK_COUNT_ALLOCATIONS != 0;
        g_refuse_in = 0;
        const int status = status_of(first.take_received());
        CHECK((status == 200 || status == 500 || status == 503));
        first.send(request);
        engine.server.settle_offloads();
        CHECK(status_of(first.take_received()) == 200);
        engine.world.chill_file("/www/a-name-too-long-for-a-string-without-memory.bin");
        first.send(request);
        engine.server.settle_offloads();
        CHECK(status_of(first.take_received()) == 200);
        first.close();
        engine.server.advance(small_config().idle_timeout_ms);
        engine.server.check_nothing_left();
    }
    CHECK(rounds < kMostRounds);
    CHECK(rounds > 8 * PENSTOCK_COUNT_ALLOCATIONS);
}

TEST_CASE("each allocation of a response that is compressed is refused in turn: it is whole or not sent, and its body is let go") {
    constexpr int kMostRounds = 100;
    static const std::string body(100'000, 'x');
    static int held = 0;
    const auto let_go = [](void*) { --held; };
    for (const std::size_t size : {std::size_t{20'000}, body.size()}) {
        int rounds = 0;
        for (bool refused = true; refused && rounds < kMostRounds; ++rounds) {
            CAPTURE(size);
            CAPTURE(rounds);
            Router router;
            router.use(compress().value());
            router.get("/", [&](Request&, Response& response) {
                response.header("Vary", "A-Field-Of-Some-Length").header("ETag", "\"a tag of some length\"");
                ++held;
                g_refuse_in = rounds + 1;
                response.send_kept(std::string_view(body).substr(0, size), nullptr, let_go);
            });
            Engine engine(router);
            sim::Peer peer = engine.world.connect(kPort);
            peer.send(get("/", "Accept-Encoding: gzip\r\n"));
            engine.server.settle();
            refused = g_refuse_in == 0 && PENSTOCK_COUNT_ALLOCATIONS != 0;
            g_refuse_in = 0;
            const std::string answer = peer.take_received();
            CHECK((answer.empty() || status_of(answer) == 200 || status_of(answer) == 500));
            CHECK(held == 0);
            held = 0;
            peer.close();
            engine.server.settle();
            engine.server.check_nothing_left();
            CHECK(engine.server.reactor().encoder_memory_bytes() == 0);
        }
        CHECK(rounds < kMostRounds);
        CHECK(rounds > 2 * PENSTOCK_COUNT_ALLOCATIONS);
    }
}

}  // namespace penstock::test

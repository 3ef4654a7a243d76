// Each limit, reached: what the client sees, what it costs, and that others go on.
#include "engine_fixture.h"
#include "penstock/platform/file.h"

namespace penstock::test {
namespace {

Router limits_router() {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    router.get("/large", [](Request&, Response& response) { response.send(std::string(100'000, 'x')); });
    router.post("/echo", [](Request& request, Response& response) { response.send(request.body()); });
    return router;
}

}  // namespace

TEST_CASE("no descriptors: accepting rests, is counted and goes on; open connections are served; nothing spins") {
    Engine engine(limits_router());
    sim::Peer open = engine.world.connect(kPort);
    REQUIRE(status_of(engine.exchange(open, get("/"))) == 200);
    engine.world.set_descriptor_limit(engine.world.open_descriptors());
    sim::Peer waiting = engine.world.connect(kPort);
    engine.server.settle();
    const ReactorCounters& counters = engine.server.reactor().counters();
    CHECK(counters.accept_errors.get() == 1);
    CHECK(engine.server.log.mention("ulimit -n"));

    CHECK(status_of(engine.exchange(open, get("/"))) == 200);
    const std::uint64_t accepts = engine.world.calls(sim::Call::accept);
    for (int i = 0; i < 49; ++i) {
        engine.server.advance(1);
    }
    CHECK(engine.world.calls(sim::Call::accept) == accepts);  // it rests
    engine.server.advance(1);
    CHECK(engine.world.calls(sim::Call::accept) == accepts + 1);  // and tries again
    CHECK(counters.accept_errors.get() == 2);

    engine.world.set_descriptor_limit(1'000);
    engine.server.advance(50);
    CHECK(status_of(engine.exchange(waiting, get("/"))) == 200);
}

TEST_CASE("above the connection limit a client is told 503 and when to come back") {
    Config config = small_config();
    config.connection_limit = 2;
    config.refusal_limit = 1;
    Engine engine(limits_router(), config);
    sim::Peer first = engine.world.connect(kPort);
    sim::Peer second = engine.world.connect(kPort);
    engine.exchange(first, get("/"));
    engine.exchange(second, get("/"));

    sim::Peer third = engine.world.connect(kPort);
    const std::string answer = engine.exchange(third, get("/"));
    CHECK(status_of(answer) == 503);
    CHECK(answer.find("Connection: close\r\n") != std::string::npos);
    CHECK(answer.find("Retry-After: ") != std::string::npos);
    CHECK_FALSE(third.reset_by_server());

    // The one refusal slot is taken while the third lingers: the fourth is closed without a word.
    sim::Peer fourth = engine.world.connect(kPort);
    CHECK(engine.exchange(fourth, get("/")).empty());
    CHECK(fourth.closed_by_server());
    CHECK(engine.server.reactor().counters().refused.get() == 2);
    CHECK(engine.server.reactor().counters().active.get() == 2);

    third.close();
    first.close();
    engine.server.settle();
    sim::Peer fifth = engine.world.connect(kPort);
    CHECK(status_of(engine.exchange(fifth, get("/"))) == 200);
}

TEST_CASE("a refused client that stays is let go after the linger timeout") {
    Config config = small_config();
    config.connection_limit = 1;
    Engine engine(limits_router(), config);
    sim::Peer first = engine.world.connect(kPort);
    sim::Peer refused = engine.world.connect(kPort);
    engine.server.settle();
    CHECK(status_of(refused.received()) == 503);
    CHECK_FALSE(refused.closed_by_server());
    engine.server.advance(config.linger_timeout_ms);
    CHECK(refused.closed_by_server());
}

TEST_CASE("a lingering connection reads on only up to its limit") {
    Config config = small_config();
    config.linger_limit_bytes = 50'000;
    Engine engine(limits_router(), config);
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(status_of(engine.exchange(peer, "GET\r\n\r\n")) == 400);
    CHECK(peer.finished_by_server());
    for (int i = 0; i < 10; ++i) {
        peer.send(std::string(10'000, 'z'));
        engine.server.settle();
    }
    CHECK(peer.closed_by_server());
    engine.server.check_nothing_left();
}

TEST_CASE("deadlines: idle, head, body and write") {
    const Config config = small_config();
    Engine engine(limits_router(), config);
    const ReactorCounters& counters = engine.server.reactor().counters();

    sim::Peer silent = engine.world.connect(kPort);
    sim::Peer idle = engine.world.connect(kPort);
    REQUIRE(status_of(engine.exchange(idle, get("/"))) == 200);
    sim::Peer slow_head = engine.world.connect(kPort);
    engine.exchange(slow_head, "GET / HTTP/1.1\r\nHo");
    sim::Peer slow_body = engine.world.connect(kPort);
    engine.exchange(slow_body, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nabc");
    sim::Peer slow_reader = engine.world.connect(kPort);
    slow_reader.set_receive_window(1'000);
    engine.exchange(slow_reader, get("/large"));

    engine.server.advance(config.head_timeout_ms - 1);
    CHECK(slow_head.received().empty());
    slow_head.send("s");  // a byte now and then does not help
    engine.server.advance(1);
    CHECK(status_of(slow_head.received()) == 408);
    CHECK(status_of(slow_body.received()) == 0);
    engine.server.advance(config.body_timeout_ms - config.head_timeout_ms);
    CHECK(status_of(slow_body.received()) == 408);
    CHECK(slow_reader.closed_by_server());
    CHECK_FALSE(idle.closed_by_server());
    engine.server.advance(config.idle_timeout_ms - config.body_timeout_ms);
    CHECK(idle.closed_by_server());
    CHECK(silent.closed_by_server());
    CHECK(idle.received().empty());
    CHECK(counters.timeouts.get() >= 5);
    engine.server.advance(10'000);
    engine.server.check_nothing_left();
}

TEST_CASE("500 heads of a byte every five seconds are ended in time, each of them, and others are served meanwhile") {
    constexpr std::size_t kSlow = 500;
    constexpr std::uint64_t kStepMs = 10;  // a byte of one client in each, so five seconds for all of them
    Config config;                         // what a server has by default
    config.reactors = 1;
    REQUIRE(config.head_timeout_ms == 2 * kSlow * kStepMs);
    Engine engine(limits_router(), config);
    sim::Peer honest = engine.world.connect(kPort);
    std::vector<sim::Peer> slow;
    std::size_t served = 0;
    std::size_t in_time = 0;
    for (std::size_t step = 0; step < 3 * kSlow; ++step) {
        const std::size_t round = step / kSlow;  // of one byte from each; the third comes too late
        if (round == 0) {
            slow.push_back(engine.world.connect(kPort));
        }
        if (round == 2) {
            in_time += status_of(slow[step % kSlow].received()) == 408 ? 1 : 0;
            CHECK((step + 1 == 3 * kSlow || slow[(step + 1) % kSlow].received().empty()));
        }
        slow[step % kSlow].send(get("/").substr(round, 1));
        engine.server.settle();
        served += status_of(engine.exchange(honest, get("/"))) == 200 ? 1 : 0;
        engine.server.advance(kStepMs);
    }
    CHECK(in_time == kSlow);
    CHECK(served == 3 * kSlow);
    CHECK(engine.server.reactor().counters().timeouts.get() >= kSlow);
    engine.server.advance(config.linger_timeout_ms);
    for (sim::Peer& peer : slow) {
        CHECK(peer.closed_by_server());
        CHECK_FALSE(peer.reset_by_server());
    }
    honest.close();
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("a gigabyte that its client never reads is not held, and the write timeout ends it") {
    constexpr std::uint64_t kGigabyte = 1'000'000'000;
    const Config config = small_config();
    std::uint64_t written = 0;
    bool ended = false;
    Router router = limits_router();
    router.get("/gigabyte", [&](Request&, Response& response) -> Task<void> {
        struct AtEnd {
            bool& ended;
            ~AtEnd() { ended = true; }
        };
        const AtEnd at_end{ended};
        const std::string piece(1'000'000, 'g');  // far above the mark
        while (written < kGigabyte) {
            co_await response.write(piece);
            written += piece.size();
        }
    });
    Engine engine(router, config);
    Reactor& reactor = engine.server.reactor();
    const auto held = [&reactor] {
        return reactor.blocks().leased() * kIoBlockBytes + reactor.pages().leased() * kPageBytes;
    };
    sim::Peer reader = engine.world.connect(kPort);
    reader.set_receive_window(1'000);
    engine.exchange(reader, get("/gigabyte"));
    // The mark counts bytes, and blocks are held: a page may stand above it, in blocks that are used in part at both
    // ends, and the request has a block and a page of its own.
    CHECK(held() <= config.output_high_water_bytes + 3 * kIoBlockBytes + 2 * kPageBytes);
    CHECK(held() > config.output_high_water_bytes);
    engine.server.advance(config.write_timeout_ms - 1);
    CHECK(status_of(engine.ask(get("/"))) == 200);
    CHECK(written < kGigabyte / 100);
    CHECK_FALSE(ended);
    CHECK_FALSE(reader.closed_by_server());
    engine.server.advance(1);
    CHECK(ended);
    CHECK(reader.closed_by_server());
    CHECK(reactor.blocks().leased() == 0);
    CHECK(reactor.pages().leased() == 0);
}

TEST_CASE("a reader that takes something now and then is not cut") {
    const Config config = small_config();
    Engine engine(limits_router(), config);
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(10'000);
    engine.exchange(peer, get("/large"));
    std::size_t total = 0;
    while (total < 100'000) {
        engine.server.advance(config.write_timeout_ms - 1);
        const std::size_t got = peer.read(10'000).size();
        REQUIRE(got > 0);
        total += got;
    }
    CHECK_FALSE(peer.closed_by_server());
}

TEST_CASE("slow heads cannot pin more than the budget: the oldest gives way") {
    Config config = small_config();
    config.connection_limit = 100;
    config.io_block_limit = 16;
    config.io_block_reserve = 8;
    Engine engine(limits_router(), config);
    std::vector<sim::Peer> slow;
    for (int i = 0; i < 40; ++i) {
        slow.push_back(engine.world.connect(kPort));
        slow.back().send("GET / HTTP/1.1\r\nHost: t\r\nX-Slow: ");
        engine.server.settle();
        CHECK(engine.server.reactor().blocks().leased() <= config.io_block_limit);
    }
    CHECK(status_of(slow[0].received()) == 503);
    CHECK(status_of(slow[39].received()) == 0);
    CHECK(engine.server.reactor().counters().input_starved.get() > 0);
    sim::Peer honest = engine.world.connect(kPort);
    CHECK(status_of(engine.exchange(honest, get("/"))) == 200);
    // The youngest can still finish.
    CHECK(status_of(engine.exchange(slow[39], "done\r\n\r\n")) == 200);
}

TEST_CASE("a connection that waits for an input block still sends") {
    Config config = small_config();
    config.io_block_limit = 16;
    config.io_block_reserve = 12;  // 4 for input
    Router router;
    router.get("/file", [](Request&, Response& response) {
        const auto root = platform::open_directory("/files");
        REQUIRE(root.ok());
        const IoResult file = platform::open_beneath(root.value(), "big");
        platform::close_descriptor(root.value());
        response.send_file(static_cast<int>(file.count), 0, 20'000'000);
    });
    Engine engine(router, config);
    engine.world.add_file("/files/big", 20'000'000, [](std::uint64_t, std::span<char> bytes) {
        std::fill(bytes.begin(), bytes.end(), 'f');
    });
    std::vector<sim::Peer> holders;
    sim::Peer reader = engine.world.connect(kPort);
    reader.discard_received();
    reader.send(get("/file"));
    engine.server.reactor().run_turn(0);
    engine.server.reactor().run_turn(0);
    reader.send(get("/file").substr(0, 10));  // it wants a block again while its file leaves
    for (int i = 0; i < 6; ++i) {
        holders.push_back(engine.world.connect(kPort));
        holders.back().send("GET / HTTP/1.1\r\nX: ");
    }
    engine.server.settle();
    CHECK(reader.received_count() > 20'000'000);
}

TEST_CASE("bodies in memory stay within their budget") {
    Config config = small_config();
    config.body_limit_bytes = 200'000;
    config.body_memory_limit_bytes = 500'000;
    Engine engine(limits_router(), config);
    std::vector<sim::Peer> peers;
    for (int i = 0; i < 10; ++i) {
        peers.push_back(engine.world.connect(kPort));
        peers.back().send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n\r\n" + std::string(150'000, 'b'));
        engine.server.settle();
    }
    int refused = 0;
    for (sim::Peer& peer : peers) {
        refused += status_of(peer.received()) == 503 ? 1 : 0;
    }
    CHECK(refused >= 7);
    CHECK(refused < 10);
    // The last to come is among those that may go on.
    CHECK(status_of(engine.exchange(peers.back(), std::string(50'000, 'b'))) == 200);
}

TEST_CASE("one block of pipelined requests for large answers grows nothing") {
    const Config config = small_config();
    Engine engine(limits_router(), config);
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(20'000);
    std::string batch;
    const int count = 300;
    for (int i = 0; i < count; ++i) {
        batch += get("/large");
    }
    peer.send(batch);
    std::uint64_t total = 0;
    std::uint32_t most = 0;
    for (int i = 0; i < 100'000 && total < count * 100'000ull; ++i) {
        engine.server.settle();
        most = std::max(most, engine.server.reactor().blocks().leased());
        total += peer.read(20'000).size();
        (void)peer.take_received();
    }
    CHECK(total >= count * 100'000ull);
    CHECK(most <= 14);  // input, the high-water mark, and one answer above it
}

TEST_CASE("pipelined requests beyond the high-water mark go on when the kernel takes the output at once") {
    Engine engine(limits_router());
    for (const int count : {1, 2, 20, 300}) {
        CAPTURE(count);
        std::string batch;
        for (int i = 0; i < count; ++i) {
            batch += get(i % 2 == 0 ? "/large" : "/");
        }
        sim::Peer peer = engine.world.connect(kPort);
        CHECK(count_of(engine.exchange(peer, batch), "HTTP/1.1 200 OK") == static_cast<std::size_t>(count));
    }
}

TEST_CASE("the largest head with the largest body that is copied behind a head") {
    Router router;
    router.get("/:fields/:body", [](Request& request, Response& response) {
        const auto number = [&](const char* name) { return std::stoul(std::string(request.parameter(name))); };
        for (std::size_t left = number("fields"); left > 0;) {
            const std::size_t size = std::min<std::size_t>(left, 1'000);
            response.add_header("X", std::string(size - std::min<std::size_t>(size - 1, 5), 'v'));
            left -= size;
        }
        response.send(std::string(number("body"), 'b'));
    });
    Engine engine(router);
    for (const char* path : {"/12288/4096", "/12000/4096", "/12288/0", "/12288/4097", "/12289/5"}) {
        CAPTURE(std::string(path));
        const std::string answer = engine.ask(get(path));
        const bool fits = std::string_view(path).substr(0, 6) != "/12289";
        CHECK(status_of(answer) == (fits ? 200 : 500));
        if (fits) {
            CHECK(std::to_string(body_of(answer).size()) == std::string_view(path).substr(7));
        }
    }
}

TEST_CASE("a burst of connections gives its slots back") {
    Config config = small_config();
    config.connection_limit = 4'000;
    Engine engine(limits_router(), config);
    const std::size_t before = engine.server.reactor().connections().memory_bytes();
    std::vector<sim::Peer> peers;
    for (int i = 0; i < 3'000; ++i) {
        peers.push_back(engine.world.connect(kPort));
        if (i % 64 == 0) {
            engine.server.settle();
        }
    }
    engine.server.settle();
    CHECK(engine.server.reactor().connections().in_use() == 3'000);
    CHECK(engine.server.reactor().connections().memory_bytes() >= 3'000 * sizeof(Connection));
    for (sim::Peer& peer : peers) {
        peer.close();
    }
    engine.server.settle();
    engine.server.check_nothing_left();
    CHECK(engine.server.reactor().connections().memory_bytes() <=
          before + (kFreeSlabLimit + 1) * kSlotsPerSlab * sizeof(Connection) + 4'096);
}

TEST_CASE("a connection that keeps sending does not keep others from being served") {
    Engine engine(limits_router());
    sim::Peer greedy = engine.world.connect(kPort);
    sim::Peer modest = engine.world.connect(kPort);
    engine.exchange(modest, get("/"));
    engine.exchange(greedy, get("/"));
    std::string flood;
    for (int i = 0; i < 5'000; ++i) {
        flood += get("/");
    }
    greedy.send(flood);
    modest.send(get("/"));
    int turns = 0;
    while (modest.received().empty() && turns < 100) {
        engine.server.reactor().run_turn(0);
        ++turns;
    }
    CHECK(turns <= 2);
    engine.server.settle();
    CHECK(count_of(greedy.received(), "HTTP/1.1 200 OK") == 5'000);
}

}  // namespace penstock::test

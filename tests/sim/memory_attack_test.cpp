// Who gives way when blocks, pages or memory for bodies are spent: only who has what is missing, no more of them than it
// takes, and those who were stuck for longest first.
#include <vector>

#include "stream_fixture.h"

namespace penstock::test {
namespace {

Router memory_router() {
    Router router;
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    // Copied, so that it holds blocks.
    router.get("/big/:size", [](Request& request, Response& response) {
        response.send(std::string_view(pattern(std::stoul(std::string(request.parameter("size"))))));
    });
    router.post("/begun", [](Request& request, Response& response) -> Task<void> {
        co_await response.write("<");
        (void)co_await request.read_all();
        co_await response.write(">");
    });
    router.post("/size", [](Request& request, Response& response) {
        response.send(std::to_string(request.body().size()));
    });
    return router;
}

struct MemoryEngine : Engine {
    explicit MemoryEngine(const Config& config, const Router& router = memory_router()) : Engine(router, config) {}

    // Each with a request of its own of which more is to come.
    void add_arrivals(int count, std::string_view bytes) {
        for (int i = 0; i < count; ++i) {
            arrivals.push_back(world.connect(kPort));
            exchange(arrivals.back(), bytes);
        }
    }
    [[nodiscard]] int ended_arrivals() {
        int ended = 0;
        for (sim::Peer& peer : arrivals) {
            ended += peer.closed_by_server() || peer.finished_by_server() ? 1 : 0;
        }
        return ended;
    }
    [[nodiscard]] std::uint64_t evicted() { return server.reactor().counters().evicted.get(); }

    std::vector<sim::Peer> arrivals;
};

}  // namespace

TEST_CASE("when blocks are spent, who has only just begun to read slowly stays; the oldest request gives way") {
    for (const bool slow_one_arrives_too : {false, true}) {
        CAPTURE(slow_one_arrives_too);
        Config config = small_config();
        config.io_block_limit = 10;
        config.io_block_reserve = 6;
        config.free_block_limit = 0;
        MemoryEngine engine(config);
        engine.add_arrivals(2, "GET /ok HTTP/1.1\r\n");
        sim::Peer slow = engine.world.connect(kPort);
        slow.set_receive_window(5'000);
        engine.exchange(slow, get("/big/20000"));
        if (slow_one_arrives_too) {
            engine.exchange(slow, "GET /ok HTTP/1.1\r\n");
        }
        for (int i = 0; i < 4 && engine.evicted() == 0; ++i) {
            engine.add_arrivals(1, "GET /ok HTTP/1.1\r\n");
        }
        CHECK(engine.evicted() == 1);
        CHECK_FALSE(slow.closed_by_server());
        CHECK(status_of(engine.arrivals.front().received()) == 503);
    }
}

TEST_CASE("when blocks are spent an answer finds some, in one piece or in many") {
    for (const bool in_pieces : {false, true}) {
        CAPTURE(in_pieces);
        DeferredResponse later;
        Router router = memory_router();
        router.get("/later", [&later](Request&, Response& response) { later = response.defer(); });
        Config config = small_config();
        config.io_block_limit = 14;
        config.io_block_reserve = 8;
        config.free_block_limit = 0;
        MemoryEngine engine(config, router);
        sim::Peer peer = engine.world.connect(kPort);
        engine.exchange(peer, get("/later"));
        std::vector<sim::Peer> stuck;
        while (stuck.size() < 2) {
            stuck.push_back(engine.world.connect(kPort));
            stuck.back().set_receive_window(100);
            engine.exchange(stuck.back(), get("/big/40000"));
        }
        BlockPool& blocks = engine.server.reactor().blocks();
        std::vector<std::byte*> taken;
        while (std::byte* const block = blocks.try_acquire()) {
            taken.push_back(block);
        }
        REQUIRE(later.post([in_pieces](Response& response) {
            if (in_pieces) {
                response.write("ok", nullptr);
                response.end();
            } else {
                response.send("ok");
            }
        }));
        engine.server.settle();
        const std::string answer = peer.take_received();
        CHECK((in_pieces ? dechunk(answer) : std::string(body_of(answer))) == "ok");
        CHECK(engine.evicted() == 1);
        CHECK(engine.server.reactor().counters().output_refused.get() == 0);
        for (std::byte* const block : taken) {
            blocks.release(block);
        }
    }
}

TEST_CASE("when pages are spent, one request that arrives gives way to a new one, although its response has begun") {
    Config config = small_config();
    config.page_limit = 4;
    config.free_block_limit = 0;
    MemoryEngine engine(config);
    engine.add_arrivals(4, post("/begun", length_field(100), "a"));
    REQUIRE(engine.server.reactor().pages().leased() == 4);
    CHECK(body_of(engine.ask(get("/ok"))) == "ok");
    CHECK(engine.ended_arrivals() == 1);
    CHECK(engine.server.reactor().counters().output_refused.get() == 0);
}

TEST_CASE("when memory for bodies is spent, no more requests give way than it takes, and who wanted it is served") {
    Config config = small_config();
    config.body_memory_limit_bytes = 200'000;
    config.body_limit_bytes = 1'000'000;
    MemoryEngine engine(config);
    engine.add_arrivals(5, post("/begun", length_field(60'000), pattern(30'000)));
    CHECK(body_of(engine.ask(post("/size", length_field(50'000), pattern(50'000)))) == "50000");
    CHECK(engine.ended_arrivals() >= 1);
    CHECK(engine.ended_arrivals() <= 2);
}

}  // namespace penstock::test

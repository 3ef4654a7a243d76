// Files that slow clients are being sent: what they hold of the blocks, and who gives way when that is all of them.
#include <string>
#include <vector>

#include "engine_fixture.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock::test {
namespace {

Router files_router(sim::World& world) {
    world.add_file("/site/big", std::string(1'000'000, 'b'));  // above kCachedFileLimitBytes: sent from its descriptor
    const auto files = static_files("/site");
    REQUIRE(files.ok());
    Router router;
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    router.get("/f/*path", files.value());
    return router;
}

// Eight for input, and twelve more for output.
Config few_blocks() {
    Config config = small_config();
    config.io_block_limit = 20;
    config.io_block_reserve = 12;
    config.free_block_limit = 0;
    return config;
}

std::vector<sim::Peer> ask_and_read_nothing(Engine& engine, int count, const std::string& requests) {
    std::vector<sim::Peer> peers;
    for (int i = 0; i < count; ++i) {
        peers.push_back(engine.world.connect(kPort));
        peers.back().set_receive_window(5'000);  // more than the head, so that only the file is left
        peers.back().send(requests);
        engine.server.settle_offloads();
    }
    return peers;
}

}  // namespace

TEST_CASE("a file that is being sent holds no block, so that any number of slow downloads keeps nobody out") {
    Engine engine(files_router, few_blocks());
    std::vector<sim::Peer> slow = ask_and_read_nothing(engine, 10, get("/f/big"));
    CHECK(engine.server.reactor().blocks().leased() == 0);
    sim::Peer peer = engine.world.connect(kPort);
    std::string answer = engine.exchange(peer, get("/ok"));
    for (int second = 0; second < 4; ++second) {
        for (sim::Peer& each : slow) {
            CHECK(each.read(5'000).size() == 5'000);  // an honest client: above write_rate_min_bytes_per_s
        }
        engine.server.advance(1'000);
    }
    answer += peer.take_received();
    CHECK(status_of(answer) == 200);
    CHECK(engine.server.reactor().counters().input_starved.get() == 0);
}

TEST_CASE("when blocks are held behind files that nobody takes, one of those clients gives way to a new one") {
    Engine engine(files_router, few_blocks());
    const std::vector<sim::Peer> stuck = ask_and_read_nothing(engine, 8, get("/f/big") + get("/ok"));
    engine.server.advance(kStuckOutputMs + 1);
    sim::Peer peer = engine.world.connect(kPort);
    std::string answer = engine.exchange(peer, get("/ok"));
    engine.server.advance(kStarvedTimeoutMs + 1);
    answer += peer.take_received();
    CHECK(status_of(answer) == 200);
    CHECK(engine.server.reactor().counters().evicted.get() == 1);
}

}  // namespace penstock::test

// A disk that has to be waited for: whoever asks for what lies on it waits, and nobody else.
#include <memory>
#include <string>
#include <vector>

#include "engine_fixture.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock::test {

namespace {

// Job by job the test decides when the disk answers: until `answer_once` it stalls.
struct Site {
    sim::World world;
    std::unique_ptr<ReactorUnderTest> server;
    std::uint64_t waits_on_pool = 0;

    explicit Site(const StaticFileOptions& options = {}, Config config = small_config()) {
        for (const char* const name : {"index.html", "warm", "cold", "cold2", "sub/index.html"}) {
            world.add_file("/www/" + std::string(name), name);
        }
        const Result<PlainHandler> handler = static_files("/www", options);
        REQUIRE_MESSAGE(handler.ok(), handler.error().message);
        Router router;
        router.get("/*path", handler.value());
        server = std::make_unique<ReactorUnderTest>(world, router, std::move(config));
        REQUIRE(server->start());
        settle();
        world.chill_file("/www/cold");
        world.chill_file("/www/cold2");
    }

    // Whatever the reactor does itself takes no wait for the disk.
    void settle() {
        server->settle();
        REQUIRE(world.disk_waits() == waits_on_pool);
    }
    // False when nobody waits.
    bool answer_once() {
        const bool ran = server->offload.run_one();
        waits_on_pool = world.disk_waits();
        settle();
        return ran;
    }
    void answer_all() {
        while (answer_once()) {
        }
    }
    sim::Peer ask(const std::string& path) {
        sim::Peer peer = world.connect(kPort);
        peer.send(get(path));
        settle();
        return peer;
    }
    std::string body_of_warm() {
        sim::Peer peer = ask("/warm");
        const std::string bytes = peer.take_received();
        peer.close();
        settle();
        return std::string(body_of(bytes));
    }
    void end(sim::Peer& peer) {
        peer.close();
        settle();
    }
};

}  // namespace

TEST_CASE("while the disk stalls others are served, and the answer comes when it does") {
    for (const std::uint32_t entries : {0u, 100u}) {
        CAPTURE(entries);
        Site site({.cache = {.entries = entries}});
        sim::Peer cold = site.ask("/cold");
        CHECK(cold.received().empty());
        for (int i = 0; i < 100; ++i) {
            CHECK(site.body_of_warm() == "warm");
        }
        CHECK(cold.received().empty());
        REQUIRE(site.answer_once());
        const Reply reply = replies_in(cold.take_received()).front();
        CHECK(reply.status == 200);
        CHECK(reply.body == "cold");
        cold.send(get("/warm") + get("/cold"));
        site.settle();
        CHECK(statuses_in(cold.take_received()) == "200 200");  // it is in memory now
        site.end(cold);
        site.server->check_nothing_left();
    }
}

TEST_CASE("requests behind one that waits for the disk are answered in their order") {
    Site site;
    sim::Peer peer = site.world.connect(kPort);
    peer.send(get("/warm") + get("/cold") + get("/warm") + get("/cold2") + get("/none"));
    site.settle();
    CHECK(statuses_in(peer.received()) == "200");
    site.answer_all();
    std::string bodies;
    for (const Reply& reply : replies_in(peer.take_received())) {
        bodies += reply.body + " ";
    }
    CHECK(bodies == "warm cold warm cold2 Not Found ");
    site.end(peer);
}

TEST_CASE("many who want the same file wait for one look at it, and few files are looked at at once") {
    Config config = small_config();
    config.connection_limit = 200;
    config.io_block_limit = 512;  // who waits holds the block of the request
    Site site({}, config);
    std::vector<sim::Peer> peers;
    for (int i = 0; i < 50; ++i) {
        peers.push_back(site.ask("/cold"));
    }
    CHECK(site.server->offload.queued() == 1);
    for (int i = 0; i < 100; ++i) {
        const std::string name = "cold/file" + std::to_string(i);
        site.world.add_file("/www/many" + name, name);
        site.world.chill_file("/www/many" + name);
        peers.push_back(site.ask("/many" + name));
    }
    CHECK(site.server->offload.queued() == 16);  // what the pool of this test takes; the others queue for it
    site.answer_all();
    for (sim::Peer& peer : peers) {
        CHECK(status_of(peer.take_received()) == 200);
        site.end(peer);
    }
    site.server->check_nothing_left();
}

TEST_CASE("when other work fills the pool, who needs the disk is told, and goes on when there is room") {
    Config config = small_config();
    config.offload_limit = 1;
    Site site({}, config);
    bool replied = false;
    REQUIRE(site.server->reactor().try_offload(Message([] {}), Message([&replied] { replied = true; })));
    sim::Peer peer = site.ask("/cold");
    CHECK(status_of(peer.take_received()) == 503);
    CHECK(site.answer_once());
    CHECK(replied);
    peer.send(get("/cold"));
    site.settle();
    site.answer_all();
    CHECK(status_of(peer.take_received()) == 200);
    site.end(peer);
}

TEST_CASE("a client that leaves while the disk stalls leaves nothing behind") {
    Site site;
    sim::Peer leaves = site.ask("/cold");
    sim::Peer stays = site.ask("/cold");
    leaves.reset();
    site.settle();
    site.answer_all();
    CHECK(status_of(stays.take_received()) == 200);
    site.end(stays);
    site.server->check_nothing_left();

    // Others who come and go meanwhile do not pile up.
    site.world.chill_file("/www/cold2");
    std::size_t refused = 0;
    for (int i = 0; i < 1'000; ++i) {
        sim::Peer peer = site.ask("/cold2");
        refused += status_of(peer.take_received()) == 503 ? 1 : 0;
        peer.reset();
        site.settle();
    }
    CHECK(refused == 1'000 - small_config().connection_limit);
    site.answer_all();
    CHECK(site.body_of_warm() == "warm");
    site.server->check_nothing_left();
}

TEST_CASE("the server may end while the disk stalls") {
    Site site;
    sim::Peer cold = site.ask("/cold");
    site.server->destroy();
    CHECK(cold.closed_by_server());
    CHECK(site.world.bad_descriptor_calls() == 0);
}

TEST_CASE("all that a request needs is waited for, one after the other") {
    for (const std::uint32_t entries : {0u, 100u}) {
        CAPTURE(entries);
        Site site({.index_files = {"index.htm", "index.html"}, .not_found_page = "warm", .precompressed = true,
                   .cache = {.entries = entries}});
        site.world.add_file("/www/sub/index.html.gz", "zipped");
        site.world.add_file("/www/sub/index.html.br", "old");
        site.world.set_modified_ns("/www/sub/index.html.br", 0);
        for (const char* const name : {"index.html", "index.html.gz", "index.html.br"}) {
            site.world.chill_file("/www/sub/" + std::string(name));
        }
        site.world.chill_file("/www/warm");
        sim::Peer peer = site.world.connect(kPort);
        peer.send(get("/sub/", "Accept-Encoding: gzip, br;q=0.9, zstd\r\n") + get("/none"));
        site.settle();
        int answers = 0;
        while (peer.received().empty()) {
            REQUIRE(site.answer_once());
            ++answers;
        }
        CHECK(answers == 2);  // gzip comes first for this client, so nobody asks for the old file
        site.answer_all();
        const std::vector<Reply> replies = replies_in(peer.take_received());
        REQUIRE(replies.size() == 2);
        CHECK(replies[0].body == "zipped");
        CHECK(replies[0].field("Content-Encoding") == "gzip");
        CHECK(replies[1].status == 404);
        CHECK(replies[1].body == "warm");
        site.end(peer);
        site.server->check_nothing_left();
    }
}

TEST_CASE("a large file on a cold disk is fetched piece by piece, and others have their turns meanwhile") {
    constexpr std::uint64_t kSize = 5 * kFileWarmBytes + 12'345;
    Site site;
    site.world.add_file("/www/huge", kSize, [](std::uint64_t offset, std::span<char> bytes) {
        for (char& byte : bytes) {
            byte = static_cast<char>(offset++ % 251);
        }
    });
    site.world.chill_file("/www/huge");
    sim::Peer peer = site.ask("/huge");
    CHECK(peer.received().empty());
    int answers = 0;
    while (site.answer_once()) {
        ++answers;
        CHECK(site.body_of_warm() == "warm");
    }
    CHECK(answers == 7);  // the look at it, and six pieces
    const std::string bytes = peer.take_received();
    const std::string_view body = body_of(bytes);
    REQUIRE(body.size() == kSize);
    for (std::size_t i = 0; i < body.size(); ++i) {
        REQUIRE(static_cast<unsigned char>(body[i]) == i % 251);
    }
    peer.send(get("/huge"));
    site.settle();
    CHECK(body_of(peer.take_received()).size() == kSize);  // in memory now
    site.end(peer);
    site.server->check_nothing_left();
}

TEST_CASE("many readers of cold files share what may be fetched at once, and those who leave are forgotten") {
    Config config = small_config();
    config.connection_limit = 100;
    Site site({}, config);
    std::vector<sim::Peer> peers;
    for (int i = 0; i < 60; ++i) {
        const std::string path = "/www/huge" + std::to_string(i);
        site.world.add_file(path, kFileWarmBytes, [](std::uint64_t, std::span<char> bytes) {
            std::fill(bytes.begin(), bytes.end(), 'h');
        });
        peers.push_back(site.world.connect(kPort));
        site.settle();
        peers.back().send(get(path.substr(4), "Range: bytes=0-99\r\n"));
        site.settle();
        CHECK(status_of(peers.back().take_received()) == 206);
        site.world.chill_file(path);
    }
    for (std::size_t i = 0; i < peers.size(); ++i) {
        peers[i].send(get("/huge" + std::to_string(i)));
        site.settle();
    }
    peers.back().reset();
    site.settle();
    CHECK(site.body_of_warm() == "warm");
    site.answer_all();
    for (std::size_t i = 0; i + 1 < peers.size(); ++i) {
        CHECK(body_of(peers[i].take_received()).size() == kFileWarmBytes);
        site.end(peers[i]);
    }
    site.server->check_nothing_left();
}

TEST_CASE("without a pool the reactor waits itself") {
    Config config = small_config();
    config.offload_limit = 0;
    Site site({.directory_listing = true}, config);
    site.world.add_file("/www/list/a", "a");
    sim::Peer peer = site.world.connect(kPort);
    peer.send(get("/cold") + get("/list/"));
    site.server->settle();
    CHECK(statuses_in(peer.take_received()) == "200 200");
    peer.close();
    site.server->settle();
}

}  // namespace penstock::test

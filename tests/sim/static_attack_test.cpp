// Static files against those who do not wait for their answers, disks that stall, and files that change meanwhile.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cached_site.h"

namespace penstock::test {

namespace {

using Site = CachedSite;

}  // namespace

TEST_CASE("a coded file that is asked for by its own name does not change what it is in place of another") {
    for (const bool coded_first : {false, true}) {
        CAPTURE(coded_first);
        Site site({.cache_control = {{"*.css", "max-age=60"}}, .precompressed = true});
        site.add("a.css", "a { color: red }");
        site.add("a.css.gz", "zipped");
        std::string own_type;
        for (int round = 0; round < 4; ++round) {
            if ((round % 2 == 0) == coded_first) {
                const Reply own = site.get("a.css.gz");
                CHECK(own.body == "zipped");
                CHECK(own.field("Content-Type") != "text/css; charset=utf-8");
                CHECK_FALSE(own.has_field("Content-Encoding"));
                CHECK_FALSE(own.has_field("Cache-Control"));
            } else {
                const Reply coded = site.get("a.css", "Accept-Encoding: gzip\r\n");
                CHECK(coded.body == "zipped");
                CHECK(coded.field("Content-Encoding") == "gzip");
                CHECK(coded.field("Content-Type") == "text/css; charset=utf-8");
                CHECK(coded.field("Cache-Control") == "max-age=60");
            }
        }
    }
}

TEST_CASE("a page for what is missing is waited for, and the file comes meanwhile: it is sent as what it is") {
    Site site({.not_found_page = "index.html", .precompressed = true});
    CHECK(site.get("index.html").status == 200);
    site.add("index.html.gz", "zipped page");
    site.world.chill_file("/www/index.html.gz");
    sim::Peer peer = site.world.connect(kPort);
    peer.send(test::get("/late", "Accept-Encoding: gzip\r\n"));
    site.server->settle();
    REQUIRE(peer.received().empty());  // for the coded page
    site.add("late", "here it is");
    site.server->advance(kTimeToLiveMs);
    site.server->settle_offloads();
    const std::vector<Reply> replies = replies_in(peer.take_received());
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].status == (replies[0].body == "here it is" ? 200 : 404));
    CHECK(replies[0].has_field("ETag") == (replies[0].status == 200));
    peer.close();
    site.server->settle();
}

TEST_CASE("a look that was begun before another does not bring back what that found replaced") {
    Site site;
    site.add("b", "b one");
    site.world.chill_file("/www/b");
    sim::Peer first = site.world.connect(kPort);
    sim::Peer second = site.world.connect(kPort);
    first.send(test::get("/b"));
    site.server->settle();
    REQUIRE(site.server->offload.run_one());  // has read "b one"; the reactor does not know yet
    site.add("b", "b two");
    second.send(test::get("/b"));
    site.server->settle_offloads();
    CHECK(body_of(second.take_received()) == "b two");
    CHECK(status_of(first.take_received()) == 200);
    first.close();
    second.close();
    CHECK(site.get("b").body == "b two");
}

TEST_CASE("clients are let in although the files that are kept open have taken all descriptors") {
    Site site;
    for (int i = 0; i < 20; ++i) {
        const std::string name = "large" + std::to_string(i);
        site.add(name, std::string(kCachedFileLimitBytes + 1, 'l'));
        CHECK(site.get(name).status == 200);
    }
    site.world.set_descriptor_limit(site.world.open_descriptors());
    for (int i = 0; i < 5; ++i) {
        CHECK(site.get("a").status == 200);
    }
    CHECK(site.counters().accept_errors.get() == 0);
}

TEST_CASE("files that are kept open are given up when another one cannot be opened for want of descriptors") {
    constexpr int kLarge = 20;
    for (const bool cold : {false, true}) {
        CAPTURE(cold);
        Site site;
        const auto fill = [&site](const std::string& name) {
            site.add(name, std::string(kCachedFileLimitBytes + 1, 'l'));
            CHECK(site.get(name).status == 200);
        };
        for (int i = 0; i < kLarge; ++i) {
            fill("large" + std::to_string(i));
        }
        site.add("more", std::string(kCachedFileLimitBytes + 1, 'm'));
        if (cold) {
            site.world.chill_file("/www/more");
        }
        sim::Peer peer = site.world.connect(kPort);
        site.server->settle();
        site.world.set_descriptor_limit(site.world.open_descriptors());
        peer.send(test::get("/more"));
        site.server->settle_offloads();
        CHECK(status_of(peer.take_received()) == (cold ? 503 : 200));
        peer.send(test::get("/more"));
        site.server->settle_offloads();
        CHECK(status_of(peer.take_received()) == 200);
        CHECK(site.counters().file_cache_evictions.get() == kLarge);
        // What is looked at again is among them.
        site.world.set_descriptor_limit(site.world.open_descriptors() + 10);
        fill("other");
        site.server->advance(kTimeToLiveMs);
        site.world.set_descriptor_limit(site.world.open_descriptors());
        peer.send(test::get("/more") + test::get("/more"));
        site.server->settle_offloads();
        CHECK(statuses_in(peer.take_received()) == "200 200");
        peer.close();
        site.server->settle();
    }
}

namespace {

// What a client may do while its file is looked at, fetched or sent.
enum class Leave { reset, close, finish, stay };

void leave(sim::Peer& peer, Leave how) {
    switch (how) {
        case Leave::reset: peer.reset(); break;
        case Leave::close: peer.close(); break;
        case Leave::finish: peer.finish(); break;
        case Leave::stay: break;
    }
}

}  // namespace

TEST_CASE("a client may leave at every step while its files are looked at, fetched and sent, and another takes its place") {
    const std::string small(700, 's');
    const std::string large(kFileWarmBytes + 77, 'l');
    for (const Leave how : {Leave::reset, Leave::close, Leave::finish, Leave::stay}) {
        for (int step = 0; step < 30; ++step) {
            CAPTURE(static_cast<int>(how));
            CAPTURE(step);
            Config config = small_config();
            config.connection_limit = 2;  // the same slots again and again
            Site site({}, config);
            site.add("large", large);
            site.add("small", small);
            site.world.chill_file("/www/large");
            site.world.chill_file("/www/small");
            sim::Peer first = site.world.connect(kPort);
            first.set_receive_window(100'000);
            first.send(test::get("/a") + test::get("/small") + test::get("/large") + test::get("/small", "Connection: close\r\n"));
            std::string got;
            for (int i = 0; i < step; ++i) {
                if (i % 3 == 2) {
                    (void)site.server->offload.run_one();
                }
                if (i % 3 == 1) {
                    (void)first.read(90'000);
                }
                site.server->reactor().run_turn(0);
            }
            leave(first, how);
            site.server->reactor().run_turn(0);
            site.server->reactor().run_turn(0);
            sim::Peer second = site.world.connect(kPort);
            second.send(test::get("/large") + test::get("/small"));
            site.server->settle_offloads();
            const std::vector<Reply> replies = replies_in(second.take_received());
            REQUIRE(replies.size() == 2);
            CHECK((replies[0].body == large));
            CHECK(replies[1].body == small);
            if (how == Leave::finish || how == Leave::stay) {
                first.read_freely();
                site.server->settle_offloads();
                const std::vector<Reply> whole = replies_in(first.take_received());
                REQUIRE(whole.size() == 4);
                CHECK(whole[1].body == small);
                CHECK((whole[2].body == large));
                CHECK(whole[3].body == small);
            }
            first.close();
            second.close();
            site.server->advance(small_config().idle_timeout_ms);
        }
    }
}

TEST_CASE("each call that fails while files are looked at, fetched, kept and given up leaves nothing behind") {
    const std::string large(kCachedFileLimitBytes + 77, 'l');
    const std::uint64_t runs = sim::sweep([&large](sim::World& world) {
        const auto add = [&world](const std::string& name, const std::string& content) {
            world.add_file("/www/" + name, content);
            world.set_modified_ns("/www/" + name, (sim::World::kStartWallSeconds - 1'000) * 1'000'000'000);
        };
        add("a", "a one");
        add("b", "b one");
        add("index.html", "index");
        add("index.html.gz", "zipped");
        add("large", large);
        add("large2", large);
        const Result<PlainHandler> handler =
            static_files("/www", {.directory_listing = true, .not_found_page = "index.html", .precompressed = true,
                                  .cache = {.entries = 2, .descriptors = 1, .time_to_live_ms = 10}});
        if (handler.ok()) {
            Router router;
            router.get("/*path", handler.value());
            ReactorUnderTest server(world, router);
            if (server.start()) {
                sim::Peer peer = world.connect(kPort);
                peer.send(get("/a") + get("/b") + get("/none", "Accept-Encoding: gzip\r\n"));
                server.settle_offloads();
                for (const char* const name : {"a", "large", "index.html.gz"}) {
                    world.chill_file("/www/" + std::string(name));
                }
                sim::Peer slow = world.connect(kPort);
                slow.set_receive_window(10'000);
                slow.send(get("/large", "Range: bytes=0-3,9-60000\r\n") + get("/large"));
                peer.send(get("/large") + get("/large2") + get("/", "Accept-Encoding: gzip\r\n") + get("/a"));
                server.advance(20);
                server.settle_offloads();
                slow.read_freely();
                server.settle_offloads();
                for (sim::Peer& each : std::array<sim::Peer, 2>{peer, slow}) {
                    for (const Reply& reply : replies_in(each.take_received())) {
                        if (reply.status != 200 || reply.body.size() <= kCachedFileLimitBytes) {
                            continue;
                        }
                        CHECK_MESSAGE((reply.body == large), world.fault_report());
                    }
                }
            }
            world.pause_faults();
            for (int i = 0; i < 4; ++i) {
                server.settle_offloads();
                server.advance(100'000);
            }
            INFO(world.fault_report());
            server.check_nothing_left();
        }
        world.pause_faults();
        CHECK_MESSAGE(world.bad_descriptor_calls() == 0, world.fault_report());
    });
    CHECK(runs > 300);
}

TEST_CASE("a server that is told to end while files are looked at and fetched ends when the disk has answered, or is cut") {
    for (const bool cut : {false, true}) {
        for (int answered = 0; answered < 6; ++answered) {
            CAPTURE(cut);
            CAPTURE(answered);
            Site site;
            const std::string large(3 * kFileWarmBytes, 'l');
            site.add("large", large);
            site.world.chill_file("/www/large");
            site.world.chill_file("/www/a");
            sim::Peer first = site.world.connect(kPort);
            sim::Peer second = site.world.connect(kPort);
            first.send(test::get("/large") + test::get("/a"));
            second.send(test::get("/a") + test::get("/a"));
            site.server->settle();
            for (int i = 0; i < answered; ++i) {
                (void)site.server->offload.run_one();
                site.server->settle();
            }
            site.server->reactor().request_stop(cut);
            site.server->settle();
            if (!cut) {
                site.server->settle_offloads();
                CHECK((replies_in(first.take_received()).front().body == large));
                CHECK(replies_in(second.take_received()).front().body == "a one");
            }
            site.server->advance(Config().drain_timeout_ms + Config().linger_timeout_ms);
            CHECK(first.closed_by_server());
            while (site.server->offload.run_one()) {
            }
            CHECK_FALSE(site.server->reactor().run_turn(0));
        }
    }
}

TEST_CASE("who has waited too long for the disk is told so, and the look that ends later finds nobody") {
    Config config = small_config();
    config.request_timeout_ms = 1'000;
    Site site({}, config);
    site.world.chill_file("/www/a");
    sim::Peer peer = site.world.connect(kPort);
    peer.send(test::get("/a") + test::get("/index.html"));
    site.server->settle();
    site.server->advance(1'000);
    CHECK(status_of(peer.take_received()) == 503);
    CHECK(peer.finished_by_server());
    sim::Peer other = site.world.connect(kPort);
    other.send(test::get("/a"));
    site.server->settle_offloads();
    CHECK(body_of(other.take_received()) == "a one");
    peer.close();
    other.close();
    site.server->settle();
}

TEST_CASE("what is written to while it is read is not kept, since it may be of two versions") {
    Site site;
    bool written = false;
    site.world.add_file("/www/b", 6, [&](std::uint64_t offset, std::span<char> bytes) {
        std::string_view(written ? "second" : "first+").substr(static_cast<std::size_t>(offset)).copy(bytes.data(), bytes.size());
        if (!std::exchange(written, true)) {
            site.world.set_modified_ns("/www/b", sim::World::kStartWallSeconds * 1'000'000'000);
        }
    });
    site.world.set_modified_ns("/www/b", (sim::World::kStartWallSeconds - 1'000) * 1'000'000'000);
    const Reply first = site.get("b");
    const Reply second = site.get("b");
    CHECK(first.body == "second");
    CHECK(second.body == "second");
    CHECK(first.field("ETag") == second.field("ETag"));
    CHECK(first.field("Last-Modified") == "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST_CASE("who waits for the disk is not idle") {
    Site site;
    const std::string large(3 * kFileWarmBytes, 'l');
    site.add("large", large);
    site.world.chill_file("/www/large");
    sim::Peer peer = site.world.connect(kPort);
    peer.send(test::get("/large"));
    site.server->settle();
    while (site.server->offload.queued() > 0) {
        for (int i = 0; i < 3; ++i) {
            site.server->advance(small_config().idle_timeout_ms);
        }
        CHECK_FALSE(peer.closed_by_server());
        (void)site.server->offload.run_one();
        site.server->settle();
    }
    CHECK((body_of(peer.take_received()) == large));
    CHECK(site.counters().timeouts.get() == 0);
    site.server->advance(small_config().idle_timeout_ms);
    CHECK(peer.closed_by_server());
}

TEST_CASE("what is to be known from the start is looked at on the pool where nobody can tell that it takes no wait") {
    Site site({.prewarm = {"a"}});
    site.world.chill_file("/www/a");
    CHECK(site.get("index.html").status == 200);
    site.world.reset_calls();
    CHECK(site.get("a").body == "a one");
    CHECK(site.world.calls(sim::Call::open_file) == 0);
}

TEST_CASE("what is known may be asked for just before and after the reactor's clock begins anew") {
    Site site;
    constexpr std::uint64_t kWrap = std::uint64_t{1} << 32;
    site.server->advance(kWrap - 100 - (site.world.now_ms() - sim::World::kStartMs));
    CHECK(site.get("a").body == "a one");
    site.add("a", "a two");
    site.server->advance(200);
    CHECK(site.get("a").body == "a one");
    site.server->advance(kTimeToLiveMs - 200);
    CHECK(site.get("a").body == "a two");
}

}  // namespace penstock::test

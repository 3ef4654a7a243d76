// Internal.
// What the tests of served files and their cache share: "/www", whose files are old enough to be settled, served by one reactor.
// Leaves nothing leased and nothing open. Owned by one test; its thread alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine_fixture.h"
#include "penstock/engine/config.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock::test {

inline constexpr std::uint32_t kTimeToLiveMs = 500;

struct CachedSite {
    sim::World world;
    std::unique_ptr<ReactorUnderTest> server;

    explicit CachedSite(StaticFileOptions options = {}, Config config = small_config()) {
        for (const char* const name : {"a", "b", "c", "d"}) {
            add(name, std::string(name) + " one");
        }
        add("index.html", "index");
        add("large", std::string(kCachedFileLimitBytes + 1, 'l'));
        options.cache.time_to_live_ms = kTimeToLiveMs;
        const Result<PlainHandler> handler = static_files("/www", std::move(options));
        REQUIRE_MESSAGE(handler.ok(), handler.error().message);
        Router router;
        router.get("/*path", handler.value());
        server = std::make_unique<ReactorUnderTest>(world, router, std::move(config));
        REQUIRE(server->start());
        server->settle();
        world.reset_calls();
    }
    ~CachedSite() {
        server->check_nothing_left();
        server.reset();
        CHECK(world.bad_descriptor_calls() == 0);
        CHECK(world.open_descriptors() == 0);
    }

    void add(const std::string& name, std::string content) {
        const std::string path = "/www/" + name;
        world.add_file(path, std::move(content));
        world.set_modified_ns(path, (sim::World::kStartWallSeconds - 1'000) * 1'000'000'000);  // long ago
    }
    Reply get(const std::string& name, std::string_view more_fields = "") {
        sim::Peer peer = world.connect(kPort);
        peer.send(test::get("/" + name, more_fields));
        server->settle_offloads();
        const std::vector<Reply> replies = replies_in(peer.take_received());
        peer.close();
        server->settle();
        REQUIRE(replies.size() == 1);
        return replies.front();
    }
    [[nodiscard]] std::uint64_t opens() const { return world.calls(sim::Call::open_file); }
    [[nodiscard]] const ReactorCounters& counters() const { return server->reactor().counters(); }
};

}  // namespace penstock::test

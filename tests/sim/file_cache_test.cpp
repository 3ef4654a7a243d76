// What a reactor keeps of the files that it serves, how old that may get, and what bounds it.
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "cached_site.h"
#include "penstock/protocols/http/file_cache.h"

namespace penstock::test {

namespace {

using Site = CachedSite;

// A cache without requests, below "/www".
struct Cache {
    sim::World world;
    Config config = small_config();
    OffloadPool offload{0, 64};
    std::unique_ptr<Reactor> reactor;
    std::unique_ptr<FileCache> cache;

    explicit Cache(const FileCacheLimits& limits) {
        world.add_directory("/www");
        reactor = std::make_unique<Reactor>(config, 0, &offload);
        REQUIRE(reactor->open().ok());
        auto root = std::make_shared<FileRoot>();
        const Result<int> opened = platform::open_directory("/www");
        REQUIRE(opened.ok());
        root->directory = platform::Descriptor(opened.value());
        cache = std::make_unique<FileCache>(*reactor, std::move(root), limits);
    }
    ~Cache() {
        cache.reset();
        CHECK(counters().file_cache_bytes.get() == 0);
        CHECK(counters().file_cache_entries.get() == 0);
    }
    [[nodiscard]] const ReactorCounters& counters() const { return reactor->counters(); }
};

}  // namespace

TEST_CASE("a file that is known is sent without opening it again") {
    Site site;
    CHECK(site.get("a").body == "a one");
    CHECK(site.opens() == 1);
    CHECK(site.counters().file_cache_misses.get() == 1);
    const std::string tag = site.get("a").field("ETag");
    CHECK(site.get("a").field("ETag") == tag);
    CHECK(site.opens() == 1);
    CHECK(site.world.calls(sim::Call::read_file) == 1);
    CHECK(site.counters().file_cache_hits.get() == 2);
    CHECK(site.counters().file_cache_entries.get() == 1);
    CHECK(site.counters().file_cache_bytes.get() > 5);
    CHECK(site.get("none").status == 404);
    CHECK(site.get("none").status == 404);
    CHECK(site.opens() == 2);
}

TEST_CASE("one that is too large for the cache is kept open, and shows at once what is written to it") {
    Site site;
    CHECK(site.get("large").body.size() == kCachedFileLimitBytes + 1);
    const std::size_t open = site.world.open_descriptors();
    const Reply first = site.get("large");
    CHECK(site.opens() == 1);
    CHECK(site.world.open_descriptors() == open);
    site.world.truncate_file("/www/large", kCachedFileLimitBytes + 10);
    const Reply second = site.get("large");
    CHECK(second.body.size() == kCachedFileLimitBytes + 10);
    CHECK(second.field("ETag") != first.field("ETag"));
    site.world.remove_file("/www/large");
    site.server->advance(kTimeToLiveMs);
    CHECK(site.get("large").status == 404);
    CHECK(site.world.open_descriptors() == open - 1);
}

TEST_CASE("what is new, replaced or gone shows when the time to live is over, and not before") {
    Site site;
    CHECK(site.get("a").body == "a one");
    CHECK(site.get("new").status == 404);
    const std::string tag = site.get("a").field("ETag");
    site.add("a", "a two");
    site.add("new", "new");
    site.server->advance(kTimeToLiveMs - 1);
    CHECK(site.get("a").body == "a one");
    CHECK(site.get("new").status == 404);
    site.server->advance(1);
    const Reply replaced = site.get("a");
    CHECK(replaced.body == "a two");
    CHECK(replaced.field("ETag") != tag);
    CHECK(site.get("new").body == "new");
    site.world.remove_file("/www/a");
    CHECK(site.get("a").body == "a two");
    site.server->advance(kTimeToLiveMs);
    CHECK(site.get("a").status == 404);
}

TEST_CASE("one that is found as it was is not read again, unless it may have been written to in the same tick") {
    Site site;
    site.get("a");
    site.world.reset_calls();
    site.server->advance(kTimeToLiveMs);
    CHECK(site.get("a").body == "a one");
    CHECK(site.opens() == 1);
    CHECK(site.world.calls(sim::Call::read_file) == 0);
    site.server->advance(kTimeToLiveMs - 1);
    site.get("a");
    CHECK(site.opens() == 1);  // its time runs anew

    site.add("b", "b 1");
    site.world.set_modified_ns("/www/b", (sim::World::kStartWallSeconds + 1) * 1'000'000'000);
    CHECK(site.get("b").body == "b 1");
    site.world.reset_calls();
    site.server->advance(kTimeToLiveMs);
    CHECK(site.get("b").body == "b 1");
    CHECK(site.world.calls(sim::Call::read_file) == 1);
}

TEST_CASE("a file that was written to shows although size and time were set back to what they were") {
    Site site;
    CHECK(site.get("a").body == "a one");
    site.server->advance(kTimeToLiveMs);
    site.world.truncate_file("/www/a", 1);
    site.world.truncate_file("/www/a", 5);
    site.world.set_modified_ns("/www/a", (sim::World::kStartWallSeconds - 1'000) * 1'000'000'000);
    CHECK(site.get("a").body == std::string("a\0\0\0\0", 5));
}

TEST_CASE("with no entries nothing is kept, and each request finds the file as it is") {
    Site site({.cache = {.entries = 0}});
    const std::size_t open = site.world.open_descriptors();
    for (const char* const name : {"a", "large", "none", "a"}) {
        site.get(name);
        CHECK(site.world.open_descriptors() == open);
    }
    CHECK(site.opens() == 4);
    site.add("a", "a two");
    CHECK(site.get("a").body == "a two");
    CHECK(site.counters().file_cache_entries.get() == 0);
    CHECK(site.counters().file_cache_bytes.get() == 0);
}

TEST_CASE("the least recently used gives way") {
    Site site({.cache = {.entries = 2}});
    site.get("a");
    site.get("b");
    site.get("a");
    site.get("c");  // b goes
    CHECK(site.counters().file_cache_evictions.get() == 1);
    site.world.reset_calls();
    site.get("a");
    CHECK(site.opens() == 0);
    site.get("b");
    CHECK(site.opens() == 1);
    CHECK(site.counters().file_cache_entries.get() == 2);
}

TEST_CASE("files that were asked for before are ready at the first request") {
    Site site({.prewarm = {"a", "large"}});
    site.get("b");
    site.world.reset_calls();
    CHECK(site.get("a").body == "a one");
    CHECK(site.get("large").status == 200);
    CHECK(site.opens() == 0);
    for (const char* const name : {"nowhere", "/a"}) {
        const Result<PlainHandler> wrong = static_files("/www", {.prewarm = {"a", name}});
        REQUIRE_FALSE(wrong.ok());
        CHECK(wrong.error().message.find("prewarm: \"" + std::string(name) + "\"") != std::string::npos);
        CHECK_FALSE(static_files("/www", {.cache = {.entries = 0}, .prewarm = {"a"}}).ok());
    }
}

TEST_CASE("where the system cannot tell that they are in memory, they are looked at on the pool at the first request") {
    Site site({.prewarm = {"a", "large"}});
    site.world.chill_file("/www/a");
    site.world.chill_file("/www/large");
    site.get("b");
    site.world.reset_calls();
    CHECK(site.get("a").body == "a one");
    CHECK(site.get("large").status == 200);
    CHECK(site.opens() == 0);
}

TEST_CASE("a reader keeps what it is being sent, whatever becomes of the file and of its place in the cache") {
    Site site({.cache = {.entries = 1}});
    const std::string content(kCachedFileLimitBytes, 'x');
    site.add("slow", content);
    sim::Peer slow = site.world.connect(kPort);
    slow.set_receive_window(4'096);
    slow.send(test::get("/slow"));
    site.server->settle();
    site.add("slow", "replaced");
    site.get("a");
    site.get("b");
    slow.read_freely();
    site.server->settle();
    CHECK(replies_in(slow.take_received()).front().body == content);
    slow.close();
    site.server->settle();
    CHECK(site.get("slow").body == "replaced");
}

TEST_CASE("a scan of names, there or not, stays within the limits") {
    const FileCacheLimits limits{.entries = 100, .descriptors = 10, .bytes = 100'000, .content_bytes = 2'000,
                                 .time_to_live_ms = 1'000};
    Cache kept(limits);
    for (int i = 0; i < 400; ++i) {
        kept.world.add_file("/www/small" + std::to_string(i), std::string(1'500, 's'));
        kept.world.add_file("/www/large" + std::to_string(i), std::string(2'500, 'l'));
    }
    const std::size_t open = kept.world.open_descriptors();
    const auto check = [&] {
        REQUIRE(kept.counters().file_cache_entries.get() <= limits.entries);
        REQUIRE(kept.counters().file_cache_bytes.get() <= limits.bytes);
        REQUIRE(kept.world.open_descriptors() <= open + limits.descriptors);
    };
    for (int i = 0; i < 400; ++i) {
        REQUIRE(kept.cache->find(("small" + std::to_string(i)).c_str())->content().size() == 1'500);
        REQUIRE(kept.cache->find(("large" + std::to_string(i)).c_str())->fd() >= 0);
        check();
    }
    CHECK(kept.counters().file_cache_evictions.get() > 600);
    // Names cost nothing to ask for, so they have to leave half of the places to files.
    REQUIRE(kept.cache->find("small0")->is_file());
    REQUIRE(kept.cache->find("small1")->is_file());
    for (int i = 0; i < 1'000'000; ++i) {
        REQUIRE(kept.cache->find(("none" + std::to_string(i)).c_str())->error() == ENOENT);
        if (i % 1'000 == 0) {
            check();
        }
    }
    check();
    kept.world.reset_calls();
    CHECK(kept.cache->find("small1")->is_file());
    CHECK(kept.world.calls(sim::Call::open_file) == 0);
}

TEST_CASE("what slow readers hold of files that were given up counts, and keeps others from being read into memory") {
    const FileCacheLimits limits{.entries = 1'000, .descriptors = 10, .bytes = 50'000, .content_bytes = 5'000,
                                 .time_to_live_ms = 1'000};
    Cache kept(limits);
    std::vector<FileReference> readers;
    for (int i = 0; i < 100; ++i) {
        const std::string name = "file" + std::to_string(i);
        kept.world.add_file("/www/" + name, std::string(5'000, 'x'));
        readers.push_back(kept.cache->find(name.c_str()));
        REQUIRE(kept.counters().file_cache_bytes.get() <= limits.bytes + 100 * 1'000);
    }
    CHECK(readers.front()->content().size() == 5'000);
    CHECK(readers.back()->content().data() == nullptr);
    CHECK(readers.back()->fd() >= 0);
    readers.clear();
    kept.world.add_file("/www/next", std::string(5'000, 'x'));
    CHECK(kept.cache->find("next")->content().size() == 5'000);
}

TEST_CASE("a compressed file says what it is by its own name, and what it stands for when it is sent in place of that") {
    for (const bool own_name_first : {false, true}) {
        CAPTURE(own_name_first);
        Site site({.cache_control = {{"*.css", "max-age=60"}}, .precompressed = true});
        site.add("a.css", "plain");
        site.add("a.css.gz", "zipped");
        if (own_name_first) {
            CHECK(site.get("a.css.gz").field("Content-Type") == "application/gzip");
        }
        const Reply styles = site.get("a.css", "Accept-Encoding: gzip\r\n");
        CHECK(styles.body == "zipped");
        CHECK(styles.field("Content-Type") == "text/css; charset=utf-8");
        CHECK(styles.field("Content-Encoding") == "gzip");
        CHECK(styles.field("Cache-Control") == "max-age=60");
        const Reply archive = site.get("a.css.gz");
        CHECK(archive.field("Content-Type") == "application/gzip");
        CHECK(archive.field("Content-Encoding").empty());
        CHECK(archive.field("Cache-Control").empty());
        CHECK(archive.field("ETag") == styles.field("ETag"));
    }
}

TEST_CASE("while slow readers hold all of it, an eighth more is for what is asked for now") {
    const FileCacheLimits limits{.entries = 1'000, .descriptors = 100, .bytes = 80'000, .content_bytes = 20'000,
                                 .time_to_live_ms = 1'000};
    Cache kept(limits);
    std::vector<FileReference> readers;
    for (int i = 0; i < 20; ++i) {
        const std::string name = "file" + std::to_string(i);
        kept.world.add_file("/www/" + name, std::string(20'000, 'x'));
        readers.push_back(kept.cache->find(name.c_str()));
    }
    kept.world.reset_calls();
    for (int i = 0; i < 3; ++i) {
        CHECK(kept.cache->find("file19")->fd() >= 0);
    }
    CHECK(kept.world.calls(sim::Call::open_file) == 0);
}

TEST_CASE("what was found last stays when slow readers come to hold all of the bytes") {
    Cache kept({.entries = 1'000, .descriptors = 100, .bytes = 80'000, .content_bytes = 2'000, .time_to_live_ms = 1'000});
    std::vector<FileReference> readers;
    for (int i = 0; i < 60; ++i) {
        CAPTURE(i);
        const std::string name = "file" + std::to_string(i);
        kept.world.add_file("/www/" + name, std::string(2'000, 'x'));
        readers.push_back(kept.cache->find(name.c_str()));
        kept.world.reset_calls();
        CHECK(kept.cache->find(name.c_str())->is_file());
        CHECK(kept.world.calls(sim::Call::open_file) == 0);
    }
    CHECK(readers.back()->content().data() == nullptr);
}

TEST_CASE("no more than a quarter of the descriptors that the process may have is kept open, over all reactors") {
    Site site;
    site.world.set_descriptor_limit(40);
    for (int i = 0; i < 20; ++i) {
        site.add("large" + std::to_string(i), std::string(kCachedFileLimitBytes + 1, 'l'));
        CHECK(site.get("large" + std::to_string(i)).status == 200);
    }
    CHECK(site.counters().file_cache_entries.get() == 10);
}

TEST_CASE("an error that will pass is not kept") {
    Cache kept({.entries = 10, .descriptors = 10, .bytes = 10'000, .content_bytes = 1'000, .time_to_live_ms = 1'000});
    kept.world.add_file("/www/a", "a");
    kept.world.script(sim::Call::open_file, sim::World::kAnyDescriptor, 1, sim::Outcome::fail(EMFILE));
    kept.world.script(sim::Call::read_file, sim::World::kAnyDescriptor, 1, sim::Outcome::fail(EIO));
    CHECK(kept.cache->find("a")->error() == EMFILE);
    CHECK(kept.cache->find("a")->error() == EIO);
    CHECK(kept.cache->find("a")->content() == "a");
}

}  // namespace penstock::test

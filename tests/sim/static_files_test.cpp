// The files below a directory, on a simulated disk: what its options do, and what must never be opened.
#include "penstock/protocols/http/static_files.h"

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine_fixture.h"
#include "penstock/engine/config.h"

namespace penstock::test {

namespace {

using Fill = std::function<void(sim::World&)>;

// An engine whose disk has to be there before the handler is made; one at a time, as there is one World. "/www" is served, "/wwwsecret" lies beside it.
struct Site {
    sim::World world;
    std::unique_ptr<ReactorUnderTest> server;

    explicit Site(const StaticFileOptions& options = {}, const Fill& fill = {}, const std::string& pattern = "/*path") {
        world.add_file("/wwwsecret/secret.txt", "secret");
        world.add_file("/secret.txt", "secret");
        world.add_file("/www/index.html", "top");
        world.add_file("/www/a.css", "css");
        world.add_file("/www/sub/page.html", "page");
        if (fill) {
            fill(world);
        }
        const Result<PlainHandler> handler = static_files("/www", options);
        REQUIRE_MESSAGE(handler.ok(), handler.error().message);
        Router router;
        router.any(pattern, handler.value());
        server = std::make_unique<ReactorUnderTest>(world, router);
        REQUIRE(server->start());
        server->settle();
    }

    Reply ask(const std::string& method, const std::string& target) {
        sim::Peer peer = world.connect(kPort);
        peer.send(method + " " + target + " HTTP/1.1\r\nHost: t\r\n\r\n");
        server->settle_offloads();
        const std::vector<Reply> replies = replies_in(peer.take_received(), method == "HEAD" ? 1 : 0);
        peer.close();
        server->settle();
        REQUIRE(replies.size() == 1);
        return replies.front();
    }
    Reply get(const std::string& target) { return ask("GET", target); }
};

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

std::string mistake_of(const StaticFileOptions& options) {
    sim::World world;
    world.add_file("/www/index.html", "top");
    world.add_special("/www/pipe");
    world.add_link("/www/out.html", "../secret.html");
    world.add_file("/secret.html", "secret");
    const auto open = world.open_descriptors();
    const Result<PlainHandler> handler = static_files("/www", options);
    if (handler.ok()) {
        return "";
    }
    CHECK(world.open_descriptors() == open);
    return handler.error().message;
}

}  // namespace

TEST_CASE("the first index that is there stands for its directory") {
    {
        Site site({.index_files = {"index.htm", "index.html", "default.txt"}}, [](sim::World& world) {
            world.add_file("/www/both/index.html", "second");
            world.add_file("/www/both/index.htm", "first");
            world.add_file("/www/odd/default.txt", "third");
            world.add_directory("/www/odd/index.htm");
        });
        CHECK(site.get("/").body == "top");
        CHECK(site.get("/both/").body == "first");
        CHECK(site.get("/odd/").body == "third");
        CHECK(site.get("/sub/").status == 404);
    }
    CHECK(Site({.index_files = {}}).get("/").status == 404);
    Site closed({.index_files = {"index.htm", "index.html"}}, [](sim::World& world) {
        world.add_file("/www/index.htm", "closed");
        world.set_permitted("/www/index.htm", false);
    });
    CHECK(closed.get("/").status == 403);
}

TEST_CASE("a redirection to a directory keeps the query") {
    Site site({}, {}, "/files/*path");
    CHECK(site.get("/files/sub").field("Location") == "/files/sub/");
    CHECK(site.get("/files/sub?a=%2F&b=..%0D%0A#").status == 400);
    const Reply reply = site.get("/files/sub?a=%2F&b=%0D%0A?");
    CHECK(reply.status == 301);
    CHECK(reply.field("Location") == "/files/sub/?a=%2F&b=%0D%0A?");
    CHECK(site.ask("HEAD", "/files/sub?x").field("Location") == "/files/sub/?x");
}

TEST_CASE("a file has the Cache-Control of the first rule, and what is no file has none") {
    Site site({.directory_listing = true, .cache_control = {{"*.css", "max-age=60"}, {"sub/*", "private"}, {"index.html", "no-cache"}}});
    CHECK(site.get("/a.css").field("Cache-Control") == "max-age=60");
    CHECK(site.ask("HEAD", "/a.css").field("Cache-Control") == "max-age=60");
    CHECK(site.get("/sub/page.html").field("Cache-Control") == "private");
    CHECK(site.get("/").field("Cache-Control") == "no-cache");
    for (const char* const target : {"/none.css", "/sub", "/sub/"}) {
        CAPTURE(target);
        CHECK_FALSE(site.get(target).has_field("Cache-Control"));
    }
}

TEST_CASE("a page of one's own comes with each 404, and nothing of it is taken for the file") {
    Site site({.cache_control = {{"404.html", "no-store"}}, .not_found_page = "404.html"},
              [](sim::World& world) { world.add_file("/www/404.html", "<p>gone"); });
    for (const char* const target : {"/none", "/sub/", "/.git", "//a.css", "/sub%2Fpage.html", "/a.css/"}) {
        CAPTURE(target);
        const Reply reply = site.get(target);
        CHECK(reply.status == 404);
        CHECK(reply.body == "<p>gone");
        CHECK(reply.field("Content-Type") == "text/html; charset=utf-8");
        CHECK(reply.field("Cache-Control") == "no-store");
        CHECK_FALSE(reply.has_field("ETag"));
        CHECK_FALSE(reply.has_field("Last-Modified"));
    }
    const Reply head = site.ask("HEAD", "/none");
    CHECK(head.status == 404);
    CHECK(head.field("Content-Length") == "7");
    CHECK(site.get("/404.html").status == 200);
    CHECK(site.get("/404.html").has_field("ETag"));
    site.world.remove_file("/www/404.html");
    site.server->advance(FileCacheOptions{}.time_to_live_ms);
    CHECK(site.get("/none").body == "Not Found");
    site.server->check_nothing_left();
}

TEST_CASE("the fallback of a program with one page answers for paths, not for files") {
    Site site({.not_found_page = "404.html", .spa_fallback = "app.html"}, [](sim::World& world) {
        world.add_file("/www/404.html", "gone");
        world.add_file("/www/app.html", "app");
        world.add_file("/www/closed", "closed");
        world.set_permitted("/www/closed", false);
        world.add_link("/www/out", "../secret.txt");
        world.add_special("/www/pipe");
    });
    for (const char* const target : {"/settings", "/users/7", "/users/7/", "/v1.2/users", "/sub/", "/a.css/x"}) {
        CAPTURE(target);
        const Reply reply = site.get(target);
        CHECK(reply.status == 200);
        CHECK(reply.body == "app");
        CHECK(reply.field("Content-Type") == "text/html; charset=utf-8");
        CHECK(reply.has_field("ETag"));
    }
    CHECK(site.ask("HEAD", "/settings").field("Content-Length") == "3");
    CHECK(site.get("/").body == "top");
    CHECK(site.get("/sub").status == 301);
    for (const char* const target : {"/none.js", "/sub/none.css", "/.git/config", "/users//7", "/a%2Fb", "/out", "/pipe"}) {
        CAPTURE(target);
        CHECK(site.get(target).status == 404);
        CHECK(site.get(target).body == "gone");
    }
    CHECK(site.ask("DELETE", "/settings").status == 404);
    CHECK(site.get("/closed").status == 403);
}

TEST_CASE("a directory without an index is listed where that is asked for") {
    const auto fill = [](sim::World& world) {
        world.add_file("/www/list/b<&>.txt", std::string(1'500, 'b'));
        world.add_file("/www/list/a.txt", "a");
        world.add_file("/www/list/.hidden", "h");
        world.add_file("/www/list/inner/file", "x");
        world.add_special("/www/list/pipe");
        world.add_link("/www/list/out", "../../secret.txt");
        world.add_link("/www/list/gone", "nowhere");
        world.add_link("/www/list/within", "../a.css");
    };
    {
        Site site({.directory_listing = true}, fill);
        CHECK(site.get("/").body == "top");
        const Reply reply = site.get("/list/");
        CHECK(reply.status == 200);
        CHECK(reply.field("Content-Type") == "text/html; charset=utf-8");
        CHECK(reply.field("Content-Security-Policy") ==
              "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'");
        CHECK(reply.field("X-Content-Type-Options") == "nosniff");
        for (const char* const part : {"<h1>/list/</h1>", "\"../\"", "\"./a.txt\"", "b&lt;&amp;&gt;.txt", "1.5 kB",
                                       "\"./inner/\"", "\"./within\"", ">3 B<"}) {
            CAPTURE(part);
            CHECK(has(reply.body, part));
        }
        for (const char* const part : {"hidden", "pipe", "./out", "gone", "not shown"}) {
            CAPTURE(part);
            CHECK_FALSE(has(reply.body, part));
        }
        CHECK(site.ask("HEAD", "/list/").field("Content-Length") == std::to_string(reply.body.size()));
        CHECK(site.get("/list").status == 301);
        CHECK(site.get("/none/").status == 404);
        CHECK(site.get("/a.css/").status == 404);
        site.server->check_nothing_left();
    }
    CHECK(has(Site({.hidden_files = true, .directory_listing = true}, fill).get("/list/").body, "\"./.hidden\""));
    CHECK_FALSE(has(Site({.directory_listing = true, .follow_symlinks = FollowSymlinks::never}, fill).get("/list/").body,
                    "within"));
    CHECK(Site({}, fill).get("/list/").status == 404);
    Site top({.index_files = {}, .directory_listing = true}, fill, "/files/*path");
    const Reply root = top.get("/files/");
    CHECK(has(root.body, "<h1>/files/</h1>"));
    CHECK_FALSE(has(root.body, "\"../\""));
}

TEST_CASE("a listing is bounded and says so, and one that fails is told and leaves nothing") {
    Site site({.directory_listing = true}, [](sim::World& world) {
        for (std::size_t i = 0; i < kListingLimit; ++i) {
            world.add_file("/www/many/file" + std::to_string(i), "x");
        }
    });
    const Reply whole = site.get("/many/");
    CHECK(count_of(whole.body, "<tr><td>") == kListingLimit);
    CHECK_FALSE(has(whole.body, "not shown"));
    site.world.add_file("/www/many/one-more", "x");
    const Reply cut = site.get("/many/");
    CHECK(cut.status == 200);
    CHECK(count_of(cut.body, "<tr><td>") == kListingLimit);
    CHECK(has(cut.body, "not shown"));

    const auto open = site.world.open_descriptors();
    struct Case {
        int error;
        int status;
    };
    for (const Case& each : {Case{EMFILE, 503}, {ENOMEM, 503}, {EIO, 500}}) {
        site.world.script(sim::Call::list_directory, -1, 1, sim::Outcome::fail(each.error));
        const Reply reply = site.get("/sub/");
        CHECK(reply.status == each.status);
        CHECK_FALSE(reply.has_field("Content-Security-Policy"));
        CHECK(site.get("/sub/").status == 200);
    }
    CHECK(site.world.open_descriptors() == open);
    site.server->check_nothing_left();
}

TEST_CASE("on a route without its parameter it does not pass for a page, and the log says why") {
    {
        Site site({}, {}, "/files/*rest");
        CHECK(site.get("/files/a.css").status == 500);
        CHECK(site.server->log.mention("has no \"path\""));
    }
    CHECK(Site({.parameter = "rest"}, {}, "/files/*rest").get("/files/").body == "top");
}

TEST_CASE("few listings are made at once, and who comes then is told") {
    Site site({.index_files = {}, .directory_listing = true});
    std::vector<sim::Peer> peers;
    for (std::uint32_t i = 0; i <= kListingsAtOnce; ++i) {
        peers.push_back(site.world.connect(kPort));
        peers.back().send(get("/sub/"));
        site.server->settle();
    }
    CHECK(status_of(peers.back().take_received()) == 503);
    while (site.server->offload.run_one()) {
    }
    site.server->settle();
    for (std::uint32_t i = 0; i < kListingsAtOnce; ++i) {
        CHECK(status_of(peers[i].take_received()) == 200);
    }
    CHECK(site.get("/sub/").status == 200);
}

TEST_CASE("whatever call fails while files and listings are served, nothing is left open and nothing is told in part") {
    const std::uint64_t runs = sim::sweep([](sim::World& world) {
        world.add_file("/www/list/a.txt", "a");
        world.add_link("/www/list/link", "a.txt");
        world.add_file("/www/404.html", "gone");
        const Result<PlainHandler> handler = static_files(
            "/www", {.directory_listing = true, .not_found_page = "404.html", .spa_fallback = "list/a.txt"});
        if (handler.ok()) {
            Router router;
            router.get("/*path", handler.value());
            ReactorUnderTest server(world, router);
            if (server.start()) {
                sim::Peer peer = world.connect(kPort);
                peer.send(get("/list/") + get("/none.js") + get("/none") + get("/list/link"));
                server.settle_offloads();
                for (const Reply& reply : replies_in(peer.take_received())) {
                    // What cannot be opened for another reason could not be asked for either.
                    const bool lacks_descriptors = !world.faults().empty() && is_exhaustion(world.faults().back().outcome.error);
                    const bool is_list = reply.status == 200 && has(reply.body, "<table>");
                    CHECK_MESSAGE((!is_list || !lacks_descriptors || has(reply.body, "./link")), world.fault_report());
                }
            }
            world.pause_faults();
            server.destroy();
            CHECK_MESSAGE(world.open_descriptors() == 1, world.fault_report());  // the handler's
        }
    });
    CHECK(runs > 50);
}

TEST_CASE("no symbolic link is followed where none may be") {
    const auto fill = [](sim::World& world) {
        world.add_link("/www/link.txt", "a.css");
        world.add_link("/www/folder", "sub");
    };
    {
        Site follows({}, fill);
        CHECK(follows.get("/link.txt").body == "css");
        CHECK(follows.get("/folder/page.html").body == "page");
    }
    Site never({.follow_symlinks = FollowSymlinks::never}, fill);
    for (const char* const target : {"/link.txt", "/folder/page.html", "/folder", "/folder/"}) {
        CAPTURE(target);
        CHECK(never.get(target).status == 404);
    }
    CHECK(never.get("/a.css").body == "css");
}

TEST_CASE("no path leaves the directory, however it is written") {
    Site site({.hidden_files = true, .directory_listing = true}, [](sim::World& world) {
        world.add_link("/www/up", "..");
        world.add_link("/www/whole", "/");
        world.add_link("/www/beside", "../wwwsecret");
        world.add_link("/www/sub/out.txt", "../../secret.txt");
        world.add_special("/www/pipe");
    });
    struct Case {
        const char* target;
        int status;
    };
    for (const Case& each : {
             // Refused before any handler is asked.
             Case{"/../secret.txt", 400}, {"/%2e%2e/secret.txt", 400}, {"/%2E%2e/secret.txt", 400},
             {"/sub/../../secret.txt", 400}, {"/..%2fsecret.txt", 400}, {"/%2e%2e%2fsecret.txt", 400},
             {"/a.css%00", 400}, {"/%00/a.css", 400}, {"/..%00/secret.txt", 400}, {"/sub/%2e%2e/%2e%2e/secret.txt", 400},
             {"/\xC0\xAE\xC0\xAE/secret.txt", 400}, {"/%2e%2e/wwwsecret/secret.txt", 400}, {"/%", 400}, {"/%2", 400},
             // Decoded twice it would climb.
             {"/%252e%252e/secret.txt", 404}, {"/%252e%252e%252fsecret.txt", 404}, {"/..%252fsecret.txt", 404},
             {"/%25252e%25252e/secret.txt", 404},
             // A slash on other systems.
             {"/..\\secret.txt", 404}, {"/..%5csecret.txt", 404}, {"/..%5C..%5Csecret.txt", 404},
             {"/sub\\..\\..\\secret.txt", 404},
             // '.' and '/' in more bytes than UTF-8 allows.
             {"/%c0%ae%c0%ae/secret.txt", 404}, {"/%c0%ae%c0%ae%c0%afsecret.txt", 404}, {"/..%c0%afsecret.txt", 404},
             {"/%e0%80%ae%e0%80%ae/secret.txt", 404}, {"/%f0%80%80%ae%f0%80%80%ae/secret.txt", 404},
             // Absolute, or with a segment of no letters or too many dots.
             {"//secret.txt", 404}, {"///secret.txt", 404}, {"/%2fsecret.txt", 404}, {"/.../secret.txt", 404},
             {"/..../secret.txt", 404}, {"/..;/secret.txt", 404}, {"/sub//page.html", 404},
             // The directory beside it, whose name begins alike.
             {"/secret", 404}, {"/secret/secret.txt", 404}, {"/wwwsecret/secret.txt", 404},
             // Links that lead outside.
             {"/up/secret.txt", 404}, {"/up", 404}, {"/up/", 404}, {"/up/www/a.css", 404}, {"/whole/secret.txt", 404},
             {"/beside/secret.txt", 404}, {"/beside", 404}, {"/sub/out.txt", 404},
             // What is no file.
             {"/pipe", 404}, {"/pipe/", 404}}) {
        CAPTURE(each.target);
        const Reply reply = site.get(each.target);
        CHECK(reply.status == each.status);
        CHECK_FALSE(has(reply.body, "secret"));
        CHECK_FALSE(reply.has_field("ETag"));
    }
    CHECK(site.get("/sub/../a.css").body == "css");
    CHECK(site.get("/./sub/./page.html").body == "page");
    site.server->check_nothing_left();
}

TEST_CASE("a route for /pub serves nothing of /public") {
    Site site({}, {}, "/pub/*path");
    CHECK(site.get("/pub/a.css").body == "css");
    for (const char* const target : {"/public", "/public/a.css", "/publica.css", "/pub%2Fa.css", "/pub/../a.css"}) {
        CAPTURE(target);
        CHECK(site.get(target).status == 404);
    }
}

TEST_CASE("pages that the options name must be there when the handler is made") {
    CHECK(mistake_of({}).empty());
    CHECK(mistake_of({.not_found_page = "index.html", .spa_fallback = "index.html"}).empty());
    for (const char* const page : {"none.html", "pipe", "out.html", "../secret.html", "index.html/x", "."}) {
        CAPTURE(page);
        const std::string not_found = mistake_of({.not_found_page = page});
        CHECK(has(not_found, "StaticFileOptions::not_found_page: \"" + std::string(page) + "\""));
        CHECK(has(not_found, "; name "));
        CHECK(has(mistake_of({.spa_fallback = page}), "StaticFileOptions::spa_fallback: \"" + std::string(page) + "\""));
    }
    CHECK(has(mistake_of({.index_files = {"a/b"}}), "index_files: \"a/b\""));
    CHECK(has(mistake_of({.cache_control = {{"", "no-cache"}}}), "cache_control"));
}

}  // namespace penstock::test

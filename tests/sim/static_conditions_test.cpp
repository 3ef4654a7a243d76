// Files asked for under conditions, and in parts: what leaves, byte for byte.
#include "http_fixture.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock::test {
namespace {

constexpr std::string_view kFileLetters = "abcdefghijklmnopqrstuvwxyz";

std::string numbered(std::size_t size) {
    std::string text;
    for (std::size_t i = 0; text.size() < size; ++i) {
        text += std::to_string(i) + ",";
    }
    text.resize(size);
    return text;
}

// Answers of a server whose directory has f.txt with the alphabet, and large.bin with 100,000 bytes.
struct Files {
    sim::World world;
    std::unique_ptr<ReactorUnderTest> server;
    const std::string large = numbered(100'000);

    Files() {
        world.add_file("/www/f.txt", std::string(kFileLetters));
        world.add_file("/www/large.bin", large);
        world.add_file("/www/empty", "");
        const auto files = static_files("/www");
        REQUIRE(files.ok());
        Router router;
        router.any("/*path", files.value());
        server = std::make_unique<ReactorUnderTest>(world, router);
        REQUIRE(server->start());
        server->settle();
    }
    Reply ask(std::string_view path, std::string_view fields, std::string_view method = "GET") {
        sim::Peer peer = world.connect(kPort);
        peer.send(std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n" + std::string(fields) + "\r\n");
        server->settle();
        const std::vector<Reply> replies = replies_in(peer.take_received(), method == "HEAD" ? 1 : 0);
        peer.close();
        server->settle();
        server->check_nothing_left();
        REQUIRE(replies.size() == 1);
        return replies.front();
    }
};

}  // namespace

TEST_CASE("no file was changed later than its answer's Date says, though that lags behind a clock that is set") {
    Files files;
    files.server->advance(300);
    files.world.set_wall_seconds(1'000'000'000);
    files.world.add_file("/www/new.txt", "new");
    const Reply early = files.ask("/new.txt", "");
    CHECK(early.field("Date") == "Sun, 06 Nov 1994 08:49:37 GMT");
    CHECK(early.field("Last-Modified") == early.field("Date"));
    files.server->advance(1'000);
    const Reply late = files.ask("/new.txt", "");
    CHECK(late.field("Date") == "Sun, 09 Sep 2001 01:46:41 GMT");
    CHECK(late.field("Last-Modified") == "Sun, 09 Sep 2001 01:46:40 GMT");
}

TEST_CASE("a file is sent again only when it is another one") {
    Files files;
    const Reply first = files.ask("/f.txt", "");
    CHECK(first.status == 200);
    CHECK(first.body == kFileLetters);
    CHECK(first.field("Accept-Ranges") == "bytes");
    const std::string tag = first.field("ETag");
    const std::string date = first.field("Last-Modified");
    REQUIRE_FALSE(tag.empty());
    REQUIRE_FALSE(date.empty());
    const struct {
        std::string fields;
        int status;
    } cases[] = {
        {"If-None-Match: " + tag + "\r\n", 304},
        {"If-None-Match: W/" + tag + "\r\n", 304},
        {"If-None-Match: \"other\", " + tag + "\r\n", 304},
        {"If-None-Match: \"other\"\r\nIf-None-Match: " + tag + "\r\n", 304},  // one list in two fields
        {"If-None-Match: *\r\n", 304},
        {"If-None-Match: \"nope\"\r\n", 200},
        {"If-None-Match: \"nope\"\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n", 200},
        {"If-Modified-Since: " + date + "\r\n", 304},
        {"If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n", date.find("1970") != std::string::npos ? 304 : 200},
        {"If-Modified-Since: yesterday\r\n", 200},
        {"If-Match: " + tag + "\r\n", 200},
        {"If-Match: *\r\n", 200},
        {"If-Match: \"other\"\r\n", 412},
        {"If-Match: W/" + tag + "\r\n", 412},
        {"If-Unmodified-Since: " + date + "\r\n", 200},
    };
    for (const auto& each : cases) {
        CAPTURE(each.fields);
        for (const char* method : {"GET", "HEAD"}) {
            const Reply reply = files.ask("/f.txt", each.fields, method);
            CHECK(reply.status == each.status);
            if (each.status == 304) {
                CHECK(reply.field("ETag") == tag);
                CHECK(reply.body.empty());
                CHECK_FALSE(reply.has_field("Content-Length"));
            }
        }
    }
}

TEST_CASE("one part of a file") {
    Files files;
    const struct {
        const char* range;
        int status;
        std::string body;
        const char* content_range;
    } cases[] = {
        {"bytes=0-0", 206, "a", "bytes 0-0/26"},
        {"bytes=0-25", 200, std::string(kFileLetters), ""},
        {"bytes=0-", 200, std::string(kFileLetters), ""},
        {"bytes=5-9", 206, "fghij", "bytes 5-9/26"},
        {"bytes=20-", 206, "uvwxyz", "bytes 20-25/26"},
        {"bytes=20-99", 206, "uvwxyz", "bytes 20-25/26"},
        {"bytes=-3", 206, "xyz", "bytes 23-25/26"},
        {"bytes=-9999", 200, std::string(kFileLetters), ""},
        {"bytes=26-", 416, "Range Not Satisfiable", "bytes */26"},
        {"bytes=-0", 416, "Range Not Satisfiable", "bytes */26"},
        {"bytes=5-2", 200, std::string(kFileLetters), ""},
        {"items=0-5", 200, std::string(kFileLetters), ""},
        {"bytes=abc", 200, std::string(kFileLetters), ""},
        {"bytes=0-1, 2-3", 206, "abcd", "bytes 0-3/26"},  // together they are one
    };
    for (const auto& each : cases) {
        CAPTURE(std::string(each.range));
        const Reply reply = files.ask("/f.txt", "Range: " + std::string(each.range) + "\r\n");
        CHECK(reply.status == each.status);
        CHECK(reply.body == each.body);
        CHECK(reply.field("Content-Range") == each.content_range);
        const Reply head = files.ask("/f.txt", "Range: " + std::string(each.range) + "\r\n", "HEAD");
        CHECK(head.status == 200);  // ranges are for GET alone
        CHECK(head.field("Content-Length") == "26");
    }
    CHECK(files.ask("/empty", "Range: bytes=0-5\r\n").status == 200);
    const Reply large = files.ask("/large.bin", "Range: bytes=40000-89999\r\n");
    CHECK(large.status == 206);
    CHECK(large.body == files.large.substr(40'000, 50'000));
}

TEST_CASE("If-Range: the part if it is the same file, else all of it") {
    Files files;
    const std::string tag = files.ask("/f.txt", "").field("ETag");
    CHECK(files.ask("/f.txt", "Range: bytes=0-1\r\nIf-Range: " + tag + "\r\n").body == "ab");
    CHECK(files.ask("/f.txt", "Range: bytes=0-1\r\nIf-Range: W/" + tag + "\r\n").status == 200);
    CHECK(files.ask("/f.txt", "Range: bytes=0-1\r\nIf-Range: \"old\"\r\n").body == kFileLetters);
    CHECK(files.ask("/f.txt", "Range: bytes=0-1\r\nIf-None-Match: " + tag + "\r\n").status == 304);
}

TEST_CASE("several parts of a file, none of them twice") {
    Files files;
    for (const std::string path : {"/f.txt", "/large.bin"}) {
        const std::string content = path == "/f.txt" ? std::string(kFileLetters) : files.large;
        const std::string size = std::to_string(content.size());
        const Reply reply = files.ask(path, "Range: bytes=0-4,10-12,-2\r\n");
        CHECK(reply.status == 206);
        const std::string type = reply.field("Content-Type");
        REQUIRE(type.starts_with("multipart/byteranges; boundary="));
        const std::string line = "--" + type.substr(type.find('=') + 1);
        const auto part = [&](std::size_t offset, std::size_t count) {
            return line + "\r\nContent-Type: " + files.ask(path, "").field("Content-Type") + "\r\nContent-Range: bytes " +
                   std::to_string(offset) + "-" + std::to_string(offset + count - 1) + "/" + size + "\r\n\r\n" +
                   content.substr(offset, count) + "\r\n";
        };
        CHECK(reply.body == part(0, 5) + part(10, 3) + part(content.size() - 2, 2) + line + "--\r\n");
    }
    std::string many = "Range: bytes=0-";
    for (int i = 0; i < 199; ++i) {
        many += ",0-";
    }
    const Reply repeated = files.ask("/f.txt", many + "\r\n");
    CHECK(repeated.body == kFileLetters);  // not two hundred times
}

TEST_CASE("a file beside the file is sent in its place where the client accepts its coding") {
    sim::World world;
    world.add_file("/www/a.css", "plain");
    world.add_file("/www/a.css.gz", "zipped");
    world.add_file("/www/a.css.br", "brotli");
    world.add_file("/www/b.css", "alone");
    const auto files = static_files("/www", {.precompressed = true});
    REQUIRE(files.ok());
    Router router;
    router.get("/*path", files.value());
    ReactorUnderTest server(world, router);
    REQUIRE(server.start());
    server.settle();
    const auto ask = [&](std::string_view path, const std::string& accepted) {
        sim::Peer peer = world.connect(kPort);
        peer.send(get(path, accepted.empty() ? "" : "Accept-Encoding: " + accepted + "\r\n"));
        server.settle();
        const std::vector<Reply> replies = replies_in(peer.take_received());
        peer.close();
        server.settle();
        REQUIRE(replies.size() == 1);
        CHECK(replies[0].field("Vary") == "Accept-Encoding");
        CHECK(replies[0].field("Content-Type") == "text/css; charset=utf-8");
        return replies[0].body + " " + replies[0].field("Content-Encoding");
    };
    CHECK(ask("/a.css", "") == "plain ");
    CHECK(ask("/a.css", "gzip") == "zipped gzip");
    CHECK(ask("/a.css", "gzip, br") == "brotli br");
    CHECK(ask("/a.css", "gzip, br;q=0.5") == "zipped gzip");
    CHECK(ask("/a.css", "gzip;q=0") == "plain ");
    CHECK(ask("/a.css", "zstd, gzip;q=0.2") == "zipped gzip");
    CHECK(ask("/a.css", "deflate") == "plain ");
    CHECK(ask("/a.css", "identity;q=0, gzip;q=0") == "plain ");
    CHECK(ask("/b.css", "gzip, br, zstd") == "alone ");
    server.check_nothing_left();
}

TEST_CASE("a range on what is no file is not looked at") {
    Files files;
    CHECK(files.ask("/none", "Range: bytes=0-1\r\nIf-None-Match: *\r\n").status == 404);
}

}  // namespace penstock::test

// Files that are compressed on their way: conditions, ranges, what is compressed already, and what vanishes meanwhile.
#include "compress_fixture.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock::test {
namespace {

constexpr std::size_t kSizes[] = {0, 1, 999, 1'000, 16'383, 16'384, 16'385, 65'535, 65'536, 65'537, 1'000'000};

// A directory with texts of several sizes, served compressed.
struct CompressedFiles {
    sim::World world;
    std::unique_ptr<ReactorUnderTest> server;

    explicit CompressedFiles(StaticFileOptions options = {}, CompressOptions how = {}) {
        for (const std::size_t size : kSizes) {
            world.add_file("/www/" + std::to_string(size) + ".txt", text_body(size));
        }
        world.add_file("/www/f.txt", "abcdefghijklmnopqrstuvwxyz");
        world.add_file("/www/a.png", text_body(5'000));
        const auto files = static_files("/www", std::move(options));
        REQUIRE(files.ok());
        Router router = compressing(std::move(how));
        router.any("/*path", files.value());
        server = std::make_unique<ReactorUnderTest>(world, router);
        REQUIRE(server->start());
        server->settle();
    }
    // While others are being served.
    Compressed ask_beside(std::string_view path) {
        sim::Peer peer = world.connect(kPort);
        peer.send(get(path));
        server->settle();
        const Compressed answer = take_apart(peer.take_received());
        peer.close();
        server->settle();
        return answer;
    }
    Compressed ask(std::string_view path, std::string_view fields, std::string_view method = "GET") {
        sim::Peer peer = world.connect(kPort);
        peer.send(std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n" + std::string(fields) + "\r\n");
        server->settle();
        const Compressed answer = take_apart(peer.take_received(), method == "HEAD");
        peer.close();
        server->settle();
        server->check_nothing_left();
        CHECK(server->reactor().encoder_memory_bytes() == 0);
        return answer;
    }
};

const std::string kGzip = accepting("gzip");

}  // namespace

TEST_CASE("files of every size are compressed for those who take it, and HEAD says the same") {
    CompressedFiles files;
    for (const std::size_t size : kSizes) {
        CAPTURE(size);
        const std::string path = "/" + std::to_string(size) + ".txt";
        const Compressed answer = files.ask(path, kGzip);
        CHECK(answer.plain == text_body(size));
        CHECK(answer.coding() == (size >= 1'000 ? "gzip" : ""));
        CHECK(answer.field("Vary") == (size >= 1'000 ? "Accept-Encoding" : ""));
        CHECK(answer.field("ETag").starts_with("W/") == (size >= 1'000));
        CHECK(answer.reply.has_field("Accept-Ranges") == (size < 1'000));
        CHECK(answer.reply.has_field("Content-Length") == (size <= kEncodeAtOnceLimitBytes));
        CHECK(files.ask(path, kGzip, "HEAD").reply.head == answer.reply.head);
        CHECK(files.ask(path, "").sent == text_body(size));
    }
    CHECK(files.ask("/a.png", kGzip).coding().empty());
    CHECK_FALSE(files.ask("/a.png", kGzip).reply.has_field("Vary"));
}

TEST_CASE("C17: a coding of weight 0 is not used, and what others would get compressed says that it varies") {
    CompressedFiles files({}, {.min_size_bytes = 1});
    const Compressed answer = files.ask("/f.txt", accepting("gzip;q=0"));
    CHECK(answer.reply.status == 200);
    CHECK(answer.coding().empty());
    CHECK(answer.sent == "abcdefghijklmnopqrstuvwxyz");
    CHECK(answer.field("Vary") == "Accept-Encoding");
}

TEST_CASE("the tag of a compressed file is good for If-None-Match alone") {
    CompressedFiles files;
    const std::string tag = files.ask("/65537.txt", kGzip).field("ETag");
    REQUIRE(tag.starts_with("W/\""));
    const Compressed unchanged = files.ask("/65537.txt", kGzip + "If-None-Match: " + tag + "\r\n");
    CHECK(unchanged.reply.status == 304);
    CHECK(unchanged.field("ETag") == tag);
    CHECK(unchanged.field("Vary") == "Accept-Encoding");
    CHECK(unchanged.coding().empty());
    const std::string strong = tag.substr(2);
    const Compressed plain = files.ask("/65537.txt", kGzip + "If-None-Match: \"x\", " + strong + "\r\n");
    CHECK(plain.reply.status == 304);
    CHECK(plain.field("ETag") == strong);
    CHECK(files.ask("/65537.txt", kGzip + "If-Match: " + tag + "\r\n").reply.status == 412);
    const Compressed whole = files.ask("/65537.txt", kGzip + "Range: bytes=0-9\r\nIf-Range: " + tag + "\r\n");
    CHECK(whole.reply.status == 200);
    CHECK(whole.plain == text_body(65'537));
    const Compressed part = files.ask("/65537.txt", kGzip + "Range: bytes=0-1999\r\nIf-Range: " + strong + "\r\n");
    CHECK(part.reply.status == 206);
    CHECK(part.sent == text_body(65'537).substr(0, 2'000));
    CHECK(part.coding().empty());
    CHECK(part.field("ETag") == strong);
    CHECK(part.field("Vary") == "Accept-Encoding");
    const Compressed parts = files.ask("/65537.txt", kGzip + "Range: bytes=0-999,2000-2999\r\n");
    CHECK(parts.reply.status == 206);
    CHECK(parts.coding().empty());
    CHECK(parts.field("Vary") == "Accept-Encoding");
    CHECK(files.ask("/65537.txt", kGzip + "Range: bytes=99999-\r\n").reply.status == 416);
}

TEST_CASE("what is compressed already is sent as it is, and varies once") {
    CompressedFiles files({.precompressed = true});
    files.world.add_file("/www/1000000.txt.gz", encoded(ContentCoding::gzip, "precompressed"));
    const Compressed answer = files.ask("/1000000.txt", kGzip);
    CHECK(answer.plain == "precompressed");
    CHECK(answer.coding() == "gzip");
    CHECK(count_of(answer.reply.head, "\r\nVary: ") == 1);
    CHECK(answer.field("Accept-Ranges") == "bytes");
    CHECK_FALSE(answer.field("ETag").starts_with("W/"));
    const Compressed other = files.ask("/65537.txt", kGzip);  // there is nothing beside it
    CHECK(other.plain == text_body(65'537));
    CHECK(other.field("Vary") == "Accept-Encoding");
    CHECK(count_of(other.reply.head, "\r\nVary: ") == 1);
}

TEST_CASE("a file that shrinks or cannot be read cuts the response, and its descriptor is closed") {
    for (const std::string_view version : {"HTTP/1.1", "HTTP/1.0"}) {
        CompressedFiles files;
        sim::Peer peer = files.world.connect(kPort);
        peer.set_receive_window(2'048);
        peer.send("GET /1000000.txt " + std::string(version) + "\r\nHost: t\r\n" + kGzip + "\r\n");
        files.server->settle();
        files.world.truncate_file("/www/1000000.txt", 500'000);
        peer.read_freely();
        files.server->settle();
        const std::string answer = peer.take_received();
        files.server->advance(1);  // a reset does not overtake what was sent
        CHECK_FALSE(answer.ends_with("0\r\n\r\n"));
        CHECK((peer.reset_by_server() || peer.finished_by_server()));
        CHECK(peer.reset_by_server() == (version == "HTTP/1.0"));
        CHECK(files.server->log.mention("shrunk"));
        peer.close();
        files.server->settle();
        files.server->check_nothing_left();
        CHECK(files.server->reactor().encoder_memory_bytes() == 0);
        CHECK(files.world.bad_descriptor_calls() == 0);
    }
}

TEST_CASE("a client that leaves while a file is compressed leaves no descriptor") {
    CompressedFiles files({.cache = {.entries = 0}});
    sim::Peer peer = files.world.connect(kPort);
    const std::uint64_t opened = files.world.calls(sim::Call::open_file);
    const std::uint64_t closed = files.world.calls(sim::Call::close);
    peer.set_receive_window(2'048);
    peer.send(get("/1000000.txt", kGzip));
    files.server->settle();
    peer.reset();
    files.server->settle();
    files.server->check_nothing_left();
    CHECK(files.server->reactor().encoder_memory_bytes() == 0);
    // The file and the connection.
    CHECK(files.world.calls(sim::Call::close) - closed == files.world.calls(sim::Call::open_file) - opened + 1);
}

TEST_CASE("what is kept of a file is compressed to its end, although it has given way meanwhile") {
    CompressedFiles files({.cache = {.entries = 1}});
    sim::Peer slow = files.world.connect(kPort);
    slow.set_receive_window(512);
    slow.send(get("/65537.txt", kGzip));
    files.server->settle();
    files.world.add_file("/www/65537.txt", "another");
    CHECK(files.ask_beside("/f.txt").sent == "abcdefghijklmnopqrstuvwxyz");
    slow.read_freely();
    files.server->settle();
    CHECK(take_apart(slow.take_received()).plain == text_body(65'537));
    slow.close();
    files.server->settle();
    files.server->check_nothing_left();
    CHECK(files.ask("/65537.txt", kGzip).sent == "another");
}

TEST_CASE("a file on a cold disk is compressed as it comes, and nobody else waits for it") {
    CompressedFiles files;
    const std::string text = text_body(3 * kFileWarmBytes);
    files.world.add_file("/www/cold.txt", text);
    CHECK(files.ask("/cold.txt", "Range: bytes=0-0\r\n").reply.status == 206);
    files.world.chill_file("/www/cold.txt");
    sim::Peer peer = files.world.connect(kPort);
    peer.send(get("/cold.txt", kGzip));
    files.server->settle();
    int answers = 0;
    for (std::uint64_t waits = 0; ; ++answers) {
        CHECK(files.world.disk_waits() == waits);
        CHECK(files.ask_beside("/f.txt").sent == "abcdefghijklmnopqrstuvwxyz");
        if (!files.server->offload.run_one()) {
            break;
        }
        waits = files.world.disk_waits();
        files.server->settle();
    }
    CHECK(answers == 3);
    CHECK(take_apart(peer.take_received()).plain == text);
    peer.close();
    files.server->settle();
    files.server->check_nothing_left();
}

}  // namespace penstock::test

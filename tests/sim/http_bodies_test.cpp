// Bodies in both directions, byte for byte: all the ways in which they are framed, stored and cut.
#include "http_fixture.h"

#include <cstdio>

#include "penstock/platform/file.h"
#include "support/seed.h"

namespace penstock::test {
namespace {

using Sizes = std::vector<std::size_t>;

constexpr std::size_t kBodyLimit = 1 << 20;  // small_config keeps the default

// Bytes that show where they come from: no part is like another, and none is like the padding of a file.
std::string pattern(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 12'345;
    for (char& byte : bytes) {
        state = state * 1'664'525 + 1'013'904'223;
        byte = static_cast<char>(1 + (state >> 24) % 255);
    }
    return bytes;
}

std::string in_chunks(std::string_view body, std::size_t size) {
    std::string text;
    while (!body.empty()) {
        const std::string_view chunk = body.substr(0, size);
        char digits[20];
        std::snprintf(digits, sizeof digits, "%zx\r\n", chunk.size());
        text.append(digits).append(chunk).append("\r\n");
        body.remove_prefix(chunk.size());
    }
    return text + "0\r\n\r\n";
}

std::string sized(std::string_view body) {
    return post("Content-Length: " + std::to_string(body.size()) + "\r\n", body);
}

// Equal without printing a megabyte when not.
void check_same(std::string_view got, std::string_view wanted) {
    CHECK(got.size() == wanted.size());
    const auto differ = std::mismatch(
        got.begin(), got.begin() + static_cast<std::ptrdiff_t>(std::min(got.size(), wanted.size())),
        wanted.begin());
    CHECK(differ.first - got.begin() == static_cast<std::ptrdiff_t>(std::min(got.size(), wanted.size())));
}

// Sends in pieces, as a client does that may not send all at once.
void check_echo(Engine& engine, std::string_view request, std::string_view body, std::size_t piece) {
    sim::Peer peer = engine.world.connect(kPort);
    std::string received;
    for (std::string_view rest = request; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
        received += engine.exchange(peer, rest.substr(0, piece));
    }
    received += engine.exchange(peer, get("/letters"));
    const std::vector<Reply> replies = replies_in(received);
    REQUIRE(replies.size() == 2);
    CHECK(replies[0].status == 200);
    check_same(replies[0].body, body);
    CHECK(replies[1].body == kLetters);
    peer.close();
    engine.server.settle();
    engine.server.check_nothing_left();
}

const Sizes kSizes = {0, 1, 100, 4'095, 4'096, 4'097, 16'383, 16'384, 16'385, 100'000, 1'000'000};

struct FileEngine : Engine {
    explicit FileEngine(std::size_t size) : Engine(make()) { world.add_file("/www/file", pattern(size)); }

    static int open_file() {
        const Result<int> root = platform::open_directory("/www");
        REQUIRE(root.ok());
        const IoResult file = platform::open_beneath(root.value(), "file");
        platform::close_descriptor(root.value());
        return static_cast<int>(file.count);
    }
    static Router make() {
        Router router;
        router.get("/parts", [](Request&, Response& response) {
            const FilePart parts[] = {{"first:", 0, 100}, {"\nsecond:", 300'000, 200'000}, {"\nnone:"}, {"\nlast:", 9, 1}, {"\nend"}};
            response.send_file_parts(open_file(), parts);
        });
        router.get("/:from/:size", [](Request& request, Response& response) {
            const auto number = [&request](const char* name) {
                return std::stoul(std::string(request.parameter(name)));
            };
            response.send_file(open_file(), number("from"), number("size"));
        });
        router.get("/next", [](Request&, Response& response) { response.send_static("next"); });
        return router;
    }
};

// Reads at most `step` bytes between two times that the server may work.
std::string read_slowly(Engine& engine, sim::Peer& peer, std::string_view request, std::size_t step) {
    peer.set_receive_window(step);
    peer.send(request);
    engine.server.settle();
    std::string received;
    for (std::string part = peer.read(step); !part.empty(); part = peer.read(step)) {
        received += part;
        engine.server.settle();
    }
    return received;
}

}  // namespace

TEST_CASE("bodies with a length arrive as they were sent") {
    Engine engine(case_router());
    for (const std::size_t size : kSizes) {
        CAPTURE(size);
        const std::string body = pattern(size);
        check_echo(engine, sized(body), body, size + 1'000);
        check_echo(engine, sized(body), body, 1'460);
        check_echo(engine, sized(body), body, 16'384);
    }
}

TEST_CASE("chunked bodies arrive as they were sent") {
    Engine engine(case_router());
    for (const std::size_t chunk : Sizes{1, 2, 15, 16, 17, 1'000, 4'096, 16'380, 16'384, 65'536, 100'000}) {
        CAPTURE(chunk);
        const std::string body = pattern(chunk < 15 ? 20'000 : 100'000);
        const std::string request = chunked(in_chunks(body, chunk));
        check_echo(engine, request, body, request.size());
        check_echo(engine, request, body, 1'460);
        check_echo(engine, request, body, 16'381);
    }
}

TEST_CASE("bodies byte by byte") {
    Engine engine(case_router());
    const std::string body = pattern(3'000);
    check_echo(engine, sized(body), body, 1);
    for (const std::size_t chunk : Sizes{1, 7, 2'999, 3'000}) {
        check_echo(engine, chunked(in_chunks(body, chunk)), body, 1);
    }
    const std::string large = pattern(20'000);  // over the end of a block
    check_echo(engine, sized(large), large, 1);
    check_echo(engine, chunked(in_chunks(large, 500)), large, 1);
}

TEST_CASE("a body behind a head of any size, over the end of a block at every place") {
    Engine engine(case_router());
    for (const std::size_t head : Sizes{100, 8'000, 12'287, 12'288, 12'289, 16'000, 16'383, 16'384}) {
        CAPTURE(head);
        for (const std::size_t size : Sizes{1, 100, 383, 384, 385, 5'000, 40'000}) {
            CAPTURE(size);
            const std::string body = pattern(size);
            const std::string length = "Content-Length: " + std::to_string(size) + "\r\n";
            const std::string coding = "Transfer-Encoding: chunked\r\n";
            const auto fill = [head](std::size_t others) {
                return "X: " + std::string(head - others - 5, 'x') + "\r\n";
            };
            const std::string with_length = head < 200 ? length : length + fill(post(length).size());
            const std::string with_coding = head < 200 ? coding : coding + fill(post(coding).size());
            for (const std::size_t piece : Sizes{100'000, head, 1'000}) {
                check_echo(engine, post(with_length, body), body, piece);
                check_echo(engine, post(with_coding, in_chunks(body, 300)), body, piece);
            }
        }
    }
}

TEST_CASE("bodies of random sizes in random pieces, pipelined") {
    Engine engine(case_router());
    std::uint64_t state = test_seed();
    const auto random = [&state](std::uint64_t limit) {
        state = state * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
        return (state >> 33) % limit;
    };
    for (int round = 0; round < 60; ++round) {
        std::vector<std::string> bodies;
        std::string stream;
        for (std::uint64_t i = 0; i < 1 + random(8); ++i) {
            bodies.push_back(pattern(random(random(4) == 0 ? 60'000 : 600)));
            stream +=
                random(2) == 0 ? sized(bodies.back()) : chunked(in_chunks(bodies.back(), 1 + random(9'000)));
        }
        sim::Peer peer = engine.world.connect(kPort);
        std::string received;
        for (std::string_view rest = stream; !rest.empty();) {
            const std::string_view piece = rest.substr(0, 1 + random(random(2) == 0 ? 20'000 : 200));
            rest.remove_prefix(piece.size());
            received += engine.exchange(peer, piece);
        }
        const std::vector<Reply> replies = replies_in(received);
        REQUIRE(replies.size() == bodies.size());
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            check_same(replies[i].body, bodies[i]);
        }
        peer.close();
        engine.server.settle();
        engine.server.check_nothing_left();
    }
}

TEST_CASE("the largest body, and one byte more") {
    Engine engine(case_router());
    const std::string largest = pattern(kBodyLimit);
    const std::string larger = pattern(kBodyLimit + 1);
    check_echo(engine, sized(largest), largest, 50'000);
    for (const std::size_t chunk : Sizes{4'096, 1'000'000}) {
        check_echo(engine, chunked(in_chunks(largest, chunk)), largest, 50'000);
        const Answer answer = feed_whole(engine, chunked(in_chunks(larger, chunk)));
        CHECK(statuses_in(answer.bytes) == "413");
        CHECK(answer.closed);
    }
    const Answer answer = feed_whole(engine, sized(larger).substr(0, 1'000));
    CHECK(statuses_in(answer.bytes) == "413");
    CHECK(answer.closed);
    engine.server.check_nothing_left();
}

TEST_CASE("a body limit below a block holds for both framings") {
    Config config = small_config();
    config.body_limit_bytes = 100;
    Engine engine(case_router(), config);
    const std::string largest = pattern(100);
    const std::string larger = pattern(101);
    for (const std::size_t chunk : Sizes{1, 50, 100}) {
        check_echo(engine, chunked(in_chunks(largest, chunk)), largest, 1'000);
        CHECK(statuses_in(feed_whole(engine, chunked(in_chunks(larger, chunk))).bytes) == "413");
        CHECK(statuses_in(feed_bytewise(engine, chunked(in_chunks(larger, chunk))).bytes) == "413");
    }
    check_echo(engine, sized(largest), largest, 1'000);
    CHECK(statuses_in(feed_whole(engine, sized(larger)).bytes) == "413");
}

TEST_CASE("answers of all sizes and kinds reach slow readers whole") {
    Router router;
    std::string fixed;
    router.get("/:kind/:size", [&fixed](Request& request, Response& response) {
        const std::string body = pattern(std::stoul(std::string(request.parameter("size"))));
        if (request.parameter("kind") == "copied") {
            response.send(std::string_view(body));
        } else if (request.parameter("kind") == "moved") {
            response.send(std::string(body));
        } else {
            fixed = body;
            response.send_static(fixed);
        }
    });
    Engine engine(router);
    for (const std::size_t size : kSizes) {
        CAPTURE(size);
        const std::string wanted = pattern(size);
        for (const char* kind : {"copied", "moved", "static"}) {
            const std::string request = get("/" + std::string(kind) + "/" + std::to_string(size));
            for (const std::size_t step : Sizes{1, 777, 65'536}) {
                if (step * 20'000 < size) {
                    continue;
                }
                sim::Peer peer = engine.world.connect(kPort);
                const std::vector<Reply> replies = replies_in(read_slowly(engine, peer, request, step));
                REQUIRE(replies.size() == 1);
                CHECK(replies[0].field("Content-Length") == std::to_string(size));
                check_same(replies[0].body, wanted);
                peer.close();
                engine.server.settle();
                engine.server.check_nothing_left();
            }
        }
    }
}

TEST_CASE("files of all sizes reach slow readers whole, and what follows them") {
    for (const std::size_t size : Sizes{0, 1, 4'096, 16'385, 262'143, 262'144, 262'145, 1'000'000}) {
        CAPTURE(size);
        FileEngine engine(size);
        const std::size_t descriptors = engine.world.open_descriptors();
        const std::string wanted = pattern(size);
        const std::string request = get("/0/" + std::to_string(size)) + get("/next");
        for (const std::size_t step : Sizes{100, 5'000, 65'536}) {
            if (step * 2'000 < size) {
                continue;
            }
            sim::Peer peer = engine.world.connect(kPort);
            const std::vector<Reply> replies = replies_in(read_slowly(engine, peer, request, step));
            REQUIRE(replies.size() == 2);
            check_same(replies[0].body, wanted);
            CHECK(replies[1].body == "next");
            peer.close();
            engine.server.settle();
            CHECK(engine.world.open_descriptors() == descriptors);
            engine.server.check_nothing_left();
        }
    }
}

TEST_CASE("a part of a file") {
    FileEngine engine(10'000);
    const std::string content = pattern(10'000);
    check_same(body_of(engine.ask(get("/0/1"))), content.substr(0, 1));
    check_same(body_of(engine.ask(get("/9999/1"))), content.substr(9'999));
    check_same(body_of(engine.ask(get("/1234/5678"))), content.substr(1'234, 5'678));
}

TEST_CASE("several parts of a file, each behind a text of its own") {
    FileEngine engine(600'000);
    const std::size_t descriptors = engine.world.open_descriptors();
    const std::string content = pattern(600'000);
    const std::string wanted = "first:" + content.substr(0, 100) + "\nsecond:" + content.substr(300'000, 200'000) +
                               "\nnone:\nlast:" + content.substr(9, 1) + "\nend";
    for (const std::size_t step : Sizes{1'000, 50'000, 1'000'000}) {
        sim::Peer peer = engine.world.connect(kPort);
        const std::vector<Reply> replies = replies_in(read_slowly(engine, peer, get("/parts") + get("/next"), step));
        REQUIRE(replies.size() == 2);
        check_same(replies[0].body, wanted);
        CHECK(replies[1].body == "next");
        peer.close();
        engine.server.settle();
        CHECK(engine.world.open_descriptors() == descriptors);
    }
    const std::string head = engine.ask("HEAD /parts HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    CHECK(head.find("Content-Length: " + std::to_string(wanted.size()) + "\r\n") != std::string::npos);
    CHECK(body_of(head).empty());
    CHECK(engine.world.open_descriptors() == descriptors);
    engine.world.script(sim::Call::duplicate, sim::World::kAnyDescriptor, 2, sim::Outcome::fail(EMFILE));
    sim::Peer short_of = engine.world.connect(kPort);
    engine.exchange(short_of, get("/parts"));
    CHECK(short_of.closed_by_server());
    short_of.close();
    engine.server.settle();
    CHECK(engine.world.open_descriptors() == descriptors);
}

TEST_CASE("a file that shrinks ends the connection: nothing is made up for what is missing") {
    for (const std::size_t left :
         {std::size_t{0}, std::size_t{100'000}, std::size_t{300'000}, std::size_t{599'999}}) {
        CAPTURE(left);
        FileEngine engine(600'000);
        const std::size_t descriptors = engine.world.open_descriptors();
        sim::Peer peer = engine.world.connect(kPort);
        peer.set_receive_window(50'000);
        peer.send(get("/0/600000") + get("/next"));
        engine.server.settle();
        engine.world.truncate_file("/www/file", left);
        std::string received;
        for (std::string part = peer.read(50'000); !part.empty(); part = peer.read(50'000)) {
            received += part;
            engine.server.settle();
        }
        const std::string_view body = body_of(received);
        CHECK(body.size() <= std::max<std::size_t>(left, 50'000));
        check_same(body, pattern(600'000).substr(0, body.size()));
        CHECK(peer.closed_by_server());
        CHECK(engine.world.open_descriptors() == descriptors);
        engine.server.check_nothing_left();
    }
}

TEST_CASE("a file that is shorter than was promised, from the start") {
    FileEngine engine(100);
    const Answer answer = feed_whole(engine, get("/0/200") + get("/next"));
    CHECK(replies_in(answer.bytes)[0].field("Content-Length") == "200");
    check_same(body_of(answer.bytes), pattern(100));
    CHECK(answer.closed);
    engine.server.check_nothing_left();
}

}  // namespace penstock::test

// Request bodies that are decoded before their handler sees them: whole and in pieces, cut everywhere, broken, and bombs.
#include <functional>

#include "compress_fixture.h"
#include "penstock/protocols/http/body_decoding.h"

namespace penstock::test {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

std::string coded(ContentCoding coding) { return "Content-Encoding: " + std::string(content_coding_name(coding)) + "\r\n"; }

// Whatever way a handler takes its body, it answers what it has got.
Router decoding_router(RouteOptions options = {}) {
    options.decode_body = true;
    Router router;
    router.post("/whole", [](Request& request, Response& response) { response.send(expected_count(request.body())); }, options);
    router.post("/read", [](Request& request, Response& response) -> Task<void> {
        std::string body;
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            body.append(piece);
        }
        response.send(expected_count(body));
    }, options);
    router.post("/read_all", [](Request& request, Response& response) -> Task<void> {
        response.send(expected_count(co_await request.read_all()));
    }, options);
    struct Collector : std::enable_shared_from_this<Collector> {
        Request& request;
        Response& response;
        std::string body;
        Collector(Request& from, Response& to) : request(from), response(to) {}
        void read() {
            request.read([self = shared_from_this()](std::string_view piece) {
                self->body.append(piece);
                piece.empty() ? self->response.send(expected_count(self->body)) : self->read();
            });
        }
    };
    const auto collect = [](Request& request, Response& response) { std::make_shared<Collector>(request, response)->read(); };
    router.post("/once", collect, options);
    options.stream_body = true;
    router.post("/callback", collect, options);
    return router;
}

constexpr std::string_view kWays[] = {"/whole", "/read", "/read_all", "/once", "/callback"};

Config roomy() {
    Config config = small_config();
    config.body_limit_bytes = 4 * kMebibyte;
    return config;
}

void check_all_back(Engine& engine) {
    engine.server.check_nothing_left();
    CHECK(engine.server.reactor().free_body_memory() == engine.server.reactor().config().body_memory_limit_bytes);
}

// On a connection of its own, which is closed behind it.
std::string ask_alone(Engine& engine, std::string_view request) {
    sim::Peer peer = engine.world.connect(kPort);
    const std::string answer = engine.exchange(peer, request);
    peer.close();
    engine.server.settle();
    check_all_back(engine);
    return answer;
}

}  // namespace

TEST_CASE("every coding of every size reaches every kind of handler decoded") {
    Engine engine(decoding_router(), roomy());
    for (const ContentCoding coding : available_codings()) {
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{999}, std::size_t{16'383}, std::size_t{16'384}, std::size_t{16'385}, std::size_t{65'537}, kMebibyte}) {
            const std::string body = size % 2 == 0 ? text_body(size) : random_body(size);
            const std::string sent = encoded(coding, body, 10'000, 3);
            for (const std::string_view way : kWays) {
                CAPTURE(content_coding_name(coding));
                CAPTURE(size);
                CAPTURE(way);
                const std::string counted = expected_count(body);
                CHECK(body_of(ask_alone(engine, post(way, coded(coding) + length_field(sent.size()), sent))) == counted);
                CHECK(body_of(ask_alone(engine, post(way, coded(coding) + "Transfer-Encoding: chunked\r\n", chunked(sent, 700)))) == counted);
            }
        }
    }
}

TEST_CASE("it makes no difference where the bytes are cut") {
    Engine engine(decoding_router());
    const std::string body = text_body(3'000);
    for (const ContentCoding coding : available_codings()) {
        const std::string sent = encoded(coding, body);
        for (const std::string_view way : kWays) {
            CAPTURE(content_coding_name(coding));
            CAPTURE(way);
            for (const bool in_chunks : {false, true}) {
                const std::string request = in_chunks ? post(way, coded(coding) + "Transfer-Encoding: chunked\r\n", chunked(sent, 100))
                                                      : post(way, coded(coding) + length_field(sent.size()), sent);
                for (std::size_t at = request.find("\r\n\r\n"); at < request.size(); ++at) {
                    CHECK(body_of(feed_cut(engine, request, at).bytes) == expected_count(body));
                }
                CHECK(body_of(feed_bytewise(engine, request).bytes) == expected_count(body));
            }
            check_all_back(engine);
        }
    }
}

TEST_CASE("requests follow each other on one connection, encoded or not") {
    Engine engine(decoding_router());
    sim::Peer peer = engine.world.connect(kPort);
    std::string requests;
    std::string statuses;
    const std::string sent = encoded(ContentCoding::gzip, text_body(40'000));
    for (const std::string_view way : kWays) {
        requests += post(way, coded(ContentCoding::gzip) + length_field(sent.size()), sent) + post(way, length_field(5), "plain");
        statuses += std::string(statuses.empty() ? "" : " ") + "200 200";
    }
    const std::string answers = engine.exchange(peer, requests);
    CHECK(statuses_in(answers) == statuses);
    CHECK(count_of(answers, "\r\n\r\n" + expected_count(text_body(40'000))) == std::size(kWays));
    CHECK(count_of(answers, "\r\n\r\n" + expected_count("plain")) == std::size(kWays));
    peer.close();
    engine.server.settle();
    check_all_back(engine);
}

TEST_CASE("what Content-Encoding may say") {
    Engine engine(decoding_router());
    const std::string gzip = encoded(ContentCoding::gzip, "hello");
    const struct {
        std::string fields;
        std::string body;
        int status;
    } cases[] = {
        {"Content-Encoding: gzip\r\n", gzip, 200},
        {"Content-Encoding: X-GZip\r\n", gzip, 200},
        {"Content-Encoding: identity\r\n", "hello", 200},
        {"Content-Encoding: \r\n", "hello", 200},
        {"", "hello", 200},
        {"Content-Encoding: gzip\r\n", "", 200},  // nothing at all is no broken body
        {"Content-Encoding: compress\r\n", gzip, 415},
        {"Content-Encoding: gzip, gzip\r\n", gzip, 415},
        {"Content-Encoding: identity, gzip\r\n", gzip, 415},
        {"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", gzip, 415},
        {"Content-Encoding: gzip;q=1\r\n", gzip, 415},
        {"Content-Encoding: gzip\r\n", "hello", 400},
        {"Content-Encoding: gzip\r\n", gzip.substr(0, gzip.size() - 1), 400},
        {"Content-Encoding: deflate\r\n", gzip, 400},
        {"Content-Encoding: gzip\r\n", gzip + "x", 400},
    };
    for (const auto& expected : cases) {
        for (const std::string_view way : kWays) {
            CAPTURE(expected.fields);
            CAPTURE(way);
            const std::string answer = ask_alone(engine, post(way, expected.fields + length_field(expected.body.size()), expected.body));
            CHECK(status_of(answer) == expected.status);
            if (expected.status == 200) {
                CHECK(body_of(answer) == expected_count(expected.body.empty() ? "" : "hello"));
            } else {
                CHECK(replies_in(answer).front().field("Connection") == "close");
            }
            CHECK(replies_in(answer).front().field("Accept-Encoding") == (expected.status == 415 ? accepted_codings() : ""));
        }
    }
}

TEST_CASE("a route that does not ask for it gets the body as it was sent") {
    Router router;
    router.post("/", [](Request& request, Response& response) { response.send(expected_count(request.body())); });
    Engine engine(router);
    const std::string gzip = encoded(ContentCoding::gzip, "hello");
    CHECK(body_of(ask_alone(engine, post("/", "Content-Encoding: gzip\r\n" + length_field(gzip.size()), gzip))) == expected_count(gzip));
    CHECK(status_of(ask_alone(engine, post("/", "Content-Encoding: compress\r\n" + length_field(4), "body"))) == 200);
}

TEST_CASE("an expectation is answered before the body, and a coding that is not taken instead of it") {
    Engine engine(decoding_router());
    const std::string gzip = encoded(ContentCoding::gzip, "hello");
    for (const std::string_view way : kWays) {
        sim::Peer peer = engine.world.connect(kPort);
        const std::string more = "Expect: 100-continue\r\n" + length_field(gzip.size());
        CHECK(status_of(engine.exchange(peer, post(way, coded(ContentCoding::gzip) + more, ""))) == 100);
        CHECK(body_of(engine.exchange(peer, gzip)) == expected_count("hello"));
        CHECK(statuses_in(engine.exchange(peer, post(way, "Content-Encoding: lzma\r\n" + more, ""))) == "415");
        peer.close();
        engine.server.settle();
        check_all_back(engine);
    }
}

TEST_CASE("the limit holds for what a body is decoded to") {
    Engine engine(decoding_router({.body_limit_bytes = 20'000}));
    for (const ContentCoding coding : available_codings()) {
        for (const std::string_view way : kWays) {
            CAPTURE(content_coding_name(coding));
            CAPTURE(way);
            const std::string fits = encoded(coding, text_body(20'000));
            const std::string exceeds = encoded(coding, text_body(20'001));
            CHECK(status_of(ask_alone(engine, post(way, coded(coding) + length_field(fits.size()), fits))) == 200);
            CHECK(status_of(ask_alone(engine, post(way, coded(coding) + length_field(exceeds.size()), exceeds))) == 413);
        }
    }
}

TEST_CASE("a bomb is refused at the limit, with no more memory than that") {
    const std::string zeros(64 * kMebibyte, '\0');
    Config config = small_config();
    config.body_memory_limit_bytes = 4 * kMebibyte;
    for (const ContentCoding coding : available_codings()) {
        const std::string bomb = encoded(coding, zeros);
        CHECK(bomb.size() < kMebibyte);
        Engine engine(decoding_router(), config);
        for (const std::string_view way : kWays) {
            CAPTURE(content_coding_name(coding));
            CAPTURE(way);
            CHECK(status_of(ask_alone(engine, post(way, coded(coding) + length_field(bomb.size()), bomb))) == 413);
        }
    }
}

TEST_CASE("a handler that reads a bomb on and on gives others their turns") {
    const std::string zeros(64 * kMebibyte, '\0');
    Router router = decoding_router({.body_limit_bytes = 1'000 * kMebibyte});
    std::uint64_t taken = 0;
    router.post("/count", [&taken](Request& request, Response& response) -> Task<void> {
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            taken += piece.size();
        }
        response.send(std::to_string(taken));
    }, {.body_limit_bytes = 1'000 * kMebibyte, .decode_body = true});
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        const std::string bomb = encoded(coding, zeros);
        Engine engine(router);
        for (const bool half_closed : {false, true}) {
            taken = 0;
            sim::Peer peer = engine.world.connect(kPort);
            peer.send(post("/count", coded(coding) + length_field(bomb.size()), bomb));
            if (half_closed) {
                peer.finish();
            }
            std::uint64_t most = 0;
            for (int turns = 0; turns < 10'000 && (engine.server.reactor().has_work() || !engine.world.quiet()); ++turns) {
                const std::uint64_t before = taken;
                engine.server.reactor().run_turn(0);
                most = std::max(most, taken - before);
            }
            CHECK(most > 0);
            CHECK(most <= kDecodedBytesPerTurn + BodyDecoding::kPieceBytes);
            CHECK(body_of(peer.take_received()) == std::to_string(zeros.size()));
            peer.close();
            engine.server.settle();
            check_all_back(engine);
        }
    }
}

TEST_CASE("a body in pieces is not received faster than it is read") {
    Router router;
    std::uint64_t taken = 0;
    router.post("/slow", [&taken](Request& request, Response& response) -> Task<void> {
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            taken += piece.size();
            co_await sleep_ms(1);
        }
        response.send(std::to_string(taken));
    }, {.body_limit_bytes = 8 * kMebibyte, .decode_body = true});
    Engine engine(router);
    const std::string body = random_body(2 * kMebibyte);
    const std::string sent = encoded(ContentCoding::gzip, body);
    sim::Peer peer = engine.world.connect(kPort);
    peer.send(post("/slow", coded(ContentCoding::gzip) + length_field(sent.size()), sent));
    engine.server.settle();
    CHECK(taken > 0);
    CHECK(engine.server.reactor().counters().received_bytes.get() < 100'000);
    for (int i = 0; i < 1'000 && peer.received().empty(); ++i) {
        engine.server.advance(1);
    }
    CHECK(body_of(peer.take_received()) == std::to_string(body.size()));
    peer.close();
    engine.server.settle();
    check_all_back(engine);
}

TEST_CASE("memory of decoders counts as that of bodies, and is refused with 503") {
    Config config = small_config();
    config.body_limit_bytes = 6'000;
    config.body_memory_limit_bytes = 6'000;  // a decoder of gzip takes 7,000 at least
    Engine engine(decoding_router(), config);
    const std::string gzip = encoded(ContentCoding::gzip, text_body(5'000));
    for (const std::string_view way : kWays) {
        CAPTURE(way);
        CHECK(status_of(ask_alone(engine, post(way, coded(ContentCoding::gzip) + length_field(gzip.size()), gzip))) == 503);
    }
}

TEST_CASE("a client that leaves within an encoded body leaves nothing behind") {
    Engine engine(decoding_router(), roomy());
    for (const ContentCoding coding : available_codings()) {
        const std::string sent = encoded(coding, random_body(100'000));
        for (const std::string_view way : kWays) {
            for (const std::size_t part : {std::size_t{1}, sent.size() / 2, sent.size() - 1}) {
                for (const bool resets : {false, true}) {
                    sim::Peer peer = engine.world.connect(kPort);
                    peer.send(post(way, coded(coding) + length_field(sent.size()), std::string_view(sent).substr(0, part)));
                    engine.server.settle();
                    resets ? peer.reset() : peer.close();
                    engine.server.settle();
                    check_all_back(engine);
                }
            }
        }
    }
}

TEST_CASE("a handler need not read a body that is encoded") {
    Router router;
    const RouteOptions decodes{.decode_body = true};
    router.post("/none", [](Request&, Response& response) -> Task<void> {
        response.send("enough");
        co_return;
    }, decodes);
    router.post("/one", [](Request& request, Response& response) -> Task<void> {
        (void)co_await request.read();
        response.send("enough");
    }, decodes);
    router.post("/on", [](Request& request, Response& response) -> Task<void> {
        (void)co_await request.read();
        response.send("enough");
        while (!(co_await request.read()).empty()) {
        }
    }, decodes);
    Engine engine(router);
    const std::string sent = encoded(ContentCoding::gzip, random_body(100'000));
    for (const std::string_view way : {"/none", "/one", "/on"}) {
        CAPTURE(way);
        CHECK(body_of(ask_alone(engine, post(way, coded(ContentCoding::gzip) + length_field(sent.size()), sent))) == "enough");
        CHECK(body_of(ask_alone(engine, post(way, coded(ContentCoding::gzip) + length_field(sent.size()), sent.substr(0, 50'000)))) == "enough");
    }
}

TEST_CASE("what is decoded can be sent back compressed, piece by piece") {
    Router router = compressing();
    router.post("/", [](Request& request, Response& response) { std::make_shared<Copier>(request, response)->read(); },
                {.stream_body = true, .decode_body = true});
    Engine engine(router);
    const std::string body = text_body(300'000);
    for (const ContentCoding coding : available_codings()) {
        sim::Peer peer = engine.world.connect(kPort);
        const std::string sent = encoded(coding, body);
        const std::string answer = engine.exchange(peer, post("/", coded(coding) + accepting(content_coding_name(coding)) + length_field(sent.size()), sent));
        const Compressed back = take_apart(answer);
        CHECK(back.coding() == content_coding_name(coding));
        CHECK(back.plain == body);
        peer.close();
        engine.server.settle();
        check_all_back(engine);
    }
}

}  // namespace penstock::test

// Trailers of requests (RFC 9110 §6.5, RFC 9112 §7.1.2): what a handler is given of them, when, and what they cannot do.
#include "http_fixture.h"

namespace penstock::test {
namespace {

// "[Name=value][…]." of all trailers.
std::string trailers_of(const Request& request) {
    std::string text;
    for (std::size_t i = 0; i < request.trailer_count(); ++i) {
        const HeaderField field = request.trailer_at(i);
        text.append("[").append(field.name).append("=").append(field.value).append("]");
    }
    return text + ".";
}

// What trailers must not have changed, then what they are.
std::string description(const Request& request, std::string_view body) {
    std::string text = std::to_string(request.header_count());
    return text.append(" ").append(request.host()).append(" ").append(body).append(" ").append(trailers_of(request));
}

Router trailer_router() {
    Router router;
    router.any("/echo", [](Request& request, Response& response) {
        response.send(description(request, request.body()));
    });
    router.any("/all", [](Request& request, Response& response) -> Task<void> {
        const std::string_view body = co_await request.read_all();
        response.send(description(request, body));
    });
    router.any("/read", [](Request& request, Response& response) -> Task<void> {
        std::string body;
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            body += piece;
        }
        response.send(description(request, body));
    });
    router.any("/large", [](Request& request, Response& response) {
        response.send(std::to_string(request.body().size()) + trailers_of(request));
    }, {.body_limit_bytes = 1 << 20});
    router.any("/large-read", [](Request& request, Response& response) -> Task<void> {
        std::size_t bytes = 0;
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            bytes += piece.size();
        }
        response.send(std::to_string(bytes) + trailers_of(request));
    });
    router.any("/by-name", [](Request& request, Response& response) {
        const std::string_view sum = request.trailer("x-SUM");
        response.send((sum.data() == nullptr ? "none" : std::string(sum)) + " " +
                      (request.header("X-Sum").data() == nullptr ? "no header" : "a header"));
    });
    router.any("/early", [](Request& request, Response& response) -> Task<void> {
        co_await request.read();
        const std::string first = trailers_of(request);
        co_await request.read();
        response.send("first " + first + " end " + trailers_of(request));
    });
    router.any("/slow", [](Request& request, Response& response) -> Task<void> {
        co_await request.read_all();
        const std::string_view sum = request.trailer("X-Sum");
        co_await sleep_ms(10);
        response.send(sum);
    });
    router.get("/letters", [](Request&, Response& response) { response.send_static("abcdefghijklmnopqrstuvwxyz"); });
    router.any("/deaf", [](Request& request, Response& response) -> Task<void> {
        response.send("deaf" + trailers_of(request));
        co_return;
    });
    return router;
}

std::string request_for(std::string_view path, std::string_view chunks, std::string_view trailers) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n" +
           std::string(chunks) + "0\r\n" + std::string(trailers) + "\r\n";
}

struct TrailerCase {
    std::string name;
    std::string trailers;
    std::string seen;
};

std::vector<TrailerCase> trailer_cases() {
    return {
        {"none", "", ""},
        {"one", "X-Sum: 42\r\n", "[X-Sum=42]"},
        {"several, in order", "B: 1\r\nA: 2\r\nB: 3\r\n", "[B=1][A=2][B=3]"},
        {"white space around a value", "X: \t a b\t \r\nY:c\r\n", "[X=a b][Y=c]"},
        {"empty values", "X:\r\nY: \t\r\n", "[X=][Y=]"},
        {"colons", "X: :a:b\r\n", "[X=:a:b]"},
        {"obs-text", "X: \xe4\xff\r\n", "[X=\xe4\xff]"},
        // They are about a frame, a way or a connection: in a head of their own they would make another request.
        {"of framing", "Content-Length: 50\r\ntransfer-encoding: gzip\r\nTrailer: X\r\nX: 1\r\n", "[X=1]"},
        {"of routing and of the connection",
         "HOST: u\r\nX: 1\r\nConnection: close\r\nKeep-Alive: 1\r\nTE: a\r\nUpgrade: h2c\r\nExpect: 100-continue\r\n",
         "[X=1]"},
        {"only such", "Content-Length: 5\r\n", ""},
        {"names that only begin or end like them", "Content-Lengths: 5\r\nX-Host: u\r\n",
         "[Content-Lengths=5][X-Host=u]"},
        // Forbidden by RFC 9110 §6.5.1 as well; they do nothing where they are.
        {"others that mean nothing there", "Content-Type: a/b\r\nAuthorization: c\r\nCookie: d=e\r\n",
         "[Content-Type=a/b][Authorization=c][Cookie=d=e]"},
    };
}

}  // namespace

TEST_CASE("trailers are delivered apart, however the request is cut and its handler reads") {
    Engine engine(trailer_router());
    for (const TrailerCase& expected : trailer_cases()) {
        for (const std::string_view path : {"/echo", "/all", "/read"}) {
            run_case(engine, {.name = expected.name + " for " + std::string(path),
                              .request = request_for(path, "5\r\nhello\r\n6\r\n world\r\n", expected.trailers),
                              .statuses = "200",
                              .ending = Ending::stays,
                              .contains = "\r\n\r\n2 t hello world " + expected.seen + "."});
        }
    }
}

TEST_CASE("a request behind trailers is the next request") {
    Engine engine(trailer_router());
    for (const std::string_view path : {"/echo", "/all", "/read"}) {
        const std::string one = request_for(path, "1\r\na\r\n", "X: 1\r\nContent-Length: 100\r\n");
        const std::string two = request_for(path, "", "Y: 2\r\n");
        const std::string three = "POST " + std::string(path) + " HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nz";
        run_case(engine, {.name = "behind " + std::string(path),
                          .request = one + two + three + one,
                          .statuses = "200 200 200 200",
                          .ending = Ending::stays,
                          .contains = "2 t z "});
        const std::vector<Reply> replies = replies_in(feed_whole(engine, one + two + three + one).bytes);
        REQUIRE(replies.size() == 4);
        CHECK(replies[0].body == "2 t a [X=1].");
        CHECK(replies[1].body == "2 t  [Y=2].");
        CHECK(replies[2].body == "2 t z .");
        CHECK(replies[3].body == "2 t a [X=1].");
    }
}

TEST_CASE("a trailer is found by its name in any letter case, and is no header") {
    Engine engine(trailer_router());
    CHECK(body_of(engine.ask(request_for("/by-name", "", "X-Sum: 1\r\nX-Sum: 2\r\n"))) == "1 no header");
    CHECK(body_of(engine.ask(request_for("/by-name", "", "X-Sum:\r\n"))) == " no header");
    CHECK(body_of(engine.ask(request_for("/by-name", "", "X: 1\r\n"))) == "none no header");
    CHECK(body_of(engine.ask(post("Content-Length: 0\r\nX-Sum: 1\r\n"))) == "3 t  .");
    CHECK(body_of(engine.ask("GET /by-name HTTP/1.1\r\nHost: t\r\nX-Sum: 1\r\n\r\n")) == "none a header");
}

TEST_CASE("trailers are not known before the body is complete") {
    Engine engine(trailer_router());
    sim::Peer peer = engine.world.connect(kPort);
    const std::string request = request_for("/early", "5\r\nhello\r\n", "X: 1\r\nY: 2\r\n");
    const std::size_t inside = request.find("Y: 2");
    CHECK(engine.exchange(peer, request.substr(0, inside)).empty());
    CHECK(body_of(engine.exchange(peer, request.substr(inside))) == "first . end [X=1][Y=2].");
}

TEST_CASE("trailers outlive the input that they came in") {
    Engine engine(trailer_router());
    sim::Peer peer = engine.world.connect(kPort);
    const std::string next = get("/echo", "X-Fill: " + std::string(4'000, 'f') + "\r\n");
    peer.send(request_for("/slow", "5\r\nhello\r\n", "X-Sum: 42\r\n") + next + next);
    engine.server.settle();
    engine.server.advance(10);
    const std::vector<Reply> replies = replies_in(peer.take_received());
    REQUIRE(replies.size() == 3);
    CHECK(replies[0].body == "42");
}

TEST_CASE("trailers behind bodies in the block, on the heap and streamed, short and long") {
    Engine engine(trailer_router());
    std::string long_lines;
    std::string long_seen;
    for (char letter = 'a'; letter < 'a' + 10; ++letter) {
        const std::string value(1'500, letter);
        long_lines += std::string("X-") + letter + ": " + value + "\r\n";
        long_seen += std::string("[X-") + letter + "=" + value + "]";
    }
    const std::string whole_block = "X: " + std::string(kIoBlockBytes - 7, 'y') + "\r\n";  // with the empty line
    for (const std::size_t size : {3u, 9'000u, 40'000u}) {
        std::string chunks;
        for (std::size_t at = 0; at < size; at += 1'000) {
            char line[20];
            const std::size_t chunk = std::min<std::size_t>(1'000, size - at);
            std::snprintf(line, sizeof line, "%zx\r\n", chunk);
            chunks.append(line).append(chunk, 'b').append("\r\n");
        }
        for (const std::string_view path : {"/large", "/large-read"}) {
            CAPTURE(size);
            CAPTURE(path);
            const std::string head = "\r\n\r\n" + std::to_string(size);
            const Case cases[] = {
                {"short", request_for(path, chunks, "X: 1\r\n"), "200", Ending::stays, head + "[X=1]."},
                {"long", request_for(path, chunks, long_lines), "200", Ending::stays, head + long_seen + "."},
                {"as long as may be", request_for(path, chunks, whole_block), "200", Ending::stays, head + "[X=yyy"},
            };
            for (const Case& expected : cases) {
                run_case(engine, expected);
            }
        }
    }
}

TEST_CASE("framing that fills a block without a byte of the body lets a reading handler wait on") {
    Engine engine(trailer_router());
    const std::string head = request_for("/large-read", "3e8\r\n" + std::string(1'000, 'b') + "\r\n", "");
    const std::string extension = "1;a=" + std::string(kIoBlockBytes + 500, 'b') + "\r\n!\r\n";
    const std::string trailers = "0\r\nX: " + std::string(kIoBlockBytes - 7, 'y') + "\r\n\r\n";
    for (const std::string& rest : {extension + "0\r\n\r\n", extension + trailers, trailers}) {
        sim::Peer peer = engine.world.connect(kPort);
        CHECK(engine.exchange(peer, head.substr(0, head.size() - 5)).empty());  // its handler waits for more
        CHECK(status_of(engine.exchange(peer, rest)) == 200);
        peer.close();
        engine.server.settle();
    }
    engine.server.check_nothing_left();
}

TEST_CASE("limits of trailers") {
    std::string many;
    for (int i = 0; i < 100; ++i) {
        many += "X: y\r\n";
    }
    Engine engine(trailer_router());
    for (const std::string_view path : {"/echo", "/all", "/read"}) {
        const Case cases[] = {
            {"as many as may be", request_for(path, "", many), "200", Ending::stays, "[X=y][X=y]"},
            {"one more", request_for(path, "", many + "X: y\r\n"), "431"},
            {"one more that is not delivered", request_for(path, "", many + "Host: y\r\n"), "431"},
            {"a byte more than a block", request_for(path, "", "X: " + std::string(kIoBlockBytes - 6, 'y') + "\r\n"),
             "431"},
        };
        for (const Case& expected : cases) {
            run_case(engine, expected);
        }
    }
}

TEST_CASE("trailers that find no memory are 503") {
    Config config = small_config();
    config.page_limit = 2;
    Engine engine(trailer_router(), config);
    sim::Peer other = engine.world.connect(kPort);
    const std::string waits = request_for("/slow", "", "");
    CHECK(engine.exchange(other, waits).empty());  // holds a page
    CHECK(status_of(engine.ask(request_for("/echo", "", "X: 1\r\n"))) == 200);
    // More than the rest of the only page, and no more than one: it takes another, and there is none.
    CHECK(status_of(engine.ask(request_for("/echo", "", "X: " + std::string(3'900, 'y') + "\r\n"))) == 503);
    engine.server.advance(10);
    CHECK(status_of(other.take_received()) == 200);
}

TEST_CASE("a handler that reads nothing is given no trailers, and what follows is served") {
    Engine engine(trailer_router());
    const std::string request = request_for("/deaf", "5\r\nhello\r\n", "X: 1\r\n");
    const std::vector<Reply> replies = replies_in(feed_whole(engine, request + get("/echo")).bytes);
    REQUIRE(replies.size() == 2);
    CHECK(replies[0].body == "deaf.");
    CHECK(replies[1].status == 200);
    engine.server.check_nothing_left();
}

TEST_CASE("white space around a length is spaces and tabs") {
    const auto with = [](std::string_view value) {
        return post("Content-Length:" + std::string(value) + "\r\nX: a\tb\r\n", "hello");
    };
    Engine engine(case_router());
    const Case cases[] = {
        {"a tab behind it", with(" 5\t"), "200", Ending::stays, "\r\n\r\nhello"},
        {"tabs and spaces on both sides", with("\t \t5\t \t\t "), "200", Ending::stays, "\r\n\r\nhello"},
        {"a thousand tabs", with(" 5" + std::string(1'000, '\t')), "200", Ending::stays, "\r\n\r\nhello"},
        {"in another letter case", post("content-LENGTH: 5\t\r\n", "hello"), "200", Ending::stays, "\r\n\r\nhello"},
        {"a tab inside", with(" 5\t5"), "400"},
        {"text behind white space", with(" 5 \tx"), "400"},
        {"a number behind white space", with(" 5\t\t5"), "400"},
        {"only white space", with(" \t"), "400"},
        {"a comma", with(" 5\t,5"), "400"},
        {"a bare CR behind a tab", with(" 5\t\r\t"), "400"},
        {"folded", with(" 5\t\r\n\t"), "400"},
        {"twice", post("Content-Length: 5\t\r\nContent-Length: 5\t\r\n", "hello"), "400"},
        {"with a coding", post("Content-Length: 5\t\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), "400"},
    };
    for (const Case& expected : cases) {
        run_case(engine, expected);
    }
}

TEST_CASE("a tab in the field behind a length stays one") {
    Engine engine(case_router());
    run_case(engine, {.name = "a tab inside of a value",
                      .request = get("/value", "Content-Length: 0\t\r\nX-Value:\ta\tb\t\r\n"),
                      .statuses = "200",
                      .ending = Ending::stays,
                      .contains = "[a\tb]"});
}

}  // namespace penstock::test

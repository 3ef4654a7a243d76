// What is answered, and what becomes of the connection afterwards (RFC 9110, RFC 9112 §9).
#include "http_fixture.h"

#include "penstock/platform/file.h"

namespace penstock::test {
namespace {

// Of a file of the World, for a handler that will send it.
int open_letters() {
    const Result<int> root = platform::open_directory("/www");
    if (!root.ok()) {
        return -1;
    }
    const IoResult opened = platform::open_beneath(root.value(), "letters.txt");
    platform::close_descriptor(root.value());
    return opened.ok() ? static_cast<int>(opened.count) : -1;
}

Router semantics_router() {
    Router router = case_router();
    router.get("/copied", [](Request&, Response& response) { response.send(kLetters); });
    router.get("/large", [](Request&, Response& response) { response.send(std::string(100'000, 'x')); });
    router.get("/half-large", [](Request&, Response& response) { response.send(std::string(50'000, 'x')); });
    router.get("/file", [](Request&, Response& response) {
        response.header("Content-Type", "text/plain").send_file(open_letters(), 0, kLetters.size());
    });
    router.get("/status/:code", [](Request& request, Response& response) {
        response.status(static_cast<unsigned>(std::stoul(std::string(request.parameter("code")))))
            .send("a body");
    });
    router.get("/file-status/:code", [](Request& request, Response& response) {
        response.status(static_cast<unsigned>(std::stoul(std::string(request.parameter("code")))));
        response.send_file(open_letters(), 0, kLetters.size());
    });
    router.get("/close",
               [](Request&, Response& response) { response.header("Connection", "close").send("bye"); });
    router.put("/things/:id", [](Request&, Response& response) { response.status(204).send_empty(); });
    router.del("/things/:id", [](Request&, Response& response) { response.status(204).send_empty(); });
    return router;
}

struct SemanticsEngine : Engine {
    SemanticsEngine() : Engine(semantics_router()) {
        world.add_file("/www/letters.txt", std::string(kLetters));
    }
};

std::string request_for(std::string_view method, std::string_view target, std::string_view fields = "") {
    return std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: t\r\n" +
           std::string(fields) + "\r\n";
}

}  // namespace

TEST_CASE("HEAD is answered like GET, without the body, and leaves no file open") {
    SemanticsEngine engine;
    const std::size_t descriptors = engine.world.open_descriptors();
    for (const char* path :
         {"/letters", "/copied", "/large", "/file", "/status/404", "/status/204", "/status/304", "/no"}) {
        CAPTURE(std::string(path));
        const std::vector<Reply> of_get = replies_in(engine.ask(get(path)));
        const std::string of_head = engine.ask(request_for("HEAD", path));
        REQUIRE(of_get.size() == 1);
        CHECK(of_head == of_get[0].head);
    }
    // What follows on the connection is not taken for a body.
    const std::string both = engine.ask(request_for("HEAD", "/file") + get("/file"));
    const std::vector<Reply> replies = replies_in(both, 1);
    REQUIRE(replies.size() == 2);
    CHECK(replies[0].field("Content-Length") == "26");
    CHECK(replies[1].body == kLetters);
    CHECK(engine.world.open_descriptors() == descriptors + 17);  // the clients, who are all still there
    CHECK(engine.world.bad_descriptor_calls() == 0);
}

TEST_CASE("204 and 304 have neither length nor body, whatever the handler gave") {
    SemanticsEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    const std::size_t descriptors = engine.world.open_descriptors();
    for (const char* path : {"/status/204", "/status/304", "/file-status/204", "/file-status/304"}) {
        CAPTURE(std::string(path));
        const std::vector<Reply> replies = replies_in(engine.exchange(peer, get(path) + get("/")));
        REQUIRE(replies.size() == 2);
        CHECK_FALSE(replies[0].has_field("Content-Length"));
        CHECK_FALSE(replies[0].has_field("Transfer-Encoding"));
        CHECK(replies[0].body.empty());
        CHECK(replies[1].body == "home");
    }
    CHECK(engine.world.open_descriptors() == descriptors);
}

TEST_CASE("404, 405 with Allow, OPTIONS") {
    SemanticsEngine engine;
    const auto allow = [&engine](std::string_view method, std::string_view target, int status) {
        const std::vector<Reply> replies =
            replies_in(engine.ask(request_for(method, target)), method == "HEAD" ? 1 : 0);
        REQUIRE(replies.size() == 1);
        CHECK(replies[0].status == status);
        CHECK(replies[0].has_field("Connection") == (status == 400));
        return replies[0].field("Allow");
    };
    CHECK(allow("GET", "/nowhere", 404).empty());
    CHECK(allow("OPTIONS", "/nowhere", 404).empty());
    CHECK(allow("DELETE", "/only-get", 405) == "GET, HEAD, OPTIONS");
    CHECK(allow("POST", "/things/1", 405) == "PUT, DELETE, OPTIONS");
    CHECK(allow("HEAD", "/things/1", 405) == "PUT, DELETE, OPTIONS");
    CHECK(allow("OPTIONS", "/things/1", 204) == "PUT, DELETE, OPTIONS");
    CHECK(allow("OPTIONS", "/only-get", 204) == "GET, HEAD, OPTIONS");
    for (const char* method : {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
        CHECK(allow("OPTIONS", "*", 204).find(method) != std::string::npos);
    }
    CHECK(allow("GET", "*", 400).empty());
}

TEST_CASE("a body that nobody reads: what has arrived is skipped, for the rest the connection closes") {
    SemanticsEngine engine;
    for (const char* target : {"/nowhere", "/only-get"}) {
        CAPTURE(std::string(target));
        const std::string head = request_for("POST", target, "Content-Length: 5\r\n");
        const std::string chunked_head = request_for("POST", target, "Transfer-Encoding: chunked\r\n");
        const int status = std::string(target) == "/nowhere" ? 404 : 405;
        for (const std::string& whole : {head + "hello", chunked_head + "5\r\nhello\r\n0\r\n\r\n"}) {
            const Answer answer = feed_whole(engine, whole + get("/"));
            CHECK(statuses_in(answer.bytes) == std::to_string(status) + " 200");
        }
        for (const std::string& part : {head, head + "hel", chunked_head, chunked_head + "5\r\nhel"}) {
            const Answer answer = feed_whole(engine, part);
            CHECK(statuses_in(answer.bytes) == std::to_string(status));
            CHECK(replies_in(answer.bytes)[0].field("Connection") == "close");
            CHECK(answer.closed);
        }
    }
    engine.server.check_nothing_left();
}

TEST_CASE("a handler ends the connection with its answer; nothing behind it is answered") {
    SemanticsEngine engine;
    const Answer answer = feed_whole(engine, get("/close") + get("/"));
    const std::vector<Reply> replies = replies_in(answer.bytes);
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].body == "bye");
    CHECK(replies[0].field("Connection") == "close");
    CHECK(count_of(answer.bytes, "Connection:") == 1);
    CHECK(answer.closed);
    engine.server.check_nothing_left();
}

TEST_CASE("a client that has finished sending gets its answers") {
    SemanticsEngine engine;
    const auto ask_and_finish = [&engine](std::string_view bytes, bool together) {
        sim::Peer peer = engine.world.connect(kPort);
        peer.send(bytes);
        if (!together) {
            engine.server.settle();
        }
        peer.finish();
        engine.server.settle();
        CHECK(peer.closed_by_server());
        CHECK_FALSE(peer.reset_by_server());
        return statuses_in(peer.take_received());
    };
    for (const bool together : {true, false}) {
        CAPTURE(together);
        CHECK(ask_and_finish("", together).empty());
        CHECK(ask_and_finish(get("/"), together) == "200");
        CHECK(ask_and_finish(get("/") + get("/file"), together) == "200 200");
        CHECK(ask_and_finish(chunked("5\r\nhello\r\n0\r\n\r\n"), together) == "200");
        CHECK(ask_and_finish("GET / HTT", together).empty());
        CHECK(ask_and_finish(post("Content-Length: 5\r\n", "hell"), together).empty());
        CHECK(ask_and_finish(get("/") + "GET / HTT", together) == "200");
        CHECK(ask_and_finish(get("/") + post("Content-Length: 5\r\n", "hell"), together) == "200");
        CHECK(ask_and_finish("\r\n", together).empty());
    }
    engine.server.check_nothing_left();
}

TEST_CASE("half a request at the end does not cost the answers that are still on their way") {
    SemanticsEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(1'000);
    peer.send(get("/large") + "GET / HTT");
    peer.finish();
    engine.server.settle();
    std::string received;
    for (std::string part = peer.read(1'000); !part.empty(); part = peer.read(1'000)) {
        received += part;
        engine.server.settle();
    }
    CHECK(body_of(received).size() == 100'000);
    CHECK(peer.closed_by_server());
    engine.server.check_nothing_left();
}

TEST_CASE("a head that does not end in time does not cost the answers before it") {
    SemanticsEngine engine;
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(1'000);
    engine.exchange(peer, get("/half-large") + "GET / HTT");
    engine.server.advance(small_config().head_timeout_ms);
    std::string received;
    for (std::string part = peer.read(1'000); !part.empty(); part = peer.read(1'000)) {
        received += part;
        engine.server.advance(1'000);
    }
    CHECK(statuses_in(received) == "200 408");
    CHECK(replies_in(received)[0].body.size() == 50'000);
    CHECK(peer.finished_by_server());
    peer.close();
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("Expect: 100-continue is answered before the body comes") {
    SemanticsEngine engine;
    const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto ask_in_two = [&engine](std::string_view head, std::string_view body) {
        sim::Peer peer = engine.world.connect(kPort);
        const std::string before = engine.exchange(peer, head);
        return std::pair(before, engine.exchange(peer, body));
    };
    for (const char* value : {"100-continue", "100-Continue", "  100-continue "}) {
        const auto [before, after] =
            ask_in_two(post("Content-Length: 5\r\nExpect: " + std::string(value) + "\r\n"), "hello");
        CHECK(before == interim);
        CHECK(statuses_in(after) == "200");
        CHECK(body_of(after) == "hello");
    }
    {
        const auto [before, after] = ask_in_two(
            post("Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n"), "5\r\nhello\r\n0\r\n\r\n");
        CHECK(before == interim);
        CHECK(body_of(after) == "hello");
    }
    {
        const auto [before, after] =
            ask_in_two(get("/") + post("Content-Length: 5\r\nExpect: 100-continue\r\n"), "hello" + get("/"));
        CHECK(statuses_in(before) == "200 100");
        CHECK(statuses_in(after) == "200 200");
    }
    {
        const auto [before, after] =
            ask_in_two("POST /echo HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", "hello");
        CHECK(before.empty());
        CHECK(statuses_in(after) == "200");
    }
    // One that has its body already, or none at all, needs no interim answer; and one is enough.
    CHECK(statuses_in(engine.ask(post("Content-Length: 5\r\nExpect: 100-continue\r\n", "hello"))) == "200");
    CHECK(statuses_in(engine.ask(post("Content-Length: 0\r\nExpect: 100-continue\r\n"))) == "200");
    CHECK(statuses_in(engine.ask(get("/", "Expect: 100-continue\r\n"))) == "200");
    CHECK(statuses_in(
              feed_bytewise(engine, post("Content-Length: 5\r\nExpect: 100-continue\r\n", "hello")).bytes) ==
          "100 200");
}

TEST_CASE("every answer has a Date, of the second in which it was made") {
    SemanticsEngine engine;
    for (const std::string& request :
         {get("/"), get("/nowhere"), request_for("OPTIONS", "*"), get("/status/304"), get("/status/500"),
          std::string("nonsense\r\n\r\n"), get("/file")}) {
        CAPTURE(request);
        const std::vector<Reply> replies = replies_in(engine.ask(request));
        REQUIRE(replies.size() == 1);
        CHECK(replies[0].field("Date") == "Sun, 06 Nov 1994 08:49:37 GMT");
    }
    const auto date = [&engine] { return std::string(replies_in(engine.ask(get("/")))[0].field("Date")); };
    engine.server.advance(1'500);
    CHECK(date() == "Sun, 06 Nov 1994 08:49:38 GMT");
    engine.server.advance(499);
    CHECK(date() == "Sun, 06 Nov 1994 08:49:38 GMT");
    engine.server.advance(1);
    CHECK(date() == "Sun, 06 Nov 1994 08:49:39 GMT");
}

TEST_CASE("a wall clock that is set is followed within a second, forwards, backwards and to before 1970") {
    SemanticsEngine engine;
    const auto date = [&engine] { return std::string(replies_in(engine.ask(get("/")))[0].field("Date")); };
    REQUIRE(date() == "Sun, 06 Nov 1994 08:49:37 GMT");
    engine.server.advance(300);
    engine.world.set_wall_seconds(1'000'000'000);
    engine.server.advance(700);  // the second that was being shown is over
    CHECK(date() == "Sun, 09 Sep 2001 01:46:40 GMT");
    engine.server.advance(299);  // 1,000,000,000.999
    CHECK(date() == "Sun, 09 Sep 2001 01:46:40 GMT");
    engine.server.advance(1);
    CHECK(date() == "Sun, 09 Sep 2001 01:46:41 GMT");
    engine.world.set_wall_seconds(-1);
    engine.server.advance(1'000);
    CHECK(date() == "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST_CASE("HTTP/1.0 gets what it understands") {
    SemanticsEngine engine;
    const std::string large = engine.ask("GET /large HTTP/1.0\r\n\r\n");
    const std::vector<Reply> replies = replies_in(large);
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].head.substr(0, 17) == "HTTP/1.1 200 OK\r\n");
    CHECK_FALSE(replies[0].has_field("Transfer-Encoding"));
    CHECK(replies[0].body.size() == 100'000);
    CHECK(replies[0].field("Connection") == "close");
}

}  // namespace penstock::test

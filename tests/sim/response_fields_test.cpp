// Fields of responses: set by name, by number and prepared, and what becomes of those that are wrong.
#include <memory>
#include <string>

#include "engine_fixture.h"
#include "penstock/engine/config.h"

namespace penstock {

// What only the server does with a response, at moments of which programs know nothing.
struct ResponseTest {
    static void remove(Response& response, std::string_view name) { response.remove(name); }
    static void clear(Response& response) { response.clear(); }
};

}  // namespace penstock

namespace penstock::test {

namespace {

const PreparedField kJson("Content-Type", "application/json");
const PreparedField kFirst("X-Word", "first");
const PreparedField kSecond("x-word", "second");
const PreparedField kClose("Connection", "close");

Reply reply_of(const std::string& bytes) {
    const auto replies = replies_in(bytes);
    REQUIRE(replies.size() == 1);
    return replies.front();
}

}  // namespace

TEST_CASE("a prepared field replaces those of its name and is replaced, whatever the letter case") {
    Router router;
    router.get("/over", [](Request&, Response& response) {
        response.header("X-Word", "zero").add_header("X-Other", "1").header_static(kFirst).header(kSecond).send("");
    });
    router.get("/under", [](Request&, Response& response) { response.header(kFirst).header("X-WORD", "third").send(""); });
    router.get("/known", [](Request&, Response& response) {
        response.header("content-type", "text/csv").header(kJson).header(HeaderName::content_type, "text/html").send("");
    });
    router.get("/read", [](Request&, Response& response) {
        response.header_static(kJson).header_static(kFirst).header(kSecond);
        response.send(std::string(response.header(HeaderName::content_type)).append("|").append(response.header("X-Word")).append(
            response.header("X-None").data() == nullptr && response.header(HeaderName::cookie).data() == nullptr ? "|" : "!"));
    });
    Engine engine(router);
    const std::string over = engine.ask(get("/over"));
    CHECK(over.find("X-Other: 1\r\nx-word: second\r\n") != std::string::npos);
    CHECK(count_of(over, "ord: ") == 1);
    const std::string under = engine.ask(get("/under"));
    CHECK(under.find("X-WORD: third\r\n") != std::string::npos);
    CHECK(count_of(under, "first") == 0);
    const std::string known = engine.ask(get("/known"));
    CHECK(reply_of(known).field("Content-Type") == "text/html");
    CHECK(count_of(known, "ontent-") == 2);  // with Content-Length
    CHECK(body_of(engine.ask(get("/read"))) == "application/json|second|");
}

TEST_CASE("a prepared field may be there twice, and one of it is a response's content type") {
    Router router;
    router.get("/twice", [](Request&, Response& response) {
        response.add_header(kFirst).add_header(kFirst).add_header("X-Word", "third").header(kJson).send("{}");
    });
    Engine engine(router);
    for (int i = 0; i < 2; ++i) {  // the second time as well: a response leaves nothing in the field
        const std::string answer = engine.ask(get("/twice"));
        CHECK(answer.find("X-Word: first\r\nX-Word: first\r\nX-Word: third\r\nContent-Type: application/json\r\n"
                          "Content-Length: 2\r\n\r\n{}") != std::string::npos);
    }
}

TEST_CASE("a prepared Connection: close ends the connection, by whatever call it is set") {
    Router router;
    router.get("/header", [](Request&, Response& response) { response.header(kClose).send("a"); });
    router.get("/add", [](Request&, Response& response) { response.add_header(kClose).send("a"); });
    router.get("/static", [](Request&, Response& response) { response.header_static(kClose).send("a"); });
    router.get("/number", [](Request&, Response& response) { response.header(HeaderName::connection, "close").send("a"); });
    Engine engine(router);
    for (const char* path : {"/header", "/add", "/static", "/number"}) {
        CAPTURE(path);
        sim::Peer peer = engine.world.connect(kPort);
        const std::string answer = engine.exchange(peer, get(path));
        CHECK(count_of(answer, "Connection: close\r\n") == 1);
        CHECK(peer.finished_by_server());
        peer.close();
        engine.server.settle();
    }
    engine.server.check_nothing_left();
}

TEST_CASE("what no response may have is refused by number as by name") {
    Router router;
    router.get("/length", [](Request&, Response& response) { response.header(HeaderName::content_length, "1").send("a"); });
    router.get("/date", [](Request&, Response& response) { response.header(HeaderName::date, "now").send("a"); });
    router.get("/unknown", [](Request&, Response& response) { response.header(HeaderName::unknown, "a").send("a"); });
    router.get("/break", [](Request&, Response& response) { response.header(HeaderName::via, "a\r\nb: c").send("a"); });
    router.get("/name", [](Request&, Response& response) { response.header("a b", "c").send("a"); });
    Engine engine(router);
    std::size_t logged = 0;
    for (const char* path : {"/length", "/date", "/unknown", "/break", "/name"}) {
        CAPTURE(path);
        CHECK(status_of(engine.ask(get(path))) == 500);
        CHECK(engine.server.log.lines.size() == ++logged);
    }
}

TEST_CASE("fields that need pages of their own leave, and together they have a limit") {
    constexpr std::size_t kPart = kResponseFieldsLimitBytes / 4;
    static const PreparedField large("X-Large", std::string(kPart - 11, 'b'));
    static const std::string body(kCopyBodyLimitBytes, 'c');
    Router router;
    router.get("/fits", [](Request&, Response& response) {
        response.header(large).add_header(large).add_header("X-Large", std::string(kPart - 11, 'd'));
        response.add_header("X-Rest", std::string(kPart - 10, 'e')).send(body);
    });
    router.get("/is-replaced", [](Request&, Response& response) {
        for (int i = 0; i < 10; ++i) {
            response.header_static(large).header(large);
        }
        response.send(body);
    });
    router.get("/over", [](Request&, Response& response) {
        response.header(large).add_header(large).add_header(large).add_header(large).header("X", "").send(body);
    });
    Engine engine(router);
    const Reply whole = reply_of(engine.ask(get("/fits")));
    CHECK(whole.status == 200);
    CHECK(whole.body == body);
    CHECK(count_of(whole.head, "X-Large: b") == 2);
    CHECK(whole.field("X-Rest").size() == kPart - 10);
    const Reply replaced = reply_of(engine.ask(get("/is-replaced")));
    CHECK(replaced.body == body);
    CHECK(count_of(replaced.head, "X-Large: b") == 1);
    CHECK(reply_of(engine.ask(get("/over"))).status == 500);
    CHECK(engine.server.log.mention("kResponseFieldsLimitBytes"));
    engine.server.advance(small_config().idle_timeout_ms);
    engine.server.check_nothing_left();
}

TEST_CASE("a done hook reads the fields that a response has left with") {
    std::string seen;
    Router router;
    router.use({.done = [&](const Request&, const Response& response) {
        seen.append(response.header("X-Word")).append(" ").append(response.header(HeaderName::content_type));
    }});
    router.get("/", [](Request&, Response& response) { response.header(kFirst).json("{}"); });
    Engine engine(router);
    CHECK(body_of(engine.ask(get("/"))) == "{}");
    CHECK(seen == "first application/json");
}

TEST_CASE("a prepared field may go before the response that has been given it") {
    std::string seen;
    Router router;
    router.use({.done = [&](const Request&, const Response& response) {
        seen.append(response.header("X-Word")).append(" ").append(response.header("X-More"));
    }});
    router.get("/", [](Request&, Response& response) {
        {
            const auto word = std::make_unique<PreparedField>("X-Word", "a word that lies in memory of its own");
            const PreparedField more("X-More", "and another one of which it is so");
            response.header(*word).add_header(more);
        }
        const PreparedField other("X-Word", "------------------------------------");  // likely where that was
        response.send(other.value());
    });
    Engine engine(router);
    const std::string answer = engine.ask(get("/"));
    CHECK(reply_of(answer).field("X-Word") == "a word that lies in memory of its own");
    CHECK(seen == "a word that lies in memory of its own and another one of which it is so");
}

TEST_CASE("a response whose content type was removed has the usual one again") {
    Router router;
    router.get("/", [](Request&, Response& response) {
        response.header("Content-Type", "text/csv");
        ResponseTest::remove(response, "content-type");
        response.send(response.header(HeaderName::content_type).data() == nullptr ? "none" : "some");
    });
    Engine engine(router);
    const Reply reply = reply_of(engine.ask(get("/")));
    CHECK(reply.field("Content-Type") == "text/plain; charset=utf-8");
    CHECK(reply.body == "none");
}

TEST_CASE("a response that begins anew has none of the trailers that were set before") {
    Router router;
    router.get("/", [](Request&, Response& response) {
        response.trailer("X-Before", std::string(1'000, 'a')).header("X-Word", "gone");
        ResponseTest::clear(response);
        response.trailer("X-After", "b").write("body", {});
    });
    Engine engine(router);
    const std::string answer = engine.ask(get("/"));
    CHECK(answer.ends_with("\r\n\r\n4\r\nbody\r\n0\r\nX-After: b\r\n\r\n"));
    CHECK(count_of(answer, "gone") == 0);
}

}  // namespace penstock::test

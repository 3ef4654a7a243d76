// What handlers and hooks may do, and what becomes of their mistakes.
#include "http_fixture.h"

#include <functional>
#include <stdexcept>
#include <utility>

#include "penstock/platform/file.h"

namespace penstock::test {
namespace {

// Notes in the order in which they were made, "a b c".
struct Notes {
    std::string text;
    void add(const std::string& note) { text += (text.empty() ? "" : " ") + note; }
    std::string take() { return std::exchange(text, ""); }
};

Middleware noting(Notes& notes, const std::string& name) {
    return {.before = [&notes, name](Request&, Response&) { notes.add("before-" + name); },
            .head = [&notes, name](const Request&, Response&) { notes.add("head-" + name); },
            .done =
                [&notes, name](const Request&, const Response&) {
                    notes.add("done-" + name);
                }};
}

Middleware before(std::function<void(Request&, Response&)> hook) {
    Middleware middleware;
    middleware.before = std::move(hook);
    return middleware;
}
Middleware head(std::function<void(const Request&, Response&)> hook) {
    Middleware middleware;
    middleware.head = std::move(hook);
    return middleware;
}
Middleware done(std::function<void(const Request&, const Response&)> hook) {
    Middleware middleware;
    middleware.done = std::move(hook);
    return middleware;
}

int open_file(const char* name) {
    const Result<int> root = platform::open_directory("/www");
    if (!root.ok()) {
        return -1;
    }
    const IoResult opened = platform::open_beneath(root.value(), name);
    platform::close_descriptor(root.value());
    return opened.ok() ? static_cast<int>(opened.count) : -1;
}

// The router has one route, "/", whose handler is given.
struct OneHandler : Engine {
    explicit OneHandler(PlainHandler handler) : Engine(make(std::move(handler))) {
        world.add_file("/www/file", "file content");
    }
    static Router make(PlainHandler handler) {
        Router router;
        router.get("/", std::move(handler));
        router.get("/next", [](Request&, Response& response) { response.send_static("next"); });
        return router;
    }
    std::vector<Reply> replies() { return replies_in(ask(get("/") + get("/next"))); }
};

// Whatever the handler then sends.
void check_refused(const std::function<void(Response&)>& mistake) {
    for (const bool with_file : {false, true}) {
        OneHandler engine([&](Request&, Response& response) {
            response.header("X-Good", "good");
            mistake(response);
            if (with_file) {
                response.send_file(open_file("file"), 0, 12);
            } else {
                response.send("body");
            }
        });
        const std::string bytes = engine.ask(get("/") + get("/next"));
        const std::vector<Reply> replies = replies_in(bytes);
        REQUIRE(replies.size() == 2);
        CHECK(replies[0].status == 500);
        CHECK(replies[0].body == "Internal Server Error");
        CHECK_FALSE(replies[0].has_field("X-Good"));
        CHECK(replies[1].body == "next");
        CHECK(bytes.find("Set-Cookie") == std::string::npos);
        CHECK(engine.server.log.mention("GET /: response: "));
        CHECK(engine.world.open_descriptors() == 4);  // poller and its wake-up, listener, client
    }
}

}  // namespace

TEST_CASE("fields are found by name in any letter case, however many there are") {
    std::vector<std::string> found;
    Router router;
    router.get("/", [&](Request& request, Response& response) {
        found.clear();
        for (const char* name : {"x-0", "X-24", "x-80", "accept", "CONTENT-TYPE", "x-none"}) {
            const std::string_view value = request.header(name);
            found.emplace_back(value.data() == nullptr ? "none" : value);
        }
        found.emplace_back(request.header(HeaderName::user_agent));
        found.push_back(std::to_string(request.header_count()));
        const HeaderField last = request.header_at(request.header_count() - 1);
        found.push_back(std::string(last.name) + "=" + std::string(last.value));
        response.send_static("ok");
    });
    Engine engine(router);
    std::string many;
    for (int i = 0; i < 90; ++i) {
        many += "X-" + std::to_string(i) + ": " + std::to_string(i) + "\r\n";
    }
    const std::string fields =
        "ACCEPT: a\r\n" + many + "content-type: b\r\nuser-agent: c\r\nLaST: d\r\n";
    const std::vector<std::string> wanted{"0", "24", "80", "a", "b", "none", "c", "95", "LaST=d"};
    for (const auto& send : {feed_whole, feed_bytewise}) {
        found.clear();
        CHECK(status_of(send(engine, get("/", fields)).bytes) == 200);
        CHECK(found == wanted);
    }
}

TEST_CASE("hooks run outer first before the handler, inner first behind it") {
    Notes notes;
    Router router;
    router.use(noting(notes, "outer"));
    Router& group = router.group("/in");
    group.use(noting(notes, "inner"));
    group.get("/plain", [&](Request&, Response& response) {
        notes.add("handler");
        response.send("x");
        notes.add("sent");
    });
    group.get("/task", [&](Request&, Response& response) -> Task<void> {
        notes.add("handler");
        co_await sleep_ms(10);
        notes.add("late");
        response.send("x");
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(status_of(engine.exchange(peer, get("/in/plain"))) == 200);
    CHECK(notes.take() ==
          "before-outer before-inner handler head-inner head-outer sent done-inner done-outer");
    engine.exchange(peer, get("/in/task"));
    CHECK(notes.take() == "before-outer before-inner handler");
    engine.server.advance(10);
    CHECK(notes.take() == "late head-inner head-outer done-inner done-outer");
    CHECK(status_of(peer.take_received()) == 200);
    CHECK(status_of(engine.exchange(peer, get("/elsewhere"))) == 404);
    CHECK(notes.take().empty());
}

TEST_CASE("a before hook that answers ends the request's way") {
    Notes notes;
    Router router;
    router.use(noting(notes, "first"));
    router.use(before([&](Request& request, Response& response) {
        notes.add("guard");
        if (request.header(HeaderName::authorization).empty()) {
            response.status(401).header("WWW-Authenticate", "Basic").send("no");
        }
    }));
    router.use(noting(notes, "last"));
    router.any("/", [&](Request&, Response& response) {
        notes.add("handler");
        response.send("yes");
    });
    Engine engine(router);
    CHECK(status_of(engine.ask(get("/"))) == 401);
    CHECK(notes.take() == "before-first guard head-last head-first done-last done-first");
    CHECK(status_of(engine.ask(get("/", "Authorization: Basic eA==\r\n"))) == 200);
    CHECK(notes.take() == "before-first guard before-last handler head-last head-first done-last done-first");
}

TEST_CASE("a head hook edits status and fields, also of errors") {
    Router router;
    router.use(head([](const Request& request, Response& response) {
        response.header("X-Path", request.path()).header("X-Was", std::to_string(response.status()));
        if (response.header("X-Secret").data() != nullptr) {
            response.header("X-Secret", "removed").status(403);
        }
    }));
    router.get("/", [](Request&, Response& response) { response.header("X-Secret", "yes").send("x"); });
    router.get("/throws", [](Request&, Response&) { throw std::runtime_error("no"); });
    router.post("/", [](Request&, Response& response) { response.send("x"); });
    Engine engine(router);
    Reply reply = replies_in(engine.ask(get("/")))[0];
    CHECK(reply.status == 403);
    CHECK(reply.field("X-Secret") == "removed");
    CHECK(reply.field("X-Path") == "/");
    CHECK(reply.field("X-Was") == "200");
    reply = replies_in(engine.ask(get("/throws")))[0];
    CHECK(reply.status == 500);
    CHECK(reply.field("X-Was") == "500");
    reply =
        replies_in(engine.ask("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nnonsense"))[0];
    CHECK(reply.status == 400);
    CHECK(reply.field("X-Was") == "400");
}

TEST_CASE("done runs once for every request that found its route, also when the peer vanishes") {
    Notes notes;
    Router router;
    router.use(done([&](const Request& request, const Response& response) {
        notes.add(std::string(request.path()) + (response.answered() ? "+" : "-"));
    }));
    router.post("/plain", [](Request&, Response& response) { response.send(std::string(500'000, 'x')); });
    router.get("/task", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(1'000);
        response.send("late");
    });
    router.get("/abort", [](Request&, Response& response) { response.abort(); });
    Engine engine(router);
    const auto vanish = [&](std::string_view bytes) {
        sim::Peer peer = engine.world.connect(kPort);
        peer.set_receive_window(100);
        engine.exchange(peer, bytes);
        peer.reset();
        engine.server.settle();
        engine.server.advance(2'000);
        engine.server.check_nothing_left();
        return notes.take();
    };
    const std::string head = "POST /plain HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\n";
    CHECK(vanish("") == "");
    CHECK(vanish("POST /plain HTTP/1.1\r\n") == "");
    CHECK(vanish(head) == "/plain-");
    CHECK(vanish(head + "hel") == "/plain-");
    CHECK(vanish(head + "hello") == "/plain+");
    CHECK(vanish(get("/task")) == "/task-");
    CHECK(vanish(get("/abort")) == "/abort+");
    // With an end of its own instead of a reset.
    sim::Peer peer = engine.world.connect(kPort);
    peer.send(head + "hel");
    peer.finish();
    engine.server.settle();
    CHECK(notes.take() == "/plain-");
}

TEST_CASE("what a handler throws is logged and answered with 500, and the connection goes on") {
    OneHandler engine([](Request&, Response& response) {
        response.header("X-Half", "done");
        throw std::runtime_error("out of luck");
    });
    const std::vector<Reply> replies = engine.replies();
    REQUIRE(replies.size() == 2);
    CHECK(replies[0].status == 500);
    CHECK(replies[0].body == "Internal Server Error");
    CHECK_FALSE(replies[0].has_field("X-Half"));
    CHECK(replies[1].body == "next");
    CHECK(engine.server.log.mention("GET /: it threw: out of luck"));
}

TEST_CASE("a handler may throw anything") {
    OneHandler engine([](Request&, Response&) { throw 42; });
    CHECK(statuses_in(engine.ask(get("/") + get("/next"))) == "500 200");
    CHECK(engine.server.log.mention("no std::exception"));
}

TEST_CASE("a handler that throws behind its answer ends the connection") {
    OneHandler engine([](Request&, Response& response) {
        response.send("answered");
        throw std::runtime_error("too late");
    });
    const Answer answer = feed_whole(engine, get("/") + get("/next"));
    CHECK(statuses_in(answer.bytes) == "200");
    CHECK(body_of(answer.bytes) == "answered");
    CHECK(answer.closed);
    CHECK(engine.server.log.mention("too late"));
    engine.server.check_nothing_left();
}

TEST_CASE("hooks that throw") {
    Router router;
    const auto throw_at = [](const Request& request, const std::string& place) {
        if (request.path() == "/" + place) {
            throw std::runtime_error(place);
        }
    };
    router.use({.before = [=](Request& request, Response&) { throw_at(request, "before"); },
                .head = [=](const Request& request, Response&) { throw_at(request, "head"); },
                .done =
                    [=](const Request& request, const Response&) {
                        throw_at(request, "done");
                    }});
    router.get("/*path", [](Request&, Response& response) { response.send("fine"); });
    Engine engine(router);
    CHECK(statuses_in(engine.ask(get("/before") + get("/"))) == "500 200");
    CHECK(statuses_in(engine.ask(get("/head") + get("/"))) == "200 200");
    CHECK(statuses_in(engine.ask(get("/done") + get("/"))) == "200 200");
    for (const char* text : {"it threw: before", "it threw: head", "it threw: done"}) {
        CHECK(engine.server.log.mention(text));
    }
}

TEST_CASE("a handler that does not answer") {
    OneHandler engine([](Request&, Response&) {});
    const std::vector<Reply> replies = engine.replies();
    REQUIRE(replies.size() == 2);
    CHECK(replies[0].status == 500);
    CHECK(replies[1].body == "next");
    CHECK(engine.server.log.mention("GET /: the handler returned without an answer"));
}

TEST_CASE("a handler that only sets a status and fields answers without a body") {
    OneHandler engine([](Request&, Response& response) { response.status(202).header("X-Set", "yes"); });
    const std::vector<Reply> replies = engine.replies();
    REQUIRE(replies.size() == 2);
    CHECK(replies[0].status == 202);
    CHECK(replies[0].field("X-Set") == "yes");
    CHECK(replies[0].field("Content-Length") == "0");
    CHECK_FALSE(replies[0].has_field("Content-Type"));
}

TEST_CASE("a second answer is not sent") {
    const std::function<void(Response&)> seconds[] = {
        [](Response& response) { response.send("second"); },
        [](Response& response) { response.send(std::string(50'000, 'y')); },
        [](Response& response) { response.send_static("second"); },
        [](Response& response) { response.json("2"); },
        [](Response& response) { response.send_empty(); },
        [](Response& response) { response.send_file(open_file("file"), 0, 12); },
    };
    for (const auto& second : seconds) {
        OneHandler engine([&second](Request&, Response& response) {
            response.send("first");
            second(response);
        });
        const std::vector<Reply> replies = engine.replies();
        REQUIRE(replies.size() == 2);
        CHECK(replies[0].body == "first");
        CHECK(replies[1].body == "next");
        CHECK(engine.server.log.mention("GET /: response: a second answer"));
        CHECK(engine.world.open_descriptors() == 4);  // poller and its wake-up, listener, client
    }
}

TEST_CASE("fields that must not leave are logged with their route, and the client gets 500") {
    const struct {
        const char* what;
        std::string name;
        std::string value;
    } mistakes[] = {
        {"line break in a value", "X-A", "a\r\nSet-Cookie: b"},
        {"bare LF in a value", "X-A", "a\nb"},
        {"bare CR in a value", "X-A", "a\rb"},
        {"NUL in a value", "X-A", std::string("a\0b", 3)},
        {"DEL in a value", "X-A", "a\x7f"},
        {"line break in a name", "X-A: b\r\nX-B", "c"},
        {"space in a name", "X A", "b"},
        {"colon in a name", "X-A:", "b"},
        {"non-ASCII in a name", "X-\xc3\xa4", "b"},
        {"empty name", "", "b"},
        {"Content-Length", "content-length", "1"},
        {"Transfer-Encoding", "Transfer-Encoding", "chunked"},
        {"Date", "Date", "today"},
        {"Connection", "Connection", "keep-alive"},
        {"more than a head can take", "X-A", std::string(13'000, 'a')},
    };
    for (const auto& mistake : mistakes) {
        CAPTURE(std::string(mistake.what));
        check_refused([&](Response& response) { response.header(mistake.name, mistake.value); });
        check_refused([&](Response& response) { response.add_header(mistake.name, mistake.value); });
    }
    check_refused([](Response& response) {
        for (int i = 0; i < 200; ++i) {
            response.add_header("X-A", std::string(100, 'a'));
        }
    });
}

TEST_CASE("a status that is none is logged with its route, and the client gets 500") {
    for (const unsigned status : {0u, 1u, 100u, 101u, 199u, 600u, 999u, 70'000u}) {
        CAPTURE(status);
        check_refused([=](Response& response) { response.status(status); });
    }
}

TEST_CASE("what must not leave does not leave by a head hook either") {
    Router router;
    router.use(head([](const Request& request, Response& response) {
        response.header("X-Name", request.query_parameter("name"));
    }));
    router.get("/", [](Request&, Response& response) { response.send("body"); });
    router.get("/file", [](Request&, Response& response) { response.send_file(open_file("file"), 0, 12); });
    Engine engine(router);
    engine.world.add_file("/www/file", "file content");
    CHECK(replies_in(engine.ask(get("/?name=x")))[0].field("X-Name") == "x");
    for (const char* target : {"/?name=x%0D%0ASet-Cookie:%20y", "/file?name=x%0Ay"}) {
        const std::string bytes = engine.ask(get(target));
        CHECK(statuses_in(bytes) == "500");
        CHECK(body_of(bytes) == "Internal Server Error");
        CHECK(bytes.find("Set-Cookie") == std::string::npos);
    }
    CHECK(engine.server.log.mention("GET /: response: the value holds a line break"));
    CHECK(engine.world.open_descriptors() == 6);  // poller and its wake-up, listener, three clients
}

TEST_CASE("fields that a handler may set") {
    OneHandler engine([](Request&, Response& response) {
        response.header("X-A", "1").header("x-a", "2");
        response.add_header("Set-Cookie", "a=b").add_header("Set-Cookie", "c=d");
        response.header("X-Tab", "a\tb").header("X-Text", "\xc3\xa4").header("X-Empty", "");
        response.header("Content-Type", "text/html").json("{}");
    });
    const std::string head = engine.replies()[0].head;
    CHECK(head.find("X-A") == std::string::npos);
    CHECK(head.find("\r\nx-a: 2\r\n") != std::string::npos);
    CHECK(head.find("\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n") != std::string::npos);
    CHECK(head.find("\r\nX-Tab: a\tb\r\n") != std::string::npos);
    CHECK(head.find("\r\nX-Text: \xc3\xa4\r\n") != std::string::npos);
    CHECK(head.find("\r\nX-Empty: \r\n") != std::string::npos);
    CHECK(head.find("\r\nContent-Type: application/json\r\n") != std::string::npos);
    CHECK(count_of(head, "Content-Type") == 1);
}

TEST_CASE("query and parameters are decoded once") {
    Router router;
    const auto show = [](Request& request, Response& response) {
        std::string text;
        for (const char* name : {"name", "rest"}) {
            text += "[" + std::string(request.parameter(name)) + "]";
        }
        for (const char* name : {"q", "empty", "none", "a b"}) {
            const std::string_view value = request.query_parameter(name);
            text += value.data() == nullptr ? "(null)" : "(" + std::string(value) + ")";
        }
        response.send(text + std::string(request.query()));
    };
    router.get("/p/:name", show);
    router.get("/p/:name/*rest", show);
    Engine engine(router);
    const auto shown = [&engine](std::string_view target) {
        return std::string(body_of(engine.ask(get(target))));
    };
    CHECK(shown("/p/x") == "[x][](null)(null)(null)(null)");
    CHECK(shown("/p/a%20b") == "[a b][](null)(null)(null)(null)");
    CHECK(shown("/p/a+b") == "[a+b][](null)(null)(null)(null)");
    CHECK(shown("/p/%2520") == "[%20][](null)(null)(null)(null)");
    for (const char* target : {"/p/..%2Fb", "/p/a%2F..", "/p/a%2f.%2fb", "/p/%2e%2e%2f%2e%2e"}) {
        CAPTURE(std::string(target));
        CHECK(shown(target).find("Bad Request") != std::string::npos);
    }
    CHECK(shown("/p/a%2Fb") == "[a/b][](null)(null)(null)(null)");
    CHECK(shown("/p/%c3%a4") == "[\xc3\xa4][](null)(null)(null)(null)");
    CHECK(shown("/p/x/y/%7a/") == "[x][y/z/](null)(null)(null)(null)");
    CHECK(shown("/p/x/y/../z") == "[x][z](null)(null)(null)(null)");
    CHECK(shown("/p/x/..") == "Not Found");
    CHECK(shown("/p/x?q=1") == "[x][](1)(null)(null)(null)q=1");
    CHECK(shown("/p/x?q=a+b%2Bc&empty=&a+b=3") == "[x][](a b+c)()(null)(3)q=a+b%2Bc&empty=&a+b=3");
    CHECK(shown("/p/x?empty&q=1&q=2") == "[x][](1)()(null)(null)empty&q=1&q=2");
    CHECK(shown("/p/x?q=%zz") == "[x][](null)(null)(null)(null)q=%zz");
    CHECK(shown("/p/x?q=a=b&&?") == "[x][](a=b)(null)(null)(null)q=a=b&&?");
    CHECK(shown("/p/x?") == "[x][](null)(null)(null)(null)");
}

}  // namespace penstock::test

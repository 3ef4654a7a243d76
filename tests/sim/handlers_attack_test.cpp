// What handlers did that went wrong once: exchanges that end while their handler still waits for something, and what is
// called from where nobody expects it. handlers_storm_test.cpp looks for more of the kind.
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "stream_fixture.h"

namespace penstock::test {
namespace {

const RouteOptions kInPieces{.stream_body = true};

void close_and_check(Engine& engine, std::initializer_list<sim::Peer*> peers) {
    for (sim::Peer* peer : peers) {
        peer->close();
    }
    engine.server.settle();
    engine.server.advance(100'000);
    engine.server.check_nothing_left();
}

// More than what waits for a client at most.
const std::string& big_text() {
    static const std::string text(400'000, 'x');
    return text;
}

// More than a client with a small window takes, and so little that the request behind it is looked at.
std::string_view medium_text() { return std::string_view(big_text()).substr(0, 60'000); }

// ---- Offloaded views -----------------------------------------------------------------------------------

Task<void> copy_elsewhere(std::string& to, std::string_view from) {
    to = co_await offload([from] { return std::string(from); });
}

// The function alone, whose reply finds nobody when the exchange is over.
Task<void> note_elsewhere(std::string& to, std::string_view from) {
    std::string* const notes = &to;
    co_await offload([notes, from] { *notes = from; });
}

Task<void> write_piece(Response& response, std::string_view piece) { co_await response.write(piece); }

Task<void> read_and_note(std::string& to, Request& request) {
    const std::string_view piece = co_await request.read();
    co_await note_elsewhere(to, piece);
}

Task<void> abort_and_wait(Response& response) {
    response.abort();
    co_await sleep_ms(1'000);
}

}  // namespace

TEST_CASE("a request whose exchange has ended arrives no more, and nobody looks at it when pages are short") {
    for (const bool answered_from_outside : {false, true}) {
        CAPTURE(answered_from_outside);
        DeferredResponse later;
        Router router;
        router.post("/", [&](Request& request, Response& response) {
            request.read([](std::string_view) {});
            if (answered_from_outside) {
                later = response.defer();
            } else {
                response.write("abc", [&response] { response.end(); });
            }
        }, kInPieces);
        Config config = small_config();
        config.page_limit = 4;
        config.free_block_limit = 0;
        Engine engine(router, config);
        sim::Peer peer = engine.world.connect(kPort);
        engine.exchange(peer, post("/", length_field(100), ""));
        if (answered_from_outside) {
            REQUIRE(later.post([](Response& response) { response.send("early"); }));
            engine.server.settle();
        }
        std::vector<sim::Peer> others;
        for (int i = 0; i < 6; ++i) {
            others.push_back(engine.world.connect(kPort));
            engine.exchange(others.back(), "POST / HTTP/1.1\r\n");
        }
        CHECK(engine.server.reactor().counters().evicted.get() == 2);
        CHECK(status_of(others.front().received()) == 503);
    }
}

TEST_CASE("a callback that throws ends a read that waits") {
    Router router;
    router.post("/", [](Request& request, Response& response) {
        request.read([](std::string_view) {});
        response.write("abc", [] { throw std::runtime_error("no more"); });
    }, kInPieces);
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    const std::string answer = engine.exchange(peer, post("/", length_field(100), ""));
    CHECK(answer.ends_with("3\r\nabc\r\n"));  // and no last chunk
    CHECK(peer.finished_by_server());
    CHECK_FALSE(engine.server.reactor().end_oldest_arrival());
    close_and_check(engine, {&peer});
}

TEST_CASE("a body that is ended short from a timer ends the connection") {
    DeferredResponse later;
    Timer timer;
    Router router;
    router.get("/", [&](Request&, Response& response) {
        later = response.defer();
        response.content_length(10).write("abc", [&] { timer.start(100, [&] { later.get()->end(); }); });
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    CHECK_FALSE(peer.finished_by_server());
    engine.server.advance(200);
    CHECK(peer.finished_by_server());
    close_and_check(engine, {&peer});
}

TEST_CASE("100 Continue never leaves within a response or behind one") {
    Router router;
    router.post("/task", [](Request& request, Response& response) -> Task<void> {
        co_await response.write("begun");
        (void)co_await request.read();
    });
    router.post("/callbacks", [](Request& request, Response& response) {
        response.write("begun", [&] { request.read([&](std::string_view) { response.end(); }); });
    }, kInPieces);
    router.post("/whole", [](Request& request, Response& response) -> Task<void> {
        response.send("begun");
        (void)co_await request.read();
    });
    router.post("/length", [](Request& request, Response& response) -> Task<void> {
        response.content_length(10);
        co_await response.write("begun");
        (void)co_await request.read();
        co_await response.write("ended");
    });
    Engine engine(router);
    for (const char* path : {"/task", "/callbacks", "/whole", "/length"}) {
        CAPTURE(std::string(path));
        sim::Peer peer = engine.world.connect(kPort);
        std::string answer = engine.exchange(peer, post(path, length_field(3) + "Expect: 100-continue\r\n", ""));
        answer += engine.exchange(peer, "abc");
        CHECK(status_of(answer) == 200);
        CHECK(count_of(answer, "HTTP/1.1") == 1);
        CHECK(answer.find("begun") != std::string::npos);
        close_and_check(engine, {&peer});
    }
}

TEST_CASE("an answer that a client expects 100 Continue before ends the connection, since a body may follow") {
    Router router;
    router.post("/", [](Request&, Response& response) { response.write("a", [&response] { response.end(); }); }, kInPieces);
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    const std::string answers =
        engine.exchange(peer, post("/", length_field(30) + "Expect: 100-continue\r\n", "") + get("/ok"));
    CHECK(dechunk(answers) == "a");
    CHECK(count_of(answers, "HTTP/1.1") == 1);
    CHECK(peer.finished_by_server());
    close_and_check(engine, {&peer});
}

TEST_CASE("what an offloaded function looks at stays its own when a HEAD ends its exchange") {
    struct {
        const char* name;
        std::function<std::string_view(Request&)> view;
        std::string wanted;
    } const cases[] = {
        {"header", [](Request& request) { return request.header("X-Key"); }, "secret-of-one"},
        {"parameter", [](Request& request) { return request.parameter("name"); }, "some-file"},
        {"path", [](Request& request) { return request.path(); }, "/x/some-file"},
        {"target", [](Request& request) { return request.target(); }, "/x/some-file"},
    };
    for (const auto& expected : cases) {
        CAPTURE(std::string(expected.name));
        std::string seen;
        Router router;
        router.get("/x/:name", [&](Request& request, Response& response) -> Task<void> {
            co_await when_all(note_elsewhere(seen, expected.view(request)), write_piece(response, "piece"));
        });
        router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
        Engine engine(router);
        sim::Peer peer = engine.world.connect(kPort);
        engine.exchange(peer, "HEAD /x/some-file HTTP/1.1\r\nHost: t\r\nX-Key: secret-of-one\r\n\r\n");
        engine.exchange(peer, get("/ok", "X-Key: AAAAAAAAAAAAAAAAAAAAAAAAAA\r\n"));
        CHECK(engine.server.offload.run_one());
        CHECK(seen == expected.wanted);
        close_and_check(engine, {&peer});
    }
}

TEST_CASE("what an offloaded function looks at stays its own when another branch aborts behind earlier output") {
    std::string seen;
    Router router;
    router.get("/big", [](Request&, Response& response) { response.send_static(medium_text()); });
    router.post("/", [&](Request& request, Response& response) -> Task<void> {
        co_await when_all(read_and_note(seen, request), abort_and_wait(response));
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(1'000);
    engine.exchange(peer, get("/big"));
    engine.exchange(peer, post("/", length_field(4), "body"));
    while (engine.server.offload.run_one()) {
    }
    engine.server.settle();
    CHECK(seen == "body");
    peer.reset();
    close_and_check(engine, {});
}

TEST_CASE("a handler whose time is over while a function runs is answered for, and waits for it") {
    std::string seen;
    Router router;
    router.get("/", [&seen](Request& request, Response& response) -> Task<void> {
        co_await copy_elsewhere(seen, request.path());
        response.send("late");
    }, {.request_timeout_ms = 100});
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    engine.server.advance(200);
    CHECK(status_of(peer.take_received()) == 503);
    CHECK(peer.finished_by_server());
    CHECK(engine.server.reactor().counters().tasks_parked.get() == 1);
    CHECK(engine.server.offload.run_one());
    close_and_check(engine, {&peer});
    CHECK(seen.empty());
}

TEST_CASE("a second write is a mistake that is told, and never more than the end of its connection") {
    DeferredResponse later;
    Router router;
    router.get("/posts", [&later](Request&, Response& response) { later = response.defer(); });
    router.get("/task", [](Request&, Response& response) -> Task<void> {
        co_await when_all(write_piece(response, big_text()), write_piece(response, big_text()));
    });
    router.get("/small", [](Request&, Response& response) -> Task<void> {
        co_await when_all(write_piece(response, "one"), write_piece(response, "two"));
    });
    Engine engine(router);
    CHECK(dechunk(engine.ask(get("/small"))) == "onetwo");  // one is written before the other begins
    for (const char* path : {"/posts", "/task"}) {
        CAPTURE(std::string(path));
        engine.server.log.lines.clear();
        sim::Peer slow = engine.world.connect(kPort);
        slow.set_receive_window(1'000);
        engine.exchange(slow, get(path));
        for (int i = 0; std::string_view(path) == "/posts" && i < 2; ++i) {
            REQUIRE(later.post([](Response& response) { response.write(big_text(), [] {}); }));
            engine.server.settle();
        }
        slow.read_freely();
        engine.server.settle();
        CHECK(engine.server.log.mention("another write of this response waits"));
        CHECK_FALSE(slow.received().ends_with("0\r\n\r\n"));
        CHECK(slow.finished_by_server());
        close_and_check(engine, {&slow});
    }
}

TEST_CASE("what a callback holds may read, write, answer and ask to be told when it is destroyed") {
    struct Remains {
        std::function<void()> last_words;
        ~Remains() { last_words(); }
    };
    const auto held = std::make_shared<int>(0);
    std::function<void(Request&, Response&)> last_words;
    Router router;
    router.post("/", [&last_words](Request& request, Response& response) {
        std::shared_ptr<Remains> remains(new Remains{[&] { last_words(request, response); }});
        request.read([remains = std::move(remains)](std::string_view) {});
    }, kInPieces);
    const std::function<void(Request&, Response&)> all_words[] = {
        [](Request& request, Response& response) {
            response.write("gone", [] {});
            request.read([](std::string_view) {});
        },
        [](Request&, Response& response) { response.send("gone"); },
        [](Request&, Response& response) { response.abort(); },
        [held](Request&, Response& response) { response.on_abort([held] {}); },
    };
    for (const auto& words : all_words) {
        last_words = words;
        const long holders = held.use_count();
        Engine engine(router);
        sim::Peer leaving = engine.world.connect(kPort);
        engine.exchange(leaving, post("/", length_field(100), ""));
        leaving.reset();
        sim::Peer broken = engine.world.connect(kPort);
        engine.exchange(broken, post("/", "Transfer-Encoding: chunked\r\n", "zz"));
        sim::Peer late = engine.world.connect(kPort);
        engine.exchange(late, post("/", length_field(100), ""));
        engine.server.advance(100'000);
        CHECK(broken.finished_by_server());
        CHECK(late.finished_by_server());
        close_and_check(engine, {&broken, &late});
        CHECK(held.use_count() == holders);
    }
}

TEST_CASE("a hook may defer the answer for the handler behind it") {
    DeferredResponse later;
    Router router;
    router.use({.before = [&later](Request&, Response& response) { later = response.defer(); }});
    router.get("/plain", [](Request&, Response&) {});
    router.get("/task", [](Request&, Response&) -> Task<void> { co_return; });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    for (const char* path : {"/plain", "/task"}) {
        CHECK(engine.exchange(peer, get(path)).empty());
        REQUIRE(later.post([](Response& response) { response.send("ok"); }));
        engine.server.settle();
        CHECK(body_of(peer.take_received()) == "ok");
    }
    close_and_check(engine, {&peer});
}

TEST_CASE("blocks full of requests behind a deferred answer are all answered, although their client has finished") {
    constexpr std::size_t kRequests = 3'000;
    DeferredResponse later;
    Router router;
    router.get("/later", [&later](Request&, Response& response) { later = response.defer(); });
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    std::string requests = get("/later");
    for (std::size_t i = 0; i < kRequests; ++i) {
        requests += get("/ok");
    }
    peer.send(requests);
    peer.finish();
    engine.server.settle();
    REQUIRE(later.post([](Response& response) { response.send("first"); }));
    engine.server.settle();
    CHECK(count_of(peer.take_received(), "HTTP/1.1 200") == kRequests + 1);
    engine.server.check_nothing_left();
}

TEST_CASE("of two answers that are posted at once the second does not meet the next request") {
    DeferredResponse later;
    int answers = 0;
    Router router;
    router.get("/", [&later](Request&, Response& response) { later = response.defer(); });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/") + get("/"));
    const DeferredResponse first = later;
    for (const char* text : {"one", "two"}) {
        REQUIRE(first.post([&answers, text](Response& response) {
            ++answers;
            response.send(text);
        }));
    }
    engine.server.settle();
    CHECK(answers == 1);
    CHECK(body_of(peer.take_received()) == "one");
    peer.reset();  // a client that had only finished would be waited for
    close_and_check(engine, {});
}

TEST_CASE("an abort from a timer does not take an answer with it that is still on its way") {
    DeferredResponse later;
    Timer timer;
    Router router;
    router.get("/big", [](Request&, Response& response) { response.send_static(medium_text()); });
    router.get("/", [&](Request&, Response& response) {
        later = response.defer();
        timer.start(10, [&later] { later.get()->abort(); });
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(10'000);
    engine.exchange(peer, get("/big"));
    engine.exchange(peer, get("/"));
    engine.server.advance(100);
    std::string received = peer.take_received();
    for (int reads = 0; reads < 20; ++reads) {
        (void)peer.read(10'000);
        engine.server.settle();
    }
    received += peer.take_received();
    CHECK(body_of(received).size() == medium_text().size());
    CHECK(peer.finished_by_server());
    close_and_check(engine, {&peer});
}

TEST_CASE("a response that begins before its request is complete leaves the next one its place, wherever the bytes are cut") {
    Router router;
    router.post("/callbacks", [](Request& request, Response& response) {
        std::make_shared<Copier>(request, response)->read();
    }, kInPieces);
    router.post("/task", [](Request& request, Response& response) -> Task<void> {
        co_await response.write("<");
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            co_await response.write(piece);
        }
        co_await response.write(">");
    });
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    const std::string body = "GET /evil HTTP/1.1\r\nHost: t\r\n\r\n";
    for (const char* path : {"/callbacks", "/task"}) {
        for (const std::string& request : {post(path, "Transfer-Encoding: chunked\r\n", chunked(body, 7)),
                                           post(path, length_field(body.size()), body)}) {
            const std::string text = request + get("/ok");
            Engine engine(router);
            for (std::size_t cut = 1; cut < text.size(); ++cut) {
                CAPTURE(cut);
                sim::Peer peer = engine.world.connect(kPort);
                std::string answers = engine.exchange(peer, std::string_view(text).substr(0, cut));
                answers += engine.exchange(peer, std::string_view(text).substr(cut));
                CHECK(count_of(answers, "HTTP/1.1 200") == 2);
                CHECK(answers.ends_with("\r\n\r\nok"));
                peer.close();
                engine.server.settle();
            }
            engine.server.check_nothing_left();
        }
    }
}

TEST_CASE("a client cannot write a line of its own into the log") {
    Router router;
    router.get("/", [](Request& request, Response& response) {
        response.header(request.query_parameter("name"), "1").send("x");
    });
    Engine engine(router);
    engine.ask(get("/?name=a%0AGET+/admin:+it+threw:+forged"));
    REQUIRE(engine.server.log.lines.size() == 1);
    CHECK(engine.server.log.lines[0].find_first_of("\r\n") == std::string::npos);
}

}  // namespace penstock::test

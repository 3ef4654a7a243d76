// What handlers with callbacks get wrong, or do at an unusual moment: their client learns of it, and nobody else does.
#include <stdexcept>

#include "stream_fixture.h"

namespace penstock::test {

TEST_CASE("what a callback throws is answered with 500, or cuts what has begun") {
    int aborts = 0;
    DeferredResponse later;
    Router router;
    const RouteOptions streaming{.stream_body = true};
    router.post("/read", [&](Request& request, Response& response) {
        response.on_abort([&] { ++aborts; });
        request.read([](std::string_view) { throw std::runtime_error("no taste for it"); });
    }, streaming);
    router.get("/write", [&](Request&, Response& response) {
        response.on_abort([&] { ++aborts; });
        response.write("half", [] { throw std::runtime_error("no more"); });
    });
    router.get("/later", [&](Request&, Response& response) { later = response.defer(); });
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(status_of(engine.exchange(peer, post("/read", length_field(3), "abc"))) == 500);
    CHECK(aborts == 1);
    CHECK(engine.server.log.mention("POST /read: it threw: no taste for it"));
    CHECK(status_of(engine.exchange(peer, get("/ok"))) == 200);
    engine.exchange(peer, get("/later"));
    REQUIRE(later.post([](Response&) { throw std::runtime_error("not found"); }));
    engine.server.settle();
    CHECK(status_of(peer.take_received()) == 500);
    CHECK(status_of(engine.exchange(peer, get("/ok"))) == 200);
    const std::string cut = engine.exchange(peer, get("/write"));
    CHECK(cut.find("half") != std::string::npos);
    CHECK_FALSE(cut.ends_with("0\r\n\r\n"));
    CHECK(peer.finished_by_server());
    CHECK(aborts == 2);
    peer.close();
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("a handler that neither answers, nor asks, nor defers gets its client a 500") {
    Router router;
    router.post("/forgets", [](Request& request, Response&) { request.read([](std::string_view) {}); },
                {.stream_body = true});
    Engine engine(router);
    CHECK(status_of(engine.ask(post("/forgets", length_field(3), "abc"))) == 500);
    CHECK(engine.server.log.mention("without an answer"));
}

TEST_CASE("without stream_body a callback handler reads the whole body as one piece") {
    Router router;
    router.post("/whole", [&](Request& request, Response& response) {
        request.read([&request, &response](std::string_view piece) {
            request.read([body = std::string(piece), &response](std::string_view end) {
                response.send(body + "|" + std::string(end) + "|");
            });
        });
    });
    Engine engine(router);
    for (const std::size_t size : {0u, 5u, 30'000u}) {
        CHECK(body_of(engine.ask(post("/whole", length_field(size), pattern(size)))) == pattern(size) + "||");
    }
}

TEST_CASE("a body may be ended right behind its last piece, and what has found no room by then is a mistake") {
    Router router;
    router.get("/one", [](Request&, Response& response) {
        response.write("all of it", nullptr);
        response.end();
    });
    router.get("/temporary/:size", [](Request& request, Response& response) {
        response.write(pattern(std::stoul(std::string(request.parameter("size")))) + ".", [] {});
    });
    router.get("/too-much", [](Request&, Response& response) {
        response.write(pattern(500'000), [] {});
        response.end();
    });
    router.get("/two", [](Request&, Response& response) {
        response.write("a", [] {});
        response.write("b", [] {});
    });
    Engine engine(router);
    CHECK(dechunk(engine.ask(get("/one"))) == "all of it");
    for (const std::size_t size : {10u, 1'000u, 900'000u}) {
        CHECK(dechunk(engine.ask(get("/temporary/" + std::to_string(size)))) == pattern(size) + ".");
    }
    sim::Peer peer = engine.world.connect(kPort);
    CHECK_FALSE(engine.exchange(peer, get("/too-much")).ends_with("0\r\n\r\n"));
    CHECK(peer.finished_by_server());
    CHECK(engine.server.log.mention("ended while a write waits"));
    CHECK_FALSE(engine.ask(get("/two")).ends_with("0\r\n\r\n"));
    CHECK(engine.server.log.mention("another write of this response waits"));
}

TEST_CASE("an answer from outside ends a read that waits") {
    DeferredResponse later;
    Response* short_response = nullptr;
    Router router;
    router.post("/reads", [&](Request& request, Response& response) {
        later = response.defer();
        request.read([](std::string_view) {});
        short_response = &response;
    }, {.stream_body = true});
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, post("/reads", length_field(10), ""));
    REQUIRE(later.post([](Response& response) { response.send("enough"); }));
    engine.server.settle();
    CHECK(body_of(peer.take_received()) == "enough");
    CHECK_FALSE(engine.server.reactor().end_oldest_arrival());  // nothing arrives any more
    sim::Peer other = engine.world.connect(kPort);
    engine.exchange(other, post("/reads", length_field(10), ""));
    REQUIRE(later.post([&](Response& response) { response.content_length(5).end(); }));
    engine.server.settle();
    CHECK(other.finished_by_server());  // less than was announced
    CHECK_FALSE(engine.server.reactor().end_oldest_arrival());
    for (sim::Peer* each : {&peer, &other}) {
        each->close();
    }
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("what is called while on_abort runs does no harm") {
    Router router;
    router.post("/", [](Request& request, Response& response) {
        response.on_abort([&request, &response] {
            request.read([](std::string_view) {});
            response.send("nobody hears it");
        });
        request.read([](std::string_view) {});
    }, {.stream_body = true});
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, post("/", length_field(10), ""));
    peer.reset();
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("a handler that ends the connection does not take earlier answers with it") {
    Router router;
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    router.get("/abort", [](Request&, Response& response) { response.abort(); });
    router.get("/abort-task", [](Request&, Response& response) -> Task<void> {
        response.abort();
        co_await sleep_ms(1'000'000);
    });
    router.get("/abort-stream", [](Request&, Response& response) -> Task<void> {
        co_await response.write("begun");
        response.abort();
        co_await sleep_ms(1'000'000);
    });
    Engine engine(router);
    for (const char* path : {"/abort", "/abort-task"}) {
        CAPTURE(std::string(path));
        sim::Peer behind = engine.world.connect(kPort);
        const std::string answers = engine.exchange(behind, get("/ok") + get(path) + get("/ok"));
        CHECK(count_of(answers, "HTTP/1.1 ") == 1);
        CHECK(answers.ends_with("ok"));
        CHECK(behind.finished_by_server());
        sim::Peer alone = engine.world.connect(kPort);
        CHECK(engine.exchange(alone, get(path)).empty());
        CHECK(alone.finished_by_server());
    }
    const std::string stream = engine.ask(get("/ok") + get("/abort-stream"));
    CHECK(count_of(stream, "HTTP/1.1 ") == 2);
    CHECK_FALSE(stream.ends_with("0\r\n\r\n"));
    engine.server.advance(10'000);
    engine.server.check_nothing_left();
}

}  // namespace penstock::test

// Limits of one request and of one connection's life, of the server and of single routes.
#include "http_fixture.h"

namespace penstock::test {
namespace {

std::string fields(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        text += "X-" + std::to_string(i) + ": 1\r\n";
    }
    return text;
}

// A head of so many bytes for "/PATH".
std::string head_of(std::string_view path, std::size_t bytes) {
    const std::string begin = "GET " + std::string(path) + " HTTP/1.1\r\nHost: t\r\nX: ";
    return begin + std::string(bytes - begin.size() - 4, 'a') + "\r\n\r\n";
}

Router limits_router() {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    router.get("/small-head", [](Request&, Response& response) { response.send_static("ok"); },
               {.head_limit_bytes = 300});
    router.get("/few-fields", [](Request&, Response& response) { response.send_static("ok"); },
               {.header_count_limit = 5});
    router.post("/body", [](Request& request, Response& response) { response.send(request.body()); });
    router.post("/hasty", [](Request& request, Response& response) { response.send(request.body()); },
                {.request_timeout_ms = 5'000});
    router.post("/fast", [](Request& request, Response& response) { response.send(request.body()); },
                {.body_limit_bytes = 10 << 20, .body_timeout_ms = 1'000, .body_rate_min_bytes_per_s = 1'000'000});
    router.get("/sleeps", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(20'000);
        response.send("late");
    }, {.request_timeout_ms = 5'000});
    router.get("/endless", [](Request&, Response& response) -> Task<void> {
        for (;;) {
            co_await response.write("more ");
            co_await sleep_ms(1'000);
        }
    }, {.request_timeout_ms = 5'000});
    router.get("/offloads", [](Request&, Response& response) -> Task<void> {
        co_await offload([] {});
        response.send("never");
    }, {.request_timeout_ms = 5'000});
    return router;
}

}  // namespace

TEST_CASE("a head may be as long as head_limit_bytes, and not a byte longer, however it is cut") {
    Config config = small_config();
    config.head_limit_bytes = 1'000;
    config.target_limit_bytes = 400;
    const Case cases[] = {
        {"of the limit", head_of("/", 1'000), "200", Ending::stays},
        {"a byte more", head_of("/", 1'001), "431"},
        {"much more", head_of("/", 5'000), "431"},
        {"a fault behind the limit is not seen", head_of("/", 1'500) + "\x01", "431"},
        {"a fault before it is", "GET / HTTP/1.1\r\nHost: t\r\nX : 1\r\n" + std::string(2'000, 'a'), "400"},
        {"a target above its own limit", "GET /" + std::string(400, 'a') + " HTTP/1.1\r\nHost: t\r\n\r\n", "414"},
        {"a target above both", "GET /" + std::string(3'000, 'a') + " HTTP/1.1\r\nHost: t\r\n\r\n", "414"},
        {"behind another of the limit", head_of("/", 1'000) + head_of("/", 1'000), "200 200", Ending::stays},
    };
    run_cases(cases, config);
}

TEST_CASE("a route may take less of a head than its server") {
    Engine engine(limits_router());
    CHECK(statuses_in(engine.ask(head_of("/small-head", 300))) == "200");
    CHECK(statuses_in(engine.ask(head_of("/small-head", 301))) == "431");
    CHECK(statuses_in(engine.ask(get("/few-fields", fields(4)))) == "200");
    CHECK(statuses_in(engine.ask(get("/few-fields", fields(5)))) == "431");
    CHECK(statuses_in(engine.ask(get("/", fields(50)))) == "200");
}

TEST_CASE("a route may ask for a body's length") {
    Router router;
    router.any("/", [](Request& request, Response& response) { response.send(request.body()); },
               {.length_required = true});
    Engine engine(router);
    const std::string rest = " / HTTP/1.1\r\nHost: t\r\n";
    for (const char* method : {"POST", "PUT", "PATCH"}) {
        CAPTURE(std::string(method));
        const Answer refused = feed_whole(engine, method + rest + "\r\n");
        CHECK(statuses_in(refused.bytes) == "411");
        CHECK(refused.closed);
        CHECK(statuses_in(engine.ask(method + rest + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")) == "411");
        CHECK(body_of(engine.ask(method + rest + "Content-Length: 3\r\n\r\nabc")) == "abc");
        CHECK(statuses_in(engine.ask(method + rest + "Content-Length: 0\r\n\r\n")) == "200");
    }
    CHECK(statuses_in(engine.ask("GET" + rest + "\r\n")) == "200");
    CHECK(statuses_in(engine.ask("DELETE" + rest + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")) == "411");
}

TEST_CASE("a connection closes with the last request that it may bring, and says so") {
    Config config = small_config();
    config.requests_per_connection_limit = 3;
    Engine engine(limits_router(), config);
    const Answer one_by_one = feed(engine, std::vector<std::string_view>(5, "GET / HTTP/1.1\r\nHost: t\r\n\r\n"));
    CHECK(statuses_in(one_by_one.bytes) == "200 200 200");
    CHECK(count_of(one_by_one.bytes, "Connection: close\r\n") == 1);
    CHECK(one_by_one.closed);
    const Answer pipelined = feed_whole(engine, get("/") + get("/") + get("/") + get("/"));
    CHECK(pipelined == one_by_one);
    const Answer fewer = feed_whole(engine, get("/") + get("/"));
    CHECK_FALSE(fewer.closed);
    engine.server.check_nothing_left();
}

TEST_CASE("the time of a whole request begins with its first byte") {
    Engine engine(limits_router());
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(engine.exchange(peer, "POST /hasty HTTP/1.1\r\nHost: t\r\nContent-L").empty());
    engine.server.advance(4'000);
    CHECK(engine.exchange(peer, "ength: 3\r\n\r\nab").empty());
    engine.server.advance(999);
    CHECK(peer.take_received().empty());
    engine.server.advance(1);
    CHECK(statuses_in(peer.take_received()) == "408");
    CHECK(peer.finished_by_server());
    CHECK(engine.server.reactor().counters().timeouts.get() == 1);
    peer.close();
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("a request that is done in time is not ended later, nor what follows it") {
    Engine engine(limits_router());
    sim::Peer peer = engine.world.connect(kPort);
    const std::string request = "POST /hasty HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc";
    CHECK(statuses_in(engine.exchange(peer, request)) == "200");
    engine.server.advance(6'000);
    CHECK(statuses_in(engine.exchange(peer, request)) == "200");
    CHECK(engine.server.reactor().counters().timeouts.get() == 0);
}

TEST_CASE("a handler that takes longer than the request may is ended: 503, or the end of its stream") {
    Engine engine(limits_router());
    sim::Peer slow = engine.world.connect(kPort);
    CHECK(engine.exchange(slow, get("/sleeps")).empty());
    sim::Peer endless = engine.world.connect(kPort);
    CHECK(engine.exchange(endless, get("/endless")).find("more") != std::string::npos);
    sim::Peer working = engine.world.connect(kPort);
    CHECK(engine.exchange(working, get("/offloads")).empty());
    engine.server.advance(4'999);
    CHECK(slow.take_received().empty());
    engine.server.advance(1);
    const std::string late = slow.take_received();
    CHECK(statuses_in(late) == "503");
    CHECK(late.find("Retry-After: 1\r\n") != std::string::npos);
    CHECK(endless.finished_by_server());
    CHECK_FALSE(endless.take_received().ends_with("0\r\n\r\n"));  // it does not look complete
    CHECK(statuses_in(working.take_received()) == "503");  // its coroutine stays until the other thread is done with it
    while (engine.server.offload.run_one()) {
    }
    engine.server.settle();
    for (sim::Peer* peer : {&slow, &endless, &working}) {
        peer->close();
    }
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("a whole request may have a time for every route") {
    Config config = small_config();
    config.request_timeout_ms = 2'000;
    Engine engine(limits_router(), config);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, "POST /body HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nab");
    engine.server.advance(2'000);
    CHECK(statuses_in(peer.take_received()) == "408");
}

TEST_CASE("a route may have no time although the server has one") {
    Config config = small_config();
    config.request_timeout_ms = 2'000;
    Router router;
    router.get("/", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(50'000);
        response.send("at last");
    }, {.request_timeout_ms = RouteOptions::kNoTimeout});
    Engine engine(router, config);
    sim::Peer peer = engine.world.connect(kPort);
    engine.exchange(peer, get("/"));
    engine.server.advance(50'000);
    CHECK(statuses_in(peer.take_received()) == "200");
}

TEST_CASE("output that leaves slowly does not put off what a body may take") {
    Router router;
    const std::string large(50'000, 'x');
    router.get("/large", [&large](Request&, Response& response) { response.send_static(large); });
    router.post("/body", [](Request& request, Response& response) { response.send(request.body()); },
                {.body_timeout_ms = 1'000});
    router.post("/task", [](Request& request, Response& response) -> Task<void> {
        response.send(co_await request.read_all());
    }, {.body_timeout_ms = 1'000});
    for (const char* path : {"/body", "/task"}) {
        CAPTURE(std::string(path));
        Engine engine(router);
        sim::Peer peer = engine.world.connect(kPort);
        peer.set_receive_window(10'000);
        peer.send(get("/large") + "POST " + path + " HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nabc");
        engine.server.settle();
        for (int i = 0; i < 9; ++i) {
            engine.server.advance(100);
            (void)peer.read(2'000);
            engine.server.settle();
        }
        CHECK(peer.received().find(" 408 ") == std::string::npos);
        engine.server.advance(200);
        peer.read_freely();
        engine.server.settle();
        CHECK(count_of(peer.received(), "HTTP/1.1 408 ") == 1);
    }
}

TEST_CASE("half a body at the end does not cost the answers before it, whoever reads it") {
    Router router;
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    router.post("/task", [](Request& request, Response& response) -> Task<void> {
        response.send(co_await request.read_all());
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    peer.send(get("/ok") + "POST /task HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nabc");
    peer.finish();
    engine.server.settle();
    CHECK(statuses_in(peer.take_received()) == "200");
    CHECK(peer.closed_by_server());
    engine.server.check_nothing_left();
}

TEST_CASE("a body that ends with its connection and is cut does not look whole") {
    Router router;
    router.get("/throws", [](Request&, Response& response) -> Task<void> {
        co_await response.write("half");
        throw std::runtime_error("no more");
    });
    router.get("/slow", [](Request&, Response& response) -> Task<void> {
        co_await response.write("half");
        co_await sleep_ms(100'000);
    }, {.request_timeout_ms = 1'000});
    router.get("/aborts", [](Request&, Response& response) -> Task<void> {
        co_await response.write("half");
        response.abort();
    });
    Engine engine(router);
    for (const char* path : {"/throws", "/slow", "/aborts"}) {
        CAPTURE(std::string(path));
        sim::Peer peer = engine.world.connect(kPort);
        engine.exchange(peer, "GET " + std::string(path) + " HTTP/1.0\r\n\r\n");
        engine.server.advance(1'000);
        engine.server.advance(1);  // a reset does not overtake what was sent
        CHECK(peer.reset_by_server());
    }
    engine.server.check_nothing_left();
}

TEST_CASE("a route has its own minimum rate for bodies") {
    Engine engine(limits_router());
    sim::Peer peer = engine.world.connect(kPort);
    const std::size_t size = 5'000'000;
    engine.exchange(peer, "POST /fast HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
    std::string answer;
    int seconds = 0;
    for (; answer.empty() && seconds < 60; ++seconds) {
        answer = engine.exchange(peer, std::string(size / 20, 'x'));  // 250,000 a second
        engine.server.advance(1'000);
        answer += peer.take_received();
    }
    CHECK(statuses_in(answer) == "408");
    CHECK(seconds <= 3);
}

TEST_CASE("a peer that takes a byte now and then does not hold its output for ever; one that is merely slow gets it all") {
    Router router;
    const std::string large(200'000, 'x');
    router.get("/large", [&large](Request&, Response& response) { response.send_static(large); });
    Config config = small_config();
    config.write_rate_min_bytes_per_s = 1'000;
    Engine engine(router, config);
    sim::Peer trickle = engine.world.connect(kPort);
    sim::Peer slow = engine.world.connect(kPort);
    trickle.set_receive_window(2'000);
    slow.set_receive_window(2'000);
    trickle.send(get("/large"));
    slow.send(get("/large"));
    engine.server.settle();
    std::size_t got = 0;
    int ended_at_s = 0;
    for (int second = 1; second < 400 && got < large.size(); ++second) {
        got += slow.read(1'500).size();
        trickle.read(100);
        engine.server.settle();
        engine.server.advance(1'000);
        if (ended_at_s == 0 && trickle.closed_by_server()) {
            ended_at_s = second;
        }
    }
    CHECK(got >= large.size());
    CHECK(ended_at_s >= 30);
    CHECK(ended_at_s <= 40);
}

}  // namespace penstock::test

// Bodies read and written piece by piece: what is seen, what waits for what, and what is held meanwhile.
#include "stream_fixture.h"

namespace penstock::test {
namespace {

Router streaming_router() {
    Router router;
    const RouteOptions large{.body_limit_bytes = 100ull << 30};
    router.post("/count", [](Request& request, Response& response) -> Task<void> {
        std::size_t count = 0;
        std::uint64_t sum = 0;
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            count += piece.size();
            for (const char c : piece) {
                sum = sum * 31 + static_cast<unsigned char>(c);
            }
        }
        response.send(std::to_string(count) + " " + std::to_string(sum));
    }, large);
    router.post("/all", [](Request& request, Response& response) -> Task<void> {
        response.send(co_await request.read_all());
    });
    router.post("/copy", [](Request& request, Response& response) -> Task<void> {
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            co_await response.write(piece);
        }
    }, large);
    router.post("/deaf", [](Request&, Response& response) -> Task<void> {
        response.send("not interested");
        co_return;
    });
    router.post("/late", [](Request& request, Response& response) -> Task<void> {
        co_await sleep_ms(1'000);
        response.send(co_await request.read_all());
    });
    router.get("/pieces/:count/:size", [](Request& request, Response& response) -> Task<void> {
        const auto number = [&](const char* name) { return std::stoull(std::string(request.parameter(name))); };
        const std::string piece = pattern(number("size"));
        for (std::uint64_t i = number("count"); i > 0; --i) {
            co_await response.write(piece);
        }
    });
    router.get("/fixed/:announced/:written", [](Request& request, Response& response) -> Task<void> {
        const auto number = [&](const char* name) { return std::stoull(std::string(request.parameter(name))); };
        response.content_length(number("announced"));
        co_await response.write(pattern(number("written")));
        co_await response.write("");
    });
    router.get("/trailers", [](Request&, Response& response) -> Task<void> {
        co_await response.write("body");
        response.trailer("X-Sum", "42");
        response.end();
    });
    router.get("/throws", [](Request&, Response& response) -> Task<void> {
        co_await response.write("half");
        throw std::runtime_error("no more");
    });
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    return router;
}

}  // namespace

TEST_CASE("a body read piece by piece is the same however it is framed and cut") {
    for (const std::size_t size : {0u, 1u, 5u, 4'000u, 16'384u, 20'000u, 100'000u}) {
        const std::string body = pattern(size);
        for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{5'000}, std::size_t{60'000}}) {
            if (chunk == 1 && size > 20'000) {
                continue;
            }
            const std::string bytes = chunk == 0 ? post("/count", length_field(size), body)
                                                 : post("/count", "Transfer-Encoding: chunked\r\n", chunked(body, chunk));
            for (const std::size_t cut : {bytes.size(), std::size_t{1}, std::size_t{1'000}, std::size_t{17'000}}) {
                if (cut == 1 && bytes.size() > 6'000) {
                    continue;
                }
                CAPTURE(size);
                CAPTURE(chunk);
                CAPTURE(cut);
                Engine engine(streaming_router());
                sim::Peer peer = engine.world.connect(kPort);
                for (std::size_t at = 0; at < bytes.size(); at += cut) {
                    peer.send(std::string_view(bytes).substr(at, cut));
                    engine.server.settle();
                }
                CHECK(body_of(peer.take_received()) == expected_count(body));
                CHECK(status_of(engine.exchange(peer, get("/ok"))) == 200);  // the connection goes on
                peer.close();
                engine.server.settle();
                engine.server.check_nothing_left();
            }
        }
    }
}

TEST_CASE("read_all gives the whole body") {
    Engine engine(streaming_router());
    for (const std::size_t size : {0u, 10u, 16'000u, 50'000u, 1'000'000u}) {
        CAPTURE(size);
        const std::string body = pattern(size);
        sim::Peer peer = engine.world.connect(kPort);
        CHECK(body_of(engine.exchange(peer, post("/all", length_field(size), body))) == body);
        CHECK(body_of(engine.exchange(peer, post("/all", "Transfer-Encoding: chunked\r\n", chunked(body, 9'999)))) == body);
    }
}

TEST_CASE("bodies that are kept whole share the memory for bodies") {
    Config config = small_config();
    config.body_limit_bytes = 20'000;
    config.body_memory_limit_bytes = 20'000;
    Engine tight(streaming_router(), config);
    sim::Peer holder = tight.world.connect(kPort);
    tight.exchange(holder, post("/all", length_field(20'000), pattern(19'000)));
    sim::Peer other = tight.world.connect(kPort);
    tight.exchange(other, post("/all", length_field(20'000), pattern(19'000)));
    CHECK(status_of(holder.received()) == 503);  // the older one gives way
    CHECK(body_of(tight.exchange(other, pattern(1'000))).size() == 20'000);
}

TEST_CASE("nothing is received before the handler asks, and a slow handler slows its client") {
    Engine engine(streaming_router());
    sim::Peer peer = engine.world.connect(kPort);
    const std::string body = pattern(300'000);
    engine.exchange(peer, post("/late", length_field(body.size()), body));
    CHECK(engine.server.reactor().counters().received_bytes.get() <= kIoBlockBytes);
    engine.server.advance(1'000);
    CHECK(body_of(peer.received()) == body);
}

TEST_CASE("a handler that answers without reading: the connection goes on only if the body has come") {
    Engine engine(streaming_router());
    sim::Peer complete = engine.world.connect(kPort);
    CHECK(body_of(engine.exchange(complete, post("/deaf", length_field(3), "abc"))) == "not interested");
    CHECK(status_of(engine.exchange(complete, get("/ok"))) == 200);
    sim::Peer partial = engine.world.connect(kPort);
    const std::string answer = engine.exchange(partial, post("/deaf", length_field(30), "abc"));
    CHECK(answer.find("Connection: close\r\n") != std::string::npos);
    CHECK(partial.finished_by_server());
}

TEST_CASE("limits while reading: too large, broken chunks, too slow, gone") {
    Config config = small_config();
    config.body_limit_bytes = 1'000;
    Engine engine(streaming_router(), config);
    CHECK(status_of(engine.ask(post("/all", length_field(1'001), ""))) == 413);
    CHECK(status_of(engine.ask(post("/all", "Transfer-Encoding: chunked\r\n", chunked(pattern(1'001), 500)))) == 413);
    CHECK(status_of(engine.ask(post("/all", "Transfer-Encoding: chunked\r\n", "3\r\nabcX"))) == 400);
    sim::Peer slow = engine.world.connect(kPort);
    engine.exchange(slow, post("/all", length_field(1'000), "abc"));
    engine.server.advance(config.body_timeout_ms + 1);
    CHECK(status_of(slow.received()) == 408);
    sim::Peer gone = engine.world.connect(kPort);
    engine.exchange(gone, post("/all", length_field(1'000), "abc"));
    gone.finish();
    engine.server.settle();
    CHECK(gone.closed_by_server());
    CHECK(gone.received().empty());
    engine.server.advance(10'000);
    engine.server.check_nothing_left();
}

TEST_CASE("a client that is slow but steady is not cut, one that trickles is") {
    const Config config = small_config();
    Engine engine(streaming_router());
    sim::Peer steady = engine.world.connect(kPort);
    sim::Peer trickle = engine.world.connect(kPort);
    engine.exchange(steady, post("/count", length_field(2'000'000), ""));
    engine.exchange(trickle, post("/count", length_field(2'000'000), ""));
    for (int second = 0; second < 100; ++second) {
        steady.send(pattern(20'000));
        trickle.send("t");
        engine.server.advance(1'000);
    }
    CHECK(status_of(steady.received()) == 200);
    CHECK(status_of(trickle.received()) == 408);
}

TEST_CASE("100-continue is sent when the handler asks for the body, and not before") {
    Engine engine(streaming_router());
    sim::Peer peer = engine.world.connect(kPort);
    const std::string head = post("/late", length_field(3) + "Expect: 100-continue\r\n", "");
    CHECK(engine.exchange(peer, head).empty());
    engine.server.advance(1'000);
    CHECK(peer.take_received() == "HTTP/1.1 100 Continue\r\n\r\n");
    CHECK(body_of(engine.exchange(peer, "abc")) == "abc");
    sim::Peer unwanted = engine.world.connect(kPort);
    const std::string answer =
        engine.exchange(unwanted, post("/deaf", length_field(3) + "Expect: 100-continue\r\n", ""));
    CHECK(status_of(answer) == 200);
}

TEST_CASE("a response written piece by piece is chunked, or has its length, or ends with the connection") {
    Engine engine(streaming_router());
    for (const char* path : {"/pieces/1/0", "/pieces/1/1", "/pieces/3/10", "/pieces/2/200000", "/pieces/1000/777"}) {
        CAPTURE(std::string(path));
        sim::Peer peer = engine.world.connect(kPort);
        const std::string answer = engine.exchange(peer, get(path));
        CHECK(answer.find("Transfer-Encoding: chunked\r\n") != std::string::npos);
        CHECK(answer.find("Content-Length") == std::string::npos);
        std::string_view numbers = std::string_view(path).substr(8);
        const std::size_t count = std::stoul(std::string(numbers.substr(0, numbers.find('/'))));
        const std::size_t size = std::stoul(std::string(numbers.substr(numbers.find('/') + 1)));
        std::string wanted;
        for (std::size_t i = 0; i < count; ++i) {
            wanted += pattern(size);
        }
        CHECK(dechunk(answer) == wanted);
        CHECK(status_of(engine.exchange(peer, get("/ok"))) == 200);

        sim::Peer old = engine.world.connect(kPort);
        const std::string plain = engine.exchange(old, "GET " + std::string(path) + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        CHECK(plain.find("ransfer-Encoding") == std::string::npos);
        CHECK(body_of(plain) == wanted);
        CHECK(old.finished_by_server());
    }
    const std::string fixed = engine.ask(get("/fixed/50000/50000"));
    CHECK(fixed.find("Content-Length: 50000\r\n") != std::string::npos);
    CHECK(body_of(fixed) == pattern(50'000));
}

TEST_CASE("a body that does not keep to its announced length never looks whole") {
    Engine engine(streaming_router());
    for (const char* path : {"/fixed/100/99", "/fixed/100/101"}) {
        CAPTURE(std::string(path));
        sim::Peer peer = engine.world.connect(kPort);
        const std::string answer = engine.exchange(peer, get(path));
        CHECK(body_of(answer).size() < 100);
        CHECK(peer.finished_by_server());
        CHECK(engine.server.log.mention("content_length announced"));
        engine.server.log.lines.clear();
    }
}

TEST_CASE("HEAD of a streamed response has its head alone") {
    Engine engine(streaming_router());
    sim::Peer peer = engine.world.connect(kPort);
    const std::string answer = engine.exchange(peer, "HEAD /pieces/3/1000 HTTP/1.1\r\nHost: t\r\n\r\n");
    CHECK(status_of(answer) == 200);
    CHECK(body_of(answer).empty());
    CHECK(body_of(engine.exchange(peer, get("/ok"))) == "ok");
}

TEST_CASE("trailers leave in the order in which they were set, and none that would be another message's business") {
    Router router;
    router.get("/two", [](Request&, Response& response) -> Task<void> {
        response.trailer("X-First", "1");
        co_await response.write("body");
        response.trailer("X-Second", "2").trailer("Content-Type", "text/html");
    });
    router.get("/bad/:name", [](Request& request, Response& response) -> Task<void> {
        response.trailer(request.parameter("name"), "close");
        co_await response.write("body");
    });
    Engine engine(router);
    const std::string answer = engine.ask(get("/two"));
    CHECK(answer.ends_with("0\r\nX-First: 1\r\nX-Second: 2\r\nContent-Type: text/html\r\n\r\n"));
    CHECK(answer.find("Content-Type: text/plain") != std::string::npos);  // the head has its own
    for (const char* name : {"Content-Length", "transfer-encoding", "Connection", "Host", "a%20b"}) {
        CAPTURE(std::string(name));
        CHECK(status_of(engine.ask(get("/bad/" + std::string(name)))) == 500);
    }
}

TEST_CASE("a writer that never ends, for a client that takes no body, ends by itself") {
    int destroyed = 0;
    struct Witness {
        int* count;
        explicit Witness(int* counter) : count(counter) {}
        Witness(const Witness&) = delete;
        Witness& operator=(const Witness&) = delete;
        ~Witness() { ++*count; }
    };
    Router router;
    const auto endless = [&](Request& request, Response& response) -> Task<void> {
        const Witness witness(&destroyed);
        if (request.parameter("how") == "abort") {
            response.abort();
        } else if (request.parameter("how") == "fixed") {
            response.content_length(10);
        } else if (request.parameter("how") == "answered") {
            response.send("all");
        } else if (request.parameter("how") == "304") {
            response.status(304);
        }
        for (;;) {
            co_await response.write("more ");
        }
    };
    router.get("/:how", endless);
    router.get("/", [](Request&, Response& response) { response.send_static("ok"); });
    Engine engine(router);
    sim::Peer head = engine.world.connect(kPort);
    CHECK(status_of(engine.exchange(head, "HEAD /head HTTP/1.1\r\nHost: t\r\n\r\n" + get("/"))) == 200);
    CHECK(destroyed == 1);
    CHECK(status_of(engine.exchange(head, get("/304"))) == 304);
    CHECK(status_of(engine.exchange(head, get("/answered"))) == 200);
    CHECK(body_of(engine.exchange(head, get("/"))) == "ok");
    CHECK(destroyed == 3);
    CHECK(engine.ask(get("/abort")).empty());
    CHECK(body_of(engine.ask(get("/fixed"))) == "more more ");
    CHECK(destroyed == 5);
    head.close();
    engine.server.advance(10'000);
    engine.server.check_nothing_left();
}

TEST_CASE("a field that is refused before the first piece makes the answer 500") {
    Router router;
    router.get("/", [](Request&, Response& response) -> Task<void> {
        response.header("X-A", "a\r\nb");
        for (;;) {
            co_await response.write("x");
        }
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(status_of(engine.exchange(peer, get("/"))) == 500);
    CHECK(status_of(engine.exchange(peer, get("/"))) == 500);
}

TEST_CASE("trailers follow the last chunk, and a failed writer leaves the body without its end") {
    Engine engine(streaming_router());
    CHECK(engine.ask(get("/trailers")).find("4\r\nbody\r\n0\r\nX-Sum: 42\r\n\r\n") != std::string::npos);
    sim::Peer peer = engine.world.connect(kPort);
    const std::string answer = engine.exchange(peer, get("/throws"));
    CHECK(answer.find("4\r\nhalf\r\n") != std::string::npos);
    CHECK(answer.find("0\r\n\r\n") == std::string::npos);
    CHECK(peer.finished_by_server());
    CHECK(engine.server.log.mention("no more"));
}

TEST_CASE("a slow reader holds no more than the high-water mark, and gets everything") {
    const Config config = small_config();
    Engine engine(streaming_router(), config);
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(30'000);
    peer.send(get("/pieces/100/100000"));
    std::uint64_t total = 0;
    std::uint32_t most = 0;
    for (int i = 0; i < 20'000 && total < 10'000'000; ++i) {
        engine.server.settle();
        most = std::max(most, engine.server.reactor().blocks().leased());
        total += peer.read(30'000).size();
        (void)peer.take_received();
    }
    CHECK(total >= 10'000'000);
    CHECK(most <= 8);
}

TEST_CASE("copying a large body through a handler keeps to a few blocks both ways") {
    Engine engine(streaming_router());
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(20'000);
    const std::string body = pattern(2'000'000);
    peer.send(post("/copy", length_field(body.size()), body));
    std::string answer;
    std::uint32_t most = 0;
    for (int i = 0; i < 5'000 && answer.find("0\r\n\r\n", answer.size() < 8 ? 0 : answer.size() - 8) == std::string::npos; ++i) {
        engine.server.settle();
        most = std::max(most, engine.server.reactor().blocks().leased());
        answer += peer.read(20'000);
        (void)peer.take_received();
    }
    CHECK(dechunk(answer) == body);
    CHECK(most <= 10);
}

TEST_CASE("many slow streams share the blocks: none is refused for want of one while it has output of its own") {
    Config config = small_config();
    config.connection_limit = 64;
    config.io_block_limit = 200;  // 40 streams at their high-water mark, with their heads, would take 240
    config.io_block_reserve = 32;
    Engine engine(streaming_router(), config);
    std::vector<sim::Peer> peers;
    for (int i = 0; i < 40; ++i) {
        peers.push_back(engine.world.connect(kPort));
        peers.back().set_receive_window(5'000);
        peers.back().send(get("/pieces/10/40000"));
        engine.server.settle();
    }
    CHECK(engine.server.reactor().blocks().leased() <= config.io_block_limit);
    std::vector<std::uint64_t> totals(peers.size());
    for (int round = 0; round < 2'000; ++round) {
        for (std::size_t i = 0; i < peers.size(); ++i) {
            totals[i] += peers[i].read(5'000).size();
            (void)peers[i].take_received();
        }
        engine.server.settle();
    }
    for (const std::uint64_t total : totals) {
        CHECK(total >= 400'000);
    }
    CHECK(engine.server.reactor().counters().output_refused.get() == 0);
    CHECK(engine.server.reactor().counters().evicted.get() == 0);
}

TEST_CASE("a fast stream takes one step a turn, in either direction") {
    Engine engine(streaming_router());
    sim::Peer down = engine.world.connect(kPort);
    down.discard_received();
    down.send(get("/pieces/1000/100000"));
    engine.server.reactor().run_turn(0);
    for (int turn = 0; turn < 50; ++turn) {
        engine.world.reset_calls();
        engine.server.reactor().run_turn(0);
        CHECK(engine.world.calls(sim::Call::send) <= 3);
    }
    sim::Peer up = engine.world.connect(kPort);
    up.send(post("/count", length_field(200'000), pattern(200'000)));
    down.reset();
    for (int turn = 0; turn < 10; ++turn) {
        engine.world.reset_calls();
        engine.server.reactor().run_turn(0);
        CHECK(engine.world.calls(sim::Call::receive) <= 2 * kReadsPerTurn + 1);
    }
    engine.server.settle();
    CHECK(status_of(up.received()) == 200);
}

TEST_CASE("waiting readers and writers end when their client goes") {
    Engine engine(streaming_router());
    sim::Peer reader = engine.world.connect(kPort);
    engine.exchange(reader, post("/count", length_field(1'000), "abc"));
    reader.reset();
    sim::Peer writer = engine.world.connect(kPort);
    writer.set_receive_window(1'000);
    engine.exchange(writer, get("/pieces/100/100000"));
    writer.reset();
    sim::Peer stalled = engine.world.connect(kPort);
    stalled.set_receive_window(1'000);
    engine.exchange(stalled, get("/pieces/100/100000"));
    engine.server.advance(small_config().write_timeout_ms);
    CHECK(stalled.closed_by_server());
    engine.server.check_nothing_left();
}

}  // namespace penstock::test

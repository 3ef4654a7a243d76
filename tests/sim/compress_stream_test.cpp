// Responses that are compressed piece by piece: when what was written arrives, what a slow client costs, and how it ends.
#include <functional>
#include <stdexcept>

#include "compress_fixture.h"
#include "penstock/protocols/http/event_stream.h"

namespace penstock::test {
namespace {

constexpr std::size_t kLarge = 10'000'000;
constexpr std::size_t kWindow = 4'096;

// Bytes that hardly get smaller, so that the client's slowness is felt.
std::string digits(std::size_t size) {
    std::string text = random_body(size);
    for (char& byte : text) {
        byte = static_cast<char>('!' + (static_cast<unsigned char>(byte) & 63));
    }
    return text;
}

const std::string& large_body() {
    static const std::string body = digits(kLarge);
    return body;
}

// Decodes a response as it arrives.
class Reader {
public:
    explicit Reader(ContentCoding coding) : decoder_(ContentDecoder::create(coding, kNoLimit)) {}
    // What `bytes` add to the body.
    std::string take(std::string_view bytes) {
        pending_.append(bytes);
        if (!head_seen_) {
            const std::size_t end = pending_.find("\r\n\r\n");
            if (end == std::string::npos) {
                return {};
            }
            head_ = pending_.substr(0, end + 4);
            pending_.erase(0, end + 4);
            head_seen_ = true;
        }
        std::string out;
        while (!ended_) {
            const std::size_t line = pending_.find("\r\n");
            const std::size_t size = line == std::string::npos ? 0 : std::stoul(pending_.substr(0, line), nullptr, 16);
            if (line == std::string::npos || pending_.size() < line + 2 + size + 2) {
                break;
            }
            CHECK(decoder_->decode(std::string_view(pending_).substr(line + 2, size), out));
            ended_ = size == 0;
            pending_.erase(0, line + 2 + (ended_ ? 0 : size + 2));
        }
        return out;
    }
    [[nodiscard]] bool ended() const { return ended_; }
    // Whole by its chunks and by its coding.
    [[nodiscard]] bool is_whole() { return ended_ && decoder_->finish(); }
    [[nodiscard]] const std::string& head() const { return head_; }

private:
    std::unique_ptr<ContentDecoder> decoder_;
    std::string pending_;
    std::string head_;
    bool head_seen_ = false;
    bool ended_ = false;
};

void check_let_go(Engine& engine, sim::Peer& peer) {
    peer.close();
    engine.server.settle();
    engine.server.check_nothing_left();
    CHECK(engine.server.reactor().encoder_memory_bytes() == 0);
    CHECK(engine.world.bad_descriptor_calls() == 0);
}

// Everything that a large body can be.
Router large_router() {
    Router router = compressing();
    router.get("/owned", [](Request&, Response& response) { response.send(std::string(large_body())); });
    router.get("/copied", [](Request&, Response& response) { response.send(std::string_view(large_body())); });
    router.get("/fixed", [](Request&, Response& response) { response.send_static(large_body()); });
    router.get("/written", [](Request&, Response& response) -> Task<void> { co_await response.write(large_body()); });
    router.get("/called", [](Request&, Response& response) { response.write(large_body(), [&response] { response.end(); }); });
    router.get("/handed", [](Request&, Response& response) { response.write(std::string(large_body()), [] {}); });
    router.get("/task", [](Request&, Response& response) -> Task<void> {
        response.send(std::string(large_body()));
        co_await sleep_ms(1);
    });
    return router;
}

constexpr std::string_view kLargePaths[] = {"/owned", "/copied", "/fixed", "/written", "/called", "/handed", "/task"};

}  // namespace

TEST_CASE("what a handler writes has arrived, whole, before it writes on") {
    const std::vector<std::string> pieces = {"a", text_body(100), digits(40'000), "b\n", text_body(200'000), "", "the end"};
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        Router router = compressing();
        router.get("/", [&pieces](Request&, Response& response) -> Task<void> {
            for (const std::string& piece : pieces) {
                co_await response.write(piece);
                co_await sleep_ms(1'000);
            }
        });
        Engine engine(router);
        sim::Peer peer = engine.world.connect(kPort);
        Reader reader(coding);
        peer.send(get("/", accepting(content_coding_name(coding))));
        engine.server.settle();
        for (const std::string& piece : pieces) {
            const std::string got = reader.take(peer.take_received());
            CHECK(got.size() == piece.size());
            CHECK((got == piece));
            engine.server.advance(1'000);
        }
        CHECK(reader.take(peer.take_received()).empty());
        CHECK(reader.is_whole());
        check_let_go(engine, peer);
    }
}

TEST_CASE("an event arrives when it is sent, and so does what a callback writes") {
    Router router = compressing();
    router.get("/events", [](Request&, Response& response) -> Task<void> {
        EventStream events(response);
        for (int i = 0; i < 3; ++i) {
            co_await events.send({.data = std::to_string(i)});
            co_await sleep_ms(1'000);
        }
    });
    struct Ticker : std::enable_shared_from_this<Ticker> {
        Response& response;
        Timer timer;
        int left = 3;
        explicit Ticker(Response& to) : response(to) {}
        void tick(const std::shared_ptr<Ticker>& self) {
            response.write("data: " + std::to_string(3 - left) + "\n\n", [self] {
                if (--self->left > 0) {
                    self->timer.start(1'000, [self] { self->tick(self); });
                } else {
                    self->timer.start(1'000, [self] { self->response.end(); });
                }
            });
        }
    };
    std::weak_ptr<Ticker> ticker;
    router.get("/ticks", [&ticker](Request&, Response& response) {
        (void)response.defer();
        const auto made = std::make_shared<Ticker>(response);
        ticker = made;
        made->tick(made);
    });
    Engine engine(router);
    for (const std::string_view path : {"/events", "/ticks"}) {
        CAPTURE(path);
        sim::Peer peer = engine.world.connect(kPort);
        Reader reader(ContentCoding::gzip);
        peer.send(get(path, accepting("gzip")));
        engine.server.settle();
        for (int i = 0; i < 3; ++i) {
            CHECK(reader.take(peer.take_received()) == "data: " + std::to_string(i) + "\n\n");
            engine.server.advance(1'000);
        }
        CHECK(reader.take(peer.take_received()).empty());
        CHECK(reader.is_whole());
        check_let_go(engine, peer);
    }
    CHECK(ticker.expired());
}

TEST_CASE("a slow client of a large body costs an encoder and the output that a connection may have") {
    Engine engine(large_router());
    for (const std::string_view path : kLargePaths) {
        CAPTURE(path);
        sim::Peer peer = engine.world.connect(kPort);
        peer.set_receive_window(kWindow);
        peer.send(get(path, accepting("gzip")));
        Reader reader(ContentCoding::gzip);
        std::string body;
        std::uint32_t most_blocks = 0;
        engine.server.settle();
        for (int reads = 0; !reader.ended(); ++reads) {
            REQUIRE(reads < 5'000);
            most_blocks = std::max(most_blocks, engine.server.reactor().blocks().leased());
            body += reader.take(peer.read(kWindow));
            engine.server.settle();
            if (path == "/task" && reads == 2) {
                engine.server.advance(1);
            }
        }
        CHECK(most_blocks > 0);
        // The mark, what may stand above it, and the input's block.
        CHECK(most_blocks * kIoBlockBytes <= small_config().output_high_water_bytes + 3 * kIoBlockBytes);
        CHECK(body == large_body());
        CHECK(reader.is_whole());
        check_let_go(engine, peer);
    }
}

TEST_CASE("a client that leaves in the middle of a body leaves nothing behind") {
    Engine engine(large_router());
    for (const std::string_view path : kLargePaths) {
        for (const bool resets : {false, true}) {
            CAPTURE(path);
            sim::Peer peer = engine.world.connect(kPort);
            peer.set_receive_window(kWindow);
            peer.send(get(path, accepting("br, gzip")));
            engine.server.settle();
            (void)peer.read(kWindow);
            engine.server.settle();
            CHECK(engine.server.reactor().encoder_memory_bytes() > 0);
            if (resets) {
                peer.reset();
            }
            check_let_go(engine, peer);
            engine.server.advance(10);
        }
    }
}

TEST_CASE("a client that takes nothing is given up, as with any body") {
    Engine engine(large_router());
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(kWindow);
    peer.send(get("/owned", accepting("gzip")));
    engine.server.settle();
    engine.server.advance(small_config().write_timeout_ms + 1'000);
    CHECK(peer.reset_by_server());
    engine.server.check_nothing_left();
    CHECK(engine.server.reactor().encoder_memory_bytes() == 0);
}

TEST_CASE("others are served while a large body is compressed") {
    Router router = large_router();
    router.get("/quick", [](Request&, Response& response) { response.send("quick"); });
    Engine engine(router);
    sim::Peer slow = engine.world.connect(kPort);
    slow.send(get("/fixed", accepting("gzip")));
    sim::Peer quick = engine.world.connect(kPort);
    engine.server.reactor().run_turn(0);
    quick.send(get("/quick"));
    for (int turns = 0; turns < 3; ++turns) {
        engine.server.reactor().run_turn(0);
    }
    CHECK(body_of(quick.received()) == "quick");
    CHECK(slow.received_count() < kLarge / 50);
    engine.server.settle();
    CHECK(take_apart(slow.take_received()).plain == large_body());
    check_let_go(engine, (slow.close(), quick));
}

TEST_CASE("requests that were sent ahead are answered behind a body that leaves piece by piece") {
    Router router = large_router();
    router.get("/quick", [](Request&, Response& response) { response.send("quick"); });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    const std::string answers = engine.exchange(peer, get("/owned", accepting("gzip")) + get("/quick") + get("/written", accepting("gzip")));
    const std::size_t end = answers.find("0\r\n\r\nHTTP/1.1 200");
    REQUIRE(end != std::string::npos);
    CHECK(take_apart(std::string_view(answers).substr(0, end + 5)).plain == large_body());
    CHECK(count_of(answers, "\r\n\r\nquick") == 1);
    check_let_go(engine, peer);
}

TEST_CASE("a length that was announced does not leave, and is still held to") {
    const std::string text = text_body(50'000);
    for (const std::size_t announced : {std::size_t{50'000}, std::size_t{50'001}, std::size_t{49'999}}) {
        CAPTURE(announced);
        Router router = compressing();
        router.get("/", [&text, announced](Request&, Response& response) -> Task<void> {
            response.content_length(announced);
            co_await response.write(std::string_view(text).substr(0, 30'000));
            co_await response.write(std::string_view(text).substr(30'000));
        });
        Engine engine(router);
        sim::Peer peer = engine.world.connect(kPort);
        const std::string answer = engine.exchange(peer, get("/", accepting("gzip")));
        CHECK(answer.find("Content-Length") == std::string::npos);
        if (announced == text.size()) {
            CHECK(take_apart(answer).plain == text);
            CHECK_FALSE(peer.finished_by_server());
        } else {
            CHECK_FALSE(answer.ends_with("0\r\n\r\n"));
            CHECK(peer.finished_by_server());
            CHECK(engine.server.log.mention("content_length announced"));
        }
        check_let_go(engine, peer);
    }
}

TEST_CASE("for HTTP/1.0 the connection ends the body, and a reset when it is not whole") {
    for (const bool whole : {true, false}) {
        Router router = compressing();
        router.get("/sent", [](Request&, Response& response) { response.send(text_body(100'000)); });
        router.get("/written", [whole](Request&, Response& response) -> Task<void> {
            co_await response.write(text_body(50'000));
            if (!whole) {
                throw std::runtime_error("no more");
            }
            co_await response.write(text_body(50'000));
        });
        Engine engine(router);
        for (const std::string_view path : {"/sent", "/written"}) {
            CAPTURE(path);
            sim::Peer peer = engine.world.connect(kPort);
            const std::string answer = engine.exchange(peer, "GET " + std::string(path) + " HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
            if (whole || path == "/sent") {
                CHECK(answer.find("Transfer-Encoding") == std::string::npos);
                CHECK(take_apart(answer).plain == (path == "/sent" ? text_body(100'000) : text_body(50'000) + text_body(50'000)));
                CHECK(peer.finished_by_server());
            } else {
                engine.server.advance(1);  // a reset does not overtake what was sent
                CHECK(peer.reset_by_server());
            }
            check_let_go(engine, peer);
        }
    }
}

TEST_CASE("trailers follow a body that is compressed") {
    Router router = compressing();
    router.get("/", [](Request&, Response& response) -> Task<void> {
        co_await response.write(text_body(5'000));
        response.trailer("X-Sum", "7");
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    const std::string answer = engine.exchange(peer, get("/", accepting("gzip")));
    CHECK(answer.ends_with("\r\n0\r\nX-Sum: 7\r\n\r\n"));
    CHECK(decoded(ContentCoding::gzip, dechunk(answer)).body == text_body(5'000));
    check_let_go(engine, peer);
}

TEST_CASE("what goes wrong in the middle of a compressed body cuts it, and lets everything go") {
    const struct {
        const char* what;
        Handler handler;
    } cases[] = {
        {"a coroutine throws",
         [](Request&, Response& response) -> Task<void> {
             co_await response.write(text_body(50'000));
             throw std::runtime_error("no more");
         }},
        {"a handler throws behind its answer",
         [](Request&, Response& response) {
             response.send(text_body(100'000));
             throw std::runtime_error("too late");
         }},
        {"a callback's second body",
         [](Request&, Response& response) {
             response.send(text_body(100'000));
             response.write("more", [] {});
         }},
        {"abort",
         [](Request&, Response& response) -> Task<void> {
             response.send(text_body(100'000));
             response.abort();
             co_return;
         }},
        {"abort of what is written",
         [](Request&, Response& response) -> Task<void> {
             co_await response.write(text_body(100'000));
             response.abort();
         }},
        {"ended while a write waits",
         [](Request&, Response& response) {
             response.write(digits(500'000), [] {});
             response.end();
         }},
    };
    for (const auto& broken : cases) {
        CAPTURE(std::string(broken.what));
        Router router = compressing();
        router.get("/", broken.handler);
        Engine engine(router);
        sim::Peer peer = engine.world.connect(kPort);
        const std::string answer = engine.exchange(peer, get("/", accepting("gzip")));
        CHECK_FALSE(answer.ends_with("0\r\n\r\n"));
        CHECK(peer.closed_by_server() + peer.finished_by_server() > 0);
        check_let_go(engine, peer);
    }
}

TEST_CASE("to end a whole body once more changes nothing, nor does a second one") {
    Router router = compressing();
    router.get("/", [](Request&, Response& response) {
        response.send(text_body(100'000));
        response.end();
        response.send("again");
    });
    Engine engine(router);
    CHECK(ask_for(engine, "/", accepting("gzip")).plain == text_body(100'000));
    CHECK(engine.server.log.mention("ended after the whole answer"));
    CHECK(engine.server.log.mention("a second answer"));
}

TEST_CASE("an answer that comes later is compressed as well") {
    Router router = compressing();
    DeferredResponse later;
    router.get("/", [&later](Request&, Response& response) { later = response.defer(); });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(engine.exchange(peer, get("/", accepting("gzip"))).empty());
    CHECK(later.post([](Response& response) { response.send(text_body(100'000)); }));
    engine.server.settle();
    CHECK(take_apart(peer.take_received()).plain == text_body(100'000));
    check_let_go(engine, peer);
}

TEST_CASE("the encoder is let go when the body has ended, not when the handler has") {
    Router router = compressing();
    for (const std::string_view path : {"/sent", "/written"}) {
        router.get(path, [path](Request&, Response& response) -> Task<void> {
            if (path == "/sent") {
                response.send(text_body(100'000));
            } else {
                co_await response.write(text_body(5'000));
                response.end();
            }
            co_await sleep_ms(60'000);
        });
    }
    Engine engine(router);
    for (const std::string_view path : {"/sent", "/written"}) {
        sim::Peer peer = engine.world.connect(kPort);
        CHECK(take_apart(engine.exchange(peer, get(path, accepting("gzip")))).coding() == "gzip");
        CHECK(engine.server.reactor().encoder_memory_bytes() == 0);
        peer.reset();
        check_let_go(engine, peer);
    }
}

TEST_CASE("a second body behind a whole one is refused, and the whole one arrives") {
    Router router = compressing();
    router.get("/", [](Request&, Response& response) -> Task<void> {
        response.send(text_body(100'000));
        co_await response.write("more");
    });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(take_apart(engine.exchange(peer, get("/", accepting("gzip")))).plain == text_body(100'000));
    CHECK(engine.server.log.mention("called after the whole answer"));
    CHECK(peer.finished_by_server());
    check_let_go(engine, peer);
}

TEST_CASE("what a parked task's locals write and end when they are destroyed leads to nothing") {
    struct Writer {
        Response& response;
        ~Writer() {
            response.write("the end", [] {});
            response.end();
        }
    };
    struct Ender {
        Response& response;
        ~Ender() { response.end(); }
    };
    Router router = compressing();
    router.get("/written", [](Request&, Response& response) -> Task<void> {
        const Writer writer{response};
        co_await response.write(text_body(5'000));
        co_await offload([] {});
    });
    router.get("/ended", [](Request&, Response& response) -> Task<void> {
        const Ender ender{response};
        co_await response.write(text_body(5'000));
        co_await offload([] {});
    });
    router.get("/sent", [](Request&, Response& response) -> Task<void> {
        const Ender ender{response};
        response.send(std::string(large_body()));
        co_await offload([] {});
    });
    Engine engine(router);
    for (const std::string_view path : {"/written", "/ended", "/sent"}) {
        CAPTURE(path);
        sim::Peer peer = engine.world.connect(kPort);
        peer.set_receive_window(kWindow);
        peer.send(get(path, accepting("gzip")));
        engine.server.settle();
        CHECK(engine.server.reactor().encoder_memory_bytes() > 0);
        peer.reset();
        engine.server.settle();
        CHECK(engine.server.reactor().counters().tasks_parked.get() == 1);
        CHECK(engine.server.reactor().encoder_memory_bytes() == 0);
        CHECK(engine.server.offload.run_one());
        engine.server.settle();
        CHECK(engine.server.reactor().counters().tasks_parked.get() == 0);
        check_let_go(engine, peer);
    }
}

}  // namespace penstock::test

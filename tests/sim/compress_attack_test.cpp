// What a hostile client makes of codings: many small bodies that decode to much or take long to encode, sent at once, and
// decoders that are made large and then left to wait.
#include <algorithm>
#include <functional>

#include "compress_fixture.h"

namespace penstock::test {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr int kPipelined = 100;

// The most that `done` grows by in one turn while the server answers what `peer` has sent.
std::uint64_t most_in_a_turn(Engine& engine, const std::uint64_t& done) {
    std::uint64_t most = 0;
    for (int turns = 0; turns < kTurnLimit && (engine.server.reactor().has_work() || !engine.world.quiet()); ++turns) {
        const std::uint64_t before = done;
        engine.server.reactor().run_turn(0);
        most = std::max(most, done - before);
    }
    return most;
}

std::string repeated(const std::string& request, int times) {
    std::string requests;
    for (int i = 0; i < times; ++i) {
        requests += request;
    }
    return requests;
}

void check_all_back(Engine& engine, sim::Peer& peer) {
    peer.reset();
    engine.server.settle();
    engine.server.check_nothing_left();
    CHECK(engine.server.reactor().encoder_memory_bytes() == 0);
    CHECK(engine.server.reactor().free_body_memory() == engine.server.reactor().config().body_memory_limit_bytes);
}

}  // namespace

TEST_CASE("many small bombs sent ahead of their answers give others their turns") {
    const std::string zeros(kMebibyte, '\0');
    std::uint64_t taken = 0;
    Router router;
    const RouteOptions decodes{.decode_body = true};
    router.post("/whole", [&taken](Request& request, Response& response) {
        taken += request.body().size();
        response.send_static("taken");
    }, decodes);
    router.post("/read", [&taken](Request& request, Response& response) -> Task<void> {
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            taken += piece.size();
        }
        response.send_static("taken");
    }, decodes);
    Engine engine(router);
    for (const ContentCoding coding : available_codings()) {
        const std::string bomb = encoded(coding, zeros);
        for (const std::string_view way : {"/whole", "/read"}) {
            CAPTURE(content_coding_name(coding));
            CAPTURE(way);
            sim::Peer peer = engine.world.connect(kPort);
            const std::string coded = "Content-Encoding: " + std::string(content_coding_name(coding)) + "\r\n";
            peer.send(repeated(post(way, coded + length_field(bomb.size()), bomb), kPipelined));
            // Each of the receives of a turn may find a request to end and another to begin.
            CHECK(most_in_a_turn(engine, taken) <= (kReadsPerTurn + 1) * 2 * kDecodedBytesPerTurn);
            CHECK(count_of(peer.take_received(), "\r\n\r\ntaken") == kPipelined);
            check_all_back(engine, peer);
        }
    }
}

TEST_CASE("many answers that are compressed at once give others their turns") {
    std::uint64_t sent = 0;
    Router router = compressing({.cache_bytes = 0});
    const std::string body = std::string(kEncodeAtOnceLimitBytes - 100, 'x') + text_body(100);
    router.get("/", [&](Request&, Response& response) {
        sent += body.size();
        response.send_static(body);
    });
    Engine engine(router);
    for (const ContentCoding coding : available_codings()) {
        CAPTURE(content_coding_name(coding));
        sim::Peer peer = engine.world.connect(kPort);
        peer.send(repeated(get("/", accepting(content_coding_name(coding))), kPipelined));
        CHECK(most_in_a_turn(engine, sent) <= (kReadsPerTurn + 1) * 2 * kEncodeAtOnceLimitBytes);
        CHECK(statuses_in(peer.take_received()) == repeated("200 ", kPipelined - 1) + "200");
        check_all_back(engine, peer);
    }
}

TEST_CASE("a decoder is let go when the body is whole, not when its handler has done with it") {
    std::vector<DeferredResponse> waiting;
    Router router;
    const RouteOptions decodes{.decode_body = true};
    router.post("/whole", [&waiting](Request&, Response& response) { waiting.push_back(response.defer()); }, decodes);
    router.post("/read", [](Request& request, Response& response) -> Task<void> {
        while (!(co_await request.read()).empty()) {
        }
        co_await sleep_ms(60'000);
        response.send_static("late");
    }, decodes);
    Engine engine(router);
    const Reactor& reactor = engine.server.reactor();
    for (const ContentCoding coding : available_codings()) {
        const std::string sent = encoded(coding, random_body(20'000));
        for (const std::string_view way : {"/whole", "/read"}) {
            CAPTURE(content_coding_name(coding));
            CAPTURE(way);
            sim::Peer peer = engine.world.connect(kPort);
            const std::string coded = "Content-Encoding: " + std::string(content_coding_name(coding)) + "\r\n";
            CHECK(engine.exchange(peer, post(way, coded + length_field(sent.size()), sent)).empty());
            // The body itself grows by doubling.
            CHECK(reactor.config().body_memory_limit_bytes - reactor.free_body_memory() <= (way == "/whole" ? 40'000 : 0));
            check_all_back(engine, peer);
        }
    }
}

TEST_CASE("the client's time for a body is not used up while the server decodes what has come") {
    std::uint64_t taken = 0;
    Router router;
    router.post("/", [&taken](Request& request, Response& response) -> Task<void> {
        for (std::string_view piece = co_await request.read(); !piece.empty(); piece = co_await request.read()) {
            taken += piece.size();
        }
        response.send_static("taken");
    }, {.body_limit_bytes = 100 * kMebibyte, .decode_body = true});
    Engine engine(router);
    const std::string bomb = encoded(ContentCoding::gzip, std::string(40 * kMebibyte, '\0'));
    const std::string head = "Content-Encoding: gzip\r\n" + length_field(bomb.size());
    for (const bool is_whole : {true, false}) {
        sim::Peer peer = engine.world.connect(kPort);
        peer.send(post("/", head, std::string_view(bomb).substr(0, bomb.size() - (is_whole ? 0 : 10))));
        for (int turns = 0; turns < 1'000 && (engine.server.reactor().has_work() || !engine.world.quiet()); ++turns) {
            engine.server.reactor().run_turn(0);
            engine.world.advance_ms(2'000);  // others are busy
        }
        CHECK(status_of(peer.take_received()) == (is_whole ? 200 : 0));
        if (!is_whole) {
            engine.server.advance(60'000);
            CHECK(status_of(peer.take_received()) == 408);  // here it is the client that keeps us waiting
        }
        check_all_back(engine, peer);
    }
}

}  // namespace penstock::test

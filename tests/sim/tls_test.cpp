// TLS on the simulated platform: how a session begins and ends, and what it costs.
#include <stdexcept>
#include <vector>

#include "http_fixture.h"
#include "tls_fixture.h"

namespace penstock::test {
namespace {

Router tls_router() {
    Router router = case_router();
    router.get("/large", [](Request&, Response& response) { response.send(std::string(100'000, 'x')); });
    router.get("/tls", [](Request& request, Response& response) {
        const TlsInfo* const tls = request.tls();
        response.send(tls == nullptr ? std::string("none")
                                     : std::string(tls->version) + " " + std::string(tls->server_name) + (tls->resumed ? " resumed" : ""));
    });
    return router;
}

void check_clean(TlsEngine& engine, TlsPeer& peer) {
    peer.wire().close();
    engine.server.settle();
    engine.server.check_nothing_left();
}

}  // namespace

TEST_CASE("1,000 requests over TLS are 1,000 receives and 1,000 sends") {
    for (const bool only_tls12 : {false, true}) {
        TlsEngine engine(tls_router());
        TlsPeer peer = engine.connect({.only_tls12 = only_tls12});
        CHECK(statuses_in(engine.exchange(peer, get("/letters"))) == "200");
        engine.world.reset_calls();
        const std::uint64_t records = peer.tls().records_received();
        for (int i = 0; i < 1'000; ++i) {
            CHECK(engine.exchange(peer, get("/letters")).ends_with(kLetters));
        }
        CHECK(engine.world.calls(sim::Call::receive) == 1'000);
        CHECK(engine.world.calls(sim::Call::send) == 1'000);
        CHECK(engine.world.calls(sim::Call::poller_add) == 0);
        CHECK(peer.tls().records_received() == records + 1'000);
        check_clean(engine, peer);
    }
}

TEST_CASE("a handshake takes two receives, and its last flight brings the first request along") {
    TlsEngine engine(tls_router());
    TlsPeer peer = engine.connect_half_way();
    peer.take_in();
    REQUIRE(peer.tls().established());
    engine.world.reset_calls();
    peer.tls().write(get("/letters"));
    peer.flush();
    engine.server.settle();
    CHECK(peer.take_received().ends_with(kLetters));
    CHECK(engine.world.calls(sim::Call::receive) == 1);
    CHECK(engine.world.calls(sim::Call::send) == 1);
    CHECK(engine.server.reactor().counters().tls_handshakes.get() == 1);
    check_clean(engine, peer);
}

TEST_CASE("a hello may come byte by byte and in records of any size") {
    TlsEngine engine(tls_router());
    TlsPeer peer(engine.world.connect(kPort));
    peer.tls().shake_hands();
    const std::string hello = peer.tls().take_outgoing();
    for (const char byte : hello) {
        peer.wire().send({&byte, 1});
        engine.server.settle();
    }
    peer.take_in();
    CHECK(peer.tls().established());
    TlsPeer in_records(engine.world.connect(kPort));
    in_records.tls().shake_hands();
    const std::string whole = in_records.tls().take_outgoing();
    for (std::size_t at = 5; at < whole.size(); at += 100) {
        const std::string part = whole.substr(at, 100);
        in_records.wire().send(std::string("\x16\x03\x01\x00", 4) + static_cast<char>(part.size()) + part);
        engine.server.settle();
    }
    in_records.take_in();
    CHECK(in_records.tls().established());
    CHECK(engine.server.reactor().tls().handshakes() == 2);
    peer.wire().close();
    check_clean(engine, in_records);
}

TEST_CASE("a client that says goodbye behind its request gets all of the answer, and a goodbye") {
    for (const bool only_tls12 : {false, true}) {
        TlsEngine engine(tls_router());
        TlsPeer peer = engine.connect({.only_tls12 = only_tls12});
        peer.tls().write(get("/large"));
        peer.tls().say_goodbye();
        peer.flush();
        engine.server.settle();
        // wolfSSL's client reads no further once it has ended its own side, so what matters is on the wire.
        CHECK(peer.wire().received_count() > 100'000);
        CHECK(peer.wire().finished_by_server());
        CHECK_FALSE(peer.wire().reset_by_server());
        CHECK(engine.server.reactor().counters().tls_truncated.get() == 0);
        check_clean(engine, peer);
    }
}

TEST_CASE("a connection that ends without a goodbye is told from one with it, and what came whole is answered") {
    TlsEngine engine(tls_router());
    TlsPeer peer = engine.connect();
    peer.send(get("/letters"));
    peer.wire().finish();
    engine.server.settle();
    CHECK(peer.take_received().ends_with(kLetters));
    CHECK(peer.tls().heard_goodbye());
    CHECK(engine.server.reactor().counters().tls_truncated.get() == 1);
    check_clean(engine, peer);
}

TEST_CASE("an idle connection ends with a goodbye") {
    TlsEngine engine(tls_router());
    TlsPeer peer = engine.connect();
    CHECK(statuses_in(engine.exchange(peer, get("/letters"))) == "200");
    engine.server.advance(61'000);
    peer.take_in();
    CHECK(peer.wire().finished_by_server());
    CHECK(peer.tls().heard_goodbye());
    check_clean(engine, peer);
}

TEST_CASE("who speaks in plain text is told so, and garbage gets an alert") {
    TlsEngine engine(tls_router());
    const auto said = [&](std::string_view bytes) {
        sim::Peer peer = engine.world.connect(kPort);
        peer.send(bytes);
        engine.server.settle();
        CHECK(peer.finished_by_server());
        std::string answer = peer.take_received();
        peer.close();
        engine.server.settle();
        engine.server.check_nothing_left();
        return answer;
    };
    using namespace std::string_literals;
    const std::string plain = said(get("/"));
    CHECK(statuses_in(plain) == "400");
    CHECK(plain.find("https://") != std::string::npos);
    CHECK(said("\x80\x2e\x01\x03\x01"s) == "\x15\x03\x03\x00\x02\x02\x0a"s);                      // SSLv2
    CHECK(said("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"s) == "\x15\x03\x03\x00\x02\x02\x32"s);  // a hello of one byte
    CHECK(said("\x16\x03\x01\x00\x01\x02"s) == "\x15\x03\x03\x00\x02\x02\x32"s);                  // no hello
    // One for TLS 1.2 from who can do better, and so was made to try less (RFC 7507).
    const std::string hello = "\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03"s + std::string(32, 'r') + "\x00\x00\x04\xc0\x2b"s;
    CHECK(said(hello + "\x56\x00\x01\x00"s) == "\x15\x03\x03\x00\x02\x02\x56"s);
    CHECK(said("\x16\x03\x01\x40\x00\x01\x00\xff\xff"s + std::string(16'384, '\0')).size() == 7);  // one that never ends
}

TEST_CASE("a client that never says hello, or half of one, or no more than that, is gone in time") {
    TlsEngine engine(tls_router());
    sim::Peer silent = engine.world.connect(kPort);
    sim::Peer half = engine.world.connect(kPort);
    half.send(std::string_view("\x16\x03\x01\x02\x00\x01", 6));
    TlsPeer waits = engine.connect_half_way();
    CHECK(engine.server.reactor().connections().in_use() == 3);
    engine.server.advance(9'000);
    CHECK(engine.server.reactor().connections().in_use() == 3);
    engine.server.advance(1'100);
    CHECK(engine.server.reactor().connections().in_use() == 0);
    CHECK(engine.server.reactor().counters().timeouts.get() == 3);
    CHECK(engine.server.reactor().counters().tls_failures.get() == 3);
    engine.server.check_nothing_left();
}

TEST_CASE("a storm of handshakes takes a few steps in each turn, and who is connected is served in between") {
    Config config = small_config();
    TlsEngine engine(tls_router(), config);
    TlsPeer connected = engine.connect();
    CHECK(statuses_in(engine.exchange(connected, get("/letters"))) == "200");
    std::vector<TlsPeer> storm;
    for (int i = 0; i < 50; ++i) {
        storm.emplace_back(engine.world.connect(kPort));
        storm.back().tls().shake_hands();
        storm.back().flush();
    }
    engine.server.reactor().run_turn(0);
    std::size_t answered = 0;
    for (TlsPeer& peer : storm) {
        answered += peer.wire().received_count() > 0 ? 1u : 0u;
    }
    CHECK(answered == kHandshakeStepsPerTurn);
    connected.send(get("/letters"));
    engine.server.reactor().run_turn(0);
    CHECK(connected.take_received().ends_with(kLetters));
    CHECK(engine.server.reactor().blocks().leased() == 0);
    engine.server.settle();
    for (TlsPeer& peer : storm) {
        peer.take_in();
        CHECK(peer.tls().established());
        peer.wire().close();
    }
    check_clean(engine, connected);
}

TEST_CASE("above the limit of handshakes the oldest gives way") {
    Config config = small_config();
    config.tls_handshake_limit = 3;
    TlsEngine engine(tls_router(), config);
    std::vector<TlsPeer> waiting;
    for (int i = 0; i < 5; ++i) {
        waiting.push_back(engine.connect_half_way());
    }
    CHECK(waiting[0].wire().reset_by_server());
    CHECK(waiting[1].wire().reset_by_server());
    CHECK_FALSE(waiting[2].wire().reset_by_server());
    CHECK(engine.server.reactor().tls().handshakes() == 3);
    TlsPeer good = engine.connect();
    CHECK(statuses_in(engine.exchange(good, get("/letters"))) == "200");
    for (TlsPeer& peer : waiting) {
        peer.wire().close();
    }
    check_clean(engine, good);
}

TEST_CASE("half hellos that hold every input block give way to who has more to say") {
    Config config = small_config();
    config.connection_limit = 256;
    TlsEngine engine(tls_router(), config);
    const std::uint32_t blocks = config.io_block_limit - config.io_block_reserve;
    std::vector<sim::Peer> halves;
    for (std::uint32_t i = 0; i < blocks; ++i) {
        halves.push_back(engine.world.connect(kPort));
        halves.back().send(std::string_view("\x16\x03\x01\x02\x00\x01", 6));
    }
    engine.server.settle();
    CHECK(engine.server.reactor().blocks().leased() == blocks);
    TlsPeer good = engine.connect();
    CHECK(statuses_in(engine.exchange(good, get("/letters"))) == "200");
    CHECK(halves[0].reset_by_server());
    for (sim::Peer& peer : halves) {
        peer.close();
    }
    check_clean(engine, good);
}

TEST_CASE("a slow reader gets everything, in records that wait for it in blocks") {
    TlsEngine engine(tls_router());
    TlsPeer peer = engine.connect();
    peer.wire().set_receive_window(3'000);
    peer.send(get("/large", "Connection: close\r\n"));
    std::string got;
    for (int i = 0; i < 200 && !peer.wire().finished_by_server(); ++i) {
        engine.server.settle();
        peer.tls().give(peer.wire().read(2'500));
        got += peer.tls().take_received();
        CHECK(engine.server.reactor().blocks().leased() <= 16);
    }
    CHECK(got.size() > 100'000);
    CHECK(peer.tls().heard_goodbye());
    check_clean(engine, peer);
}

TEST_CASE("a peer that reads nothing is gone in time, and nothing is kept for it") {
    TlsEngine engine(tls_router());
    TlsPeer peer = engine.connect();
    peer.wire().set_receive_window(100);
    for (int i = 0; i < 20; ++i) {
        peer.send(get("/large"));
        engine.server.settle();
    }
    engine.server.advance(31'000);
    CHECK(peer.wire().reset_by_server());
    CHECK(engine.server.reactor().counters().timeouts.get() == 1);
    engine.server.check_nothing_left();
}

TEST_CASE("a drain lets a request end, says goodbye to who has none, and waits for no handshake") {
    Router router = tls_router();
    router.get("/slow", [](Request&, Response& response) -> Task<void> {
        co_await sleep_ms(3'000);
        response.send_static("at last");
    });
    TlsEngine engine(router);
    TlsPeer idle = engine.connect();
    TlsPeer busy = engine.connect();
    TlsPeer waits = engine.connect_half_way();
    CHECK(engine.exchange(busy, get("/slow")).empty());
    engine.server.reactor().request_stop(false);
    engine.server.settle();
    idle.take_in();
    CHECK(idle.tls().heard_goodbye());
    engine.server.advance(2'100);
    CHECK(engine.server.reactor().connections().in_use() == 1);
    engine.server.advance(1'000);
    CHECK(busy.take_received().ends_with("\r\n\r\nat last"));
    CHECK(busy.tls().heard_goodbye());
    busy.wire().close();
    engine.server.settle();
    CHECK(engine.server.reactor().connections().in_use() == 0);
}

TEST_CASE("a handler sees what protects its connection") {
    TlsEngine engine(tls_router());
    TlsPeer peer = engine.connect({.server_name = "a.example.org"});
    CHECK(engine.exchange(peer, get("/tls")).ends_with("TLSv1.3 a.example.org"));
    TlsPeer older = engine.connect({.only_tls12 = true});
    CHECK(engine.exchange(older, get("/tls")).ends_with("TLSv1.2 "));
    older.wire().close();
    check_clean(engine, peer);
}

TEST_CASE("new files are for those who connect from then on") {
    const TlsClientOptions wants_ecdsa{.only_tls12 = true, .suites = "ECDHE-ECDSA-AES128-GCM-SHA256"};
    const TlsClientOptions wants_rsa{.only_tls12 = true, .suites = "ECDHE-RSA-AES128-GCM-SHA256"};
    const auto can_connect = [](TlsEngine& engine, const TlsClientOptions& options) {
        TlsPeer peer(engine.world.connect(kPort), options);
        engine.shake_hands(peer);
        peer.wire().close();
        return peer.tls().established();
    };
    TlsEngine engine(tls_router());
    CHECK_FALSE(can_connect(engine, wants_rsa));
    TlsPeer before = engine.connect(wants_ecdsa);
    TlsPeer half_way = engine.connect_half_way();
    engine.server.replace_certificates({TestCertificates::get().rsa});
    CHECK(statuses_in(engine.exchange(before, get("/letters"))) == "200");
    engine.shake_hands(half_way);
    CHECK(statuses_in(engine.exchange(half_way, get("/letters"))) == "200");
    CHECK_FALSE(can_connect(engine, wants_ecdsa));
    TlsPeer after = engine.connect(wants_rsa);
    CHECK(statuses_in(engine.exchange(after, get("/letters"))) == "200");
    before.wire().close();
    half_way.wire().close();
    check_clean(engine, after);
}

TEST_CASE("HSTS is said over TLS, by a refusal as well, and replaces what a handler says") {
    Router router = tls_router();
    router.use(hsts({.max_age_s = 300, .include_subdomains = true}).value());
    router.get("/hsts", [](Request&, Response& response) { response.send_static("here"); });
    router.get("/own", [](Request&, Response& response) { response.header("Strict-Transport-Security", "max-age=1").send_static("own"); });
    router.get("/throws", [](Request&, Response&) { throw std::runtime_error("on purpose"); });
    TlsEngine engine(router);
    TlsPeer peer = engine.connect();
    const std::string field = "\r\nStrict-Transport-Security: max-age=300; includeSubDomains\r\n";
    for (const char* const path : {"/hsts", "/own", "/throws"}) {
        CAPTURE(std::string(path));
        const std::string answer = engine.exchange(peer, get(path));
        CHECK(count_of(answer, "Strict-Transport-Security") == 1);
        CHECK(answer.find(field) != std::string::npos);
    }
    check_clean(engine, peer);
}

TEST_CASE("a client that says goodbye with the end of its handshake is let go at once") {
    for (const bool only_tls12 : {false, true}) {
        TlsEngine engine(tls_router());
        TlsPeer peer(engine.world.connect(kPort), {.only_tls12 = only_tls12});
        engine.shake_hands(peer);
        REQUIRE(peer.tls().established());
        TlsPeer other(engine.world.connect(kPort), {.only_tls12 = only_tls12});
        other.tls().shake_hands();
        other.flush();
        engine.server.settle();
        other.take_in();
        other.tls().say_goodbye();
        other.flush();
        peer.tls().say_goodbye();
        peer.flush();
        engine.server.settle();
        CHECK(peer.wire().finished_by_server());
        if (!only_tls12) {
            CHECK(other.wire().finished_by_server());
        }
        other.wire().close();
        check_clean(engine, peer);
    }
}

// RFC 8446 §6.1: who only sees the end of the connection cannot tell whether something is missing.
TEST_CASE("what is cut off in the middle of an answer gets no goodbye") {
    Router router = tls_router();
    router.get("/never", [](Request&, Response& response) -> Task<void> {
        co_await response.write("a beginning");
        co_await sleep_ms(1'000'000);
    });
    TlsEngine engine(router);
    TlsPeer peer = engine.connect();
    CHECK(engine.exchange(peer, "GET /never HTTP/1.0\r\nHost: t\r\n\r\n").find("a beginning") != std::string::npos);
    engine.server.reactor().request_stop(true);
    for (int turns = 0; turns < 5; ++turns) {
        engine.server.reactor().run_turn(0);
    }
    peer.take_in();
    CHECK((peer.wire().finished_by_server() || peer.wire().reset_by_server()));
    CHECK_FALSE(peer.tls().heard_goodbye());
}

}  // namespace penstock::test

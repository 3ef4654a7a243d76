// Clients that mean harm, with TLS: each takes what is there for others, if it can.
#include <string>
#include <vector>

#include "http_fixture.h"
#include "tls_fixture.h"

namespace penstock::test {

TEST_CASE("handshakes that go on byte by byte leave steps for who is new") {
    TlsEngine engine(case_router());
    std::vector<TlsPeer> slow;
    for (int i = 0; i < 2 * kHandshakeStepsPerTurn; ++i) {
        slow.push_back(engine.connect_half_way());
        slow.back().wire().send(std::string_view("\x17\x03\x03\x40\x00", 5));
    }
    engine.server.settle();
    TlsPeer fresh(engine.world.connect(kPort));
    fresh.tls().shake_hands();
    fresh.flush();
    int turns = 0;
    for (; turns < 100 && fresh.wire().received_count() == 0; ++turns) {
        for (TlsPeer& peer : slow) {
            peer.wire().send("x");
        }
        engine.server.reactor().run_turn(0);
    }
    CHECK(turns < 20);
    for (TlsPeer& peer : slow) {
        peer.wire().close();
    }
    fresh.wire().close();
    engine.server.settle();
    engine.server.check_nothing_left();
}

TEST_CASE("a handshake that breaks behind the hello is counted as one that failed") {
    TlsEngine engine(case_router());
    TlsPeer peer = engine.connect_half_way();
    peer.wire().send(std::string_view("\x17\x03\x03\x00\x20", 5));
    peer.wire().send(std::string(32, 'j'));
    engine.server.settle();
    CHECK(engine.server.reactor().counters().tls_handshakes.get() == 0);
    peer.wire().close();
    engine.server.settle();
    CHECK(engine.server.reactor().counters().tls_failures.get() == 1);
    engine.server.check_nothing_left();
}

TEST_CASE("a request that is cut off by close_notify or without one reaches no handler") {
    for (const bool says_goodbye : {false, true}) {
        Router router;
        int calls = 0;
        router.post("/count", [&](Request&, Response& response) {
            ++calls;
            response.send("x");
        });
        TlsEngine engine(router);
        TlsPeer peer = engine.connect();
        peer.send("POST /count HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nabc");
        engine.server.settle();
        if (says_goodbye) {
            peer.tls().say_goodbye();
            peer.flush();
            peer.wire().send(std::string(100, 'z'));
        }
        peer.wire().close();
        engine.server.settle();
        CHECK(calls == 0);
        engine.server.advance(31'000);
        engine.server.check_nothing_left();
    }
}

}  // namespace penstock::test

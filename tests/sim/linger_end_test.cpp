// The end of a linger: what its client sent with its FIN is thrown away like all the rest, and makes no reset.
#include "engine_fixture.h"

namespace penstock::test {

TEST_CASE("a client in linger that sends more bytes and its end at once is not reset") {
    Router router;
    router.get("/ok", [](Request&, Response& response) { response.send_static("ok"); });
    Engine engine(router);
    sim::Peer peer = engine.world.connect(kPort);
    peer.set_receive_window(100'000);  // read by hand: the answer is still on its way when the end comes
    peer.send("garbage\r\n\r\n");
    engine.server.settle();
    REQUIRE_FALSE(peer.closed_by_server());
    peer.send(get("/ok"));
    peer.finish();
    engine.server.settle();
    CHECK(peer.closed_by_server());
    CHECK_FALSE(peer.reset_by_server());
    CHECK(status_of(peer.read(100'000)) == 400);
}

}  // namespace penstock::test

// The cases of tests/http/ against a server on real sockets.
#include "http/http_cases.h"

#include <algorithm>
#include <set>
#include <vector>

#include "loop/loop_cases.h"

namespace penstock::test {
namespace {

// Streams up to here are also sent byte by byte. A longer one would take more wake-ups than it is worth.
constexpr std::size_t kBytewiseLimit = 300;

using Pieces = std::vector<std::string_view>;

Pieces cut(std::string_view bytes, std::size_t at);
Pieces bytewise(std::string_view bytes);
void check_pieces(Server& server, const Case& expected, Pieces pieces);
void send_pieces(Server& server, LoopClient& client, const Pieces& pieces);
bool have_arrived(Server& server, LoopClient& client, std::uint64_t bytes);

}  // namespace

void run_cases(std::span<const Case> cases, Config config) {
    Server server(std::move(config));
    server.listen({.address = "127.0.0.1"}, case_router());
    start_or_fail(server);
    for (const Case& expected : cases) {
        run_case(server, expected);
    }
    check_all_ended(server);
}

void run_case(Server& server, const Case& expected) {
    CAPTURE(expected.name);
    const std::string_view bytes = expected.request;
    const std::size_t size = bytes.size();
    check_pieces(server, expected, {bytes});
    for (const std::size_t at : std::set<std::size_t>{1, size / 4, size / 2, size - size / 4, size - 2, size - 1}) {
        if (at > 0 && at < size) {
            CAPTURE(at);
            check_pieces(server, expected, cut(bytes, at));
        }
    }
    if (size <= kBytewiseLimit) {
        check_pieces(server, expected, bytewise(bytes));
    }
    if (is_closing(expected.ending) && expected.heads == 0) {
        Case behind_good = expected;
        behind_good.request = get("/letters") + expected.request;
        behind_good.statuses = "200 " + expected.statuses;
        behind_good.lacks.clear();  // the good one may have it
        check_pieces(server, behind_good, {behind_good.request});
    }
}

void check_all_ended(Server& server) {
    CHECK(eventually([&server] { return memory_of(server).connections == 0; }));
    CHECK(memory_of(server).leased_bytes == 0);
    CHECK(server.stats().peer_resets == 0);
    CHECK(stops(server));
}

namespace {

Pieces cut(std::string_view bytes, std::size_t at) { return {bytes.substr(0, at), bytes.substr(at)}; }

Pieces bytewise(std::string_view bytes) {
    Pieces pieces;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        pieces.push_back(bytes.substr(i, 1));
    }
    return pieces;
}

// Each case ends with the end of its connection, so that nothing has to be waited for that might not come: where the
// server does not end it by itself, a last request asks it to, or the client ends its own side.
void check_pieces(Server& server, const Case& expected, Pieces pieces) {
    const std::string last = get("/letters", "Connection: close\r\n");
    if (expected.ending == Ending::stays) {
        pieces.push_back(last);
    }
    LoopClient client(server.port());
    client.send_at_once();
    send_pieces(server, client, pieces);
    if (expected.ending == Ending::waits) {
        CHECK(client.ended() == Ended::no);
        client.end_sending();
    }
    Answer answer{client.receive_rest(), is_closing(expected.ending)};
    CAPTURE(answer.bytes);
    CHECK(client.ended() != Ended::no);
    CHECK((client.ended() == Ended::cleanly || expected.ending == Ending::closes_as_asked));
    if (expected.ending == Ending::stays) {
        CHECK(statuses_in(answer.bytes, expected.heads) == expected.statuses + " 200");
        CHECK(answer.bytes.ends_with("\r\n\r\n" + std::string(kLetters)));
        answer.bytes.erase(std::min(answer.bytes.rfind("HTTP/1.1 200 OK\r\n"), answer.bytes.size()));
    }
    check_answer(expected, answer);
}

// One after the other: the server has read a piece before the next leaves, or a cut would be none.
void send_pieces(Server& server, LoopClient& client, const Pieces& pieces) {
    std::uint64_t received = server.stats().received_bytes;
    for (const std::string_view piece : pieces) {
        if (!client.try_send(piece)) {
            return;  // a reset, which the client tells
        }
        received += piece.size();
        REQUIRE(have_arrived(server, client, received));
    }
}

// Or the server has ended its side: what it throws away from then on is not counted.
bool have_arrived(Server& server, LoopClient& client, std::uint64_t bytes) {
    const auto limit = wait_limit();
    while (server.stats().received_bytes < bytes && client.ended() == Ended::no) {
        if (!within(limit)) {
            return false;
        }
        client.keep_what_came();
        std::this_thread::yield();  // a byte's way takes far less than the shortest sleep
    }
    return true;
}

}  // namespace

}  // namespace penstock::test

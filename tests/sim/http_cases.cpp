// The cases of tests/http/ on the simulated platform, where a stream can be cut at every place.
#include "http/http_cases.h"

#include <vector>

#include "http_fixture.h"
#include "tls_fixture.h"

namespace penstock::test {
namespace {

void check_end_of_waiting(Engine& engine, const Case& expected);
void run_case_over_tls(TlsEngine& engine, const Case& expected);

}  // namespace

void run_cases(std::span<const Case> cases, Config config) {
    {
        Engine engine(case_router(), config);
        for (const Case& expected : cases) {
            run_case(engine, expected);
        }
    }
    TlsEngine engine(case_router(), std::move(config));
    for (const Case& expected : cases) {
        run_case_over_tls(engine, expected);
    }
}

// Large streams are cut at fewer places: the work is their length times the number of cuts.
void run_case(Engine& engine, const Case& expected) {
    CAPTURE(expected.name);
    const Answer whole = feed_whole(engine, expected.request);
    CAPTURE(whole.bytes);
    check_answer(expected, whole);
    CHECK(feed_bytewise(engine, expected.request) == whole);
    const std::size_t stride = expected.request.size() < 3'000 ? 1 : 1'499;
    for (std::size_t at = 1; at < expected.request.size(); at += stride) {
        if (feed_cut(engine, expected.request, at) != whole) {
            FAIL_CHECK("cut in front of byte "
                       << at << " it has another outcome: " << feed_cut(engine, expected.request, at).bytes);
            break;
        }
    }
    if (is_closing(expected.ending) && expected.heads == 0) {
        const Answer behind_good = feed_whole(engine, get("/letters") + expected.request);
        CHECK(statuses_in(behind_good.bytes) == "200 " + expected.statuses);
        CHECK(behind_good.bytes.find(kLetters) != std::string::npos);
    } else if (expected.ending == Ending::stays) {
        const Answer with_another = feed_whole(engine, expected.request + get("/letters"));
        CHECK(statuses_in(with_another.bytes, expected.heads) == expected.statuses + " 200");
        CHECK(with_another.bytes.ends_with("\r\n\r\n" + std::string(kLetters)));
    } else if (expected.ending == Ending::waits) {
        check_end_of_waiting(engine, expected);
    }
    engine.server.check_nothing_left();
}

namespace {

using Pieces = std::vector<std::string_view>;

Pieces cut_every(std::string_view bytes, std::size_t size) {
    Pieces pieces;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
        pieces.push_back(bytes.substr(at, size));
    }
    return pieces;
}

// What the wire carries.
enum class Wire : std::uint8_t {
    records,  // each by itself
    at_once,  // all records in one piece
    bytes,    // one at a time
};

// Each piece is a record.
Answer feed_tls(TlsEngine& engine, const Pieces& pieces, Wire wire) {
    TlsPeer peer = engine.connect();
    Answer answer;
    std::string kept;
    const auto send = [&](std::string_view bytes) {
        peer.wire().send(bytes);
        engine.server.settle_offloads();
        answer.bytes += peer.take_received();
    };
    for (const std::string_view piece : pieces) {
        peer.tls().write(piece);
        kept += peer.tls().take_outgoing();
        if (wire != Wire::at_once) {
            for (const std::string_view part : cut_every(kept, wire == Wire::bytes ? 1 : kept.size())) {
                send(part);
            }
            kept.clear();
        }
    }
    send(kept);
    answer.closed = peer.wire().finished_by_server();
    CHECK(peer.tls().heard_goodbye() == answer.closed);
    CHECK(peer.tls().error() == 0);
    peer.wire().close();
    engine.server.settle();
    return answer;
}

// A handshake is dear, so there are fewer cuts than without TLS: TLS itself is what is to be cut here.
void run_case_over_tls(TlsEngine& engine, const Case& expected) {
    CAPTURE(expected.name);
    const std::string_view bytes = expected.request;
    constexpr std::size_t kRecord = 16 << 10;
    constexpr std::size_t kBytewiseLimit = 600;
    const Answer whole = feed_tls(engine, cut_every(bytes, kRecord), Wire::records);
    CAPTURE(whole.bytes);
    check_answer(expected, whole);
    CHECK(feed_tls(engine, cut_every(bytes, bytes.size() / 3 + 1), Wire::records) == whole);
    if (bytes.size() <= kBytewiseLimit) {
        CHECK(feed_tls(engine, cut_every(bytes, 1), Wire::at_once) == whole);
        CHECK(feed_tls(engine, cut_every(bytes, 7), Wire::bytes) == whole);
    }
    if (is_closing(expected.ending) && expected.heads == 0) {
        const std::string both = get("/letters") + expected.request;
        const Answer behind_good = feed_tls(engine, cut_every(both, kRecord), Wire::at_once);
        CHECK(statuses_in(behind_good.bytes) == "200 " + expected.statuses);
    }
    engine.server.check_nothing_left();
}

void check_end_of_waiting(Engine& engine, const Case& expected) {
    sim::Peer peer = engine.world.connect(kPort);
    CHECK(statuses_in(engine.exchange(peer, expected.request), expected.heads) == expected.statuses);
    peer.finish();
    engine.server.settle();
    CHECK(peer.take_received().empty());
    CHECK(peer.closed_by_server());
    CHECK_FALSE(peer.reset_by_server());
}

}  // namespace

}  // namespace penstock::test

// The cases of tests/http/ on the simulated platform, where a stream can be cut at every place.
#include "http/http_cases.h"

#include "http_fixture.h"

namespace penstock::test {
namespace {

void check_end_of_waiting(Engine& engine, const Case& expected);

}  // namespace

void run_cases(std::span<const Case> cases, Config config) {
    Engine engine(case_router(), std::move(config));
    for (const Case& expected : cases) {
        run_case(engine, expected);
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

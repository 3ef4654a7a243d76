// The contract of platform/poller.h for the simulated platform. The first half has the same points, in the
// same order, as loop/platform_contract_test.cpp has for the real one.
#include <cerrno>
#include <set>
#include <thread>

#include "penstock/platform/file.h"
#include "sim/world_fixture.h"

namespace penstock::world_tests {

namespace {

using platform::Poller;
using platform::PollEvent;
using platform::PollResult;
using sim::Call;
using sim::Outcome;
using sim::Peer;
using sim::World;

}  // namespace

TEST_CASE("sim poller: an edge is reported once, and each new arrival makes another") {
    Bench bench;
    Link link = bench.watched_link(1);
    CHECK(bench.silent());
    for (const char* text : {"one", "two"}) {
        link.peer.send(text);
        const PollEvent event = bench.only_event();
        CHECK(event.readable);
        CHECK(event.writable);
        CHECK(!event.hangup);
        CHECK(!event.error);
        CHECK(bench.silent());
    }
    CHECK(receive_text(link.fd) == "onetwo");
}

TEST_CASE("sim poller: adding a descriptor that is already ready makes an event") {
    Bench bench;
    Link link = bench.link();
    link.peer.send("early");
    REQUIRE(bench.poller.add(link.fd, 1) == 0);
    CHECK(bench.poller.add(link.fd, 2) == EEXIST);
    const PollEvent event = bench.only_event();
    CHECK(event.readable);
    CHECK(event.writable);

    REQUIRE(bench.poller.add(bench.listener, 2) == 0);
    CHECK(bench.silent());
    bench.world.connect(kPort);
    CHECK(bench.only_event().token == 2);
}

TEST_CASE("sim poller: tokens come back unchanged, and the reserved ones are refused") {
    Bench bench;
    for (const std::uint64_t token :
         {std::uint64_t{0}, std::uint64_t{0xFEDC'BA98'7654'3210}, Poller::kReservedToken - 1}) {
        Link link = bench.link();
        REQUIRE(bench.poller.add(link.fd, token) == 0);
        CHECK(bench.only_event().token == token);
    }
    Link link = bench.link();
    CHECK(bench.poller.add(link.fd, Poller::kReservedToken) == EINVAL);
    CHECK(bench.poller.add(link.fd, Poller::kReservedToken + 1) == EINVAL);
    CHECK(bench.poller.add(-1, 1) == EBADF);
    CHECK(bench.silent());
}

TEST_CASE("sim poller: hangup is half a close: what was sent is read, and the answer arrives") {
    Bench bench;
    Link link = bench.watched_link(1);
    link.peer.send("question");
    link.peer.finish();
    const PollEvent event = bench.only_event();
    CHECK(event.hangup);
    CHECK(event.readable);
    CHECK(event.writable);
    CHECK(!event.error);
    CHECK(receive_text(link.fd) == "question");
    CHECK(receive_text(link.fd).empty());
    CHECK(receive_text(link.fd).empty());
    CHECK(send_text(link.fd, "answer").count == 6);
    CHECK(link.peer.received() == "answer");
}

TEST_CASE("sim poller: error when the peer resets, and when both directions are shut") {
    Bench bench;
    Link link = bench.watched_link(1);
    SUBCASE("reset") {
        link.peer.reset();
    }
    SUBCASE("both shut") {
        REQUIRE(platform::shutdown_sending(link.fd) == 0);
        // inet_shutdown wakes the poller of its own socket (tried: EPOLLOUT alone).
        const PollEvent own = bench.only_event();
        CHECK(own.writable);
        CHECK(!own.readable);
        link.peer.finish();
    }
    const PollEvent event = bench.only_event();
    CHECK(event.error);
    CHECK(event.hangup);
    CHECK(event.readable);
    CHECK(event.writable);
    CHECK(bench.silent());
}

TEST_CASE("sim poller: the writable edge comes when a full send buffer drains") {
    Bench bench;
    Link link = bench.watched_link(1);
    link.peer.set_receive_window(9);
    CHECK(send_text(link.fd, "0123456789").count == 9);
    CHECK(is_would_block(send_text(link.fd, "9").error));
    CHECK(bench.silent());
    // Room is reported when it is a third of the buffer (sk_stream_is_writeable), and once.
    CHECK(link.peer.read(2) == "01");
    CHECK(bench.silent());
    CHECK(link.peer.read(1) == "2");
    CHECK(bench.only_event().writable);
    CHECK(bench.silent());
    CHECK(send_text(link.fd, "9").count == 1);
    CHECK(link.peer.read(100) == "3456789");
    CHECK(bench.silent());
    CHECK(link.peer.received() == "0123456789");

    // A send that just fits asks for no room; being polled without any does (tcp_poll).
    CHECK(send_text(link.fd, "012345678").count == 9);
    link.peer.send("x");
    CHECK(!bench.only_event().writable);
    CHECK(link.peer.read(9).size() == 9);
    CHECK(bench.only_event().writable);
}

TEST_CASE("sim poller: wake-ups before a wait are reported once, and apart from events") {
    Bench bench;
    for (int round = 0; round < 3; ++round) {
        bench.poller.wake();
        bench.poller.wake();
        const PollResult result = bench.poller.wait(-1);
        CHECK(result.woken);
        CHECK(result.events.empty());
        CHECK(!bench.poller.wait(0).woken);
    }
    Link link = bench.link();
    REQUIRE(bench.poller.add(link.fd, 7) == 0);
    bench.poller.wake();
    const PollResult both = bench.poller.wait(-1);
    CHECK(both.woken);
    REQUIRE(both.events.size() == 1);
    CHECK(both.events[0].token == 7);
    CHECK(bench.world.calls(Call::wake) == 7);
}

TEST_CASE("sim poller: no wake-up from another thread is lost") {
    constexpr std::uint64_t kRounds = 1000;
    Bench bench;
    std::thread waker([&] {
        for (std::uint64_t round = 0; round < kRounds; ++round) {
            bench.poller.wake();
        }
    });
    std::uint64_t seen = 0;
    while (bench.world.calls(Call::wake) < kRounds) {
        seen += bench.poller.wait(0).woken ? 1 : 0;
    }
    waker.join();
    seen += bench.poller.wait(0).woken ? 1 : 0;
    CHECK(seen > 0);
    CHECK(!bench.poller.wait(0).woken);
}

TEST_CASE(
    "sim poller: a wait with nothing to report ends at once; an interrupted one is empty and loses nothing") {
    Bench bench;
    const std::uint64_t start = bench.world.now_ms();
    for (const int timeout_ms : {0, 20, -1}) {
        const PollResult idle = bench.poller.wait(timeout_ms);
        CHECK(idle.events.empty());
        CHECK(!idle.woken);
        CHECK(idle.error == 0);
    }
    CHECK(bench.world.now_ms() == start);

    Link link = bench.watched_link(1);
    link.peer.send("x");
    bench.poller.wake();
    bench.world.script(Call::poller_wait, World::kAnyDescriptor, 1, Outcome::fail(EINTR));
    const PollResult interrupted = bench.poller.wait(-1);
    CHECK(interrupted.error == 0);
    CHECK(interrupted.events.empty());
    CHECK(!interrupted.woken);
    const PollResult next = bench.poller.wait(-1);
    CHECK(next.woken);
    CHECK(next.events.size() == 1);
}

TEST_CASE("sim poller: a removed descriptor is silent, although it stays open") {
    Bench bench;
    Link link = bench.watched_link(1);
    link.peer.send("edge is queued");
    bench.poller.remove(link.fd);
    link.peer.send("unheard");
    CHECK(bench.silent());
    REQUIRE(bench.poller.add(link.fd, 2) == 0);
    CHECK(bench.only_event().token == 2);
}

TEST_CASE("sim poller: more events than one wait returns come with the next") {
    constexpr std::size_t kDescriptors = Poller::kMaxEvents + 20;
    Bench bench;
    for (std::size_t i = 0; i < kDescriptors; ++i) {
        Link link = bench.link();
        REQUIRE(bench.poller.add(link.fd, i) == 0);
    }
    std::set<std::uint64_t> seen;
    for (const std::size_t expected : {std::size_t{Poller::kMaxEvents}, std::size_t{20}}) {
        const PollResult result = bench.poller.wait(0);
        CHECK(result.events.size() == expected);
        for (const PollEvent& event : result.events) {
            seen.insert(event.token);
        }
    }
    CHECK(seen.size() == kDescriptors);
    CHECK(bench.silent());
}

TEST_CASE("sim poller: used before it is opened or opened twice, it says so") {
    const World world;
    Poller poller;
    CHECK(poller.wait(0).error == EBADF);
    CHECK(poller.add(3, 1) == EBADF);
    poller.wake();
    REQUIRE(poller.open().ok());
    CHECK(!poller.open().ok());
    CHECK(poller.wait(0).error == 0);
}

// ---- What only a simulated kernel can show at will

TEST_CASE("sim poller: an event tells the state at the wait, once for any number of edges") {
    Bench bench;
    Link link = bench.watched_link(1);
    link.peer.send("a");
    link.peer.send("b");
    link.peer.finish();
    PollEvent event = bench.only_event();
    CHECK(event.readable);
    CHECK(event.hangup);

    Link other = bench.watched_link(2);
    other.peer.send("read before the wait");
    CHECK(receive_text(other.fd) == "read before the wait");
    event = bench.only_event();
    CHECK(event.token == 2);
    CHECK(!event.readable);
    CHECK(event.writable);

    // A listener whose queue was emptied meanwhile has nothing to tell at all.
    REQUIRE(bench.poller.add(bench.listener, 3) == 0);
    bench.world.connect(kPort);
    (void)accept_one(bench.listener);
    CHECK(bench.silent());
}

TEST_CASE("sim poller: events come in the order of their edges") {
    Bench bench;
    Link first = bench.watched_link(1);
    Link second = bench.watched_link(2);
    second.peer.send("x");
    first.peer.send("x");
    second.peer.send("x");
    const PollResult result = bench.poller.wait(0);
    REQUIRE(result.events.size() == 2);
    CHECK(result.events[0].token == 2);
    CHECK(result.events[1].token == 1);
}

TEST_CASE("sim poller: a closed descriptor is silent, and its number is taken again at once") {
    Bench bench;
    Link first = bench.watched_link(1);
    Link second = bench.watched_link(2);
    first.peer.send("x");
    second.peer.send("x");
    platform::close_descriptor(first.fd);
    const Link third = bench.link();
    CHECK(third.fd == first.fd);
    REQUIRE(bench.poller.add(third.fd, 3) == 0);
    const PollResult result = bench.poller.wait(0);
    REQUIRE(result.events.size() == 2);
    CHECK(result.events[0].token == 2);
    CHECK(result.events[1].token == 3);
}

TEST_CASE("sim poller: a duplicate keeps reporting under a number that was closed, as Linux's does") {
    Bench bench;
    const IoResult duplicate = platform::duplicate_descriptor(bench.listener);
    REQUIRE(duplicate.ok());
    REQUIRE(bench.poller.add(bench.listener, 1) == 0);
    REQUIRE(bench.poller.add(static_cast<int>(duplicate.count), 2) == 0);
    bench.world.connect(kPort);
    CHECK(bench.poller.wait(0).events.size() == 2);
    platform::close_descriptor(static_cast<int>(duplicate.count));
    bench.world.connect(kPort);
    CHECK(bench.poller.wait(0).events.size() == 2);
    platform::close_descriptor(bench.listener);
    CHECK(bench.silent());
}

TEST_CASE("sim poller: several pollers, a listener in each, a connection in one") {
    Bench bench;
    Poller other;
    REQUIRE(other.open().ok());
    REQUIRE(bench.poller.add(bench.listener, 1) == 0);
    REQUIRE(other.add(bench.listener, 2) == 0);
    Peer peer = bench.world.connect(kPort);
    CHECK(bench.only_event().token == 1);
    const PollResult result = other.wait(0);
    REQUIRE(result.events.size() == 1);
    CHECK(result.events[0].token == 2);

    const int fd = accept_one(bench.listener);
    REQUIRE(other.add(fd, 3) == 0);
    CHECK(bench.silent());
    CHECK(other.wait(0).events.size() == 1);
    peer.send("x");
    CHECK(bench.silent());
    CHECK(other.wait(0).events.size() == 1);
    other.wake();
    CHECK(!bench.poller.wait(0).woken);
    CHECK(other.wait(0).woken);
}

TEST_CASE("sim poller: what cannot be polled is refused") {
    Bench bench;
    bench.world.add_directory("/www");
    Result<int> root = platform::open_directory("/www");
    REQUIRE(root.ok());
    CHECK(bench.poller.add(root.value(), 1) == EPERM);
    bench.world.script(Call::poller_add, World::kAnyDescriptor, 1, Outcome::fail(ENOSPC));
    const Link link = bench.link();
    CHECK(bench.poller.add(link.fd, 1) == ENOSPC);
    CHECK(bench.silent());
    CHECK(bench.poller.add(link.fd, 1) == 0);
    CHECK(bench.world.calls(Call::poller_add) == 3);
}

TEST_CASE("sim poller: it takes two descriptors and gives them back") {
    World world;
    {
        Poller poller;
        REQUIRE(poller.open().ok());
        CHECK(world.open_descriptors() == 2);
    }
    CHECK(world.open_descriptors() == 0);
    world.set_descriptor_limit(1);
    Poller poller;
    CHECK(poller.open().error().code == EMFILE);
    CHECK(world.open_descriptors() == 0);
}

}  // namespace penstock::world_tests

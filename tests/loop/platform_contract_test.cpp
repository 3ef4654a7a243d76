// The contract of platform/poller.h point by point, and the data path of platform/net.h, on loopback.
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "loop/platform_fixture.h"
#include "penstock/platform/clock.h"
#include "penstock/platform/file.h"
#include "penstock/platform/thread.h"

namespace penstock {

namespace {

using platform::Poller;
using platform::PollEvent;
using platform::PollResult;

void open_or_fail(Poller& poller) {
    REQUIRE(poller.open().ok());
}

// What the edges of one descriptor add up to, until `done` is true of it or the time is over.
template <class Done>
PollEvent collect(Poller& poller, Done done) {
    PollEvent all;
    const auto limit = wait_limit();
    while (!done(all) && within(limit)) {
        for (const PollEvent& event : poller.wait(100).events) {
            all.token = event.token;
            all.readable |= event.readable;
            all.writable |= event.writable;
            all.hangup |= event.hangup;
            all.error |= event.error;
        }
    }
    return all;
}

// Adds an idle descriptor and takes the event that says it can be written.
void add_idle(Poller& poller, int fd, std::uint64_t token) {
    REQUIRE(poller.add(fd, token) == 0);
    const PollResult result = poller.wait(kWaitMs);
    REQUIRE(result.events.size() == 1);
    REQUIRE(result.events[0].writable);
    REQUIRE(!result.events[0].readable);
}

std::atomic<int> signals_seen{0};

void count_signal(int) {
    signals_seen.fetch_add(1);
}

// Counts a signal for as long as it lives, instead of what it would do.
class CountedSignal {
public:
    explicit CountedSignal(int signal) : signal_(signal) {
        signals_seen = 0;
        struct sigaction action {};
        action.sa_handler = count_signal;
        ::sigaction(signal, &action, &former_);
    }
    CountedSignal(const CountedSignal&) = delete;
    CountedSignal& operator=(const CountedSignal&) = delete;
    ~CountedSignal() { ::sigaction(signal_, &former_, nullptr); }

private:
    int signal_;
    struct sigaction former_ {};
};

Fd text_file(const TemporaryDirectory& directory, const std::string& text) {
    const std::string path = directory / "file";
    std::ofstream(path) << text;
    return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

TEST_CASE("poller: an edge is reported once, and each new arrival makes another") {
    TcpPair pair;
    Poller poller;
    open_or_fail(poller);
    add_idle(poller, pair.server.get(), 1);
    CHECK(poller.wait(0).events.empty());
    for (const char* text : {"one", "two"}) {
        far_send(pair.client.get(), text);
        const PollResult result = poller.wait(kWaitMs);
        REQUIRE(result.events.size() == 1);
        CHECK(result.events[0].readable);
        CHECK(!result.events[0].hangup);
        CHECK(!result.events[0].error);
        CHECK(!result.woken);
        // Nobody has read it, and still it is old news.
        CHECK(poller.wait(0).events.empty());
    }
    CHECK(receive_text(pair.server.get()) == "onetwo");
}

TEST_CASE("poller: adding a descriptor that is already ready makes an event") {
    TcpPair pair;
    far_send(pair.client.get(), "early");
    REQUIRE(ready_within(pair.server.get(), POLLIN, kWaitMs));
    Poller poller;
    open_or_fail(poller);
    REQUIRE(poller.add(pair.server.get(), 1) == 0);
    const PollResult result = poller.wait(0);
    REQUIRE(result.events.size() == 1);
    CHECK(result.events[0].readable);
    CHECK(result.events[0].writable);
}

TEST_CASE("poller: tokens come back unchanged, and the reserved ones are refused") {
    Poller poller;
    open_or_fail(poller);
    const std::array<std::uint64_t, 3> tokens = {0, 0xFEDC'BA98'7654'3210, Poller::kReservedToken - 1};
    for (const std::uint64_t token : tokens) {
        TcpPair pair;
        REQUIRE(poller.add(pair.server.get(), token) == 0);
        const PollResult result = poller.wait(kWaitMs);
        REQUIRE(result.events.size() == 1);
        CHECK(result.events[0].token == token);
    }
    TcpPair pair;
    CHECK(poller.add(pair.server.get(), Poller::kReservedToken) == EINVAL);
    CHECK(poller.add(pair.server.get(), Poller::kReservedToken + 1) == EINVAL);
    CHECK(poller.add(-1, 1) == EBADF);
    CHECK(poller.wait(0).events.empty());
}

TEST_CASE("poller: hangup is half a close: what was sent is read, and the answer arrives") {
    TcpPair pair;
    Poller poller;
    open_or_fail(poller);
    add_idle(poller, pair.server.get(), 1);
    far_send(pair.client.get(), "question");
    REQUIRE(::shutdown(pair.client.get(), SHUT_WR) == 0);
    const PollEvent event = collect(poller, [](const PollEvent& all) { return all.hangup; });
    CHECK(event.hangup);
    CHECK(event.readable);
    CHECK(!event.error);
    CHECK(receive_text(pair.server.get()) == "question");
    CHECK(receive_text(pair.server.get()).empty());
    CHECK(send_text(pair.server.get(), "answer").count == 6);
    CHECK(far_receive(pair.client.get(), 6) == "answer");
}

TEST_CASE("poller: error when the peer resets, and when both directions are shut") {
    TcpPair pair;
    Poller poller;
    open_or_fail(poller);
    add_idle(poller, pair.server.get(), 1);
    SUBCASE("reset") {
        REQUIRE(platform::reset_on_close(pair.client.get()) == 0);
        pair.client.close();
    }
    SUBCASE("both shut") {
        REQUIRE(platform::shutdown_sending(pair.server.get()) == 0);
        REQUIRE(far_receive(pair.client.get(), 1).empty());
        REQUIRE(::shutdown(pair.client.get(), SHUT_WR) == 0);
    }
    const PollEvent event = collect(poller, [](const PollEvent& all) { return all.error; });
    CHECK(event.error);
    CHECK(event.readable);
}

TEST_CASE("poller: the writable edge comes when a full send buffer drains") {
    TcpPair pair;
    Poller poller;
    open_or_fail(poller);
    add_idle(poller, pair.server.get(), 1);
    std::size_t sent = 0;
    // The buffer may drain into the peer's for a while; full is when no news comes and nothing is taken.
    const auto limit = wait_limit();
    do {
        sent += fill_send_buffer(pair.server.get());
    } while (!poller.wait(50).events.empty() && within(limit));
    CHECK(far_receive(pair.client.get(), sent).size() == sent);
    CHECK(collect(poller, [](const PollEvent& all) { return all.writable; }).writable);
    CHECK(send_text(pair.server.get(), "more").count == 4);
}

TEST_CASE("poller: wake-ups before a wait are reported once, and apart from events") {
    TcpPair pair;
    Poller poller;
    open_or_fail(poller);
    for (int round = 0; round < 3; ++round) {
        poller.wake();
        poller.wake();
        poller.wake();
        const PollResult result = poller.wait(kWaitMs);
        CHECK(result.woken);
        CHECK(result.events.empty());
        CHECK(!poller.wait(0).woken);
    }
    REQUIRE(poller.add(pair.server.get(), 7) == 0);
    poller.wake();
    const PollResult both = poller.wait(kWaitMs);
    CHECK(both.woken);
    REQUIRE(both.events.size() == 1);
    CHECK(both.events[0].token == 7);
}

TEST_CASE("poller: no wake-up from another thread is lost, before or during a wait") {
    constexpr int kRounds = 2000;
    Poller poller;
    open_or_fail(poller);
    std::atomic<int> round{0};
    std::thread waker([&] {
        for (int next = 1; next <= kRounds; ++next) {
            while (round.load() < next) {
                std::this_thread::yield();
            }
            poller.wake();
        }
    });
    int missed = 0;
    for (int next = 1; next <= kRounds; ++next) {
        round.store(next);
        // A lost one costs the whole wait; one is enough to know, and the others need not be waited for.
        missed += poller.wait(missed == 0 ? kWaitMs : 0).woken ? 0 : 1;
    }
    waker.join();
    CHECK(missed == 0);
}

TEST_CASE("poller: a wait with nothing to report ends at its limit, and a signal ends it early and empty") {
    Poller poller;
    open_or_fail(poller);
    const auto start = std::chrono::steady_clock::now();
    const PollResult idle = poller.wait(20);
    CHECK(idle.events.empty());
    CHECK(!idle.woken);
    CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(19));

    const CountedSignal counted(SIGUSR1);
    const pthread_t waiting_thread = ::pthread_self();
    std::atomic<bool> returned{false};
    std::thread sender([&] {
        while (!returned.load()) {
            ::pthread_kill(waiting_thread, SIGUSR1);
            std::this_thread::yield();
        }
    });
    const auto limit = wait_limit();
    const PollResult result = poller.wait(kWaitMs);
    const bool early = within(limit);
    returned = true;
    sender.join();
    CHECK(early);
    CHECK(result.error == 0);
    CHECK(result.events.empty());
    CHECK(!result.woken);
    CHECK(signals_seen.load() > 0);
}

TEST_CASE("poller: waits whose beginning it is told end in time, whatever alarm an earlier one has set") {
    Poller poller;
    open_or_fail(poller);
    // Until `timeout_ms` have passed since now; a wait may end before that with nothing, and does so a few times at most.
    const auto wait_for = [&poller](int timeout_ms) {
        const std::uint64_t due_ms = platform::monotonic_ms() + static_cast<std::uint64_t>(timeout_ms);
        int waits = 0;
        for (std::uint64_t now_ms = due_ms - 1; now_ms < due_ms; ++waits) {
            now_ms = platform::monotonic_ms();
            if (now_ms < due_ms) {
                const PollResult result = poller.wait(static_cast<int>(due_ms - now_ms), now_ms);
                CHECK(result.error == 0);
                CHECK(result.events.empty());
                CHECK(!result.woken);
            }
        }
        CHECK(waits <= 4);
        CHECK(platform::monotonic_ms() - due_ms < kWaitMs);
    };
    wait_for(150);  // sets the alarm
    wait_for(200);  // which is over
    {
        TcpPair pair;  // a wait that something else ends leaves its alarm behind, much later than the next is due
        REQUIRE(poller.add(pair.server.get(), 1) == 0);
        CHECK(poller.wait(kWaitMs, platform::monotonic_ms()).events.size() == 1);
    }
    wait_for(150);
    {
        TcpPair pair;  // and now earlier
        REQUIRE(poller.add(pair.server.get(), 1) == 0);
        CHECK(poller.wait(120, platform::monotonic_ms()).events.size() == 1);
    }
    wait_for(300);
    wait_for(20);
    wait_for(101);
}

TEST_CASE("poller: a removed descriptor is silent, although it stays open") {
    TcpPair pair;
    Poller poller;
    open_or_fail(poller);
    add_idle(poller, pair.server.get(), 1);
    poller.remove(pair.server.get());
    far_send(pair.client.get(), "unheard");
    REQUIRE(ready_within(pair.server.get(), POLLIN, kWaitMs));
    CHECK(poller.wait(0).events.empty());
}

TEST_CASE("poller: more events than one wait returns come with the next") {
    constexpr std::size_t kDescriptors = Poller::kMaxEvents + 20;
    Poller poller;
    open_or_fail(poller);
    std::vector<Fd> descriptors;
    for (std::size_t i = 0; i < kDescriptors; ++i) {
        descriptors.emplace_back(::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
        REQUIRE(poller.add(descriptors.back().get(), i) == 0);
    }
    std::set<std::uint64_t> seen;
    std::size_t reported = 0;
    for (int turn = 0; turn < 2; ++turn) {
        const PollResult result = poller.wait(0);
        CHECK(result.events.size() <= Poller::kMaxEvents);
        reported += result.events.size();
        for (const PollEvent& event : result.events) {
            seen.insert(event.token);
        }
    }
    CHECK(reported == kDescriptors);
    CHECK(seen.size() == kDescriptors);
}

TEST_CASE("poller: used before it is opened or opened twice, it says so") {
    Poller poller;
    CHECK(poller.wait(0).error == EBADF);
    CHECK(poller.add(0, 1) == EBADF);
    poller.wake();
    open_or_fail(poller);
    CHECK(!poller.open().ok());
    CHECK(poller.wait(0).error == 0);
}

TEST_CASE("accept: an empty queue would block; a peer is named; the options are there without a call") {
    TcpPair pair;
    PeerAddress nobody;
    CHECK(is_would_block(platform::accept(pair.listener.get(), &nobody).error));

    sockaddr_in own{};
    socklen_t size = sizeof own;
    REQUIRE(::getsockname(pair.client.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0);
    CHECK(pair.peer.family == AddressFamily::ipv4);
    CHECK(pair.peer.to_string() == "127.0.0.1:" + std::to_string(ntohs(own.sin_port)));

    CHECK((::fcntl(pair.server.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(pair.server.get(), F_GETFD) & FD_CLOEXEC) != 0);
    int no_delay = 0;
    size = sizeof no_delay;
    REQUIRE(::getsockopt(pair.server.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size) == 0);
    CHECK(no_delay != 0);
}

TEST_CASE("receive: would block, then bytes, then 0 when the peer has finished; urgent bytes stay in line") {
    TcpPair pair;
    std::byte byte{};
    CHECK(is_would_block(platform::receive(pair.server.get(), std::span(&byte, 1)).error));
    far_send(pair.client.get(), "ab");
    REQUIRE(::send(pair.client.get(), "!", 1, MSG_OOB) == 1);
    far_send(pair.client.get(), "cd");
    REQUIRE(::shutdown(pair.client.get(), SHUT_WR) == 0);
    std::string all;
    const auto limit = wait_limit();
    bool ended = false;
    while (!ended && within(limit) && ready_within(pair.server.get(), POLLIN, kWaitMs)) {
        const std::string part = receive_text(pair.server.get());
        ended = part.empty();
        all += part;
    }
    CHECK(ended);
    CHECK(all == "ab!cd");
}

TEST_CASE("send: pieces go in order, and those beyond kMaxSendPieces are left to the caller") {
    TcpPair pair;
    const std::string digits = "0123456789";
    std::vector<platform::SendPiece> pieces;
    std::string expected;
    for (std::size_t i = 0; i < platform::kMaxSendPieces + 3; ++i) {
        pieces.push_back({digits.data() + i % digits.size(), 1});
        expected += digits[i % digits.size()];
    }
    expected.resize(platform::kMaxSendPieces);
    const IoResult result = platform::send(pair.server.get(), pieces, false);
    REQUIRE(result.ok());
    CHECK(result.count == static_cast<std::int64_t>(platform::kMaxSendPieces));
    CHECK(far_receive(pair.client.get(), expected.size()) == expected);
    CHECK(!ready_within(pair.client.get(), POLLIN, 0));
}

TEST_CASE("send: `more` holds bytes back for those that follow") {
    TcpPair pair;
    CHECK(send_text(pair.server.get(), "he", true).count == 2);
    CHECK(!ready_within(pair.client.get(), POLLIN, 10));
    CHECK(send_text(pair.server.get(), "llo").count == 3);
    CHECK(far_receive(pair.client.get(), 5) == "hello");
}

TEST_CASE("send and send_file: a peer that is gone is an error, never a signal") {
    const CountedSignal counted(SIGPIPE);
    const TemporaryDirectory directory;
    const Fd file = text_file(directory, "content");
    TcpPair pair;
    pair.reset_by_peer();
    CHECK(send_text(pair.server.get(), "late").error == EPIPE);
    CHECK(signals_seen.load() == 0);
    // sendfile has no MSG_NOSIGNAL; this is what reactors' threads do about it.
    std::thread([&] {
        platform::block_signals_in_current_thread();
        CHECK(platform::send_file(pair.server.get(), file.get(), 0, 7).error == EPIPE);
    }).join();
    CHECK(signals_seen.load() == 0);
}

TEST_CASE("send_file: slices by offset, 0 when the file ended early, would block when the buffer is full") {
    const TemporaryDirectory directory;
    const Fd file = text_file(directory, "0123456789");
    TcpPair pair;
    CHECK(platform::send_file(pair.server.get(), file.get(), 6, 100).count == 4);
    CHECK(platform::send_file(pair.server.get(), file.get(), 2, 3).count == 3);
    CHECK(far_receive(pair.client.get(), 7) == "6789234");
    for (const std::uint64_t offset : {10U, 1000U}) {
        const IoResult ended = platform::send_file(pair.server.get(), file.get(), offset, 5);
        CHECK(ended.ok());
        CHECK(ended.count == 0);
    }
    const auto limit = wait_limit();
    IoResult full;
    while (full.ok() && within(limit)) {
        fill_send_buffer(pair.server.get());
        full = platform::send_file(pair.server.get(), file.get(), 0, 10);
    }
    CHECK(is_would_block(full.error));
}

TEST_CASE("shutdown_sending ends what the peer reads, and reading goes on") {
    TcpPair pair;
    CHECK(send_text(pair.server.get(), "bye").count == 3);
    CHECK(platform::shutdown_sending(pair.server.get()) == 0);
    CHECK(far_receive(pair.client.get(), 100) == "bye");
    far_send(pair.client.get(), "still here");
    REQUIRE(ready_within(pair.server.get(), POLLIN, kWaitMs));
    CHECK(receive_text(pair.server.get()) == "still here");
}

TEST_CASE("reset_on_close resets, and a plain close does not") {
    for (const bool reset : {true, false}) {
        CAPTURE(reset);
        TcpPair pair;
        if (reset) {
            CHECK(platform::reset_on_close(pair.server.get()) == 0);
        }
        pair.server.close();
        char byte = 0;
        errno = 0;
        CHECK(::recv(pair.client.get(), &byte, 1, 0) == (reset ? -1 : 0));
        CHECK(errno == (reset ? ECONNRESET : 0));
    }
}

}  // namespace penstock

// Faults of the simulated platform: scripted, swept, seeded, from bytes, replayed.
#include <cerrno>
#include <string>
#include <vector>

#include "penstock/platform/file.h"
#include "sim/world_fixture.h"
#include "support/seed.h"

namespace penstock::world_tests {

namespace {

using platform::Poller;
using platform::PollEvent;
using platform::PollResult;
using sim::Call;
using sim::Fault;
using sim::Outcome;
using sim::Peer;
using sim::Ratios;
using sim::World;

// The least server that keeps the contract of edges: it sends back what comes, and ends when its one client
// has finished or is gone. Small buffers, so that one exchange takes many calls.
class Echo {
public:
    [[nodiscard]] bool open() {
        Result<int> opened = poller_.open().ok() ? platform::open_listener({.address = "", .port = kPort})
                                                 : Result<int>(Error{});
        if (!opened.ok()) {
            return false;
        }
        listener_ = opened.value();
        return poller_.add(listener_, 1) == 0;
    }
    ~Echo() {
        close(&fd_);
        close(&listener_);
    }

    // Looks once more at all that may have failed for lack of something, as a timer would.
    void turn() {
        (void)poller_.wait(-1);
        if (fd_ < 0) {
            accept();
        }
        if (fd_ >= 0 && !serve()) {
            close(&fd_);
            done_ = true;
        }
    }
    [[nodiscard]] bool done() const { return done_; }

private:
    void accept() {
        PeerAddress peer;
        const IoResult accepted = platform::accept(listener_, &peer);
        if (!accepted.ok()) {
            return;
        }
        fd_ = static_cast<int>(accepted.count);
        if (poller_.add(fd_, 2) != 0) {
            close(&fd_);
            done_ = true;
        }
    }

    // A client that gets less than all must be able to tell.
    [[nodiscard]] bool goes_on_after(int error) const {
        if (!is_would_block(error)) {
            platform::reset_on_close(fd_);
        }
        return is_would_block(error);
    }

    // False when the connection has come to its end.
    bool serve() {
        while (true) {
            while (!pending_.empty()) {
                const IoResult sent = send_text(fd_, pending_);
                if (!sent.ok()) {
                    return goes_on_after(sent.error);
                }
                pending_.erase(0, static_cast<std::size_t>(sent.count));
            }
            const IoResult received = receive_into(fd_, &pending_, 7);
            if (!received.ok()) {
                return goes_on_after(received.error);
            }
            if (received.count == 0) {
                return false;
            }
        }
    }

    static void close(int* fd) {
        if (*fd >= 0) {
            platform::close_descriptor(*fd);
        }
        *fd = -1;
    }

    Poller poller_;
    int listener_ = -1;
    int fd_ = -1;
    bool done_ = false;
    std::string pending_;
};

// One client's exchange with it. The answer is whole, or the connection is broken and its beginning is right.
std::string echo_exchange(World& world) {
    const std::string question = "a question of some forty bytes, or fewer";
    std::string answer;
    Echo echo;
    if (echo.open()) {
        Peer peer = world.connect(kPort);
        peer.send(question);
        peer.finish();
        for (int turn = 0; turn < 1000 && !echo.done() && !peer.closed_by_server(); ++turn) {
            echo.turn();
        }
        INFO(world.fault_report());
        CHECK((echo.done() || peer.closed_by_server()));
        answer = peer.received();
        CHECK(question.starts_with(answer));
        CHECK((answer == question || peer.reset_by_server()));
    }
    return answer;
}

}  // namespace

TEST_CASE("sim script: the third receive of one connection gives one byte, and the rest comes with an edge") {
    Bench bench;
    Link link = bench.watched_link(1);
    Link other = bench.link();
    link.peer.script(Call::receive, 3, Outcome::at_most(1));
    other.peer.send("xxxx");
    link.peer.send("abcdef");
    CHECK(bench.only_event().readable);
    for (int i = 0; i < 3; ++i) {
        CHECK(receive_text(other.fd, 1) == "x");
    }
    CHECK(receive_text(link.fd, 1) == "a");
    CHECK(receive_text(link.fd, 1) == "b");
    CHECK(receive_text(link.fd, 3) == "c");
    CHECK(receive_error(link.fd) == EAGAIN);
    link.peer.send("gh");
    CHECK(receive_error(link.fd) == EAGAIN);
    CHECK(!bench.world.quiet());
    CHECK(bench.only_event().readable);
    CHECK(receive_text(link.fd) == "defgh");
    CHECK(bench.silent());
    CHECK(bench.world.faults().size() == 1);
    CHECK(bench.world.fault_report().find("receive, descriptor") != std::string::npos);
}

TEST_CASE(
    "sim script: an injected EAGAIN keeps the bytes, the room and the connections, and brings an edge") {
    Bench bench;
    Link link = bench.watched_link(1);
    SUBCASE("receive") {
        link.peer.send("kept");
        link.peer.finish();
        CHECK(bench.only_event().hangup);
        bench.world.script(Call::receive, link.fd, 1, Outcome::fail(EAGAIN));
        CHECK(receive_error(link.fd) == EAGAIN);
        CHECK(receive_error(link.fd) == EAGAIN);
        const PollEvent event = bench.only_event();
        CHECK(event.readable);
        CHECK(event.hangup);
        CHECK(receive_text(link.fd) == "kept");
        CHECK(receive_text(link.fd).empty());
    }
    SUBCASE("send") {
        bench.world.script(Call::send, link.fd, 1, Outcome::fail(EAGAIN));
        CHECK(send_text(link.fd, "x").error == EAGAIN);
        CHECK(send_text(link.fd, "x").error == EAGAIN);
        CHECK(bench.only_event().writable);
        bench.world.script(Call::send, link.fd, 1, Outcome::fail(EAGAIN));
        CHECK(send_text(link.fd, "x").error == EAGAIN);
        CHECK(bench.only_event().writable);
        CHECK(send_text(link.fd, "x").count == 1);
    }
    SUBCASE("a send cut short") {
        bench.world.script(Call::send, link.fd, 1, Outcome::at_most(2));
        CHECK(send_text(link.fd, "12345").count == 2);
        CHECK(send_text(link.fd, "345").error == EAGAIN);
        CHECK(bench.only_event().writable);
        CHECK(send_text(link.fd, "345").count == 3);
        CHECK(link.peer.received() == "12345");
    }
    SUBCASE("a reset ends the waiting") {
        link.peer.script(Call::receive, 1, Outcome::at_most(2));
        link.peer.send("1234");
        CHECK(receive_text(link.fd) == "12");
        link.peer.reset();
        CHECK(receive_text(link.fd) == "34");
        CHECK(receive_error(link.fd) == ECONNRESET);
        CHECK(bench.only_event().error);
    }
    SUBCASE("accept") {
        REQUIRE(bench.poller.add(bench.listener, 2) == 0);
        bench.world.connect(kPort);
        CHECK(bench.only_event().readable);
        bench.world.script(Call::accept, bench.listener, 1, Outcome::fail(EAGAIN));
        PeerAddress address;
        CHECK(platform::accept(bench.listener, &address).error == EAGAIN);
        CHECK(platform::accept(bench.listener, &address).error == EAGAIN);
        CHECK(bench.only_event().readable);
        (void)accept_one(bench.listener);
    }
    CHECK(bench.silent());
    CHECK(bench.world.quiet());
}

TEST_CASE("sim script: accept gives EMFILE twice; nothing is lost, and no edge tells when it is over") {
    Bench bench;
    REQUIRE(bench.poller.add(bench.listener, 1) == 0);
    bench.world.script(Call::accept, World::kAnyDescriptor, 1, Outcome::fail(EMFILE), 2);
    Peer peer = bench.world.connect(kPort);
    CHECK(bench.only_event().readable);
    PeerAddress address;
    CHECK(platform::accept(bench.listener, &address).error == EMFILE);
    CHECK(platform::accept(bench.listener, &address).error == EMFILE);
    CHECK(bench.silent());
    (void)accept_one(bench.listener);

    bench.world.script(Call::accept, World::kAnyDescriptor, 1, Outcome::fail(ECONNABORTED));
    Peer lost = bench.world.connect(kPort);
    Peer next = bench.world.connect(kPort);
    CHECK(platform::accept(bench.listener, &address).error == ECONNABORTED);
    CHECK(lost.reset_by_server());
    const int fd = accept_one(bench.listener);
    CHECK(next.server_fd() == fd);
}

TEST_CASE("sim script: errors that end a connection end it for both sides; others change nothing") {
    Bench bench;
    Link link = bench.watched_link(1);
    link.peer.send("lost");
    SUBCASE("receive") {
        link.peer.script(Call::receive, 1, Outcome::fail(ETIMEDOUT));
        CHECK(receive_error(link.fd) == ETIMEDOUT);
    }
    SUBCASE("send") {
        link.peer.script(Call::send, 1, Outcome::fail(ECONNRESET));
        CHECK(send_text(link.fd, "x").error == ECONNRESET);
    }
    SUBCASE("shutdown, after an error without consequence") {
        link.peer.script(Call::send, 1, Outcome::fail(ENOBUFS));
        CHECK(send_text(link.fd, "x").error == ENOBUFS);
        CHECK(send_text(link.fd, "x").count == 1);
        link.peer.script(Call::shutdown, 1, Outcome::fail(ENOTCONN));
        CHECK(platform::shutdown_sending(link.fd) == ENOTCONN);
    }
    CHECK(bench.only_event().error);
    CHECK(receive_text(link.fd).empty());
    CHECK(send_text(link.fd, "x").error == EPIPE);
    CHECK(link.peer.reset_by_server());
    CHECK(!link.peer.send("x"));
}

TEST_CASE("sim script: files fail and read short") {
    World world;
    world.add_file("/www/file", "0123456789");
    world.script(Call::open_directory, World::kAnyDescriptor, 1, Outcome::fail(EMFILE));
    CHECK(platform::open_directory("/www").error().code == EMFILE);
    Result<int> root = platform::open_directory("/www");
    REQUIRE(root.ok());
    world.script(Call::open_file, root.value(), 1, Outcome::fail(ENFILE));
    CHECK(platform::open_beneath(root.value(), "file").error == ENFILE);
    const int file = static_cast<int>(platform::open_beneath(root.value(), "file").count);
    world.script(Call::file_info, file, 1, Outcome::fail(EIO));
    platform::FileInfo info;
    CHECK(platform::file_info(file, &info) == EIO);
    world.script(Call::read_file, file, 1, Outcome::at_most(3));
    world.script(Call::read_file, file, 2, Outcome::fail(EIO));
    std::array<std::byte, 10> buffer{};
    CHECK(platform::read_file(file, 0, buffer).count == 3);
    CHECK(platform::read_file(file, 0, buffer).error == EIO);
    CHECK(platform::read_file(file, 0, buffer).count == 10);
}

TEST_CASE("sim fail_nth: counts every call that can fail, from when it is armed, and tells whether it came "
          "so far") {
    Bench bench;
    Link link = bench.link();
    bench.world.fail_nth(3, ENOMEM);
    CHECK(receive_error(link.fd) == EAGAIN);
    bench.poller.wake();
    bench.poller.remove(link.fd);
    bench.world.pause_faults();
    CHECK(send_text(link.fd, "x").ok());
    bench.world.resume_faults();
    CHECK(send_text(link.fd, "x").ok());
    CHECK(!bench.world.fault_hit());
    CHECK(bench.poller.add(link.fd, 1) == ENOMEM);
    CHECK(bench.world.fault_hit());
    CHECK(bench.poller.add(link.fd, 1) == 0);
    bench.world.fail_nth(100, EIO);
    CHECK(!bench.world.fault_hit());
}

TEST_CASE("sim sweep: each call fails with each plausible error, and nothing is left open") {
    std::uint64_t faults = 0;
    std::uint64_t whole = 0;
    const std::uint64_t runs = sim::sweep([&](World& world) {
        whole += echo_exchange(world).empty() ? 0 : 1;
        INFO(world.fault_report());
        CHECK(world.open_descriptors() == 0);
        CHECK(world.bad_descriptor_calls() == 0);
        faults += world.faults().size();
    });
    // The last run ends before its call is reached.
    CHECK(faults == runs - 1);
    CHECK(runs > 100);
    CHECK(whole > 20);
}

TEST_CASE("sim: every call that can fail has plausible errors, and those that cannot have none") {
    for (std::size_t i = 0; i < sim::kCallCount; ++i) {
        const auto call = static_cast<Call>(i);
        CAPTURE(sim::to_string(call));
        const bool cannot_fail = call == Call::close || call == Call::poller_remove || call == Call::wake ||
                                 call == Call::remove_file;
        CHECK(sim::plausible_errors(call).empty() == cannot_fail);
    }
}

TEST_CASE("sim seed: the sequence is the same everywhere") {
    World world;
    world.seed(0, {});
    // The first outputs of splitmix64 from 0, as its authors' program gives them.
    CHECK(world.choose(~std::uint64_t{0}) == 0xE220A8397B1DCDAF);
    CHECK(world.choose(~std::uint64_t{0}) == 0x6E789E6AA1B965F4);
    CHECK(world.choose(1000) == 0x06C45D188009454F % 1000);
    CHECK(world.choose(1) == 0);
    CHECK(world.choose(0) == 0);
}

TEST_CASE("sim seed: an exchange survives rough weather, and the seed or the record brings it back") {
    const Ratios ratios{.short_read = 200,
                        .short_write = 200,
                        .would_block = 200,
                        .reset = 5,
                        .no_memory = 20,
                        .no_descriptor = 50,
                        .file_error = 0,
                        .interrupted = 100};
    std::uint64_t whole = 0;
    std::size_t faults = 0;
    for (std::uint64_t seed = test_seed(); seed < test_seed() + 200; ++seed) {
        CAPTURE(seed);
        std::vector<Fault> record;
        std::string answer;
        std::string report;
        for (const bool again : {false, true}) {
            World world;
            world.seed(seed, ratios);
            const std::string result = echo_exchange(world);
            CHECK(world.open_descriptors() == 0);
            CHECK((!again || (result == answer && world.fault_report() == report)));
            answer = result;
            report = world.fault_report();
            record = world.faults();
        }
        CHECK(report.starts_with("seed " + std::to_string(seed)));
        World world;
        world.replay(record);
        CHECK(echo_exchange(world) == answer);
        CHECK(world.faults().size() == record.size());
        whole += answer.empty() ? 0 : 1;
        faults += record.size();
    }
    CHECK(whole > 100);
    CHECK(faults > 1000);
}

TEST_CASE("sim choose_from: bytes drive the same faults, and none come once they are used up") {
    World world;
    const std::vector<std::uint8_t> bytes(64, 0);
    world.choose_from(bytes);
    CHECK(!echo_exchange(world).empty());
    CHECK(world.faults().empty());

    // 131 is the fourth kind of fault of a call, or wraps round: each byte costs one call its success.
    const std::vector<std::uint8_t> rough{0,   0,   0, 0,   128, 0, 0,   131, 0,
                                          129, 130, 1, 128, 3,   0, 129, 200, 128};
    world.choose_from(rough);
    (void)echo_exchange(world);
    CHECK(!world.faults().empty());
    CHECK(world.choose(10) == 0);
    CHECK(world.open_descriptors() == 0);
    const std::vector<std::uint8_t> choices{7, 1, 2};
    world.choose_from(choices);
    CHECK(world.choose(10) == 7);
    CHECK(world.choose(1000) == 258);
    CHECK(world.choose(10) == 0);
}

}  // namespace penstock::world_tests

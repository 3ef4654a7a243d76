// The simulated network: connections, closing as Linux closes, listeners, limits, accounting, and the
// machine.
#include "penstock/platform/sim/world.h"

#include <cerrno>
#include <csignal>
#include <thread>
#include <vector>

#include "penstock/platform/clock.h"
#include "penstock/platform/thread.h"
#include "sim/world_fixture.h"
#include "support/abort_message.h"

namespace penstock::world_tests {

namespace {

using platform::StopSignals;
using sim::Call;
using sim::Peer;
using sim::World;

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

// ---- Moving bytes

TEST_CASE("sim accept: an empty queue would block; a peer is named") {
    Bench bench;
    PeerAddress address;
    CHECK(is_would_block(platform::accept(bench.listener, &address).error));
    CHECK(bench.world.would_blocks(Call::accept) == 1);
    Peer peer = bench.world.connect(kPort);
    CHECK(peer.connected());
    CHECK(peer.server_fd() == -1);
    peer.send("sent before it is accepted");
    const IoResult accepted = platform::accept(bench.listener, &address);
    REQUIRE(accepted.ok());
    CHECK(peer.server_fd() == accepted.count);
    CHECK(address.to_string() == "127.0.0.1:40000");
    CHECK(receive_text(peer.server_fd()) == "sent before it is accepted");
    bench.world.connect(kPort, {.from = sim::make_address("2001:db8::7", 99)});
    REQUIRE(platform::accept(bench.listener, &address).ok());
    CHECK(address.to_string() == "[2001:db8::7]:99");
}

TEST_CASE("sim send: pieces go in order, and those beyond kMaxSendPieces are left to the caller") {
    Bench bench;
    Link link = bench.link();
    const std::string digits = "0123456789";
    std::vector<platform::SendPiece> pieces;
    for (std::size_t i = 0; i < platform::kMaxSendPieces + 3; ++i) {
        pieces.push_back({digits.data() + i % digits.size(), 1});
    }
    const IoResult result = platform::send(link.fd, pieces, true);
    CHECK(result.count == static_cast<std::int64_t>(platform::kMaxSendPieces));
    CHECK(link.peer.received().size() == platform::kMaxSendPieces);
    CHECK(link.peer.received().starts_with("01234567890"));
    CHECK(send_text(link.fd, "").count == 0);
}

TEST_CASE("sim: one send takes what the socket's buffer holds, and the client empties it by the next wait") {
    Bench bench;
    Link link = bench.watched_link(1);
    const std::string text(World::kSocketBufferBytes + 10, 'x');
    CHECK(send_text(link.fd, text).count == World::kSocketBufferBytes);
    CHECK(is_would_block(send_text(link.fd, "x").error));
    CHECK(link.peer.unread() == World::kSocketBufferBytes);
    CHECK(bench.only_event().writable);
    CHECK(link.peer.unread() == 0);
    CHECK(send_text(link.fd, text.substr(0, 10)).count == 10);
    CHECK(link.peer.received() == text);
    CHECK(link.peer.received_count() == text.size());
    CHECK(link.peer.take_received() == text);
    CHECK(link.peer.received().empty());
}

TEST_CASE("sim: what finds no room at the server waits with the client, and comes with edges of its own") {
    Bench bench;
    Link link = bench.watched_link(1);
    link.peer.set_send_window(4);
    link.peer.send("0123456789");
    link.peer.finish();
    CHECK(link.peer.unread_by_server() == 10);
    std::string all;
    for (const bool last : {false, false, true}) {
        const platform::PollEvent event = bench.only_event();
        CHECK(event.readable);
        CHECK(event.hangup == last);
        all += receive_text(link.fd);
    }
    CHECK(all == "0123456789");
    CHECK(receive_text(link.fd).empty());
    CHECK(bench.silent());
    CHECK(bench.world.quiet());
}

TEST_CASE("sim: a client may count bytes, or hand them on, instead of keeping them") {
    Bench bench;
    Link link = bench.link();
    std::string seen;
    bool inside = false;
    link.peer.set_sink([&](std::string_view bytes) {
        seen += bytes;
        inside = sim::inside_world();
    });
    REQUIRE(send_text(link.fd, "seen").ok());
    CHECK(link.peer.received().empty());
    CHECK(seen == "seen");
    CHECK(inside);
    CHECK(!sim::inside_world());
    link.peer.discard_received();
    REQUIRE(send_text(link.fd, "counted").ok());
    CHECK(link.peer.received_count() == 11);
    CHECK(seen == "seen");
}

// ---- Endings, each as tried against a real Linux

TEST_CASE("sim reset: what was received stays readable, then the error once, then nothing") {
    Bench bench;
    Link link = bench.link();
    link.peer.send("abc");
    link.peer.reset();
    CHECK(!link.peer.send("more"));
    CHECK(receive_text(link.fd) == "abc");
    CHECK(receive_error(link.fd) == ECONNRESET);
    CHECK(receive_text(link.fd).empty());
    CHECK(send_text(link.fd, "x").error == EPIPE);
    CHECK(platform::shutdown_sending(link.fd) == ENOTCONN);

    link = bench.link();
    link.peer.reset();
    CHECK(send_text(link.fd, "x").error == ECONNRESET);
    CHECK(send_text(link.fd, "x").error == EPIPE);
    CHECK(receive_text(link.fd).empty());

    link = bench.link();
    link.peer.finish();
    link.peer.reset();
    CHECK(receive_text(link.fd).empty());
    CHECK(send_text(link.fd, "x").error == EPIPE);

    Peer queued = bench.world.connect(kPort);
    queued.reset();
    const int fd = accept_one(bench.listener);
    CHECK(receive_error(fd) == ECONNRESET);
}

TEST_CASE("sim shutdown_sending: the client sees the end, reading goes on, sending does not") {
    Bench bench;
    Link link = bench.link();
    REQUIRE(send_text(link.fd, "bye").ok());
    link.peer.set_receive_window(100);
    CHECK(platform::shutdown_sending(link.fd) == 0);
    CHECK(!link.peer.finished_by_server());
    CHECK(link.peer.read(100) == "bye");
    CHECK(link.peer.finished_by_server());
    CHECK(!link.peer.closed_by_server());
    CHECK(send_text(link.fd, "x").error == EPIPE);
    CHECK(link.peer.send("still here"));
    CHECK(receive_text(link.fd) == "still here");
}

TEST_CASE("sim close: a FIN, or a reset when bytes are unread or it was asked for") {
    Bench bench;
    Link link = bench.link();
    REQUIRE(send_text(link.fd, "answer").ok());
    bool reset = true;
    SUBCASE("all was read") {
        reset = false;
    }
    SUBCASE("bytes are unread") {
        link.peer.send("unread");
    }
    SUBCASE("bytes are on their way") {
        link.peer.set_send_window(0);
        link.peer.send("unread");
    }
    SUBCASE("reset_on_close") {
        CHECK(platform::reset_on_close(link.fd) == 0);
    }
    SUBCASE("both have finished, so nothing is left to reset") {
        reset = false;
        link.peer.send("unread");
        link.peer.finish();
        CHECK(link.peer.received() == "answer");
        CHECK(platform::shutdown_sending(link.fd) == 0);
    }
    platform::close_descriptor(link.fd);
    CHECK(link.peer.closed_by_server());
    CHECK(link.peer.reset_by_server() == reset);
    CHECK(link.peer.finished_by_server() == !reset);
    // The client had not read it when the reset came: a server that cares lingers.
    CHECK(link.peer.received() == (reset ? "" : "answer"));
}

TEST_CASE("sim close: what was sent is still delivered, and bytes that come later are answered by a reset") {
    Bench bench;
    Link link = bench.link();
    link.peer.set_receive_window(100);
    REQUIRE(send_text(link.fd, "answer").ok());
    platform::close_descriptor(link.fd);
    CHECK(link.peer.read(3) == "ans");
    CHECK(!link.peer.finished_by_server());
    SUBCASE("read to the end") {
        CHECK(link.peer.read(3) == "wer");
        CHECK(link.peer.finished_by_server());
    }
    SUBCASE("late bytes") {
        CHECK(link.peer.send("late"));
        CHECK(link.peer.reset_by_server());
        CHECK(link.peer.read(3).empty());
        CHECK(!link.peer.send("later"));
    }
}

TEST_CASE("sim: a client that has closed looks finished until it answers a send with a reset") {
    Bench bench;
    Link link = bench.watched_link(1);
    link.peer.close();
    const platform::PollEvent event = bench.only_event();
    CHECK(event.hangup);
    CHECK(!event.error);
    CHECK(receive_text(link.fd).empty());
    CHECK(send_text(link.fd, "x").count == 1);
    CHECK(bench.only_event().error);
    CHECK(send_text(link.fd, "x").error == EPIPE);

    link = bench.link();
    link.peer.set_receive_window(100);
    REQUIRE(send_text(link.fd, "x").ok());
    link.peer.close();
    CHECK(receive_error(link.fd) == ECONNRESET);
}

TEST_CASE("sim: mistakes with descriptors are answered as the kernel does, and counted") {
    Bench bench;
    Link link = bench.link();
    CHECK(receive_error(bench.listener) == ENOTCONN);
    PeerAddress address;
    CHECK(platform::accept(link.fd, &address).error == EINVAL);
    CHECK(bench.world.bad_descriptor_calls() == 0);
    platform::close_descriptor(link.fd);
    platform::close_descriptor(link.fd);
    CHECK(receive_error(link.fd) == EBADF);
    CHECK(send_text(-1, "x").error == EBADF);
    CHECK(bench.world.bad_descriptor_calls() == 3);
    CHECK(bench.world.calls(Call::close) == 2);
    bench.world.reset_calls();
    CHECK(bench.world.calls(Call::close) == 0);
}

// ---- Listeners

TEST_CASE("sim open_listener: who may have an address, and the sentence for who may not") {
    const World world;
    const int held = open_listener_or_fail({.address = "127.0.0.1", .port = kPort});
    CHECK(platform::bound_port(held) == kPort);
    for (const char* address : {"127.0.0.1", "", "::", "0.0.0.0"}) {
        CAPTURE(address);
        Result<int> refused = platform::open_listener({.address = address, .port = kPort});
        REQUIRE(!refused.ok());
        CHECK(refused.error().code == EADDRINUSE);
        CHECK(contains(refused.error().message, "choose another port"));
    }
    (void)open_listener_or_fail({.address = "127.0.0.1", .port = kPort, .join_group = true});
    (void)open_listener_or_fail({.address = "127.0.0.2", .port = kPort});
    (void)open_listener_or_fail({.address = "[::1]", .port = kPort});
    (void)open_listener_or_fail({.address = "::", .port = 81, .ipv6_only = true});
    (void)open_listener_or_fail({.address = "0.0.0.0", .port = 81});
    const int first = open_listener_or_fail({});
    const int second = open_listener_or_fail({});
    CHECK(platform::bound_port(first) >= 49152);
    CHECK(platform::bound_port(first) != platform::bound_port(second));
    CHECK(platform::bound_port(-1) == 0);
    for (const char* address : {"localhost", "127.0.0.1.1", "[127.0.0.1]", "[::1", "[]"}) {
        CAPTURE(address);
        CHECK(platform::open_listener({.address = address, .port = 82}).error().code == EINVAL);
    }
}

TEST_CASE("sim: a group shares its connections: in turn, by index, or by core") {
    Bench bench;
    const int second = open_listener_or_fail({.address = "", .port = kPort, .join_group = true});
    const auto arrives_at = [](int listener, const Peer& peer) {
        const int fd = accept_one(listener);
        return fd == peer.server_fd();
    };
    const Peer in_turn[] = {bench.world.connect(kPort), bench.world.connect(kPort),
                            bench.world.connect(kPort)};
    CHECK(arrives_at(bench.listener, in_turn[0]));
    CHECK(arrives_at(second, in_turn[1]));
    CHECK(arrives_at(bench.listener, in_turn[2]));
    for (const std::size_t index : {0U, 1U, 1U}) {
        CHECK(arrives_at(index == 0 ? bench.listener : second, bench.world.connect(kPort, index)));
    }
    CHECK(platform::steer_by_cpu(bench.listener, 0) == EINVAL);
    CHECK(platform::steer_by_cpu(bench.listener, 2) == 0);
    for (const unsigned cpu : {5U, 2U, 7U}) {
        CHECK(arrives_at(cpu % 2 == 0 ? bench.listener : second, bench.world.connect(kPort, {.cpu = cpu})));
    }
    CHECK(bench.world.connect(kPort, 2).refused());
    CHECK(bench.world.connect(99).refused());
}

TEST_CASE("sim: a full queue and dropped handshakes keep clients waiting; a listener that closes resets its "
          "queue") {
    Bench bench;
    const int small = open_listener_or_fail({.address = "", .port = 81, .backlog = 0});
    REQUIRE(bench.poller.add(small, 1) == 0);
    Peer queued = bench.world.connect(81);
    Peer waiting = bench.world.connect(81);
    waiting.send("patience");
    CHECK(queued.connected());
    CHECK(!waiting.connected());
    CHECK(bench.only_event().readable);
    (void)accept_one(small);
    CHECK(bench.only_event().readable);
    CHECK(waiting.connected());
    CHECK(receive_text(accept_one(small)) == "patience");

    Peer last = bench.world.connect(81);
    CHECK(platform::drop_new_handshakes(small) == 0);
    Peer late = bench.world.connect(81);
    CHECK(bench.only_event().readable);
    CHECK(last.connected());
    CHECK(!late.connected());
    CHECK(!late.refused());
    platform::close_descriptor(small);
    CHECK(last.reset_by_server());
    CHECK(last.closed_by_server());
    CHECK(bench.silent());
    CHECK(late.refused());
}

TEST_CASE("sim unix: a file that is there while it is wanted, replaced when stale; closing is seen at once") {
    Bench bench;
    const platform::ListenTarget target{.address = "unix:/run/penstock"};
    CHECK(platform::open_listener(target).error().code == ENOENT);
    bench.world.add_directory("/run");
    int listener = open_listener_or_fail(target);
    CHECK(platform::bound_port(listener) == 0);
    CHECK(platform::open_listener(target).error().code == EADDRINUSE);
    platform::close_descriptor(listener);
    CHECK(bench.world.connect_unix("/run/penstock").refused());
    listener = open_listener_or_fail(target);
    Peer peer = bench.world.connect_unix("/run/penstock");
    PeerAddress address;
    const IoResult accepted = platform::accept(listener, &address);
    REQUIRE(accepted.ok());
    CHECK(address.family == AddressFamily::unix_socket);
    const int fd = static_cast<int>(accepted.count);
    peer.send("last words");
    peer.close();
    REQUIRE(bench.poller.add(fd, 1) == 0);
    CHECK(bench.only_event().error);
    CHECK(receive_text(fd) == "last words");
    CHECK(receive_text(fd).empty());
    CHECK(send_text(fd, "x").error == EPIPE);

    platform::remove_socket_file(target);
    CHECK(!bench.world.exists("/run/penstock"));
    bench.world.add_file("/run/penstock", "precious");
    CHECK(platform::open_listener(target).error().code == EADDRINUSE);
    platform::remove_socket_file(target);
    CHECK(bench.world.exists("/run/penstock"));
    CHECK(platform::open_listener({.address = "unix:"}).error().code == ENAMETOOLONG);
}

TEST_CASE("sim: at the limit of descriptors accept fails and keeps the connection") {
    Bench bench;
    const Link link = bench.link();
    bench.world.set_descriptor_limit(bench.world.open_descriptors());
    Peer peer = bench.world.connect(kPort);
    PeerAddress address;
    CHECK(platform::accept(bench.listener, &address).error == EMFILE);
    CHECK(platform::duplicate_descriptor(bench.listener).error == EMFILE);
    platform::close_descriptor(link.fd);
    CHECK(accept_one(bench.listener) == link.fd);
    CHECK(peer.server_fd() == link.fd);
}

// ---- The machine

TEST_CASE("sim: time stands still unless it is advanced, and the wall clock goes along") {
    World world;
    CHECK(platform::monotonic_ms() == World::kStartMs);
    CHECK(platform::wall_ms() == World::kStartWallSeconds * 1000);
    world.advance_ms(1999);
    CHECK(platform::monotonic_ms() == World::kStartMs + 1999);
    CHECK(world.now_ms() == World::kStartMs + 1999);
    CHECK(platform::wall_ms() == World::kStartWallSeconds * 1000 + 1999);
    world.set_wall_seconds(7);
    world.advance_ms(999);
    CHECK(platform::wall_ms() == 7999);
    world.advance_ms(1);
    CHECK(platform::wall_ms() == 8000);
}

TEST_CASE("sim: cores, signals and threads") {
    World world;
    CHECK(platform::usable_core_count() == 1);
    world.set_usable_cores(8);
    CHECK(platform::usable_core_count() == 8);
    CHECK(platform::pin_current_thread(3) == 0);
    platform::name_current_thread("unchanged");
    platform::block_signals_in_current_thread();

    StopSignals first;
    StopSignals second;
    CHECK(first.wait(-1) == -1);
    world.raise_signal(SIGTERM);
    CHECK(first.wait(-1) == SIGTERM);
    CHECK(first.wait(0) == -1);
    std::thread([&] { second.notify(); }).join();
    CHECK(second.wait(0) == SIGTERM);
    CHECK(second.wait(0) == 0);
    CHECK(second.wait(0) == -1);
    std::vector<std::unique_ptr<StopSignals>> others;
    for (int i = 2; i < StopSignals::kMaxWatchers; ++i) {
        others.push_back(std::make_unique<StopSignals>());
    }
    CHECK(StopSignals().error() == ENOSPC);
    others.pop_back();
    CHECK(StopSignals().error() == 0);
}

TEST_CASE("sim: a test's own mistakes abort with a sentence") {
    CHECK(contains(abort_message([] {
                       { const World world; }
                       (void)platform::bound_port(3);
                   }),
                   "there is no World"));
    CHECK(contains(abort_message([] {
                       const World one;
                       const World two;
                   }),
                   "a second World"));
    CHECK(contains(abort_message([] {
                       const World world;
                       std::thread([] { platform::close_descriptor(3); }).join();
                   }),
                   "from a second thread"));
    CHECK(contains(abort_message([] {
                       Peer peer;
                       {
                           World world;
                           peer = world.connect(kPort);
                       }
                       const World next;
                       peer.send("x");
                   }),
                   "whose World is gone"));
    CHECK(contains(abort_message([] { World().fail_nth(0, EIO); }), "counted from 1"));
}

}  // namespace penstock::world_tests

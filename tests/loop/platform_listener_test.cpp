// Listeners: who may have an address, how a group shares it, and how one goes away without a reset.
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "loop/platform_fixture.h"
#include "penstock/platform/thread.h"

namespace penstock {

namespace {

using platform::bound_port;
using platform::ListenTarget;

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

// The message of a refusal, with "" for a listener that was opened after all.
Error refusal(const ListenTarget& target) {
    Result<int> opened = platform::open_listener(target);
    if (opened.ok()) {
        platform::close_descriptor(opened.value());
        return {};
    }
    return opened.error();
}

// A port that nobody holds at this moment.
std::uint16_t free_port() {
    const Fd listener = open_listener_or_fail({.address = "127.0.0.1"});
    return bound_port(listener.get());
}

bool has_ipv6() {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    const Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Fd connected_ipv6_client(std::uint16_t port) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_loopback;
    Fd client = client_socket(AF_INET6);
    REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return client;
}

// 0 or errno.
int connect_unix(int fd, const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

// How many connections wait; each is accepted and closed.
int accept_all(int listener) {
    int count = 0;
    PeerAddress peer;
    for (IoResult result = platform::accept(listener, &peer); result.ok();
         result = platform::accept(listener, &peer)) {
        platform::close_descriptor(static_cast<int>(result.count));
        ++count;
    }
    return count;
}

// Whether the kernel lets this process have a filter at all, be it one that passes everything.
bool may_attach_filters() {
    const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sock_filter pass = BPF_STMT(BPF_RET | BPF_K, 0xFFFFFFFF);
    const sock_fprog program = {1, &pass};
    return ::setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

}  // namespace

TEST_CASE("open_listener: the kernel chooses a port, and bound_port tells") {
    const Fd listener = open_listener_or_fail({.address = "127.0.0.1"});
    const std::uint16_t port = bound_port(listener.get());
    CHECK(port != 0);
    CHECK((::fcntl(listener.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(listener.get(), F_GETFD) & FD_CLOEXEC) != 0);
    const Fd client = connected_client(port);
    CHECK(bound_port(-1) == 0);
}

TEST_CASE("open_listener: a port that is held is refused, with a sentence") {
    const Fd held = open_listener_or_fail({.address = "127.0.0.1"});
    const std::uint16_t port = bound_port(held.get());
    const Error error = refusal({.address = "127.0.0.1", .port = port});
    CHECK(error.code == EADDRINUSE);
    CHECK(contains(error.message, "127.0.0.1:" + std::to_string(port)));
    CHECK(contains(error.message, "already in use"));
    CHECK(contains(error.message, "choose another port"));
    // By the wider address as well, and by a whole group.
    CHECK(refusal({.address = "", .port = port}).code == EADDRINUSE);
    const Fd joined = open_listener_or_fail({.address = "127.0.0.1", .port = port, .join_group = true});
    CHECK(refusal({.address = "127.0.0.1", .port = port}).code == EADDRINUSE);
}

TEST_CASE("open_listener: a port that somebody else offers to share is refused all the same") {
    const Fd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    REQUIRE(::setsockopt(other.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0);
    REQUIRE(::setsockopt(other.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    const sockaddr_in any_port = ipv4_loopback(0);
    REQUIRE(::bind(other.get(), reinterpret_cast<const sockaddr*>(&any_port), sizeof any_port) == 0);
    REQUIRE(::listen(other.get(), 1) == 0);
    CHECK(refusal({.address = "127.0.0.1", .port = bound_port(other.get())}).code == EADDRINUSE);
}

TEST_CASE("open_listener: two that want the same port in the same moment never both get it") {
    constexpr int kRounds = 200;
    const std::uint16_t port = free_port();
    // Neither a barrier nor a yield at once: they sleep, and the two would start one after the other.
    std::atomic<int> arrivals{0};
    const auto meet = [&](int target) {
        arrivals.fetch_add(1);
        for (int spins = 0; arrivals.load() < target; ++spins) {
            if (spins > 100'000) {
                std::this_thread::yield();
            }
        }
    };
    std::array<std::array<bool, 2>, kRounds> won{};
    const auto contend = [&](std::size_t who) {
        CHECK(platform::pin_current_thread(static_cast<unsigned>(who)) == 0);
        int met = 0;
        for (auto& round : won) {
            meet(met += 2);
            Result<int> opened = platform::open_listener({.address = "127.0.0.1", .port = port});
            round[who] = opened.ok();
            meet(met += 2);
            if (opened.ok()) {
                platform::close_descriptor(opened.value());
            }
        }
    };
    std::thread one(contend, 0);
    std::thread other(contend, 1);
    one.join();
    other.join();
    int shared = 0;
    int single = 0;
    for (const auto& round : won) {
        shared += round[0] && round[1] ? 1 : 0;
        single += round[0] != round[1] ? 1 : 0;
    }
    CHECK(shared == 0);
    // Not in every round: the kernel may refuse both, and the port is anybody's between two rounds.
    CHECK(single > 0);
}

TEST_CASE("open_listener: a port can be taken again at once, although connections of its last owner linger") {
    std::uint16_t port = 0;
    {
        TcpPair pair;
        port = bound_port(pair.listener.get());
        pair.server.close();  // the active closer keeps the port in TIME_WAIT
        CHECK(far_receive(pair.client.get(), 1).empty());
    }
    const Fd again = open_listener_or_fail({.address = "127.0.0.1", .port = port});
    CHECK(bound_port(again.get()) == port);
}

TEST_CASE("open_listener: sockets that join share the connections") {
    const Fd first = open_listener_or_fail({.address = "127.0.0.1"});
    const std::uint16_t port = bound_port(first.get());
    const Fd second = open_listener_or_fail({.address = "127.0.0.1", .port = port, .join_group = true});
    std::vector<Fd> clients;
    for (int i = 0; i < 64; ++i) {
        clients.push_back(connected_client(port));
    }
    const int by_first = accept_all(first.get());
    const int by_second = accept_all(second.get());
    CHECK(by_first > 0);
    CHECK(by_second > 0);
    CHECK(by_first + by_second == 64);
}

TEST_CASE("open_listener: \"\" takes both kinds of addresses, and an IPv4 peer is called IPv4") {
    const Fd listener = open_listener_or_fail({});
    const std::uint16_t port = bound_port(listener.get());
    PeerAddress peer;
    const Fd client = connected_client(port);
    const Fd server = accept_one(listener.get(), &peer);
    CHECK(peer.family == AddressFamily::ipv4);
    CHECK(peer.to_string().starts_with("127.0.0.1:"));
    if (has_ipv6()) {
        const Fd client6 = connected_ipv6_client(port);
        const Fd server6 = accept_one(listener.get(), &peer);
        CHECK(peer.family == AddressFamily::ipv6);
        CHECK(peer.to_string().starts_with("[::1]:"));
    }
}

TEST_CASE("open_listener: IPv6 literals with and without brackets; ipv6_only keeps IPv4 out") {
    if (!has_ipv6()) {
        MESSAGE("this machine has no IPv6");
        return;
    }
    for (const char* address : {"::1", "[::1]", "::1%lo"}) {
        CAPTURE(address);
        const Fd listener = open_listener_or_fail({.address = address});
        const Fd client = connected_ipv6_client(bound_port(listener.get()));
        const std::uint16_t port = bound_port(listener.get());
        CHECK(contains(refusal({.address = address, .port = port}).message, "[::1"));
    }
    for (const char* address : {"", "::"}) {
        CAPTURE(address);
        const Fd listener = open_listener_or_fail({.address = address, .ipv6_only = true});
        const Fd client = client_socket(AF_INET);
        CHECK(connect_ipv4(client.get(), bound_port(listener.get())) == ECONNREFUSED);
        const Fd client6 = connected_ipv6_client(bound_port(listener.get()));
    }
}

TEST_CASE("open_listener: addresses that cannot be had are refused with a way out") {
    for (const char* address :
         {"localhost", "127.0.0.1.1", "[127.0.0.1]", "::g", "fe80::1%nowhere", "[::1", "[]"}) {
        CAPTURE(address);
        const Error error = refusal({.address = address, .port = 80});
        CHECK(error.code == EINVAL);
        CHECK(contains(error.message, address));
        CHECK(contains(error.message, "not numeric"));
    }
    const Error foreign = refusal({.address = "192.0.2.1"});  // RFC 5737: nobody's
    CHECK(foreign.code == EADDRNOTAVAIL);
    CHECK(contains(foreign.message, "no interface of this machine"));
}

TEST_CASE("steer_by_cpu: a connection goes to the socket of the core that it came in on") {
    const Fd first = open_listener_or_fail({.address = "127.0.0.1"});
    const std::uint16_t port = bound_port(first.get());
    CHECK(platform::steer_by_cpu(first.get(), 1) == 0);
    const Fd second = open_listener_or_fail({.address = "127.0.0.1", .port = port, .join_group = true});
    REQUIRE(platform::steer_by_cpu(first.get(), 2) == 0);
    CHECK(platform::steer_by_cpu(first.get(), 0) == EINVAL);
    for (unsigned core = 0; core < std::min(platform::usable_core_count(), 8U); ++core) {
        int cpu = -1;
        std::vector<Fd> clients;
        // On loopback the packet comes in on the core that sends it.
        std::thread([&] {
            CHECK(platform::pin_current_thread(core) == 0);
            cpu = ::sched_getcpu();
            for (int i = 0; i < 32; ++i) {
                clients.push_back(connected_client(port));
            }
        }).join();
        CAPTURE(cpu);
        CHECK(accept_all(first.get()) == (cpu % 2 == 0 ? 32 : 0));
        CHECK(accept_all(second.get()) == (cpu % 2 == 1 ? 32 : 0));
    }
}

TEST_CASE("drop_new_handshakes: no new connection begins, those begun are completed and accepted") {
    const Fd listener = open_listener_or_fail({.address = "127.0.0.1"});
    const std::uint16_t port = bound_port(listener.get());
    PeerAddress peer;
    const Fd queued = connected_client(port);
    REQUIRE(ready_within(listener.get(), POLLIN, kWaitMs));
    // Keeps a handshake under way on the server's side until the client sends (man 7 tcp).
    const int defer_seconds = 30;
    REQUIRE(::setsockopt(listener.get(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_seconds,
                         sizeof defer_seconds) == 0);
    const Fd begun = connected_client(port);

    const int dropped = platform::drop_new_handshakes(listener.get());
    if (dropped == EPERM && !may_attach_filters()) {
        MESSAGE("this kernel grants socket filters to CAP_NET_ADMIN only");
        return;
    }
    REQUIRE(dropped == 0);
    const Fd late = client_socket(AF_INET);
    REQUIRE(::fcntl(late.get(), F_SETFL, O_NONBLOCK) == 0);
    CHECK(connect_ipv4(late.get(), port) == EINPROGRESS);

    const Fd queued_server = accept_one(listener.get(), &peer);
    CHECK(is_would_block(platform::accept(listener.get(), &peer).error));
    far_send(begun.get(), "begun");
    const Fd begun_server = accept_one(listener.get(), &peer);
    REQUIRE(ready_within(begun_server.get(), POLLIN, kWaitMs));
    CHECK(receive_text(begun_server.get()) == "begun");
    // The filter that it inherited does nothing to it.
    CHECK(send_text(begun_server.get(), "answer").count == 6);
    CHECK(far_receive(begun.get(), 6) == "answer");
    // On loopback a connection that is let in is there at once.
    CHECK(!ready_within(late.get(), POLLOUT, 50));
    CHECK(is_would_block(platform::accept(listener.get(), &peer).error));
}

TEST_CASE("unix: connections, the file's mode, a second descriptor, and the file's end") {
    const TemporaryDirectory directory;
    const std::string path = directory / "socket";
    const ListenTarget target{.address = "unix:" + path, .unix_mode = 0640};
    Fd listener = open_listener_or_fail(target);
    CHECK(bound_port(listener.get()) == 0);
    struct stat status {};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0640);

    const IoResult duplicate = platform::duplicate_descriptor(listener.get());
    REQUIRE(duplicate.ok());
    const Fd second(static_cast<int>(duplicate.count));
    CHECK(second.get() != listener.get());
    CHECK((::fcntl(second.get(), F_GETFD) & FD_CLOEXEC) != 0);
    listener.close();
    const Fd client = client_socket(AF_UNIX);
    REQUIRE(connect_unix(client.get(), path) == 0);
    PeerAddress peer;
    const Fd server = accept_one(second.get(), &peer);
    CHECK(peer.family == AddressFamily::unix_socket);
    far_send(client.get(), "hello");
    CHECK(receive_text(server.get()) == "hello");
    CHECK(send_text(server.get(), "you").count == 3);
    CHECK(far_receive(client.get(), 3) == "you");

    platform::remove_socket_file(target);
    CHECK(!std::filesystem::exists(path));
    CHECK(platform::duplicate_descriptor(-1).error == EBADF);
}

TEST_CASE("unix: a live listener keeps its file, even when its queue is full") {
    const TemporaryDirectory directory;
    const std::string path = directory / "socket";
    const ListenTarget target{.address = "unix:" + path, .backlog = 0};
    const Fd listener = open_listener_or_fail(target);
    std::vector<Fd> waiting;
    for (int i = 0; i < 2; ++i) {
        const Error error = refusal(target);
        CHECK(error.code == EADDRINUSE);
        CHECK(contains(error.message, target.address));
        CHECK(contains(error.message, "another program listens there"));
        int code = 0;
        while (code == 0 && waiting.size() < 100) {
            waiting.push_back(client_socket(AF_UNIX));
            REQUIRE(::fcntl(waiting.back().get(), F_SETFL, O_NONBLOCK) == 0);
            code = connect_unix(waiting.back().get(), path);
        }
        CHECK(code == EAGAIN);
    }
    CHECK(std::filesystem::exists(path));
}

TEST_CASE("unix: a stale file is replaced, other files are left alone") {
    const TemporaryDirectory directory;
    const std::string path = directory / "socket";
    const ListenTarget target{.address = "unix:" + path};
    open_listener_or_fail(target).close();
    REQUIRE(std::filesystem::exists(path));
    Fd again = open_listener_or_fail(target);
    const Fd client = client_socket(AF_UNIX);
    CHECK(connect_unix(client.get(), path) == 0);
    again.close();
    platform::remove_socket_file(target);

    const std::string precious = directory / "precious";
    std::ofstream(precious) << "data";
    std::filesystem::create_symlink(precious, path);
    for (const std::string& name : {precious, path}) {
        CAPTURE(name);
        const Error error = refusal({.address = "unix:" + name});
        CHECK(error.code == EADDRINUSE);
        CHECK(contains(error.message, "not a socket"));
        platform::remove_socket_file({.address = "unix:" + name});
        CHECK(std::filesystem::is_symlink(path));
        CHECK(std::filesystem::file_size(precious) == 4);
    }
}

TEST_CASE("unix: paths that cannot be are refused with a way out") {
    const TemporaryDirectory directory;
    const std::size_t limit = sizeof sockaddr_un{}.sun_path - 1;
    const std::string longest = directory / std::string(limit - directory.path().size() - 1, 'x');
    REQUIRE(longest.size() == limit);
    CHECK(refusal({.address = "unix:" + longest}).message.empty());
    for (const std::string& path : {longest + "x", std::string()}) {
        const Error error = refusal({.address = "unix:" + path});
        CHECK(error.code == ENAMETOOLONG);
        CHECK(contains(error.message, "1 to " + std::to_string(limit) + " bytes"));
    }
    const Error missing = refusal({.address = "unix:" + (directory / "none/socket")});
    CHECK(missing.code == ENOENT);
    CHECK(contains(missing.message, "directory does not exist"));
}

}  // namespace penstock

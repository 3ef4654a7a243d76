// The life of a server and its listeners: start, stop, start again, where it listens, and what is posted to it. How it
// treats its clients is in server_clients_test.cpp.
#include <csignal>

#include <algorithm>
#include <atomic>
#include <array>
#include <fstream>
#include <vector>

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "loop/loop_client.h"
#include "penstock/platform/thread.h"

namespace penstock {

namespace {

Router router_saying(const std::string& text) {
    Router router;
    router.get("/", [text](Request&, Response& response) { response.send(text); });
    return router;
}

// A server on 127.0.0.1 that says "hello".
struct HelloServer {
    explicit HelloServer(Config config) : server(std::move(config)) {
        server.listen({.address = "127.0.0.1"}, router_saying("hello"));
        start_or_fail(server);
    }
    [[nodiscard]] LoopClient connect() const { return LoopClient(server.port()); }

    Server server;
};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// 0 or errno.
int try_connect(std::uint16_t port) { return connect_ipv4(client_socket(AF_INET).get(), port); }

std::string start_error(Server& server) {
    const Result<void> started = server.start();
    CHECK_FALSE(started.ok());
    return started.ok() ? "" : started.error().message;
}

std::uint16_t free_port() {
    const Fd listener = open_listener_or_fail({.address = "127.0.0.1"});
    return platform::bound_port(listener.get());
}

// Lets the process's address space grow by so much and no more.
class AddressSpaceLimit {
public:
    explicit AddressSpaceLimit(std::size_t growth_bytes) {
        REQUIRE(::getrlimit(RLIMIT_AS, &former_) == 0);
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit lowered = former_;
        lowered.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + growth_bytes;
        REQUIRE(::setrlimit(RLIMIT_AS, &lowered) == 0);
    }
    AddressSpaceLimit(const AddressSpaceLimit&) = delete;
    AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;
    ~AddressSpaceLimit() { ::setrlimit(RLIMIT_AS, &former_); }

private:
    rlimit former_{};
};

using SignalHandler = void (*)(int);
SignalHandler handler_of_sigterm() {
    struct sigaction action {};
    ::sigaction(SIGTERM, nullptr, &action);
    return action.sa_handler;
}

}  // namespace

TEST_CASE("server: starts, serves, stops, and its port is closed then") {
    HelloServer hello(reactors(1));
    const std::uint16_t port = hello.server.port();
    CHECK(port != 0);
    CHECK(hello.server.reactor_count() == 1);
    LoopClient client = hello.connect();
    const Answer answer = client.ask("/");
    CHECK(answer.status == 200);
    CHECK(answer.body == "hello");
    CHECK(client.ask("/nowhere").status == 404);
    CHECK(stops(hello.server));
    CHECK(client.is_ended());
    CHECK(try_connect(port) == ECONNREFUSED);
    CHECK(hello.server.stats().requests == 2);
    CHECK(hello.server.stats().accepted == 1);
    CHECK(hello.server.stats().closed == 1);
    CHECK(hello.server.stats().active == 0);
}

TEST_CASE("server: stop and wait do no harm where nothing runs") {
    Server server(reactors(1));
    server.stop();
    server.stop_now();
    server.wait();
    CHECK(server.port() == 0);
    CHECK_FALSE(server.post(0, [] {}));
    server.listen({.address = "127.0.0.1"}, router_saying("after all"));
    start_or_fail(server);
    CHECK(LoopClient(server.port()).ask("/").body == "after all");
    server.stop();
    server.stop();
    CHECK(ends(server));
    CHECK(ends(server));
}

TEST_CASE("server: its destructor ends it") {
    std::uint16_t port = 0;
    std::vector<LoopClient> clients;
    {
        const HelloServer hello(reactors(2));
        port = hello.server.port();
        clients.push_back(hello.connect());
        CHECK(clients[0].ask("/").status == 200);
    }
    CHECK(clients[0].is_ended());
    CHECK(try_connect(port) == ECONNREFUSED);
}

TEST_CASE("server: run ends with 0 by SIGTERM, and the former handlers come back") {
    const SignalHandler former = handler_of_sigterm();
    Server server(reactors(2));
    server.listen({.address = "127.0.0.1"}, router_saying("hello"));
    std::future<int> status = std::async(std::launch::async, [&server] { return server.run(); });
    REQUIRE(eventually([&server] { return server.port() != 0; }));
    // Until the handler is there the signal would end this process.
    REQUIRE(eventually([former] { return handler_of_sigterm() != former; }));
    LoopClient client(server.port());
    CHECK(client.ask("/").status == 200);
    REQUIRE(::kill(::getpid(), SIGTERM) == 0);
    REQUIRE(status.wait_for(std::chrono::milliseconds(kWaitMs)) == std::future_status::ready);
    CHECK(status.get() == 0);
    CHECK(client.is_ended());
    CHECK((handler_of_sigterm() == former));
}

TEST_CASE("server: wait_for_signal ends by stop as well") {
    HelloServer hello(reactors(2));
    std::future<void> ended = std::async(std::launch::async, [&hello] { hello.server.wait_for_signal(); });
    CHECK(hello.connect().ask("/").status == 200);
    hello.server.stop();
    CHECK(ended.wait_for(std::chrono::milliseconds(kWaitMs)) == std::future_status::ready);
}

TEST_CASE("server: a port that is taken is told, and nothing is left bound") {
    const HelloServer other(reactors(1));
    const std::uint16_t taken = other.server.port();
    const std::uint16_t first = free_port();
    const TemporaryDirectory directory;
    const std::size_t descriptors = open_descriptors();
    Server server(reactors(2));
    server.listen({.address = "127.0.0.1", .port = first}, router_saying("never"));
    server.listen({.address = "unix:" + (directory / "socket")}, router_saying("never"));
    server.listen({.address = "127.0.0.1", .port = taken}, router_saying("never"));
    const std::string error = start_error(server);
    CAPTURE(error);
    CHECK(contains(error, "127.0.0.1:" + std::to_string(taken)));
    CHECK(contains(error, "another port"));
    CHECK(try_connect(first) == ECONNREFUSED);
    CHECK_FALSE(std::filesystem::exists(directory / "socket"));
    CHECK(open_descriptors() == descriptors);
    CHECK(other.connect().ask("/").status == 200);
}

TEST_CASE("server: what is wrong with it is told when it starts") {
    const std::uint16_t port = free_port();
    Server nothing(reactors(1));
    CHECK(contains(start_error(nothing), "listen"));

    Config config = reactors(1);
    config.connection_limit = 0;
    Server limits(config);
    limits.listen({.address = "127.0.0.1", .port = port}, router_saying("never"));
    CHECK(contains(start_error(limits), "connection_limit"));

    Router conflict;
    conflict.get("/twice", [](Request&, Response& response) { response.send("one"); });
    conflict.get("/twice", [](Request&, Response& response) { response.send("other"); });
    Server routes(reactors(2));
    routes.listen({.address = "127.0.0.1", .port = port}, conflict);
    CHECK(contains(start_error(routes), "/twice"));

    Server address(reactors(1));
    address.listen({.address = "nonsense", .port = port}, router_saying("never"));
    CHECK(contains(start_error(address), "nonsense"));
    CHECK(try_connect(port) == ECONNREFUSED);

    HelloServer running(reactors(1));
    CHECK(contains(start_error(running.server), "running already"));
    CHECK(running.connect().ask("/").status == 200);
}

TEST_CASE("server: where threads or memory cannot be had it says so, and starts when they can") {
    if (kSanitized) {
        MESSAGE("not run: a sanitizer ends the process where memory cannot be had");
        return;
    }
    const std::uint16_t port = free_port();
    const std::size_t descriptors = open_descriptors();
    Config many_workers = reactors(1);
    many_workers.offload_threads = 200;
    for (const Config& config : {many_workers, reactors(200)}) {
        Server server(config);
        server.listen({.address = "127.0.0.1", .port = port}, router_saying("hello"));
        {
            const AddressSpaceLimit limit(64 << 20);
            CHECK(contains(start_error(server), "start"));
        }
        CHECK(try_connect(port) == ECONNREFUSED);
        CHECK(open_descriptors() == descriptors);
        start_or_fail(server);
        CHECK(LoopClient(port).ask("/").body == "hello");
        CHECK(stops(server));
    }
}

TEST_CASE("server: starts again after wait, also where a start has failed") {
    const std::uint16_t port = free_port();
    Server server(reactors(2));
    server.listen({.address = "127.0.0.1", .port = port}, router_saying("again"));
    {
        const Fd holder = open_listener_or_fail({.address = "127.0.0.1", .port = port});
        CHECK(contains(start_error(server), std::to_string(port)));
    }
    for (int round = 0; round < 3; ++round) {
        start_or_fail(server);
        CHECK(server.port() == port);
        CHECK(LoopClient(port).ask("/").body == "again");
        CHECK(server.stats().requests == 1);  // each start counts from 0
        CHECK(stops(server));
    }
}

TEST_CASE("server: several in one process do not know of each other") {
    HelloServer one(reactors(1));
    HelloServer other(reactors(2));
    CHECK(one.connect().ask("/").status == 200);
    LoopClient client = other.connect();
    CHECK(client.ask("/").status == 200);
    CHECK(stops(one.server));
    CHECK(client.ask("/").status == 200);
    CHECK(other.connect().ask("/").status == 200);
    CHECK(one.server.stats().requests == 1);
    CHECK(other.server.stats().requests == 3);
}

TEST_CASE("server: 300 starts and stops leave no descriptor and no thread behind") {
    constexpr int kCycles = kSanitized ? 60 : 300;
    const std::size_t descriptors = open_descriptors();
    const std::size_t threads = running_threads();
    for (int i = 0; i < kCycles; ++i) {
        HelloServer hello(reactors(2));
        if (i % 3 != 0) {
            CHECK(hello.connect().ask("/").status == 200);
        }
        if (i % 2 == 0) {
            CHECK(stops(hello.server));
        }
    }
    CHECK(open_descriptors() == descriptors);
    // A joined thread leaves the kernel's list a moment later.
    CHECK(eventually([threads] { return running_threads() <= threads; }));
}

// ---- Listeners -----------------------------------------------------------------------------------------

TEST_CASE("server: the kernel spreads connections over the reactors") {
    HelloServer hello(reactors(2));
    std::vector<LoopClient> clients;
    for (int i = 0; i < 64; ++i) {
        clients.push_back(hello.connect());
        CHECK(clients.back().ask("/").status == 200);
    }
    const std::vector<ReactorStats> stats = hello.server.reactor_stats();
    REQUIRE(stats.size() == 2);
    CHECK(stats[0].accepted > 0);  // one in 2^63 that all go one way
    CHECK(stats[1].accepted > 0);
    CHECK(stats[0].requests == stats[0].accepted);
    CHECK(stats[1].requests == stats[1].accepted);
    CHECK(hello.server.stats().accepted == 64);
}

TEST_CASE("server: steering by CPU gives a connection to the reactor of the CPU that took it in") {
    constexpr unsigned kReactors = 2;
    constexpr int kClients = 20;
    Config config = reactors(kReactors);
    config.pin_reactors = true;
    config.steering = Steering::receiving_cpu;
    const HelloServer hello(config);
    for (unsigned core = 0; core < std::min(platform::usable_core_count(), kReactors); ++core) {
        CAPTURE(core);
        const std::vector<ReactorStats> before = hello.server.reactor_stats();
        int cpu = -1;
        std::vector<LoopClient> clients;
        // On loopback a packet is taken in by the CPU that sends it.
        std::thread connecting([&] {
            CHECK(platform::pin_current_thread(core) == 0);
            cpu = ::sched_getcpu();
            for (int i = 0; i < kClients; ++i) {
                clients.push_back(hello.connect());
            }
        });
        connecting.join();
        for (LoopClient& client : clients) {
            CHECK(client.ask("/").status == 200);
        }
        REQUIRE(cpu >= 0);
        const std::size_t expected = static_cast<unsigned>(cpu) % kReactors;
        const std::vector<ReactorStats> after = hello.server.reactor_stats();
        CHECK(after[expected].accepted - before[expected].accepted == kClients);
    }
}

TEST_CASE("server: \"\" takes IPv4 and IPv6, ::1 only IPv6") {
    if (!has_ipv6()) {
        MESSAGE("this machine has no IPv6");
        return;
    }
    Router router;
    router.get("/", [](Request& request, Response& response) { response.send(request.peer().to_string()); });
    Server server(reactors(2));
    server.listen({}, router);
    server.listen({.address = "::1"}, router);
    server.listen({.address = "", .ipv6_only = true}, router);
    start_or_fail(server);
    CHECK(LoopClient(server.port(0)).ask("/").body.starts_with("127.0.0.1:"));
    CHECK(LoopClient::to_ipv6(server.port(0)).ask("/").body.starts_with("[::1]:"));
    for (const std::size_t listener : {std::size_t{1}, std::size_t{2}}) {
        CAPTURE(listener);
        CHECK(LoopClient::to_ipv6(server.port(listener)).ask("/").body.starts_with("[::1]:"));
        CHECK(try_connect(server.port(listener)) == ECONNREFUSED);
    }
    CHECK(stops(server));
}

TEST_CASE("server: a Unix socket is shared by the reactors, and its file is removed at the end") {
    const TemporaryDirectory directory;
    const std::string path = directory / "socket";
    Server server(reactors(2));
    server.listen({.address = "unix:" + path, .unix_mode = 0600}, router_saying("hello"));
    for (int round = 0; round < 2; ++round) {
        start_or_fail(server);
        CHECK(server.port() == 0);
        struct stat status {};
        REQUIRE(::stat(path.c_str(), &status) == 0);
        CHECK((status.st_mode & 0777) == 0600);
        std::vector<LoopClient> clients;
        for (int i = 0; i < 32; ++i) {
            clients.push_back(LoopClient::to_unix(path));
            CHECK(clients.back().ask("/").body == "hello");
            CHECK(clients.back().ask("/").body == "hello");
        }
        CHECK(server.stats().accepted == 32);
        CHECK(stops(server));
        CHECK_FALSE(std::filesystem::exists(path));
        CHECK(clients[0].is_ended());
    }
}

TEST_CASE("server: each listener has its own routes") {
    const TemporaryDirectory directory;
    Server server(reactors(2));
    server.listen({.address = "127.0.0.1"}, router_saying("public"));
    server.listen({.address = "127.0.0.1"}, router_saying("private"));
    server.listen({.address = "unix:" + (directory / "socket")}, router_saying("local"));
    start_or_fail(server);
    CHECK(server.port(0) != server.port(1));
    CHECK(server.port(3) == 0);
    for (int i = 0; i < 16; ++i) {
        CHECK(LoopClient(server.port(0)).ask("/").body == "public");
        CHECK(LoopClient(server.port(1)).ask("/").body == "private");
        CHECK(LoopClient::to_unix(directory / "socket").ask("/").body == "local");
    }
    CHECK(stops(server));
}

// ---- Posting -------------------------------------------------------------------------------------------

TEST_CASE("server: functions posted by four threads run on the reactor while it serves") {
    constexpr int kThreads = 4;
    constexpr int kPosts = 5'000;
    Config config = reactors(2);
    config.mailbox_limit = 64;
    config.offload_limit = 64;
    HelloServer hello(config);
    std::array<int, kThreads> runs{};  // of the reactor's thread alone
    std::atomic<int> misplaced{0};
    std::vector<std::thread> posters;
    for (int& run : runs) {
        posters.emplace_back([&] {
            for (int i = 0; i < kPosts; ++i) {
                const auto count = [&run, &misplaced] {
                    ++run;
                    misplaced += Reactor::current() != nullptr && Reactor::current()->number() == 1 ? 0 : 1;
                };
                while (!hello.server.post(1, count)) {
                    std::this_thread::yield();  // full
                }
            }
        });
    }
    LoopClient client = hello.connect();
    int served = 0;
    for (int i = 0; i < 500; ++i) {
        served += client.ask("/").status == 200 ? 1 : 0;
    }
    for (std::thread& poster : posters) {
        poster.join();
    }
    CHECK(memory_of(hello.server, 1).leased_bytes == 0);  // posted last, so it has run last
    CHECK(served == 500);
    CHECK(misplaced.load() == 0);
    CHECK(std::count(runs.begin(), runs.end(), kPosts) == kThreads);
    CHECK_FALSE(hello.server.post(2, [] {}));
    CHECK(stops(hello.server));
    CHECK_FALSE(hello.server.post(0, [] {}));
    CHECK_FALSE(hello.server.post(1, [] {}));
}

TEST_CASE("server: what post has accepted runs, also when the server stops at that moment") {
    constexpr int kRounds = kSanitized ? 20 : 100;
    for (int round = 0; round < kRounds; ++round) {
        Config config = reactors(1);
        config.mailbox_limit = 16;
        config.offload_limit = 16;
        HelloServer hello(config);
        std::atomic<int> runs{0};
        std::atomic<int> accepted{0};
        std::atomic<bool> refused_for_good{false};
        std::thread poster([&] {
            while (!refused_for_good) {
                accepted += hello.server.post(0, [&runs] { ++runs; }) ? 1 : 0;
            }
        });
        const bool posting = eventually([&accepted] { return accepted > 100; });
        const bool ended = stops(hello.server);
        refused_for_good = true;
        poster.join();
        CHECK(posting);
        CHECK(ended);
        CHECK(runs == accepted);
    }
}

}  // namespace penstock

// Many connections: 100,000 one after the other, and 10,000 at once. What they took comes back. The clients that hold
// many at once are processes of their own, since descriptors are counted per process.
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <vector>

#include "loop/loop_client.h"

namespace penstock {

namespace {

constexpr unsigned kReactors = 2;
constexpr int kClientThreads = 2;
constexpr int kConnectionsInSequence = kSanitized ? 20'000 : 100'000;
constexpr unsigned kHolders = 2;
constexpr unsigned kConnectionsAtOnce = kSanitized ? 4'000 : 10'000;
// More than the holders take together, with room for a machine that is busy with something else.
constexpr int kHolderWaitMs = 60'000;
// What the process may have grown by in the end: the free lists that the limits of config.h allow to be kept, and what
// the allocator and the threads' stacks have touched for the first time.
constexpr long kResidentMarginKiB = 2'048;

Router hello_router() {
    Router router;
    router.get("/", [](Request&, Response& response) { response.send("hello"); });
    return router;
}

// 127.0.0.1 to 127.0.0.8 by turns, each with its own 28,000 ephemeral ports.
sockaddr_in loopback_address(unsigned number, std::uint16_t port) {
    sockaddr_in address = ipv4_loopback(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number % 8);
    return address;
}

// -1 when it cannot be had. Waits for at most kWaitMs, also in what it is used for.
int try_connected_socket(unsigned number, std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit = {kWaitMs / 1000, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const sockaddr_in address = loopback_address(number, port);
    if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(fd);
        return -1;
    }
    return fd;
}

bool try_send(int fd, std::string_view request) {
    return ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
}

// A whole answer of hello_router.
bool receives_hello(int fd) {
    std::array<char, 512> answer{};
    std::size_t size = 0;
    std::string_view text;
    while (!text.ends_with("\r\n\r\nhello")) {
        const ssize_t count = ::recv(fd, answer.data() + size, answer.size() - size, 0);
        if (count <= 0) {
            return false;
        }
        size += static_cast<std::size_t>(count);
        text = {answer.data(), size};
    }
    return text.starts_with("HTTP/1.1 200 ");
}

// ---- One after the other -------------------------------------------------------------------------------

// Who ends the connection after the answer, and how.
enum class Ending { server, client_reset, client_end };

bool use_once(unsigned number, std::uint16_t port, Ending ending) {
    static const std::string closing = request_for("/", "Connection: close\r\n");
    static const std::string keeping = request_for("/");
    const Fd fd(try_connected_socket(number, port));
    if (fd.get() < 0 || !try_send(fd.get(), ending == Ending::server ? closing : keeping) ||
        !receives_hello(fd.get())) {
        return false;
    }
    if (ending == Ending::server) {
        char byte = 0;
        return ::recv(fd.get(), &byte, 1, 0) == 0;
    }
    // Where the client ends first its port would rest in TIME_WAIT for a minute, so most of them reset.
    return ending == Ending::client_end || platform::reset_on_close(fd.get()) == 0;
}

// Of ten, seven are ended by the server, two by a reset, one by the client.
Ending ending_of(unsigned number) {
    constexpr std::array<Ending, 10> kEndings = {
        Ending::server, Ending::server,       Ending::server, Ending::client_reset, Ending::server,
        Ending::server, Ending::client_reset, Ending::server, Ending::client_end,   Ending::server};
    return kEndings[number % kEndings.size()];
}

// ---- At once -------------------------------------------------------------------------------------------

enum class Command { connect, use, leave };

// What a holder is told to do; when it is done it reports how many connections did well.
struct Order {
    Command command = Command::leave;
    std::uint16_t port = 0;  // for connect, as is the next
    unsigned count = 0;
};

unsigned connect_all(std::vector<int>& held, std::uint16_t port, unsigned count) {
    const std::string request = request_for("/");
    unsigned answered = 0;
    for (unsigned i = 0; i < count; ++i) {
        held.push_back(try_connected_socket(i, port));
        answered += try_send(held.back(), request) && receives_hello(held.back()) ? 1 : 0;
    }
    return answered;
}

// All requests are under way before the first answer is read.
unsigned use_all(const std::vector<int>& held) {
    const std::string request = request_for("/");
    for (const int fd : held) {
        (void)try_send(fd, request);
    }
    return static_cast<unsigned>(std::count_if(held.begin(), held.end(), receives_hello));
}

// Half by a reset.
unsigned leave_all(std::vector<int>& held) {
    for (std::size_t i = 0; i < held.size(); ++i) {
        if (i % 2 == 0) {
            platform::reset_on_close(held[i]);
        }
        ::close(held[i]);
    }
    const auto count = static_cast<unsigned>(held.size());
    held.clear();
    return count;
}

// The child's whole life. Ends with its parent, whose closed end reads as the end of commands.
[[noreturn]] void hold_connections(int commands, int reports) {
    std::vector<int> held;
    Order order{};
    while (::read(commands, &order, sizeof order) == sizeof order) {
        unsigned report = 0;
        switch (order.command) {
            case Command::connect: report = connect_all(held, order.port, order.count); break;
            case Command::use: report = use_all(held); break;
            case Command::leave: report = leave_all(held); break;
        }
        if (::write(reports, &report, sizeof report) != sizeof report) {
            break;
        }
    }
    ::_exit(0);
}

// A process that holds connections. Made before any thread runs, since a fork takes only the one that calls it.
class Holder {
public:
    Holder() {
        std::array<int, 2> orders{};
        std::array<int, 2> answers{};
        REQUIRE(::pipe2(orders.data(), O_CLOEXEC) == 0);
        REQUIRE(::pipe2(answers.data(), O_CLOEXEC) == 0);
        commands_ = Fd(orders[1]);
        reports_ = Fd(answers[0]);
        const Fd far_commands(orders[0]);
        const Fd far_reports(answers[1]);
        process_ = ::fork();
        REQUIRE(process_ >= 0);
        if (process_ == 0) {
            commands_.close();
            hold_connections(far_commands.get(), far_reports.get());
        }
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() {
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
    }

    void order(Command command, std::uint16_t port = 0, unsigned count = 0) {
        const Order order{command, port, count};
        REQUIRE(::write(commands_.get(), &order, sizeof order) == sizeof order);
    }
    [[nodiscard]] unsigned report() {
        unsigned count = 0;
        REQUIRE(ready_within(reports_.get(), POLLIN, kHolderWaitMs));
        REQUIRE(::read(reports_.get(), &count, sizeof count) == sizeof count);
        return count;
    }

private:
    Fd commands_;
    Fd reports_;
    pid_t process_ = -1;
};

unsigned order_all(std::array<Holder, kHolders>& holders, Command command, std::uint16_t port = 0, unsigned each = 0) {
    for (Holder& holder : holders) {
        holder.order(command, port, each);
    }
    unsigned sum = 0;
    for (Holder& holder : holders) {
        sum += holder.report();
    }
    return sum;
}

// Connections per holder: as many as are wanted, or as the limits of descriptors allow this process and those.
unsigned connections_for_each_holder() {
    constexpr rlim_t kOthers = 200;  // descriptors for everything else
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlim_t allowed = limit.rlim_max < kOthers ? 0 : limit.rlim_max - kOthers;
    if (allowed < kConnectionsAtOnce) {
        MESSAGE("the hard limit of descriptors, ", limit.rlim_max, ", allows only ", allowed, " connections at once");
    }
    return static_cast<unsigned>(std::min<rlim_t>(kConnectionsAtOnce, allowed)) / kHolders;
}

long resident_kib() {
    ::malloc_trim(0);
    std::ifstream statistics("/proc/self/statm");
    long pages = 0;
    statistics >> pages >> pages;
    return pages * (::sysconf(_SC_PAGESIZE) / 1024);
}

// Opens, uses and closes them, all from the start.
void hold_once(Server& server, std::array<Holder, kHolders>& holders, unsigned each) {
    const unsigned count = each * kHolders;
    CHECK(order_all(holders, Command::connect, server.port(), each) == count);
    CHECK(server.stats().active == count);
    const ReactorMemory held = memory_of(server);
    CHECK(held.connections == count);
    CHECK(held.leased_bytes == 0);  // all idle
    const std::size_t slabs = count / kSlotsPerSlab + kReactors * (kFreeSlabLimit + 1);
    CHECK(held.slot_bytes <= slabs * (kSlotsPerSlab * sizeof(Connection) + 64));
    CHECK(order_all(holders, Command::use) == count);
    CHECK(order_all(holders, Command::leave) == count);
    CHECK(eventually([&server] { return server.stats().active == 0; }));
}

// Nothing is leased, and what is kept follows from the limits in config.h, not from what was used.
void check_given_back(Server& server) {
    // For each slab that there may be, an entry of 32 bytes in the table of slabs.
    const Config config;
    const std::size_t table_bytes = ((config.connection_limit + config.refusal_limit) / kSlotsPerSlab + 1) * 32;
    const ReactorMemory memory = memory_of(server);
    CHECK(memory.leased_bytes == 0);
    CHECK(memory.connections == 0);
    CHECK(memory.slot_bytes <= kReactors * (kFreeSlabLimit * kSlotsPerSlab * sizeof(Connection) + table_bytes));
    CHECK(memory.cached_bytes <= kReactors * Config().free_block_limit * (kIoBlockBytes + kPageBytes));
}

}  // namespace

TEST_CASE("load: connections without number are opened, used once and closed") {
    Server server(reactors(kReactors));
    server.listen({.address = "0.0.0.0"}, hello_router());
    start_or_fail(server);
    const std::size_t descriptors = open_descriptors();
    const std::uint16_t port = server.port();
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    const auto start = std::chrono::steady_clock::now();
    for (int thread = 0; thread < kClientThreads; ++thread) {
        threads.emplace_back([&failures, port, thread] {
            for (int i = thread; i < kConnectionsInSequence; i += kClientThreads) {
                const auto number = static_cast<unsigned>(i / kClientThreads);
                failures += use_once(number, port, ending_of(number)) ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    MESSAGE(kConnectionsInSequence, " connections in ", elapsed_ms_since(start), " ms");
    CHECK(failures == 0);
    CHECK(eventually([&server] { return server.stats().closed == kConnectionsInSequence; }));
    const ReactorStats stats = server.stats();
    CHECK(stats.accepted == kConnectionsInSequence);
    CHECK(stats.active == 0);
    CHECK(stats.requests == kConnectionsInSequence);
    CHECK(stats.refused + stats.accept_errors + stats.request_errors + stats.timeouts == 0);
    CHECK(memory_of(server).leased_bytes == 0);
    CHECK(open_descriptors() == descriptors);
    CHECK(stops(server));
}

TEST_CASE("load: 10,000 connections at once, and what they took comes back") {
    std::array<Holder, kHolders> holders;
    const unsigned each = connections_for_each_holder();
    Server server(reactors(kReactors));
    server.listen({.address = "0.0.0.0"}, hello_router());
    start_or_fail(server);
    CHECK(LoopClient(server.port()).ask("/").status == 200);
    CHECK(eventually([&server] { return server.stats().active == 0; }));
    const std::size_t descriptors = open_descriptors();
    check_given_back(server);
    const long resident_before = resident_kib();

    hold_once(server, holders, each);
    check_given_back(server);
    hold_once(server, holders, each);
    check_given_back(server);
    CHECK(open_descriptors() == descriptors);
    const long growth = resident_kib() - resident_before;
    const unsigned count = each * kHolders;
    MESSAGE(count, " connections, twice; resident memory has grown by ", growth, " KiB in the end");
    if (!kSanitized) {  // they keep what was freed
        CHECK(growth <= kResidentMarginKiB);
    }
    const ReactorStats stats = server.stats();
    CHECK(stats.requests == 1 + std::uint64_t{count} * 4);
    CHECK(stats.refused + stats.accept_errors + stats.timeouts + stats.input_starved == 0);
    CHECK(stops(server));
}

}  // namespace penstock

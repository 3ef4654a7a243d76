// What an idle connection costs in user space: 1,000 and 10,000 connections are opened, each makes one request, and then
// all rest. Prints, in bytes per connection, what they hold, what is allocated for them, and what the process grew by.
// Ends with 1 when they hold more than the design allows. The kernel's own memory for sockets is not in it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <thread>

#include "penstock/engine/reactor.h"
#include "penstock/penstock.h"

namespace {

using namespace penstock;

constexpr double kTargetBytes = 128;
constexpr std::array<unsigned, 2> kCounts = {1'000, 10'000};

struct Memory {
    std::size_t leased_bytes = 0;     // blocks and pages that somebody holds
    std::size_t cached_bytes = 0;     // free blocks and pages, kept for the next requests of any connection
    std::size_t allocated_bytes = 0;  // slots, used or not, and the table of their slabs
    unsigned connections = 0;
    long resident_bytes = 0;
};

int measure_all();
bool measure_in_process(unsigned count);
bool measure(unsigned count);
[[noreturn]] void connect_and_rest(int port_fd, int done_fd, unsigned count);
int connect_and_ask(std::uint16_t port);
Memory memory_of(Server& server);
long resident_bytes();
bool print_line(unsigned count, const Memory& before, const Memory& after);
void check(bool is_well, const char* what, const char* why = nullptr);

}  // namespace

int main() { return measure_all(); }

namespace {

int measure_all() {
    rlimit limit{};
    check(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    check(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    std::printf("user-space bytes per idle connection, one reactor, after one request each (a slot has %zu bytes)\n",
                sizeof(Connection));
    std::printf("%12s %8s %10s %10s %10s\n", "connections", "held", "allocated", "cached", "resident");
    bool is_within_target = true;
    for (const unsigned count : kCounts) {
        constexpr rlim_t kOtherDescriptors = 100;
        if (limit.rlim_max < count + kOtherDescriptors) {
            std::printf("%12u not measured: the hard limit of descriptors is %ju\n", count,
                        static_cast<std::uintmax_t>(limit.rlim_max));
        } else {
            is_within_target = measure_in_process(count) && is_within_target;
        }
    }
    std::printf("held: slots in use and leases, at most %.0f by the design; allocated: with the slots that are still "
                "free;\ncached: free blocks that serve all connections; resident: growth of the process\n",
                kTargetBytes);
    return is_within_target ? EXIT_SUCCESS : EXIT_FAILURE;
}

// A process of its own, so that no measurement finds memory that the one before has left behind.
bool measure_in_process(unsigned count) {
    std::fflush(stdout);
    const pid_t process = ::fork();
    check(process >= 0, "fork");
    if (process == 0) {
        const bool is_within_target = measure(count);
        std::fflush(stdout);
        ::_exit(is_within_target ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    int status = 0;
    check(::waitpid(process, &status, 0) == process, "waitpid");
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

bool measure(unsigned count) {
    std::array<int, 2> port_pipe{};
    std::array<int, 2> done_pipe{};
    check(::pipe(port_pipe.data()) == 0 && ::pipe(done_pipe.data()) == 0, "pipe");
    const pid_t clients = ::fork();  // before the server's threads
    check(clients >= 0, "fork");
    if (clients == 0) {
        ::close(port_pipe[1]);
        connect_and_rest(port_pipe[0], done_pipe[1], count);
    }
    ::close(done_pipe[1]);
    Router router;
    router.get("/", [](Request&, Response& response) { response.send("hello"); });
    Config config;
    config.reactors = 1;
    Server server(config);
    server.listen({.address = "127.0.0.1"}, router);
    const Result<void> started = server.start();
    check(started.ok(), "start", started.ok() ? "" : started.error().message.c_str());
    const std::uint16_t port = server.port();
    ::close(connect_and_ask(port));  // what the first request takes for ever is not theirs
    const Memory before = memory_of(server);
    char done = 0;
    check(::write(port_pipe[1], &port, sizeof port) == sizeof port, "write");
    check(::read(done_pipe[0], &done, 1) == 1, "clients", "they ended before all of their connections were open");
    const bool is_within_target = print_line(count, before, memory_of(server));
    ::close(port_pipe[1]);  // the clients leave
    ::waitpid(clients, nullptr, 0);
    return is_within_target;
}

void connect_and_rest(int port_fd, int done_fd, unsigned count) {
    std::uint16_t port = 0;
    check(::read(port_fd, &port, sizeof port) == sizeof port, "read");
    for (unsigned i = 0; i < count; ++i) {
        (void)connect_and_ask(port);  // its socket stays open until this process ends
    }
    check(::write(done_fd, "d", 1) == 1, "write");
    check(::read(port_fd, &port, sizeof port) == 0, "read");  // until the other end is closed
    ::_exit(EXIT_SUCCESS);
}

int connect_and_ask(std::uint16_t port) {
    constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: footprint\r\n\r\n";
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0, "socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    check(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "connect");
    check(::send(fd, kRequest.data(), kRequest.size(), 0) == static_cast<ssize_t>(kRequest.size()), "send");
    std::array<char, 1024> answer{};
    const ssize_t size = ::recv(fd, answer.data(), answer.size(), 0);
    check(size >= 0, "recv");
    check(std::string_view(answer.data(), static_cast<std::size_t>(size)).ends_with("hello"), "answer",
          "it is not what the handler sends");
    return fd;
}

Memory memory_of(Server& server) {
    std::promise<Memory> told;
    const bool is_posted = server.post(0, [&told] {
        Reactor& reactor = *Reactor::current();
        Memory memory;
        for (const BlockPool* pool : {&reactor.blocks(), &reactor.pages()}) {
            memory.leased_bytes += pool->leased() * pool->block_bytes();
            memory.cached_bytes += pool->free() * pool->block_bytes();
        }
        memory.allocated_bytes = reactor.connections().memory_bytes();
        memory.connections = reactor.connections().in_use();
        told.set_value(memory);
    });
    check(is_posted, "post", "the reactor takes nothing");
    Memory memory = told.get_future().get();
    memory.resident_bytes = resident_bytes();
    return memory;
}

long resident_bytes() {
    std::ifstream statistics("/proc/self/statm");
    long pages = 0;
    statistics >> pages >> pages;
    return pages * ::sysconf(_SC_PAGESIZE);
}

bool print_line(unsigned count, const Memory& before, const Memory& after) {
    check(after.connections >= count, "connections", "some have ended");
    const auto each = [count](std::size_t bytes) { return static_cast<double>(bytes) / count; };
    const double held = each(count * sizeof(Connection) + after.leased_bytes);
    const auto growth = static_cast<std::size_t>(std::max(0L, after.resident_bytes - before.resident_bytes));
    std::printf("%12u %8.1f %10.1f %10.1f %10.1f\n", count, held, each(after.leased_bytes + after.allocated_bytes),
                each(after.cached_bytes), each(growth));
    return held <= kTargetBytes;
}

// Without a reason it is the system's.
void check(bool is_well, const char* what, const char* why) {
    if (!is_well) {
        std::fprintf(stderr, "penstock_footprint: it failed at: %s: %s\n", what,
                     why == nullptr ? std::strerror(errno) : why);
        ::_exit(EXIT_FAILURE);
    }
}

}  // namespace

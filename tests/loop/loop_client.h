// Internal.
// What the tests of a running server share: an HTTP/1.1 client of plain system calls, waits that end, and looks into
// a reactor's memory. One thread per client. What is checked here ends the test, so it is for the test's own thread.
#pragma once

#include <netinet/tcp.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "loop/platform_fixture.h"
#include "penstock/engine/reactor.h"
#include "penstock/penstock.h"

namespace penstock {

// Sanitizers make everything several times as slow and keep freed memory for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// ---- Waiting -------------------------------------------------------------------------------------------

// Whether it comes true while the test is ready to wait.
template <class Predicate>
[[nodiscard]] bool eventually(Predicate predicate) {
    const auto limit = wait_limit();
    while (!predicate()) {
        if (!within(limit)) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

inline int elapsed_ms_since(std::chrono::steady_clock::time_point start) {
    const auto elapsed = std::chrono::steady_clock::now() - start;
    return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count());
}

inline Config reactors(unsigned count) {
    Config config;
    config.reactors = count;
    return config;
}

inline void start_or_fail(Server& server) {
    const Result<void> started = server.start();
    REQUIRE_MESSAGE(started.ok(), started.error().message);
}

// Waits for the server's end; one that does not come is forced, and told by false.
[[nodiscard]] inline bool ends(Server& server) {
    std::future<void> waited = std::async(std::launch::async, [&server] { server.wait(); });
    if (waited.wait_for(std::chrono::milliseconds(kWaitMs)) == std::future_status::ready) {
        return true;
    }
    server.stop_now();
    return false;
}

[[nodiscard]] inline bool stops(Server& server) {
    server.stop();
    return ends(server);
}

// ---- The client ----------------------------------------------------------------------------------------

struct Answer {
    unsigned status = 0;  // 0: none came
    std::string head;     // status line and fields
    std::string body;

    // Of a field spelled as the server spells it; "" when it is absent.
    [[nodiscard]] std::string field(const std::string& name) const {
        const std::string start = "\r\n" + name + ": ";
        const std::size_t found = head.find(start);
        if (found == std::string::npos) {
            return {};
        }
        const std::size_t value = found + start.size();
        return head.substr(value, head.find("\r\n", value) - value);
    }
};

inline std::string request_for(std::string_view path, std::string_view fields = {}) {
    std::string request("GET ");
    return request.append(path).append(" HTTP/1.1\r\nHost: loop\r\n").append(fields).append("\r\n");
}

inline bool has_ipv6() {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    const Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// What a client sees of its connection's end.
enum class Ended : std::uint8_t {
    no,
    cleanly,   // by a FIN, with all that was sent before it
    by_reset,  // which may have erased what was sent before
};

class LoopClient {
public:
    // To 127.0.0.1.
    explicit LoopClient(std::uint16_t port) : socket_(connected_client(port)) {}
    explicit LoopClient(Fd connected) : socket_(std::move(connected)) {}

    [[nodiscard]] static LoopClient to_ipv6(std::uint16_t port) {
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_port = htons(port);
        address.sin6_addr = in6addr_loopback;
        Fd client = client_socket(AF_INET6);
        REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
        return LoopClient(std::move(client));
    }
    [[nodiscard]] static LoopClient to_unix(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        REQUIRE(path.size() < sizeof address.sun_path);
        std::memcpy(address.sun_path, path.c_str(), path.size());
        Fd client = client_socket(AF_UNIX);
        REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
        return LoopClient(std::move(client));
    }

    void send(std::string_view bytes) { far_send(socket_.get(), bytes); }
    // False when the connection has been reset.
    [[nodiscard]] bool try_send(std::string_view bytes) {
        if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size())) {
            return true;
        }
        ended_ = Ended::by_reset;
        return false;
    }
    void send_urgent(char byte) { REQUIRE(::send(socket_.get(), &byte, 1, MSG_OOB | MSG_NOSIGNAL) == 1); }
    // Small pieces leave as they come: one segment each.
    void send_at_once() {
        const int on = 1;
        REQUIRE(::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    }
    // From before the first byte comes.
    void set_receive_buffer(int bytes) {
        REQUIRE(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
    }
    // A whole answer, or one with status 0 when the connection ends before or the time is over.
    [[nodiscard]] Answer receive();
    [[nodiscard]] Answer ask(std::string_view path, std::string_view fields = {}) {
        send(request_for(path, fields));
        return receive();
    }
    [[nodiscard]] Answer post(std::string_view path, std::string_view body) {
        std::string head("POST ");
        head.append(path).append(" HTTP/1.1\r\nHost: loop\r\nContent-Length: ");
        send(head.append(std::to_string(body.size())).append("\r\n\r\n"));
        send(body);
        return receive();
    }

    // Everything until the connection ends or the time is over; `ended` tells which.
    [[nodiscard]] std::string receive_rest() {
        while (receive_more()) {
        }
        return std::exchange(unread_, {});
    }
    // Keeps what has come, without waiting.
    void keep_what_came() {
        while (receive_more(MSG_DONTWAIT)) {
        }
    }
    [[nodiscard]] Ended ended() const { return ended_; }

    // The server ends the connection, by a FIN or a reset, and sends nothing before it.
    [[nodiscard]] bool is_ended() {
        char byte = 0;
        const ssize_t count = ::recv(socket_.get(), &byte, 1, 0);
        return unread_.empty() && (count == 0 || (count < 0 && errno == ECONNRESET));
    }
    [[nodiscard]] bool has_input_within(int timeout_ms) const {
        return ready_within(socket_.get(), POLLIN, timeout_ms);
    }
    void close() { socket_.close(); }
    void end_sending() { REQUIRE(::shutdown(socket_.get(), SHUT_WR) == 0); }
    // The server sees a reset, not an end.
    void reset() {
        REQUIRE(platform::reset_on_close(socket_.get()) == 0);
        socket_.close();
    }

private:
    // False when nothing came.
    [[nodiscard]] bool receive_more(int flags = 0);

    Fd socket_;
    std::string unread_;
    Ended ended_ = Ended::no;
};

inline Answer LoopClient::receive() {
    std::size_t head_size = std::string::npos;
    while ((head_size = unread_.find("\r\n\r\n")) == std::string::npos) {
        if (!receive_more()) {
            return {};
        }
    }
    Answer answer;
    answer.head = unread_.substr(0, head_size + 2);
    unread_.erase(0, head_size + 4);
    const std::string length = answer.field("Content-Length");
    std::size_t size = 0;
    std::from_chars(length.data(), length.data() + length.size(), size);
    while (unread_.size() < size) {
        if (!receive_more()) {
            return {};
        }
    }
    answer.body = unread_.substr(0, size);
    unread_.erase(0, size);
    constexpr std::size_t kVersionBytes = 9;  // "HTTP/1.1 "
    const char* const status = answer.head.data() + kVersionBytes;
    std::from_chars(status, answer.head.data() + answer.head.size(), answer.status);
    return answer;
}

inline bool LoopClient::receive_more(int flags) {
    constexpr std::size_t kChunkBytes = 64 << 10;
    const std::size_t before = unread_.size();
    unread_.resize(before + kChunkBytes);
    const ssize_t count = ::recv(socket_.get(), unread_.data() + before, kChunkBytes, flags);
    if (count <= 0 && ended_ == Ended::no) {
        ended_ = count == 0 ? Ended::cleanly : errno == ECONNRESET ? Ended::by_reset : Ended::no;
    }
    unread_.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
    return count > 0;
}

// ---- Looking in ----------------------------------------------------------------------------------------

inline std::size_t entries_of(const char* directory) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) {
        ++count;
    }
    return count;
}
// Of this process. The listing's own descriptor is among them, each time.
inline std::size_t open_descriptors() { return entries_of("/proc/self/fd"); }
inline std::size_t running_threads() { return entries_of("/proc/self/task"); }

// What a reactor has leased and what it keeps.
struct ReactorMemory {
    std::size_t leased_bytes = 0;  // blocks and pages
    std::size_t cached_bytes = 0;  // blocks and pages that are free
    std::size_t slot_bytes = 0;    // all slots, used or not, and the table of their slabs
    std::uint32_t connections = 0;
};

// Asks the reactor's own thread.
inline ReactorMemory memory_of(Server& server, unsigned reactor) {
    auto told = std::make_shared<std::promise<ReactorMemory>>();
    std::future<ReactorMemory> answer = told->get_future();
    REQUIRE(server.post(reactor, [told] {
        Reactor& self = *Reactor::current();
        ReactorMemory memory;
        for (const BlockPool* pool : {&self.blocks(), &self.pages()}) {
            memory.leased_bytes += pool->leased() * pool->block_bytes();
            memory.cached_bytes += pool->free() * pool->block_bytes();
        }
        memory.slot_bytes = self.connections().memory_bytes();
        memory.connections = self.connections().in_use();
        told->set_value(memory);
    }));
    REQUIRE(answer.wait_for(std::chrono::milliseconds(kWaitMs)) == std::future_status::ready);
    return answer.get();
}

inline ReactorMemory memory_of(Server& server) {
    ReactorMemory sum;
    for (unsigned i = 0; i < server.reactor_count(); ++i) {
        const ReactorMemory memory = memory_of(server, i);
        sum.leased_bytes += memory.leased_bytes;
        sum.cached_bytes += memory.cached_bytes;
        sum.slot_bytes += memory.slot_bytes;
        sum.connections += memory.connections;
    }
    return sum;
}

}  // namespace penstock

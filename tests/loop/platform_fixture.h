// Internal.
// What the platform's tests share: descriptors that close themselves, a connected pair, and waits that end.
// The far ends are plain system calls, so that the platform is not tested by itself. One thread per object.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "penstock/platform/net.h"
#include "penstock/platform/poller.h"

namespace penstock {

// How long a test waits for what must come. Never reached when all is well.
inline constexpr int kWaitMs = 5000;

class Fd {
public:
    Fd() = default;
    explicit Fd(int number) : number_(number) {}
    Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Fd() { close(); }

    [[nodiscard]] int get() const { return number_; }
    void close() {
        if (number_ >= 0) {
            ::close(std::exchange(number_, -1));
        }
    }

private:
    int number_ = -1;
};

class TemporaryDirectory {
public:
    TemporaryDirectory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "penstock-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path_ = pattern;
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

inline std::chrono::steady_clock::time_point wait_limit() {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMs);
}

inline bool within(std::chrono::steady_clock::time_point limit) {
    return std::chrono::steady_clock::now() < limit;
}

inline bool ready_within(int fd, short events, int timeout_ms) {
    pollfd waiting = {fd, events, 0};
    return ::poll(&waiting, 1, timeout_ms) == 1;
}

// Blocking calls on it end after kWaitMs.
inline Fd client_socket(int family) {
    Fd client(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(client.get() >= 0);
    const timeval limit = {kWaitMs / 1000, 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return client;
}

inline sockaddr_in ipv4_loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

// 0 or errno.
inline int connect_ipv4(int fd, std::uint16_t port) {
    const sockaddr_in address = ipv4_loopback(port);
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

inline Fd connected_client(std::uint16_t port) {
    Fd client = client_socket(AF_INET);
    REQUIRE(connect_ipv4(client.get(), port) == 0);
    return client;
}

inline Fd open_listener_or_fail(const platform::ListenTarget& target) {
    Result<int> opened = platform::open_listener(target);
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().message));
    return Fd(opened.value());
}

inline Fd accept_one(int listener, PeerAddress* peer) {
    REQUIRE(ready_within(listener, POLLIN, kWaitMs));
    const IoResult accepted = platform::accept(listener, peer);
    REQUIRE(accepted.ok());
    return Fd(static_cast<int>(accepted.count));
}

inline void far_send(int fd, std::string_view bytes) {
    REQUIRE(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

// Up to `limit` bytes, fewer only at the end of the stream or when the time is over.
inline std::string far_receive(int fd, std::size_t limit) {
    std::string bytes(limit, '\0');
    std::size_t size = 0;
    ssize_t count = 1;
    while (size < limit && (count = ::recv(fd, bytes.data() + size, limit - size, 0)) > 0) {
        size += static_cast<std::size_t>(count);
    }
    bytes.resize(size);
    return bytes;
}

inline std::string receive_text(int fd) {
    std::array<char, 256> buffer{};
    const IoResult result = platform::receive(fd, std::as_writable_bytes(std::span(buffer)));
    REQUIRE_MESSAGE(result.ok(), "receive: errno ", result.error);
    return {buffer.data(), static_cast<std::size_t>(result.count)};
}

inline IoResult send_text(int fd, std::string_view text, bool more = false) {
    if (!more) {
        return platform::send(fd, text);
    }
    const platform::SendPiece piece = {text.data(), text.size()};
    return platform::send(fd, std::span(&piece, 1), more);
}

// `server` is what the platform accepted, `client` the far end.
struct TcpPair {
    Fd listener = open_listener_or_fail({.address = "127.0.0.1"});
    Fd client = connected_client(platform::bound_port(listener.get()));
    PeerAddress peer;
    Fd server = accept_one(listener.get(), &peer);

    // Makes sends fail: the reset has arrived and its own error has been read.
    void reset_by_peer() {
        REQUIRE(platform::reset_on_close(client.get()) == 0);
        client.close();
        REQUIRE(ready_within(server.get(), POLLIN, kWaitMs));
        std::byte byte{};
        REQUIRE(platform::receive(server.get(), std::span(&byte, 1)).error == ECONNRESET);
    }
};

// Sends until the kernel takes no more; returns how many bytes it took.
inline std::size_t fill_send_buffer(int fd) {
    const std::string chunk(64 * 1024, 'f');
    std::size_t sent = 0;
    while (true) {
        const IoResult result = send_text(fd, chunk);
        if (!result.ok()) {
            REQUIRE(is_would_block(result.error));
            return sent;
        }
        sent += static_cast<std::size_t>(result.count);
    }
}

}  // namespace penstock

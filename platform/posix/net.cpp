#include "penstock/platform/net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "penstock/platform/posix/hot_calls.h"

namespace penstock::platform {

namespace {

static_assert(sizeof(SendPiece) == sizeof(iovec) && alignof(SendPiece) == alignof(iovec));
static_assert(offsetof(SendPiece, data) == offsetof(iovec, iov_base));
static_assert(offsetof(SendPiece, size) == offsetof(iovec, iov_len));

constexpr std::string_view kUnixPrefix = "unix:";

#ifdef MSG_MORE
constexpr int kMoreFlag = MSG_MORE;
#else
constexpr int kMoreFlag = 0;  // a hint only: TCP_NOPUSH of the BSDs is a state of the socket, not of a call
#endif

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;

    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

bool is_unix(const ListenTarget& target);
Result<int> open_unix_listener(const ListenTarget& target);
Result<void> bind_unix(int fd, const ListenTarget& target, const SocketAddress& address);
Result<void> remove_stale_socket(const ListenTarget& target, const SocketAddress& address);
int probe_unix_socket(const SocketAddress& address);
Result<int> open_tcp_listener(const ListenTarget& target);
int listen_tcp(const ListenTarget& target, const SocketAddress& address, int* fd);
int set_tcp_options(int fd, const ListenTarget& target, int family);
int set_option(int fd, int level, int name, int value);
int open_stream_socket(int family);
std::string unix_path(const ListenTarget& target);
bool parse_unix_address(const std::string& path, SocketAddress* address);
bool parse_ip_address(const ListenTarget& target, SocketAddress* address);
bool parse_ipv6(std::string text, std::uint16_t port, SocketAddress* address);
SocketAddress any_address(int family, std::uint16_t port);
PeerAddress to_peer_address(const SocketAddress& address);
Error listen_error(const ListenTarget& target, int code, const std::string& advice = "");
std::string describe(const ListenTarget& target);
std::string advice_for(const ListenTarget& target, int code);

// The sockaddr types are copied, not cast into each other: they are different types to the compiler.
template <class Address>
SocketAddress pack(const Address& address) {
    SocketAddress packed;
    std::memcpy(&packed.storage, &address, sizeof address);
    packed.size = sizeof address;
    return packed;
}

template <class Address>
Address unpack(const SocketAddress& packed) {
    Address address;
    std::memcpy(&address, &packed.storage, sizeof address);
    return address;
}

// No call here waits, so none should be interrupted; where a system says EINTR all the same, nothing has
// happened and the call is simply made again.
template <class Call>
IoResult repeat_interrupted(Call call) {
    long result = call();
    while (result == -EINTR) [[unlikely]] {
        result = call();
    }
    if (result < 0) [[unlikely]] {
        return IoResult::failure(static_cast<int>(-result));
    }
    return IoResult::success(result);
}

IoResult to_io_result(ssize_t count) {
    return count < 0 ? IoResult::failure(errno) : IoResult::success(count);
}

}  // namespace

Result<int> open_listener(const ListenTarget& target) {
    return is_unix(target) ? open_unix_listener(target) : open_tcp_listener(target);
}

IoResult duplicate_descriptor(int fd) {
    return to_io_result(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

std::uint64_t descriptor_limit() {
    rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);  // fails only for a wrong argument
    return limit.rlim_cur;
}

std::uint16_t bound_port(int listener_fd) {
    SocketAddress address;
    address.size = sizeof address.storage;
    if (::getsockname(listener_fd, address.get(), &address.size) != 0) {
        return 0;
    }
    return to_peer_address(address).port;
}

void remove_socket_file(const ListenTarget& target) {
    struct stat status {};
    const std::string path = unix_path(target);
    if (is_unix(target) && ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
        ::unlink(path.c_str());
    }
}

// accept4 is not Linux's alone: the BSDs have it, and POSIX.1-2024.
IoResult accept(int listener_fd, PeerAddress* peer) {
    SocketAddress address;
    address.size = sizeof address.storage;
    const IoResult accepted = repeat_interrupted(
        [&] { return call_accept(listener_fd, address.get(), &address.size, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (accepted.ok()) {
        *peer = to_peer_address(address);
    }
    return accepted;
}

IoResult receive(int fd, std::span<std::byte> buffer) {
    return repeat_interrupted([&] { return call_receive(fd, buffer.data(), buffer.size()); });
}

IoResult send(int fd, std::string_view bytes) {
    return repeat_interrupted([&] { return call_send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
}

IoResult send(int fd, std::span<const SendPiece> pieces, bool more) {
    const int flags = MSG_NOSIGNAL | (more ? kMoreFlag : 0);
    if (pieces.size() == 1) {
        // Cheaper: sendmsg has the kernel copy and check the message's head first.
        return repeat_interrupted([&] { return call_send(fd, pieces[0].data, pieces[0].size, flags); });
    }
    msghdr message{};
    // sendmsg only reads them; iovec is not const because recvmsg shares it.
    message.msg_iov = reinterpret_cast<iovec*>(const_cast<SendPiece*>(pieces.data()));
    message.msg_iovlen = std::min(pieces.size(), kMaxSendPieces);
    return repeat_interrupted([&] { return or_negative_errno(::sendmsg(fd, &message, flags)); });
}

int shutdown_sending(int fd) {
    return ::shutdown(fd, SHUT_WR) == 0 ? 0 : errno;
}

int reset_on_close(int fd) {
    linger at_once{};
    at_once.l_onoff = 1;
    at_once.l_linger = 0;
    return ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0 ? 0 : errno;
}

void close_descriptor(int fd) {
    call_close(fd);
}

namespace {

bool is_unix(const ListenTarget& target) {
    return target.address.starts_with(kUnixPrefix);
}

Result<int> open_unix_listener(const ListenTarget& target) {
    SocketAddress address;
    if (!parse_unix_address(unix_path(target), &address)) {
        const sockaddr_un limits{};
        return listen_error(target, ENAMETOOLONG,
                            "the path of a Unix socket has 1 to " +
                                std::to_string(sizeof limits.sun_path - 1) +
                                " bytes here: choose a shorter one");
    }
    const int fd = open_stream_socket(AF_UNIX);
    if (fd < 0) {
        return listen_error(target, errno);
    }
    if (Result<void> bound = bind_unix(fd, target, address); !bound.ok()) {
        close_descriptor(fd);
        return bound.error();
    }
    // Before listen: until then nobody can connect, so the wider mode of bind is never usable.
    if (::chmod(unix_path(target).c_str(), target.unix_mode) != 0 || ::listen(fd, target.backlog) != 0) {
        const int code = errno;
        remove_socket_file(target);
        close_descriptor(fd);
        return listen_error(target, code);
    }
    return fd;
}

// A file that is in the way is replaced once. Two servers that replace the same stale file in the same moment
// can still take it from each other; a lock file would prevent it and is the supervisor's to hold.
Result<void> bind_unix(int fd, const ListenTarget& target, const SocketAddress& address) {
    if (::bind(fd, address.get(), address.size) == 0) {
        return {};
    }
    if (errno != EADDRINUSE) {
        return listen_error(target, errno);
    }
    if (Result<void> removed = remove_stale_socket(target, address); !removed.ok()) {
        return removed;
    }
    if (::bind(fd, address.get(), address.size) != 0) {
        return listen_error(target, errno);
    }
    return {};
}

Result<void> remove_stale_socket(const ListenTarget& target, const SocketAddress& address) {
    const std::string path = unix_path(target);
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        return errno == ENOENT ? Result<void>() : listen_error(target, errno);
    }
    if (!S_ISSOCK(status.st_mode)) {
        return listen_error(
            target, EADDRINUSE,
            "a file that is not a socket has this name and is left alone: move it away or choose "
            "another path");
    }
    const int answer = probe_unix_socket(address);
    if (answer != ECONNREFUSED && answer != ENOENT) {
        return listen_error(target, EADDRINUSE,
                            answer == 0 ? "another program listens there: stop it or choose another path"
                                        : "a socket is there that cannot be tried (" +
                                              system_error("connect", answer).message +
                                              "): remove it or choose another path");
    }
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
        return listen_error(target, errno, "the stale socket file cannot be removed: remove it");
    }
    return {};
}

// 0 when somebody listens there, else errno: ECONNREFUSED from a file that outlived its listener.
int probe_unix_socket(const SocketAddress& address) {
    const int fd = open_stream_socket(AF_UNIX);
    if (fd < 0) {
        return errno;
    }
    const int code = ::connect(fd, address.get(), address.size) == 0 ? 0 : errno;
    close_descriptor(fd);
    return is_would_block(code) ? 0 : code;  // EAGAIN: a listener whose queue is full (man 2 connect)
}

Result<int> open_tcp_listener(const ListenTarget& target) {
    SocketAddress address;
    if (!parse_ip_address(target, &address)) {
        return listen_error(
            target, EINVAL,
            "the address is not numeric: give \"\" for all, an IPv4 or IPv6 address, or unix:/path");
    }
    int fd = -1;
    int code = listen_tcp(target, address, &fd);
    // What socket says on a machine without IPv6, and bind where only the addresses are missing.
    if ((code == EAFNOSUPPORT || code == EADDRNOTAVAIL) && target.address.empty() && !target.ipv6_only) {
        code = listen_tcp(target, any_address(AF_INET, target.port), &fd);
    }
    if (code != 0) {
        return listen_error(target, code);
    }
    return fd;
}

// Returns 0 or errno; the descriptor is there only when 0.
//
// A port that anyone holds must be refused, yet the sockets of a server share one through SO_REUSEPORT, which
// makes bind say nothing when another process of the same user has it too (man 7 socket). So the first socket
// binds and listens without SO_REUSEPORT and takes it on afterwards: Linux makes the group when the first
// joiner listens. Not between bind and listen: with SO_REUSEADDR two processes can both be bound while
// neither listens, and would then both listen. As it is, it may refuse both but never lets both in.
int listen_tcp(const ListenTarget& target, const SocketAddress& address, int* fd) {
    const int opened = open_stream_socket(address.storage.ss_family);
    if (opened < 0) {
        return errno;
    }
    int code = set_tcp_options(opened, target, address.storage.ss_family);
    if (code == 0 && target.join_group) {
        code = set_option(opened, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    if (code == 0 &&
        (::bind(opened, address.get(), address.size) != 0 || ::listen(opened, target.backlog) != 0)) {
        code = errno;
    }
    if (code == 0 && !target.join_group) {
        code = set_option(opened, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    if (code != 0) {
        close_descriptor(opened);
        return code;
    }
    *fd = opened;
    return 0;
}

// Accepted sockets inherit these, which saves a call for each. Out-of-band bytes stay in the stream, where
// they belong to nobody else; that they end a read early, the poller tells (man 7 tcp, SO_OOBINLINE).
int set_tcp_options(int fd, const ListenTarget& target, int family) {
    int code = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (code == 0 && family == AF_INET6) {
        code = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, target.ipv6_only ? 1 : 0);
    }
    if (code == 0) {
        code = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    }
    if (code == 0) {
        code = set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentLowWaterBytes);
    }
    return code != 0 ? code : set_option(fd, SOL_SOCKET, SO_OOBINLINE, 1);
}

int set_option(int fd, int level, int name, int value) {
    return ::setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : errno;
}

int open_stream_socket(int family) {
    return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

std::string unix_path(const ListenTarget& target) {
    return is_unix(target) ? target.address.substr(kUnixPrefix.size()) : std::string();
}

bool parse_unix_address(const std::string& path, SocketAddress* address) {
    sockaddr_un parsed{};
    parsed.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof parsed.sun_path) {
        return false;
    }
    std::memcpy(parsed.sun_path, path.c_str(), path.size() + 1);
    *address = pack(parsed);
    return true;
}

bool parse_ip_address(const ListenTarget& target, SocketAddress* address) {
    const std::string& text = target.address;
    if (text.empty()) {
        *address = any_address(AF_INET6, target.port);
        return true;
    }
    if (text.starts_with('[') && text.ends_with(']')) {
        return parse_ipv6(text.substr(1, text.size() - 2), target.port, address);
    }
    sockaddr_in parsed{};
    parsed.sin_family = AF_INET;
    parsed.sin_port = htons(target.port);
    if (::inet_pton(AF_INET, text.c_str(), &parsed.sin_addr) == 1) {
        *address = pack(parsed);
        return true;
    }
    return parse_ipv6(text, target.port, address);
}

// A link-local address names its interface as well: "fe80::1%eth0" (RFC 4007, section 11).
bool parse_ipv6(std::string text, std::uint16_t port, SocketAddress* address) {
    sockaddr_in6 parsed{};
    parsed.sin6_family = AF_INET6;
    parsed.sin6_port = htons(port);
    if (const std::size_t percent = text.find('%'); percent != std::string::npos) {
        parsed.sin6_scope_id = ::if_nametoindex(text.c_str() + percent + 1);
        if (parsed.sin6_scope_id == 0) {
            return false;
        }
        text.resize(percent);
    }
    if (::inet_pton(AF_INET6, text.c_str(), &parsed.sin6_addr) != 1) {
        return false;
    }
    *address = pack(parsed);
    return true;
}

SocketAddress any_address(int family, std::uint16_t port) {
    if (family == AF_INET) {
        sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_port = htons(port);
        return pack(any);
    }
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    return pack(any);
}

PeerAddress to_peer_address(const SocketAddress& address) {
    PeerAddress peer;
    if (address.storage.ss_family == AF_UNIX) {
        peer.family = AddressFamily::unix_socket;
    } else if (address.storage.ss_family == AF_INET) {
        const auto ipv4 = unpack<sockaddr_in>(address);
        peer.family = AddressFamily::ipv4;
        peer.port = ntohs(ipv4.sin_port);
        std::memcpy(peer.bytes.data(), &ipv4.sin_addr, sizeof ipv4.sin_addr);
    } else if (address.storage.ss_family == AF_INET6) {
        const auto ipv6 = unpack<sockaddr_in6>(address);
        const bool mapped = IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr);
        peer.family = mapped ? AddressFamily::ipv4 : AddressFamily::ipv6;
        peer.port = ntohs(ipv6.sin6_port);
        const std::size_t skipped = mapped ? sizeof ipv6.sin6_addr - sizeof(in_addr) : 0;
        std::memcpy(peer.bytes.data(), ipv6.sin6_addr.s6_addr + skipped, sizeof ipv6.sin6_addr - skipped);
    }
    return peer;
}

Error listen_error(const ListenTarget& target, int code, const std::string& advice) {
    Error error = system_error("cannot listen on " + describe(target), code);
    const std::string what_to_do = advice.empty() ? advice_for(target, code) : advice;
    if (!what_to_do.empty()) {
        error.message += "; " + what_to_do;
    }
    return error;
}

std::string describe(const ListenTarget& target) {
    if (is_unix(target)) {
        return target.address;
    }
    const bool bare_ipv6 = target.address.find(':') != std::string::npos && !target.address.starts_with('[');
    std::string text(bare_ipv6 ? "[" : "");
    text.append(target.address.empty() ? "*" : target.address).append(bare_ipv6 ? "]" : "");
    return text.append(":").append(std::to_string(target.port));
}

std::string advice_for(const ListenTarget& target, int code) {
    switch (code) {
        case EADDRINUSE: return "another program holds this port: stop it or choose another port";
        case EADDRNOTAVAIL:
            return "no interface of this machine has this address: choose one that it has, or \"\" for all";
        case EAFNOSUPPORT: return "this machine does not speak this kind of address: choose an IPv4 address";
        case EACCES:
        case EPERM:
            return is_unix(target)
                       ? "make its directory writable for this user or choose another path"
                       : "low ports need a privilege (CAP_NET_BIND_SERVICE): choose one from 1024 up";
        case ENOENT:
        case ENOTDIR: return "its directory does not exist: create it or choose another path";
        case EMFILE:
        case ENFILE: return "raise the limit of open files";
        default: return "";
    }
}

}  // namespace

}  // namespace penstock::platform

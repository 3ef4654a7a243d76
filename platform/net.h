// Internal.
// Sockets as the engine sees them: non-blocking, close-on-exec, numbered descriptors. A backend of the
// seam: platform/posix with platform/linux, or platform/sim. A descriptor belongs to whoever opened or
// accepted it, until `close_descriptor`. Data-path calls return IoResult; set-up returns Result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "penstock/platform/address.h"
#include "penstock/platform/error.h"

namespace penstock::platform {

// One run of bytes in a gathering send. Same layout as iovec, which the posix backend asserts.
struct SendPiece {
    const void* data;
    std::size_t size;
};

// Pieces one `send` takes; more are ignored by it and the count says so (man 2 sendmsg, IOV_MAX).
inline constexpr std::size_t kMaxSendPieces = 64;

struct ListenTarget {
    std::string address;       // "" any (dual-stack), "127.0.0.1", "::1", or "unix:/path"
    std::uint16_t port = 0;    // 0: the kernel chooses; ignored for Unix sockets
    int backlog = 4096;        // capped by the system (man 2 listen)
    bool ipv6_only = false;    // for IPv6 addresses: do not take IPv4 as well
    bool join_group = false;   // take a port that another socket of this server already holds
    unsigned unix_mode = 0660; // permissions of a Unix socket's file
};

// Bytes that a connection's socket takes beyond what is on its way to the peer: enough to keep a fast path busy between two
// turns. Without it the kernel would queue megabytes for a peer that does not read, beyond every limit of ours, and
// would report room so rarely that a slow peer looks like a stuck one (man 7 tcp, TCP_NOTSENT_LOWAT).
inline constexpr int kUnsentLowWaterBytes = 128 << 10;

// Opens, binds and listens. With `join_group` false a port that anyone holds is refused, although
// every TCP listener is opened for SO_REUSEPORT (man 7 socket). A stale Unix socket file, to which
// nobody listens, is replaced. The error names the address and what to do.
[[nodiscard]] Result<int> open_listener(const ListenTarget& target);

// A second descriptor for the same listening socket: how reactors share a Unix socket.
[[nodiscard]] IoResult duplicate_descriptor(int fd);
// How many descriptors this process may have open at once (man 2 getrlimit, RLIMIT_NOFILE, the soft limit).
[[nodiscard]] std::uint64_t descriptor_limit();

// The bytes of an IPv4 or IPv6 address in the usual notation, in network order, and how many they are; 0: it is none.
[[nodiscard]] std::size_t parse_ip(const std::string& text, std::array<std::uint8_t, 16>* bytes);

// The port a TCP listener is bound to; 0 for Unix sockets.
[[nodiscard]] std::uint16_t bound_port(int listener_fd);

// Makes the kernel give a connection to the `cpu % group_size`-th socket of the listener's reuseport
// group (SO_ATTACH_REUSEPORT_CBPF), in the order in which they were opened; for when all of them are.
// Returns 0 or errno; ENOTSUP where there is no such thing.
int steer_by_cpu(int listener_fd, unsigned group_size);

// Makes a TCP listener drop new SYNs while handshakes under way complete, so that it can be accepted
// empty and then closed without a reset. Returns 0 or errno; EPERM from kernels that grant filters to
// CAP_NET_ADMIN only.
int drop_new_handshakes(int listener_fd);

// Removes the file of a Unix socket that `open_listener` made. Nothing for TCP.
void remove_socket_file(const ListenTarget& target);

// `count` is the new descriptor, non-blocking; TCP_NODELAY is inherited from the listener. An
// IPv4-mapped address is given as IPv4.
[[nodiscard]] IoResult accept(int listener_fd, PeerAddress* peer);

// `count` 0 means that the peer has finished sending.
[[nodiscard]] IoResult receive(int fd, std::span<std::byte> buffer);

// Sends as much as the kernel takes in one call. A peer that is gone is EPIPE or ECONNRESET, never a signal.
[[nodiscard]] IoResult send(int fd, std::string_view bytes);

// The same for several runs of bytes, in order. `more`: further bytes follow at once
// (MSG_MORE).
[[nodiscard]] IoResult send(int fd, std::span<const SendPiece> pieces, bool more);

// Sends `size` bytes of `file_fd` from `offset` by sendfile. `count` 0 means that the file ended early.
[[nodiscard]] IoResult send_file(int fd, int file_fd, std::uint64_t offset, std::size_t size);

// Tells the peer that nothing more comes, reading goes on (man 2 shutdown, SHUT_WR). 0 or errno.
int shutdown_sending(int fd);

// Sets SO_LINGER 0 so that closing resets: for peers that are owed nothing. 0 or errno.
int reset_on_close(int fd);

// Never retried: on Linux the descriptor is gone even after EINTR (man 2 close).
void close_descriptor(int fd);

}  // namespace penstock::platform

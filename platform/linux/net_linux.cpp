#include <linux/filter.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "penstock/platform/net.h"

namespace penstock::platform {

namespace {

template <std::size_t N>
int attach_program(int fd, int option, std::array<sock_filter, N> code);

}  // namespace

// The program runs on the core that takes the first packet in, and its answer is the index of a socket in the
// order in which they began to listen; an index past the last means the usual spread by hash (man 7 socket).
int steer_by_cpu(int listener_fd, unsigned group_size) {
    constexpr auto kCpuOffset = static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_CPU);
    const int code = attach_program(listener_fd, SO_ATTACH_REUSEPORT_CBPF,
                                    std::array<sock_filter, 3>{{
                                        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kCpuOffset),
                                        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, group_size),
                                        BPF_STMT(BPF_RET | BPF_A, 0),
                                    }});
    // A socket that nobody has joined has no group to hold a program, and needs none.
    return code == EINVAL && group_size == 1 ? 0 : code;
}

// A socket filter of a TCP socket sees the segment from its TCP header on. Sockets made from the listener
// afterwards inherit the filter, to whom it does nothing: an established connection gets no bare SYN.
int drop_new_handshakes(int listener_fd) {
    constexpr std::uint32_t kFlagsOffset = 13;  // RFC 9293, section 3.1
    constexpr std::uint32_t kSyn = 0x02;
    constexpr std::uint32_t kAck = 0x10;
    constexpr std::uint32_t kWholePacket = 0xFFFFFFFF;
    return attach_program(listener_fd, SO_ATTACH_FILTER,
                          std::array<sock_filter, 5>{{
                              BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlagsOffset),
                              BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kSyn | kAck),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSyn, 0, 1),
                              BPF_STMT(BPF_RET | BPF_K, 0),
                              BPF_STMT(BPF_RET | BPF_K, kWholePacket),
                          }});
}

IoResult send_file(int fd, int file_fd, std::uint64_t offset, std::size_t size) {
    ssize_t count = -1;
    do {
        auto position = static_cast<off_t>(offset);
        count = ::sendfile(fd, file_fd, &position, size);
    } while (count < 0 && errno == EINTR);  // nothing was sent then, and the socket does not wait
    return count < 0 ? IoResult::failure(errno) : IoResult::success(count);
}

namespace {

template <std::size_t N>
int attach_program(int fd, int option, std::array<sock_filter, N> code) {
    const sock_fprog program = {static_cast<unsigned short>(N), code.data()};
    return ::setsockopt(fd, SOL_SOCKET, option, &program, sizeof program) == 0 ? 0 : errno;
}

}  // namespace

}  // namespace penstock::platform

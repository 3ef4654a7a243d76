// The cheapest honest responder: what the kernel takes for a request, and next to nothing above it. Costs of
// servers are given as ratios to its. One thread, level-triggered epoll, one read and one send for what has
// arrived. It does not understand requests: it counts the empty lines that end them, and answers each with
// the same response, which has the fields of Penstock's own. So only requests without a body, and no limit,
// timeout or check at all.
#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kDescriptors = 65'536;
constexpr int kBacklog = 4'096;
constexpr int kAcceptsPerEvent = 64;
constexpr std::size_t kEvents = 512;
constexpr std::size_t kInputBytes = 16 * 1'024;
constexpr std::size_t kDateBytes = 29;
constexpr std::size_t kBodyLimitBytes = 64 << 20;
// Responses to pipelined requests go out in one send, so some stand back to back: as many, in as much memory
// at most.
constexpr std::size_t kCopies = 64;
constexpr std::size_t kCopiesBytes = 1 << 20;

struct Options {
    std::uint16_t port = 0;
    std::size_t body_bytes = 13;
    bool closes = false;
};

struct Connection {
    std::uint64_t owed_bytes = 0;  // of responses that are not sent yet
    std::uint8_t matched = 0;      // bytes of "\r\n\r\n" with which the input ended
    bool waits = false;            // for room in the socket, and reads nothing meanwhile
};

class Floor {
public:
    explicit Floor(const Options& options);
    [[noreturn]] void run();

private:
    void make_responses();
    void listen(std::uint16_t port);
    void stamp(std::time_t now);
    void accept_some();
    void on_event(int fd);
    void answer(int fd, Connection& connection);
    void watch(int operation, int fd, std::uint32_t events) const;

    Options options_;
    int epoll_ = -1;
    int listener_ = -1;
    std::string responses_;
    std::size_t response_bytes_ = 0;
    std::size_t date_at_ = 0;
    std::vector<Connection> connections_ = std::vector<Connection>(kDescriptors);
    std::array<char, kInputBytes> input_{};
};

bool parse(int argc, char** argv, Options* options);
template <typename Number>
bool parse_number(std::string_view text, Number* number, Number limit);
unsigned count_requests(std::string_view input, std::uint8_t* matched);
[[noreturn]] void refuse_port(std::uint16_t port, const char* what);
void check(bool is_well, const char* what);

}  // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse(argc, argv, &options)) {
        std::fprintf(stderr, "usage: penstock_floor [--port N] [--body BYTES, at most 64 MiB] [--close]\n"
                             "Listens on 127.0.0.1; --close ends each connection after one response.\n");
        return 2;
    }
    Floor(options).run();
}

namespace {

bool parse(int argc, char** argv, Options* options) {
    static constexpr std::array<option, 4> kOptions = {{{"port", required_argument, nullptr, 'p'},
                                                        {"body", required_argument, nullptr, 'b'},
                                                        {"close", no_argument, nullptr, 'c'},
                                                        {nullptr, 0, nullptr, 0}}};
    for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
        switch (found) {
            case 'p':
                if (!parse_number<std::uint16_t>(optarg, &options->port, UINT16_MAX)) {
                    return false;
                }
                break;
            case 'b':
                if (!parse_number(optarg, &options->body_bytes, kBodyLimitBytes)) {
                    return false;
                }
                break;
            case 'c': options->closes = true; break;
            default: return false;
        }
    }
    return optind == argc;
}

template <typename Number>
bool parse_number(std::string_view text, Number* number, Number limit) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return error == std::errc{} && end == text.data() + text.size() && *number <= limit;
}

Floor::Floor(const Options& options) : options_(options) {
    make_responses();
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    check(epoll_ >= 0, "epoll_create1");
    listen(options.port);
}

void Floor::make_responses() {
    std::string response = "HTTP/1.1 200 OK\r\nDate: ";
    date_at_ = response.size();
    response.append(kDateBytes, ' ').append("\r\nContent-Type: text/plain; charset=utf-8\r\n");
    response.append(options_.closes ? "Connection: close\r\n" : "");
    response.append("Content-Length: ").append(std::to_string(options_.body_bytes)).append("\r\n\r\n");
    response.append(options_.body_bytes, 'x');
    response_bytes_ = response.size();
    const std::size_t copies = std::clamp<std::size_t>(kCopiesBytes / response_bytes_, 1, kCopies);
    for (std::size_t copy = 0; copy < copies; ++copy) {
        responses_.append(response);
    }
}

void Floor::listen(std::uint16_t port) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(listener_ >= 0, "socket");
    const int one = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    ::setsockopt(listener_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);  // which accepted sockets inherit
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    // Without SO_REUSEPORT, by which two floors would share the port and each get some of the connections.
    // Afterwards with it, as Penstock's sockets are.
    if (::bind(listener_, any, size) != 0) {
        refuse_port(port, "bind");
    }
    if (::listen(listener_, kBacklog) != 0) {
        refuse_port(port, "listen");
    }
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    check(::getsockname(listener_, any, &size) == 0, "getsockname");
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN);
    std::printf("penstock_floor: http://127.0.0.1:%u\n", unsigned{ntohs(address.sin_port)});
    std::fflush(stdout);
}

void Floor::run() {
    std::array<epoll_event, kEvents> events{};
    std::time_t stamped = 0;
    for (;;) {
        const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
        check(count >= 0 || errno == EINTR, "epoll_wait");
        timespec now{};
        ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // without a system call (man 7 vdso)
        if (now.tv_sec != stamped) {
            stamped = now.tv_sec;
            stamp(stamped);
        }
        for (int i = 0; i < count; ++i) {
            const int fd = events[static_cast<std::size_t>(i)].data.fd;
            fd == listener_ ? accept_some() : on_event(fd);
        }
    }
}

void Floor::stamp(std::time_t now) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::array<char, kDateBytes + 1> date{};
    check(std::strftime(date.data(), date.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts) == kDateBytes,
          "strftime");
    for (std::size_t at = date_at_; at < responses_.size(); at += response_bytes_) {
        std::memcpy(responses_.data() + at, date.data(), kDateBytes);
    }
}

void Floor::accept_some() {
    for (int i = 0; i < kAcceptsPerEvent; ++i) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
        if (fd < 0) {
            return;
        }
        if (fd >= kDescriptors) {
            ::close(fd);
            continue;
        }
        connections_[static_cast<std::size_t>(fd)] = {};
        watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

void Floor::on_event(int fd) {
    Connection& connection = connections_[static_cast<std::size_t>(fd)];
    if (!connection.waits) {
        const ssize_t size = ::read(fd, input_.data(), input_.size());
        if (size <= 0) {
            if (size == 0 || errno != EAGAIN) {
                ::close(fd);
            }
            return;
        }
        const std::string_view input(input_.data(), static_cast<std::size_t>(size));
        connection.owed_bytes += std::uint64_t{count_requests(input, &connection.matched)} * response_bytes_;
    }
    if (connection.owed_bytes > 0) {
        answer(fd, connection);
    }
}

void Floor::answer(int fd, Connection& connection) {
    while (connection.owed_bytes > 0) {
        // What is owed ends with a whole response, so this much of the first one has gone out already.
        const std::size_t begun =
            (response_bytes_ - connection.owed_bytes % response_bytes_) % response_bytes_;
        const std::size_t size = std::min<std::uint64_t>(connection.owed_bytes, responses_.size() - begun);
        const ssize_t sent = ::send(fd, responses_.data() + begun, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            if (!connection.waits) {
                connection.waits = true;
                watch(EPOLL_CTL_MOD, fd, EPOLLOUT);
            }
            return;
        }
        if (sent < 0) {
            ::close(fd);
            return;
        }
        connection.owed_bytes -= static_cast<std::uint64_t>(sent);
    }
    if (options_.closes) {
        ::close(fd);
    } else if (connection.waits) {
        connection.waits = false;
        watch(EPOLL_CTL_MOD, fd, EPOLLIN);
    }
}

void Floor::watch(int operation, int fd, std::uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    check(::epoll_ctl(epoll_, operation, fd, &event) == 0, "epoll_ctl");
}

// How many empty lines end in the input, given how much of one the input before it ended with.
unsigned count_requests(std::string_view input, std::uint8_t* matched) {
    static constexpr std::string_view kEnd = "\r\n\r\n";
    unsigned count = 0;
    std::size_t at = 0;
    for (; *matched > 0 && at < input.size(); ++at) {
        *matched = input[at] == kEnd[*matched] ? static_cast<std::uint8_t>(*matched + 1) : std::uint8_t{0};
        if (*matched == kEnd.size()) {
            ++count;
            *matched = 0;
        }
    }
    while (at < input.size()) {
        const auto* const found =
            static_cast<const char*>(std::memchr(input.data() + at, '\r', input.size() - at));
        if (found == nullptr) {
            break;
        }
        at = static_cast<std::size_t>(found - input.data());
        const std::string_view rest = input.substr(at, kEnd.size());
        if (rest == kEnd) {
            ++count;
            at += kEnd.size();
        } else if (rest.size() < kEnd.size() && kEnd.starts_with(rest)) {
            *matched = static_cast<std::uint8_t>(rest.size());
            break;
        } else {
            ++at;
        }
    }
    return count;
}

void refuse_port(std::uint16_t port, const char* what) {
    std::string why = "is taken";
    if (errno != EADDRINUSE) {
        why = std::string("cannot be had (").append(what).append(": ").append(std::strerror(errno)).append(")");
    }
    std::fprintf(stderr, "penstock_floor: port %u %s; give another, or 0 for any that is free\n", unsigned{port},
                 why.c_str());
    std::exit(EXIT_FAILURE);
}

void check(bool is_well, const char* what) {
    if (!is_well) {
        std::fprintf(stderr, "penstock_floor: %s: %s\n", what, std::strerror(errno));
        std::exit(EXIT_FAILURE);
    }
}

}  // namespace

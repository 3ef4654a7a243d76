#include "penstock/platform/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <new>

namespace penstock::platform {

namespace {

PollEvent translate(const epoll_event& event);

}  // namespace

struct Poller::Buffers {
    std::array<epoll_event, kMaxEvents> kernel_events;
    std::array<PollEvent, kMaxEvents> events;
};

Poller::Poller() = default;

Poller::~Poller() {
    if (wake_read_fd_ >= 0) {
        ::close(wake_read_fd_);  // wake_write_fd_ is the same descriptor
    }
    if (poll_fd_ >= 0) {
        ::close(poll_fd_);
    }
}

Result<void> Poller::open() {
    if (buffers_ != nullptr) {
        return system_error("open a poller twice", EALREADY);
    }
    buffers_.reset(new (std::nothrow) Buffers);
    if (buffers_ == nullptr) {
        return system_error("allocate the poller's event buffers", ENOMEM);
    }
    poll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (poll_fd_ < 0) {
        return system_error("epoll_create1 (raise the limit of open files if it is reached)", errno);
    }
    wake_read_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_read_fd_ < 0) {
        return system_error("eventfd (raise the limit of open files if it is reached)", errno);
    }
    wake_write_fd_ = wake_read_fd_;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = kReservedToken;
    if (::epoll_ctl(poll_fd_, EPOLL_CTL_ADD, wake_read_fd_, &event) != 0) {
        return system_error("epoll_ctl for the wake-up descriptor", errno);
    }
    return {};
}

int Poller::add(int fd, std::uint64_t token) {
    if (token == kReservedToken) {
        return EINVAL;
    }
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;
    event.data.u64 = token;
    return ::epoll_ctl(poll_fd_, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

void Poller::remove(int fd) {
    epoll_event ignored{};  // kernels before 2.6.9 wanted one (man 2 epoll_ctl, BUGS)
    ::epoll_ctl(poll_fd_, EPOLL_CTL_DEL, fd, &ignored);
}

PollResult Poller::wait(int timeout_ms) {
    PollResult result;
    if (buffers_ == nullptr) {
        result.error = EBADF;
        return result;
    }
    const int ready = ::epoll_wait(poll_fd_, buffers_->kernel_events.data(), kMaxEvents, timeout_ms);
    if (ready < 0) {
        result.error = errno == EINTR ? 0 : errno;
        return result;
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(ready); ++i) {
        const epoll_event& event = buffers_->kernel_events[i];
        if (event.data.u64 == kReservedToken) {
            result.woken = true;
        } else {
            buffers_->events[count++] = translate(event);
        }
    }
    result.events = std::span(buffers_->events.data(), count);
    return result;
}

// The eventfd is never read: with EPOLLET each write to it makes a new edge, whatever the counter holds, and
// writes that come before the edge is collected make one. That saves a call for every wake-up. The counter
// would have to reach 2^64 - 1 before a write fails (man 2 eventfd).
void Poller::wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_write_fd_, &one, sizeof one);
}

namespace {

// EPOLLHUP says that both directions are shut, EPOLLRDHUP only the peer's; EPOLLERR that an error waits in
// the socket (man 2 epoll_ctl). None of them leaves anything to wait for, so they count as readable: the next
// receive tells the rest.
PollEvent translate(const epoll_event& event) {
    const std::uint32_t bits = event.events;
    PollEvent result;
    result.token = event.data.u64;
    result.readable = (bits & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    result.writable = (bits & EPOLLOUT) != 0;
    result.hangup = (bits & (EPOLLRDHUP | EPOLLHUP)) != 0;
    result.error = (bits & (EPOLLHUP | EPOLLERR)) != 0;
    result.urgent = (bits & EPOLLPRI) != 0;
    return result;
}

}  // namespace

}  // namespace penstock::platform

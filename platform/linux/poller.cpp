#include "penstock/platform/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <new>

#include "penstock/platform/posix/hot_calls.h"

namespace penstock::platform {

namespace {

[[gnu::noinline]] PollEvent translate(const epoll_event& event);  // apart, so that `wait` keeps no registers for it

long call_wait(int poll_fd, epoll_event* events, std::size_t count, int timeout_ms) {
#ifdef PENSTOCK_DIRECT_CALLS
    return kernel_call(SYS_epoll_wait, poll_fd, events, count, timeout_ms);
#else
    return or_negative_errno(::epoll_wait(poll_fd, events, static_cast<int>(count), timeout_ms));
#endif
}

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
    if (buffers_ == nullptr) [[unlikely]] {
        return {.events = {}, .woken = false, .error = EBADF};
    }
    const long ready = call_wait(poll_fd_, buffers_->kernel_events.data(), kMaxEvents, timeout_ms);
    if (ready < 0) [[unlikely]] {
        return {.events = {}, .woken = false, .error = ready == -EINTR ? 0 : static_cast<int>(-ready)};
    }
    bool woken = false;
    PollEvent* translated = buffers_->events.data();
    const epoll_event* const end = buffers_->kernel_events.data() + ready;
    for (const epoll_event* event = buffers_->kernel_events.data(); event != end; ++event) {
        if (event->data.u64 == kReservedToken) [[unlikely]] {
            woken = true;
        } else if (event->events == (EPOLLIN | EPOLLOUT)) [[likely]] {
            *translated++ = {.token = event->data.u64, .readable = true, .writable = true};
        } else {
            *translated++ = translate(*event);
        }
    }
    return {.events = {buffers_->events.data(), translated}, .woken = woken, .error = 0};
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

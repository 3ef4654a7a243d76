#include "penstock/platform/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <new>

#include "penstock/platform/posix/hot_calls.h"

namespace penstock::platform {

namespace {

// From here on the alarm is worth its call: under load thousands of waits share it.
constexpr int kLongTimeoutMs = 100;
constexpr std::uint64_t kWakeToken = Poller::kReservedToken;
constexpr std::uint64_t kAlarmToken = Poller::kReservedToken + 1;

[[gnu::noinline]] PollEvent translate(const epoll_event& event);  // apart, so that `wait` keeps no registers for it

bool watch(int poll_fd, int fd, std::uint64_t token);

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
    if (alarm_fd_ >= 0) {
        ::close(alarm_fd_);
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
    alarm_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (alarm_fd_ < 0) {
        return system_error("timerfd_create (raise the limit of open files if it is reached)", errno);
    }
    if (!watch(poll_fd_, wake_read_fd_, kWakeToken) || !watch(poll_fd_, alarm_fd_, kAlarmToken)) {
        return system_error("epoll_ctl for the poller's own descriptors", errno);
    }
    return {};
}

int Poller::add(int fd, std::uint64_t token) {
    if (token >= kReservedToken) {
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

PollResult Poller::wait(int timeout_ms, std::uint64_t now_ms) {
    if (buffers_ == nullptr) [[unlikely]] {
        return {.events = {}, .woken = false, .error = EBADF};
    }
    if (timeout_ms >= kLongTimeoutMs && now_ms != 0) [[likely]] {
        const std::uint64_t due_ms = now_ms + static_cast<std::uint64_t>(timeout_ms);
        const bool rings_in_time = alarm_ms_ > now_ms && alarm_ms_ <= due_ms;
        if (rings_in_time || set_alarm(due_ms)) [[likely]] {
            timeout_ms = -1;
        }
    }
    const long ready = call_wait(poll_fd_, buffers_->kernel_events.data(), kMaxEvents, timeout_ms);
    if (ready < 0) [[unlikely]] {
        return {.events = {}, .woken = false, .error = ready == -EINTR ? 0 : static_cast<int>(-ready)};
    }
    bool woken = false;
    PollEvent* translated = buffers_->events.data();
    const epoll_event* const end = buffers_->kernel_events.data() + ready;
    for (const epoll_event* event = buffers_->kernel_events.data(); event != end; ++event) {
        if (event->data.u64 >= kReservedToken) [[unlikely]] {
            woken |= event->data.u64 == kWakeToken;
        } else if (event->events == (EPOLLIN | EPOLLOUT)) [[likely]] {
            *translated++ = {.token = event->data.u64, .readable = true, .writable = true};
        } else {
            *translated++ = translate(*event);
        }
    }
    return {.events = {buffers_->events.data(), translated}, .woken = woken, .error = 0};
}

// Never read, like the wake-up's: setting it anew makes the next expiry an edge (man 2 timerfd_create). Its clock is that of
// monotonic_ms(), so the time that has passed since `now_ms` is in it.
bool Poller::set_alarm(std::uint64_t due_ms) {
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(due_ms / 1000);
    when.it_value.tv_nsec = static_cast<long>(due_ms % 1000 * 1'000'000);
    const bool set = ::timerfd_settime(alarm_fd_, TFD_TIMER_ABSTIME, &when, nullptr) == 0;
    alarm_ms_ = set ? due_ms : 0;
    return set;
}

// The eventfd is never read: with EPOLLET each write to it makes a new edge, whatever the counter holds, and
// writes that come before the edge is collected make one. That saves a call for every wake-up. The counter
// would have to reach 2^64 - 1 before a write fails (man 2 eventfd).
void Poller::wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_write_fd_, &one, sizeof one);
}

namespace {

bool watch(int poll_fd, int fd, std::uint64_t token) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = token;
    return ::epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

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

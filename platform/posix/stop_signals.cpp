#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "penstock/platform/thread.h"

namespace penstock::platform {

namespace {

constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP};  // the last only for those who watch for it

// A slot holds the write end of one watcher's pipe, plus one; 0 is a free slot, so that the array is ready
// before any constructor runs.
using Slot = std::atomic<int>;
std::array<Slot, StopSignals::kMaxWatchers> slots{};
// Handlers that may be between reading a slot and writing to its pipe. A watcher that goes away waits for
// them: otherwise a late write could land in whatever file has been given the number of the closed pipe.
std::atomic<int> running_handlers{0};
static_assert(Slot::is_always_lock_free,
              "a signal handler may use lock-free atomics only (C++20 [support.signal])");

// Guards what follows and the taking of slots; the handler does not touch it.
std::mutex install_mutex;
std::array<int, kSignals.size()> watcher_counts{};  // of each signal
std::array<struct sigaction, kSignals.size()> former_actions{};

int register_watcher(int write_fd, Hangup hangup, int* error);
void unregister_watcher(int slot, Hangup hangup);
std::size_t signals_of(Hangup hangup) { return kSignals.size() - (hangup == Hangup::watched ? 0 : 1); }
int watch(std::size_t signal);
void unwatch(std::size_t signal);
void on_stop_signal(int signal);
void write_byte(int fd, int value);

}  // namespace

StopSignals::StopSignals(Hangup hangup) : hangup_(hangup) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
        error_ = errno;
        return;
    }
    read_fd_ = ends[0];
    write_fd_ = ends[1];
    slot_ = register_watcher(write_fd_, hangup, &error_);
}

StopSignals::~StopSignals() {
    if (slot_ >= 0) {
        unregister_watcher(slot_, hangup_);
    }
    if (read_fd_ >= 0) {
        ::close(read_fd_);
        ::close(write_fd_);
    }
}

int StopSignals::wait(int timeout_ms) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    if (read_fd_ < 0) {
        return -1;  // poll ignores a negative descriptor and would wait for ever (man 2 poll)
    }
    int remaining_ms = timeout_ms;
    while (true) {
        pollfd waiting = {read_fd_, POLLIN, 0};
        // EINTR comes whatever SA_RESTART says (man 7 signal): poll is never restarted.
        if (::poll(&waiting, 1, remaining_ms) > 0) {
            std::uint8_t byte = 0;
            if (::read(read_fd_, &byte, 1) == 1) {
                return byte;
            }
        }
        if (timeout_ms < 0) {
            continue;
        }
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) {
            return -1;
        }
        remaining_ms = static_cast<int>(left);
    }
}

bool StopSignals::is_hangup(int signal) { return signal == SIGHUP; }

void StopSignals::notify() {
    if (write_fd_ >= 0) {
        write_byte(write_fd_, 0);
    }
}

namespace {

// The index of the slot taken, or -1 with `error` set.
int register_watcher(int write_fd, Hangup hangup, int* error) {
    const std::lock_guard lock(install_mutex);
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (slots[i].load() != 0) {
            continue;
        }
        // The slot first: a signal that comes right after the handlers is then not lost.
        slots[i].store(write_fd + 1);
        for (std::size_t signal = 0; signal < signals_of(hangup); ++signal) {
            if ((*error = watch(signal)) != 0) {
                while (signal-- > 0) {
                    unwatch(signal);
                }
                slots[i].store(0);
                return -1;
            }
        }
        return static_cast<int>(i);
    }
    *error = ENOSPC;
    return -1;
}

void unregister_watcher(int slot, Hangup hangup) {
    const std::lock_guard lock(install_mutex);
    for (std::size_t signal = 0; signal < signals_of(hangup); ++signal) {
        unwatch(signal);
    }
    slots[static_cast<std::size_t>(slot)].store(0);
    // Handlers that begin now see the empty slot (both sides are sequentially consistent), and those that run
    // only write to non-blocking pipes, so this ends. The one that interrupted this very thread has returned.
    while (running_handlers.load() != 0) {
        ::sched_yield();
    }
}

// For the first who wants the signal its handler is installed. Returns 0 or errno.
int watch(std::size_t signal) {
    if (watcher_counts[signal] == 0) {
        struct sigaction action {};
        action.sa_handler = on_stop_signal;
        action.sa_flags = SA_RESTART;  // the embedder's own blocking calls are not ours to interrupt
        ::sigemptyset(&action.sa_mask);
        for (const int other : kSignals) {
            ::sigaddset(&action.sa_mask, other);
        }
        if (::sigaction(kSignals[signal], &action, &former_actions[signal]) != 0) {
            return errno;
        }
    }
    ++watcher_counts[signal];
    return 0;
}

// With the last one the former handler comes back.
void unwatch(std::size_t signal) {
    if (--watcher_counts[signal] > 0) {
        return;
    }
    struct sigaction current {};
    ::sigaction(kSignals[signal], nullptr, &current);
    // Someone who installed a handler after us keeps it.
    if (current.sa_handler == on_stop_signal) {
        ::sigaction(kSignals[signal], &former_actions[signal], nullptr);
    }
}

void on_stop_signal(int signal) {
    running_handlers.fetch_add(1);
    for (const Slot& slot : slots) {
        if (const int taken = slot.load(); taken != 0) {
            write_byte(taken - 1, signal);
        }
    }
    running_handlers.fetch_sub(1);
}

void write_byte(int fd, int value) {
    const int saved = errno;  // a handler must not change it (man 7 signal-safety)
    const auto byte = static_cast<std::uint8_t>(value);
    // A full pipe already wakes its reader, so a byte that does not fit is not missed.
    [[maybe_unused]] const ssize_t written = ::write(fd, &byte, 1);
    errno = saved;
}

}  // namespace

}  // namespace penstock::platform

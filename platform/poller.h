// Internal.
// The readiness contract, written once for every backend (linux: epoll, bsd: kqueue, sim).
//
//  * Edge-triggered, always. A descriptor is added once, for reading and writing, and never modified.
//    After an event its owner reads (or writes) until the kernel says EAGAIN, or a short read says the
//    same, or remembers by itself that it stopped early: no second event comes for old news.
//  * Adding a descriptor that is already ready makes an event at the next wait.
//  * An event carries the token of its descriptor, unchanged. Tokens hold a generation, so an event for
//    a descriptor that was closed in the same batch is dropped by its receiver, by comparison.
//  * `hangup`: the peer has finished sending. What it sent can still be read, and it may still read.
//    `error`: the peer is gone (reset, or both directions shut). Both come with `readable`.
//  * `urgent`: out-of-band data is among what can be read. It stays in line (SO_OOBINLINE), but a receive stops short of
//    it, so a short read then does not mean that there is no more (man 7 tcp). Comes with `readable`.
//  * A wake-up is no event: `wait` reports it apart, once however often `wake` was called before it.
//
// A completion backend fits behind the same contract: an event may then bring bytes with it, and a send
// may be finished later than its call; so nobody above may assume that memory handed to `send` is free
// before the output queue says so.
//
// Owned by one Reactor and used by its thread alone, except `wake`: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "penstock/platform/error.h"

namespace penstock::platform {

struct PollEvent {
    std::uint64_t token = 0;
    bool readable = false;
    bool writable = false;
    bool hangup = false;
    bool error = false;
    bool urgent = false;
};

struct PollResult {
    std::span<const PollEvent> events;  // valid until the next wait
    bool woken = false;
    int error = 0;                      // errno; EINTR is not reported, it is an empty result
};

class Poller {
public:
    // Events one wait returns at most; the rest come with the next one.
    static constexpr int kMaxEvents = 512;
    // This one and the one above are the tokens that `add` refuses (EINVAL): a backend may mark things of its own with them.
    static constexpr std::uint64_t kReservedToken = ~std::uint64_t{1};

    Poller();
    ~Poller();
    Poller(const Poller&) = delete;
    Poller& operator=(const Poller&) = delete;

    [[nodiscard]] Result<void> open();
    // Returns 0 or errno (ENOMEM and ENOSPC are the machine's limits, see man 2 epoll_ctl).
    int add(int fd, std::uint64_t token);
    // Only for descriptors that stay open elsewhere; closing the last descriptor removes by itself.
    void remove(int fd);
    // `timeout_ms`: 0 does not wait, -1 waits without limit. `now_ms`: what monotonic_ms() said when the timeout was chosen, or 0.
    // Where it is given a backend may measure long timeouts from there by an alarm that it sets now and then, instead of having
    // the kernel set one up for each wait. Such a wait may end early, with nothing.
    [[nodiscard]] PollResult wait(int timeout_ms, std::uint64_t now_ms = 0);
    // Makes the current or next `wait` return at once. Any thread, also while it is being closed down.
    void wake();

private:
    bool set_alarm(std::uint64_t due_ms);

    struct Buffers;  // the kernel's event array and ours, of kMaxEvents each
    std::unique_ptr<Buffers> buffers_;
    int poll_fd_ = -1;
    int wake_read_fd_ = -1;
    int wake_write_fd_ = -1;
    int alarm_fd_ = -1;           // linux
    std::uint64_t alarm_ms_ = 0;  // when it rings
};

}  // namespace penstock::platform

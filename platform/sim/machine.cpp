#include "penstock/platform/sim/machine.h"

#include <array>
#include <csignal>
#include <atomic>
#include <cerrno>

#include "penstock/platform/clock.h"
#include "penstock/platform/sim/world.h"
#include "penstock/platform/thread.h"

namespace penstock {

namespace {

// One StopSignals. Numbers and notices are kept until a wait takes them.
struct Watcher {
    std::atomic<bool> taken{false};
    std::atomic<int> signal{0};
    std::atomic<bool> notified{false};
};

std::atomic<std::uint64_t> now{sim::World::kStartMs};
// The wall clock when the other one shows 0, in milliseconds, so that both advance together.
std::atomic<std::int64_t> wall_offset_ms{0};
std::atomic<unsigned> core_count{1};
std::atomic<std::uint64_t> wakes{0};
std::array<Watcher, platform::StopSignals::kMaxWatchers> watchers;

}  // namespace

namespace sim {

void reset_machine() {
    now = World::kStartMs;
    set_wall_clock(World::kStartWallSeconds);
    core_count = 1;
    wakes = 0;
}

void advance_clock(std::uint64_t milliseconds) {
    now += milliseconds;
}

void set_wall_clock(std::int64_t seconds) {
    wall_offset_ms = seconds * 1000 - static_cast<std::int64_t>(now.load());
}

void set_core_count(unsigned count) {
    core_count = count == 0 ? 1 : count;
}

void deliver_signal(int number) {
    for (Watcher& watcher : watchers) {
        if (watcher.taken) {
            watcher.signal = number;
        }
    }
}

void count_wake() {
    ++wakes;
}
std::uint64_t wake_count() {
    return wakes;
}
void reset_wake_count() {
    wakes = 0;
}

}  // namespace sim

namespace platform {

std::uint64_t monotonic_ms() {
    return now;
}

std::int64_t wall_ms() {
    return wall_offset_ms + static_cast<std::int64_t>(now.load());
}

unsigned usable_core_count() {
    return core_count;
}
int pin_current_thread(unsigned) {
    return 0;
}
void name_current_thread(const char*) {}
void block_signals_in_current_thread() {}

StopSignals::StopSignals(Hangup hangup) : hangup_(hangup) {
    // A real backend's pipe; clang wants every private field used by whoever defines all the functions.
    static_cast<void>(read_fd_);
    static_cast<void>(write_fd_);
    static_cast<void>(hangup_);
    for (int slot = 0; slot < kMaxWatchers; ++slot) {
        Watcher& watcher = watchers[static_cast<std::size_t>(slot)];
        if (watcher.taken.exchange(true)) {
            continue;
        }
        watcher.signal = 0;
        watcher.notified = false;
        slot_ = slot;
        return;
    }
    error_ = ENOSPC;
}

StopSignals::~StopSignals() {
    if (slot_ >= 0) {
        watchers[static_cast<std::size_t>(slot_)].taken = false;
    }
}

// Never blocks: nothing to report is the limit, reached at once.
int StopSignals::wait(int) {
    if (slot_ < 0) {
        return -1;
    }
    Watcher& watcher = watchers[static_cast<std::size_t>(slot_)];
    if (const int number = watcher.signal.exchange(0); number != 0) {
        return number;
    }
    return watcher.notified.exchange(false) ? 0 : -1;
}

bool StopSignals::is_hangup(int signal) { return signal == SIGHUP; }

void StopSignals::notify() {
    if (slot_ >= 0) {
        watchers[static_cast<std::size_t>(slot_)].notified = true;
    }
}

}  // namespace platform

}  // namespace penstock

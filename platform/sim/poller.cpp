#include "penstock/platform/poller.h"

#include <array>
#include <cerrno>

#include "penstock/platform/sim/kernel.h"
#include "penstock/platform/sim/machine.h"

namespace penstock::platform {

using sim::Call;
using sim::Outcome;
using sim::Scope;

struct Poller::Buffers {
    sim::PollerState state;
    std::array<PollEvent, kMaxEvents> events;
};

Poller::Poller() = default;

Poller::~Poller() {
    if (poll_fd_ < 0) {
        return;
    }
    const Scope kernel;
    kernel->remove_poller(&buffers_->state);
    kernel->close(wake_read_fd_);
    kernel->close(poll_fd_);
}

Result<void> Poller::open() {
    const Scope kernel;
    if (buffers_ != nullptr) {
        return system_error("open a poller twice", EALREADY);
    }
    const Outcome outcome = kernel->begin(Call::poller_open, -1);
    if (outcome.error != 0) {
        return system_error("open a poller", outcome.error);
    }
    const IoResult poll = kernel->open(std::make_shared<sim::PollerDescription>());
    if (!poll.ok()) {
        return system_error("open a poller", poll.error);
    }
    const IoResult wake = kernel->open(std::make_shared<sim::PollerDescription>());
    if (!wake.ok()) {
        kernel->close(static_cast<int>(poll.count));
        return system_error("open a poller's wake-up", wake.error);
    }
    poll_fd_ = static_cast<int>(poll.count);
    wake_read_fd_ = static_cast<int>(wake.count);
    wake_write_fd_ = wake_read_fd_;
    buffers_ = std::make_unique<Buffers>();
    kernel->add_poller(&buffers_->state);
    return {};
}

int Poller::add(int fd, std::uint64_t token) {
    const Scope kernel;
    const Outcome outcome = kernel->begin(Call::poller_add, fd);
    if (token >= kReservedToken) {
        return EINVAL;
    }
    if (buffers_ == nullptr) {
        return EBADF;
    }
    int error = 0;
    sim::Description* description = kernel->find(fd, &error);
    if (description == nullptr) {
        return error;
    }
    // Files and directories are always ready, so epoll refuses them (man 2 epoll_ctl, EPERM).
    if (description->kind() == sim::DescriptionKind::file) {
        return EPERM;
    }
    if (description->kind() == sim::DescriptionKind::poller) {
        return EINVAL;
    }
    if (outcome.error != 0) {
        return outcome.error;
    }
    return description->watch(buffers_->state, fd, token);
}

void Poller::remove(int fd) {
    const Scope kernel;
    kernel->count(Call::poller_remove);
    int error = 0;
    sim::Description* description = kernel->find(fd, &error);
    if (description != nullptr && buffers_ != nullptr) {
        description->unwatch(buffers_->state, fd);
    }
}

// The simulated time does not pass, so a wait that finds nothing has reached its limit at once.
PollResult Poller::wait(int, std::uint64_t) {
    const Scope kernel;
    if (buffers_ == nullptr) {
        return {.events = {}, .woken = false, .error = EBADF};
    }
    const Outcome outcome = kernel->begin(Call::poller_wait, -1);
    if (outcome.error == EINTR) {
        return {};
    }
    if (outcome.error != 0) {
        return {.events = {}, .woken = false, .error = outcome.error};
    }
    kernel->settle();
    sim::PollerState& state = buffers_->state;
    std::size_t count = 0;
    while (state.first != nullptr && count < buffers_->events.size()) {
        sim::Registration& registration = *state.first;
        state.unlink(registration);
        const sim::Readiness now = registration.description->readiness();
        // What made the edge may be gone by now: read, or accepted by another reactor.
        if (!now.any()) {
            continue;
        }
        buffers_->events[count++] = {registration.token, now.readable, now.writable, now.hangup, now.error, false};
    }
    return {
        .events = std::span(buffers_->events).first(count), .woken = state.woken.exchange(false), .error = 0};
}

void Poller::wake() {
    sim::count_wake();
    if (buffers_ != nullptr) {
        buffers_->state.woken = true;
    }
}

}  // namespace penstock::platform

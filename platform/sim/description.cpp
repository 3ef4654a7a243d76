#include "penstock/platform/sim/description.h"

#include <cerrno>

namespace penstock::sim {

Registration::~Registration() {
    if (queued) {
        poller->unlink(*this);
    }
}

void PollerState::push(Registration& registration) {
    if (registration.queued) {
        return;
    }
    registration.queued = true;
    registration.previous = last;
    registration.next = nullptr;
    (last == nullptr ? first : last->next) = &registration;
    last = &registration;
}

void PollerState::unlink(Registration& registration) {
    (registration.previous == nullptr ? first : registration.previous->next) = registration.next;
    (registration.next == nullptr ? last : registration.next->previous) = registration.previous;
    registration.queued = false;
}

void Description::closed_one() {
    if (--descriptors_ > 0) {
        return;
    }
    registrations_.clear();
    on_last_close();
}

int Description::watch(PollerState& poller, int fd, std::uint64_t token) {
    for (const auto& registration : registrations_) {
        if (registration->poller == &poller && registration->fd == fd) {
            return EEXIST;
        }
    }
    registrations_.push_back(std::make_unique<Registration>(&poller, this, fd, token));
    if (readiness().any()) {
        poller.push(*registrations_.back());
    }
    return 0;
}

void Description::unwatch(const PollerState& poller, int fd) {
    std::erase_if(registrations_, [&poller, fd](const auto& registration) {
        return registration->poller == &poller && registration->fd == fd;
    });
}

void Description::unwatch_all(const PollerState& poller) {
    std::erase_if(registrations_,
                  [&poller](const auto& registration) { return registration->poller == &poller; });
}

void Description::raise_edge() {
    for (const auto& registration : registrations_) {
        registration->poller->push(*registration);
    }
}

}  // namespace penstock::sim

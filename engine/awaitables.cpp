#include "penstock/engine/awaitables.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "penstock/engine/alarm.h"
#include "penstock/engine/reactor.h"

namespace penstock::task_detail {

void Sleep::await_suspend(std::coroutine_handle<> handle) {
    static_assert(sizeof(Alarm) <= sizeof(alarm_) && alignof(Alarm) <= 8);
    Reactor* const reactor = Reactor::current();
    owner_ = current_owner();
    if (reactor == nullptr || owner_ == nullptr) {
        throw std::logic_error("sleep: awaited outside of a task that a reactor runs");
    }
    reactor_ = reactor;
    handle_ = handle;
    auto* const alarm = ::new (static_cast<void*>(alarm_)) Alarm;
    alarm->context = this;
    alarm->ring = &Sleep::ring;
    wait_on();
}

// The wheel's reach is three days; a longer wait is several.
void Sleep::wait_on() {
    const std::uint32_t step_ms = std::min(delay_ms_, TimerWheel::kMaxDelayMs);
    delay_ms_ -= step_ms;
    static_cast<Reactor*>(reactor_)->set_alarm(*std::launder(reinterpret_cast<Alarm*>(alarm_)), step_ms);
}

void Sleep::ring(void* self_pointer) {
    auto& self = *static_cast<Sleep*>(self_pointer);
    if (self.delay_ms_ > 0) {
        self.wait_on();
    } else {
        self.owner_->resume(self.handle_);
    }
}

Sleep::~Sleep() {
    if (reactor_ != nullptr) {
        static_cast<Reactor*>(reactor_)->cancel(*std::launder(reinterpret_cast<Alarm*>(alarm_)));
    }
}

bool start_offload(std::shared_ptr<OffloadJob> job) {
    Reactor* const reactor = Reactor::current();
    TaskOwner* const owner = current_owner();
    if (reactor == nullptr || owner == nullptr) {
        throw std::logic_error("offload: awaited outside of a task that a reactor runs");
    }
    const bool started = reactor->try_offload(
        Message([job] { job->run(); }),
        Message([owner, job] { owner->resume_pinned(std::exchange(job->waiter, nullptr)); }));
    if (started) {
        owner->pin();  // the reply comes on this thread, so not before this
    }
    return started;
}

// For whoever reads it in a log; clients get 503 and no more.
void throw_overloaded() {
    const std::uint32_t limit = Reactor::current()->config().offload_limit;
    throw Overloaded("offload: no room for another function, offload_limit is " + std::to_string(limit) +
                     "; raise it or offload_threads, or offload less");
}

}  // namespace penstock::task_detail

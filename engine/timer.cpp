#include "penstock/engine/timer.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "penstock/engine/alarm.h"
#include "penstock/engine/ensure.h"
#include "penstock/engine/reactor.h"

namespace penstock {

struct Timer::State {
    Alarm alarm;
    Reactor* reactor = nullptr;      // only good while the alarm is linked: a reactor that ends unlinks it
    std::function<void()> function;  // empty while it is being called
    std::uint32_t interval_ms = 0;   // 0: once
    std::uint32_t due_ms = 0;        // when the alarm rings, by the reactor's clock
    std::uint32_t left_ms = 0;       // to wait after that
    bool* destroyed = nullptr;       // set while the function is being called: how that learns of it

    void wait_from(std::uint32_t begin_ms);
    void call();
    static void ring(void* self);
};

// The wheel's reach is three days; a longer wait is several.
void Timer::State::wait_from(std::uint32_t begin_ms) {
    const std::uint32_t step_ms = std::min(left_ms, TimerWheel::kMaxDelayMs);
    left_ms -= step_ms;
    due_ms = begin_ms + step_ms;
    reactor->set_alarm(alarm, due_ms - reactor->now_ms());
}

void Timer::State::ring(void* self_pointer) {
    auto& self = *static_cast<State*>(self_pointer);
    if (self.left_ms > 0) {
        self.wait_from(self.due_ms);
        return;
    }
    if (self.interval_ms > 0) {
        const std::uint32_t now_ms = self.reactor->now_ms();
        self.left_ms = self.interval_ms - (now_ms - self.due_ms) % self.interval_ms;
        self.wait_from(now_ms);
    }
    self.call();
}

// The function may stop, start or destroy its own timer, so it is called where none of that destroys it.
void Timer::State::call() {
    std::function<void()> called = std::exchange(function, nullptr);
    bool is_destroyed = false;
    destroyed = &is_destroyed;
    const Reactor& caller = *reactor;
    try {
        called();
    } catch (const std::exception& exception) {
        caller.log(LogLevel::error, std::string("a timer's function threw: ") + exception.what());
    } catch (...) {
        caller.log(LogLevel::error, "a timer's function threw something that is no std::exception");
    }
    if (is_destroyed) {
        return;
    }
    destroyed = nullptr;
    if (alarm.linked() && !function) {
        function = std::move(called);
    }
}

Timer::Timer() = default;

Timer::~Timer() {
    stop();
    if (state_ != nullptr && state_->destroyed != nullptr) {
        *state_->destroyed = true;
    }
}

void Timer::start(std::uint32_t delay_ms, std::function<void()> function) { begin(delay_ms, 0, std::move(function)); }

void Timer::start_repeating(std::uint32_t interval_ms, std::function<void()> function) {
    interval_ms = std::max(interval_ms, 1u);
    begin(interval_ms, interval_ms, std::move(function));
}

void Timer::begin(std::uint32_t delay_ms, std::uint32_t interval_ms, std::function<void()> function) {
    Reactor* const reactor = Reactor::current();
    ensure(reactor != nullptr, "timer: started on a thread that is no reactor's; start it in a handler or by Server::post");
    ensure(static_cast<bool>(function), "timer: started with an empty function");
    stop();
    if (state_ == nullptr) {
        state_ = std::make_unique<State>();
        state_->alarm.context = state_.get();
        state_->alarm.ring = &State::ring;
    }
    state_->reactor = reactor;
    state_->function = std::move(function);
    state_->interval_ms = interval_ms;
    state_->left_ms = delay_ms;
    state_->wait_from(reactor->now_ms());
}

// What the function owns goes last: it may own this timer.
void Timer::stop() {
    if (state_ == nullptr) {
        return;
    }
    const std::function<void()> dropped = std::exchange(state_->function, nullptr);
    if (state_->alarm.linked()) {
        ensure(Reactor::current() == state_->reactor,
               "timer: stopped, started or destroyed on another thread than its reactor's while it runs");
        state_->reactor->cancel(state_->alarm);
    }
}

bool Timer::running() const { return state_ != nullptr && state_->alarm.linked(); }

}  // namespace penstock

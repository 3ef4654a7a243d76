// Public.
// What a Task can wait for besides other tasks. Only inside a Task that a reactor runs.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "penstock/engine/task.h"
#include "penstock/platform/error.h"

namespace penstock {

namespace task_detail {

// A wait for time. Lives in the frame that waits; when that is destroyed, so is the wait.
class Sleep {
public:
    explicit Sleep(std::uint32_t delay_ms) : delay_ms_(delay_ms) {}
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;
    ~Sleep();

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle);
    void await_resume() const noexcept {}

private:
    static void ring(void* self);

    alignas(8) std::byte alarm_[48];  // an Alarm, which is internal
    void* reactor_ = nullptr;
    TaskOwner* owner_ = nullptr;
    std::coroutine_handle<> handle_;
    std::uint32_t delay_ms_;
};

// Runs `run(context)` on the offload pool, then clears `*running` and resumes `handle` through its owner, which is
// pinned meanwhile. False: no room, nothing runs.
[[nodiscard]] bool start_offload(void (*run)(void*), void* context, std::coroutine_handle<> handle, bool* running);
// The frame of a running function must not go: a task that offloads was dropped without being awaited.
void ensure_not_running(bool running);

template <class Function>
class Offload {
    using Value = std::invoke_result_t<Function&>;
    using Stored = std::conditional_t<std::is_void_v<Value>, char, Value>;

public:
    explicit Offload(Function function) : function_(std::move(function)) {}
    Offload(const Offload&) = delete;
    Offload& operator=(const Offload&) = delete;
    ~Offload() { ensure_not_running(running_); }

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> handle) {
        started_ = start_offload(&Offload::run, this, handle, &running_);
        return started_;
    }
    Result<Value> await_resume() {
        if (!started_) {
            return Error{"the offload pool is full; raise offload_limit or offload_threads", EAGAIN};
        }
        if (exception_) {
            std::rethrow_exception(exception_);
        }
        if constexpr (std::is_void_v<Value>) {
            return {};
        } else {
            return Result<Value>(std::move(*value_));
        }
    }

private:
    static void run(void* self_pointer) {
        auto& self = *static_cast<Offload*>(self_pointer);
        try {
            if constexpr (std::is_void_v<Value>) {
                self.function_();
            } else {
                self.value_.emplace(self.function_());
            }
        } catch (...) {
            self.exception_ = std::current_exception();
        }
    }

    Function function_;
    std::optional<Stored> value_;
    std::exception_ptr exception_;
    bool started_ = false;
    bool running_ = false;
};

}  // namespace task_detail

// Continues after at least `delay_ms` milliseconds, on the same reactor.
[[nodiscard]] inline task_detail::Sleep sleep_ms(std::uint32_t delay_ms) { return task_detail::Sleep(delay_ms); }

// Runs `function()` on a thread of the offload pool and continues here with what it returned, or rethrows what it
// threw; an Error, with nothing run, when the pool is full. The function must not touch request or response:
// they belong to the reactor's thread. If the peer leaves meanwhile, the task is destroyed once the function ends.
template <class Function>
[[nodiscard]] task_detail::Offload<std::decay_t<Function>> offload(Function&& function) {
    return task_detail::Offload<std::decay_t<Function>>(std::forward<Function>(function));
}

}  // namespace penstock

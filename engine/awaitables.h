// Public.
// What a Task can wait for besides other tasks. Only inside a Task that a reactor runs.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "penstock/engine/overloaded.h"
#include "penstock/engine/task.h"

namespace penstock {

namespace task_detail {

// A wait for time. Lives in the frame that waits; when that is destroyed, so is the wait.
class Sleep {
public:
    explicit Sleep(std::uint32_t delay_ms) : delay_ms_(delay_ms) {}
    // Only before it is awaited: the alarm is linked where it lies.
    Sleep(Sleep&& other) noexcept : delay_ms_(other.delay_ms_) {}
    Sleep& operator=(Sleep&&) = delete;
    ~Sleep();

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle);
    void await_resume() const noexcept {}

private:
    static void ring(void* self);
    void wait_on();

    alignas(8) std::byte alarm_[48];  // an Alarm, which is internal
    void* reactor_ = nullptr;
    TaskOwner* owner_ = nullptr;
    std::coroutine_handle<> handle_;
    std::uint32_t delay_ms_;  // what is left when the alarm rings
};

// A function that runs on the offload pool, and what it gave. Held by the frame that awaits it and by the job, so that it
// outlives either. Only `run` is for the pool's thread; the rest belongs to the reactor's.
struct OffloadJob {
    std::coroutine_handle<> waiter;  // none once its frame has gone

    OffloadJob() = default;
    OffloadJob(const OffloadJob&) = delete;
    OffloadJob& operator=(const OffloadJob&) = delete;
    virtual ~OffloadJob() = default;
    virtual void run() noexcept = 0;
};

// Runs the job on the offload pool, then resumes its waiter through its owner, which is pinned meanwhile. False: no room,
// nothing runs.
[[nodiscard]] bool start_offload(std::shared_ptr<OffloadJob> job);
[[noreturn]] void throw_overloaded();

template <class Function>
class Offload {
    using Value = std::invoke_result_t<Function&>;

public:
    // Without memory it is empty, and throws when it is awaited: what is made in the same expression may run already.
    template <class Given>
    Offload(std::in_place_t, Given&& function) {
        try {
            job_ = std::make_shared<Job>(std::forward<Given>(function));
        } catch (const std::bad_alloc&) {
        }
    }
    // Only before it is awaited.
    Offload(Offload&&) noexcept = default;
    Offload& operator=(Offload&&) = delete;
    ~Offload() {
        if (job_ != nullptr) {
            job_->waiter = nullptr;
        }
    }

    bool await_ready() const {
        if (job_ == nullptr) {
            throw std::bad_alloc();
        }
        return false;
    }
    bool await_suspend(std::coroutine_handle<> handle) {
        job_->waiter = handle;
        started_ = start_offload(job_);
        return started_;
    }
    Value await_resume() {
        if (!started_) {
            throw_overloaded();
        }
        if (job_->exception) {
            std::rethrow_exception(job_->exception);
        }
        if constexpr (!std::is_void_v<Value>) {
            return std::move(*job_->value);
        }
    }

private:
    struct Job final : OffloadJob {
        template <class Given>
        explicit Job(Given&& given) : function(std::forward<Given>(given)) {}
        void run() noexcept override {
            try {
                if constexpr (std::is_void_v<Value>) {
                    function();
                } else {
                    value.emplace(function());
                }
            } catch (...) {
                exception = std::current_exception();
            }
        }

        Function function;
        std::optional<std::conditional_t<std::is_void_v<Value>, char, Value>> value;
        std::exception_ptr exception;
    };

    std::shared_ptr<Job> job_;
    bool started_ = false;
};

// A function with its arguments, for one call.
template <class Function, class... Arguments>
class BoundCall {
public:
    template <class Given, class... GivenArguments>
    explicit BoundCall(Given&& function, GivenArguments&&... arguments)
        : function_(std::forward<Given>(function)), arguments_(std::forward<GivenArguments>(arguments)...) {}
    decltype(auto) operator()() { return std::apply(std::move(function_), std::move(arguments_)); }

private:
    Function function_;
    std::tuple<Arguments...> arguments_;
};

// An object made for the call, of a type that must be destroyed, may be a lambda with such captures; one that has a name is
// copied, and that is well.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 14
template <class Given>
inline constexpr bool is_safe_in_co_await =
    std::is_lvalue_reference_v<Given> || std::is_trivially_destructible_v<std::remove_reference_t<Given>>;
#else
template <class Given>
inline constexpr bool is_safe_in_co_await = true;
#endif

}  // namespace task_detail

// Continues after at least `delay_ms` milliseconds, on the same reactor.
[[nodiscard]] inline task_detail::Sleep sleep_ms(std::uint32_t delay_ms) { return task_detail::Sleep(delay_ms); }

// Runs `function(arguments...)` on a thread of the offload pool and continues here with what it returned, or rethrows what it
// threw. Arguments are moved or copied in, as std::thread does it. Throws Overloaded, with nothing run, when the reactor has offload_limit functions under way already, and
// std::bad_alloc without memory. The function must not touch request or response: they belong to the reactor's thread. It
// may refer to locals of the task that awaits it, and to what views of the request point at: if the peer leaves meanwhile,
// all of that stays until the function ends. Not so when a task that offloads is started and then dropped without being
// awaited: a function in such a task must own what it uses. Several are awaited together by `when_all`, which drops none.
template <class Function, class... Arguments>
[[nodiscard]] auto offload(Function&& function, Arguments&&... arguments) {
    static_assert(task_detail::is_safe_in_co_await<Function>,
                  "GCC before 14 destroys what a lambda captures twice when the lambda is written inside a co_await "
                  "expression: give it as arguments instead, offload([](std::string name) { ... }, name), or capture by "
                  "reference");
    if constexpr (sizeof...(Arguments) == 0) {
        return task_detail::Offload<std::decay_t<Function>>(std::in_place, std::forward<Function>(function));
    } else {
        using Call = task_detail::BoundCall<std::decay_t<Function>, std::decay_t<Arguments>...>;
        return task_detail::Offload<Call>(
            std::in_place, Call(std::forward<Function>(function), std::forward<Arguments>(arguments)...));
    }
}

}  // namespace penstock

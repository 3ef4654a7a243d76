// Public.
// Waits for several things at once, in a Task that a reactor runs.
//
//     Task<void> handler(Request& request, Response& response) {
//         auto [user, body, nothing] = co_await when_all(offload([] { return load_user(); }), request.read_all(), sleep_ms(50));
//         response.send(greeting(user, body));
//     }
//
// Takes over Tasks, `offload(…)`, `sleep_ms(…)`, `request.read()`, `response.write(…)` and other objects with the three
// functions of an awaitable. All of them run on the reactor's thread, each where the others wait, and the answer is a tuple
// of what they gave, with std::monostate for void. A vector of tasks gives a vector.
//
// It always waits for all of them to end, also when one has thrown: the functions that others have offloaded may refer to
// their locals. Then it rethrows what the first one threw; of those that had thrown before it was awaited, the first in
// order. A task without memory for its frame counts as one that threw std::bad_alloc. So one that never ends by itself is
// best not put beside one that may fail.
//
// The awaiting coroutine's frame owns the tasks. When that is destroyed (its client has left), so are they, where they wait.
// Await it at once: what it has started must not be dropped, as with any task that offloads (see `offload`).
//
// Nothing bounds the length of the vector but what the caller holds already: each task's frame exists before it is handed
// over, and the answer has a place for each. How many functions may be offloaded at once is `offload_limit`'s matter.
#pragma once

#include <coroutine>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/engine/task.h"

namespace penstock {

namespace task_detail {

template <class Object>
concept Awaitable = requires(Object& object) {
    object.await_ready();
    object.await_resume();
};

template <Awaitable Object>
using AwaitedValue = std::remove_cvref_t<decltype(std::declval<std::remove_cvref_t<Object>&>().await_resume())>;

template <class Value>
using ValueOrNothing = std::conditional_t<std::is_void_v<Value>, std::monostate, Value>;

template <class Value>
Task<Value> to_task(Task<Value> task) {
    return task;
}

// Clang 14 cannot compile a coroutine that is a template with this check of its undefined behaviour sanitizer: the data
// that it puts in front of a function does not follow the coroutine's parts into their sections.
#if defined(__clang__)
#define PENSTOCK_NO_SANITIZE_FUNCTION __attribute__((no_sanitize("function")))
#else
#define PENSTOCK_NO_SANITIZE_FUNCTION
#endif

template <Awaitable Object>
PENSTOCK_NO_SANITIZE_FUNCTION Task<AwaitedValue<Object>> to_task(Object object) {
    co_return co_await std::move(object);
}

#undef PENSTOCK_NO_SANITIZE_FUNCTION

template <class Value>
ValueOrNothing<Value> take_value(Task<Value>& task) {
    if constexpr (std::is_void_v<Value>) {
        return {};
    } else {
        return task.await_resume();
    }
}

// May be moved until it is awaited: only then its tasks are told where it lies.
class JoinAwaiter {
public:
    bool await_ready() const noexcept { return false; }

protected:
    // False when all are done already.
    bool wait(std::coroutine_handle<> caller) noexcept {
        join_.waiter = caller;
        return join_.pending > 0;
    }
    void rethrow_first() const {
        if (join_.exception) {
            std::rethrow_exception(join_.exception);
        }
    }

    Join join_;
};

template <class... Values>
class [[nodiscard]] WhenAll : public JoinAwaiter {
public:
    explicit WhenAll(std::tuple<Task<Values>...> tasks) : tasks_(std::move(tasks)) {}

    bool await_suspend(std::coroutine_handle<> caller) noexcept {
        std::apply([this](auto&... task) { (task.add_to(join_), ...); }, tasks_);
        return wait(caller);
    }
    std::tuple<ValueOrNothing<Values>...> await_resume() {
        rethrow_first();
        return std::apply(
            [](auto&... task) { return std::tuple<ValueOrNothing<Values>...>(take_value(task)...); }, tasks_);
    }

private:
    std::tuple<Task<Values>...> tasks_;
};

template <class Value>
class [[nodiscard]] WhenAllOf : public JoinAwaiter {
public:
    explicit WhenAllOf(std::vector<Task<Value>> tasks) : tasks_(std::move(tasks)) {}

    bool await_suspend(std::coroutine_handle<> caller) noexcept {
        for (Task<Value>& task : tasks_) {
            task.add_to(join_);
        }
        return wait(caller);
    }
    auto await_resume() {
        rethrow_first();
        if constexpr (!std::is_void_v<Value>) {
            std::vector<Value> values;
            values.reserve(tasks_.size());
            for (Task<Value>& task : tasks_) {
                values.push_back(task.await_resume());
            }
            return values;
        }
    }

private:
    std::vector<Task<Value>> tasks_;
};

}  // namespace task_detail

template <task_detail::Awaitable... Awaitables>
[[nodiscard]] auto when_all(Awaitables&&... awaitables) {
    static_assert((std::is_nothrow_constructible_v<std::remove_cvref_t<Awaitables>, Awaitables> && ...),
                  "when_all takes over what it waits for: std::move it");
    // In braces, and so started from left to right.
    return task_detail::WhenAll<task_detail::AwaitedValue<Awaitables>...>(
        std::tuple<Task<task_detail::AwaitedValue<Awaitables>>...>{
            task_detail::to_task(std::forward<Awaitables>(awaitables))...});
}

template <class Value>
[[nodiscard]] auto when_all(std::vector<Task<Value>> tasks) {
    return task_detail::WhenAllOf<Value>(std::move(tasks));
}

}  // namespace penstock

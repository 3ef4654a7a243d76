// Public.
// A coroutine that a reactor runs: the return type of asynchronous handlers and of what they await. It starts
// at once and runs until its first suspension; awaiting it continues the caller when it is done.
//
//     Task<void> handler(Request& request, Response& response) {
//         co_await sleep_ms(100);
//         response.send("late");
//     }
//
// A Task belongs to whoever holds the object; destroying it destroys the suspended frame, running the
// destructors of its locals (and with them what it awaits). So when a peer is gone, its handler simply ends at its
// suspension point: gone by a reset, or by not taking what is written. One that has only finished sending still gets its
// answer. Only the thread of the reactor that started it may touch it.
//
// The frame of a request's own handler lies in the exchange's arena; frames of tasks it awaits come from the
// heap, since a long-lived handler may await any number of them.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace penstock {

// Who runs a tree of tasks. Every resumption from outside goes through it, so that it sees what the task did.
class TaskOwner {
public:
    virtual void resume(std::coroutine_handle<> handle) = 0;

    // While an offloaded function runs it may refer into the frame: from `pin` on the owner must not destroy the task
    // until `resume_pinned`, which ends the pin and then resumes `handle` (if there is one), or destroys what should
    // have gone meanwhile.
    virtual void pin() = 0;
    virtual void resume_pinned(std::coroutine_handle<> handle) = 0;

protected:
    ~TaskOwner() = default;
};

namespace task_detail {

void* allocate_frame(std::size_t bytes) noexcept;
void free_frame(void* frame) noexcept;

// Several tasks that one coroutine waits for, and what the first of them to fail threw. Lives in that coroutine's frame.
struct Join {
    std::coroutine_handle<> waiter;
    std::size_t pending = 0;
    std::exception_ptr exception;

    void note(const std::exception_ptr& thrown) noexcept {
        if (!exception) {
            exception = thrown;
        }
    }
    // One of them is done: what to continue with.
    [[nodiscard]] std::coroutine_handle<> end_one(const std::exception_ptr& thrown) noexcept {
        note(thrown);
        return --pending == 0 ? waiter : std::noop_coroutine();
    }
};

struct PromiseBase {
    std::coroutine_handle<> continuation;  // the awaiting coroutine, or none
    Join* join = nullptr;                  // in its place, when others are awaited as well
    std::exception_ptr exception;

    static void* operator new(std::size_t bytes) noexcept { return allocate_frame(bytes); }
    static void operator delete(void* frame) noexcept { free_frame(frame); }

    std::suspend_never initial_suspend() noexcept { return {}; }
    void unhandled_exception() noexcept { exception = std::current_exception(); }

    struct Final {
        bool await_ready() noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
            PromiseBase& promise = self.promise();
            if (promise.join != nullptr) {
                return promise.join->end_one(promise.exception);
            }
            return promise.continuation ? promise.continuation : std::noop_coroutine();
        }
        void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
};

// The owner of the task that is being started or resumed on this thread: how a new frame learns of it.
TaskOwner* current_owner() noexcept;

}  // namespace task_detail

template <class T = void>
class [[nodiscard]] Task {
public:
    struct promise_type;
    using Handle = std::coroutine_handle<promise_type>;

    Task() = default;
    explicit Task(Handle handle) : handle_(handle) {}
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Task& operator=(Task&& other) noexcept {
        if (this != &other) {
            reset();
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    ~Task() { reset(); }

    // False for an empty one: never started, moved from, or refused because there was no memory for its frame.
    explicit operator bool() const { return static_cast<bool>(handle_); }
    [[nodiscard]] bool done() const { return handle_ && handle_.done(); }
    // What it ended with, if it threw. Only when done.
    [[nodiscard]] std::exception_ptr exception() const { return handle_.promise().exception; }
    void reset() {
        if (handle_) {
            std::exchange(handle_, nullptr).destroy();
        }
    }

    // Awaiting: continues at once when the task is done already; rethrows what it threw. An empty task (no memory for
    // its frame) throws std::bad_alloc.
    bool await_ready() const {
        if (!handle_) {
            throw std::bad_alloc();
        }
        return handle_.done();
    }
    void await_suspend(std::coroutine_handle<> caller) noexcept { handle_.promise().continuation = caller; }
    T await_resume() {
        if (handle_.promise().exception) {
            std::rethrow_exception(handle_.promise().exception);
        }
        if constexpr (!std::is_void_v<T>) {
            return std::move(*handle_.promise().value);
        }
    }

    // For when_all: it counts among those that `join` waits for, unless it is done already.
    void add_to(task_detail::Join& join) noexcept {
        if (!handle_) {
            join.note(std::make_exception_ptr(std::bad_alloc()));
        } else if (handle_.done()) {
            join.note(handle_.promise().exception);
        } else {
            handle_.promise().join = &join;
            ++join.pending;
        }
    }

private:
    Handle handle_;
};

namespace task_detail {

template <class T>
struct ValuePromise : PromiseBase {
    std::optional<T> value;
    template <class U>
    void return_value(U&& result) {
        value.emplace(std::forward<U>(result));
    }
};

struct VoidPromise : PromiseBase {
    void return_void() noexcept {}
};

}  // namespace task_detail

template <class T>
struct Task<T>::promise_type
    : std::conditional_t<std::is_void_v<T>, task_detail::VoidPromise,
                         task_detail::ValuePromise<std::conditional_t<std::is_void_v<T>, char, T>>> {
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    static Task get_return_object_on_allocation_failure() noexcept { return Task(); }
};

}  // namespace penstock

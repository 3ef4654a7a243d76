// Internal.
// The way into a reactor from other threads: a bounded queue of messages, many writers, one reader. Posting
// never blocks and never waits for memory: a full mailbox says so.
//
// Wake-ups coalesce: the writer that turns `wake_pending_` on wakes the poller, the others rely on it. The
// reader turns it off *before* it drains, by a read-modify-write; so a writer that saw it on has its message
// seen by that drain, and none is lost. Nothing here costs the loop anything while nobody posts.
//
// Owned by a Reactor. `try_post` from any thread, also while and after the reactor stops (then false); the
// rest from the reactor's thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace penstock {

namespace platform {
class Poller;
}

// A callable that is moved once into a cell and run once. Callables up to kInlineBytes are stored in place,
// larger ones on the heap by the poster. Destroyed without being run when the mailbox goes away.
class Message {
public:
    static constexpr std::size_t kInlineBytes = 40;

    Message() = default;
    template <class Function>
        requires(!std::is_same_v<std::remove_cvref_t<Function>, Message>)
    explicit Message(Function&& function);
    Message(Message&& other) noexcept;
    Message& operator=(Message&& other) noexcept;
    ~Message() { reset(); }

    explicit operator bool() const { return actions_ != nullptr; }
    void operator()() { actions_->run(storage_); }
    void reset();

private:
    struct Actions {
        void (*run)(void* storage);
        void (*move)(void* from, void* to);  // leaves `from` destroyed
        void (*destroy)(void* storage);
    };
    template <class Function>
    static const Actions kInlineActions;
    template <class Function>
    static const Actions kHeapActions;

    alignas(std::max_align_t) std::byte storage_[kInlineBytes];
    const Actions* actions_ = nullptr;
};

class Mailbox {
public:
    // Room for `limit` messages, rounded up to a power of two and at least two. `poller` is woken and must
    // outlive this.
    Mailbox(std::uint32_t limit, platform::Poller& poller);
    ~Mailbox();
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    // False when full or closed; the message is then untouched. Any thread.
    [[nodiscard]] bool try_post(Message&& message);

    // Runs up to `limit` messages in the order in which they were posted; returns how many. When it stops at
    // the limit `has_more` tells, and the caller comes back.
    std::size_t run(std::size_t limit);
    [[nodiscard]] bool has_more() const;

    // Refuses further posts; those already in are still run by `run` or dropped by the destructor. Once or
    // more; any thread.
    void close();

private:
    struct Cell;

    // Set in `tail_` by `close`: a writer's compare-and-swap then fails, so none gets in after it.
    static constexpr std::uint64_t kClosedBit = std::uint64_t{1} << 63;

    const std::uint64_t mask_;
    std::unique_ptr<Cell[]> cells_;
    platform::Poller& poller_;
    alignas(64) std::atomic<std::uint64_t> tail_{0};
    alignas(64) std::uint64_t head_ = 0;
    alignas(64) std::atomic<bool> wake_pending_{false};
};

template <class Function>
const Message::Actions Message::kInlineActions = {
    [](void* storage) { (*std::launder(static_cast<Function*>(storage)))(); },
    [](void* from, void* to) {
        auto* source = std::launder(static_cast<Function*>(from));
        ::new (to) Function(std::move(*source));
        source->~Function();
    },
    [](void* storage) { std::launder(static_cast<Function*>(storage))->~Function(); },
};

template <class Function>
const Message::Actions Message::kHeapActions = {
    [](void* storage) { (**static_cast<Function**>(storage))(); },
    [](void* from, void* to) { *static_cast<Function**>(to) = *static_cast<Function**>(from); },
    [](void* storage) { delete *static_cast<Function**>(storage); },
};

template <class Function>
    requires(!std::is_same_v<std::remove_cvref_t<Function>, Message>)
Message::Message(Function&& function) {
    using Stored = std::remove_cvref_t<Function>;
    if constexpr (sizeof(Stored) <= kInlineBytes && alignof(Stored) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<Stored>) {
        ::new (static_cast<void*>(storage_)) Stored(std::forward<Function>(function));
        actions_ = &kInlineActions<Stored>;
    } else {
        *reinterpret_cast<Stored**>(storage_) = new Stored(std::forward<Function>(function));
        actions_ = &kHeapActions<Stored>;
    }
}

}  // namespace penstock

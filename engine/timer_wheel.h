// Internal.
// Deadlines in a hashed hierarchical timing wheel (Varghese and Lauck, 1987): linking, unlinking and expiring
// cost a few instructions whatever their number. Time is in milliseconds of the reactor's clock, counted in
// 32 bits from the reactor's start: it wraps after 49 days, so times are compared by difference.
//
// A deadline that moves later is one store (`TimerNode::deadline`); the node stays where it is linked, fires
// early and is then linked again. A deadline that moves earlier links the node anew. `schedule` knows which.
//
// Owned by a Reactor, used by its thread. Does not own nodes: whoever embeds one unlinks it before it dies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "penstock/engine/ensure.h"

namespace penstock {

struct TimerNode {
    TimerNode* next = nullptr;
    TimerNode** link = nullptr;    // what points at this node; nullptr when it is not linked
    std::uint32_t deadline = 0;    // when it is due; only meaningful while linked
    std::uint32_t linked_for = 0;  // the time whose slot it hangs in: never later than `deadline`

    [[nodiscard]] bool linked() const { return link != nullptr; }
};

class TimerWheel {
public:
    // Furthest deadline from now (three days); further ones may be cut to it, and then fire at it. Deadlines
    // more than half of the 49 days away cannot be told from past ones and count as such.
    static constexpr std::uint32_t kMaxDelayMs = (1u << 28) - 1;

    explicit TimerWheel(std::uint32_t now_ms);
    TimerWheel(const TimerWheel&) = delete;
    TimerWheel& operator=(const TimerWheel&) = delete;

    // Makes the node due at `deadline_ms`, which may be in the past: then it fires at the next `advance`.
    void schedule(TimerNode& node, std::uint32_t deadline_ms);
    void cancel(TimerNode& node);
    // Unlinks all nodes: none of them comes any more, and none refers to this wheel.
    void clear();

    // Moves time on and puts the nodes that are due, in the order of their times, into a list for `pop_due`;
    // nodes that fired early are linked again. The caller then takes one node at a time until there is none.
    // False when none has come by this; true when it may be so.
    bool advance(std::uint32_t now_ms);
    // The next node that is due, unlinked, or nullptr. A node cancelled or rescheduled by the handler of
    // another one is handled correctly.
    [[nodiscard]] TimerNode* pop_due();

    // Milliseconds until something may be due: 0 now, -1 never. Never later than the first deadline; may be
    // earlier, when a node only has to move to a finer level.
    [[nodiscard]] int next_timeout_ms();

    [[nodiscard]] std::uint32_t now_ms() const { return now_; }
    [[nodiscard]] std::size_t size() const { return size_; }

private:
    static constexpr int kSlotBits = 6;
    static constexpr std::uint32_t kSlots = 1u << kSlotBits;
    static constexpr int kLevels = 5;  // 64^5 ticks of a millisecond are more than kMaxDelayMs
    static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

    using Slots = std::array<std::array<TimerNode*, kSlots>, kLevels>;

    static bool is_later(std::uint32_t deadline_ms, std::uint32_t than_ms);
    void relink(TimerNode& node, std::uint32_t deadline_ms);
    void link(TimerNode& node);
    void unlink(TimerNode& node);
    static void forget(TimerNode* first);
    [[nodiscard]] TimerNode* take_slot(std::uint32_t level, std::uint32_t slot);
    [[nodiscard]] std::uint32_t ticks_to_next_slot() const;
    void advance_to_slots(std::uint32_t now_ms);
    [[nodiscard]] int look_for_timeout();
    void cascade();
    [[nodiscard]] TimerNode** expire(TimerNode** due_end);

    // A slot of level n stands for 64^n ticks and is named by digit n, in base 64, of the times in it. Level
    // 0 holds the times from `now_` to now_ + 63; past deadlines hang at `now_`. Level n above holds the 64
    // digits that follow the digit of `now_`: when time reaches one, its slot is emptied into finer levels.
    std::uint32_t now_;
    // No occupied slot begins sooner than so many ticks after `now_`. The nearest begins then, unless it may have been emptied
    // by hand, or has just come up: then `nearest_known_` is false, and who wants to know looks again. A busy reactor turns
    // thousands of times between two slots, and this is all it asks.
    std::uint32_t ticks_left_ = kNoSlot;
    bool nearest_known_ = false;
    std::size_t size_ = 0;  // nodes linked here, those in `due_` included
    TimerNode* due_ = nullptr;
    std::array<std::uint64_t, kLevels> occupied_{};  // a bit for each slot that is not empty
    Slots slots_{};
};

inline void TimerWheel::schedule(TimerNode& node, std::uint32_t deadline_ms) {
    // The difference, unsigned, is also large when the deadline is earlier than the node's slot.
    if (node.linked() && deadline_ms - node.linked_for <= kMaxDelayMs) [[likely]] {
        node.deadline = deadline_ms;
        return;
    }
    relink(node, deadline_ms);
}

inline bool TimerWheel::advance(std::uint32_t now_ms) {
    const std::uint32_t ticks = now_ms - now_;
    if (ticks < ticks_left_) [[likely]] {
        ticks_left_ -= ticks;
        now_ = now_ms;
        ensure_debug([this] { return ticks_left_ <= ticks_to_next_slot(); }, "timer wheel: a slot has come up unseen");
        return false;
    }
    advance_to_slots(now_ms);
    return true;
}

inline int TimerWheel::next_timeout_ms() {
    if (size_ == 0) {
        return -1;
    }
    return nearest_known_ ? static_cast<int>(ticks_left_) : look_for_timeout();
}

}  // namespace penstock

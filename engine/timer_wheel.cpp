#include "penstock/engine/timer_wheel.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace penstock {

TimerWheel::TimerWheel(std::uint32_t now_ms) : now_(now_ms) {}

void TimerWheel::cancel(TimerNode& node) {
    if (node.linked()) {
        unlink(node);
        --size_;
    }
}

void TimerWheel::clear() {
    for (std::uint32_t level = 0; level < kLevels; ++level) {
        for (std::uint32_t slot = 0; occupied_[level] != 0 && slot < kSlots; ++slot) {
            forget(take_slot(level, slot));
        }
    }
    forget(std::exchange(due_, nullptr));
    size_ = 0;
    ticks_left_ = kNoSlot;
    nearest_known_ = false;
}

void TimerWheel::forget(TimerNode* first) {
    for (TimerNode* node = first; node != nullptr;) {
        node->link = nullptr;
        node = std::exchange(node->next, nullptr);
    }
}

void TimerWheel::advance_to_slots(std::uint32_t now_ms) {
    TimerNode** due_end = &due_;
    while (*due_end != nullptr) {
        due_end = &(*due_end)->next;
    }
    // From one occupied slot to the next: what an advance costs follows from the nodes, not from the time.
    std::uint32_t ticks = ticks_to_next_slot();
    for (; ticks <= now_ms - now_; ticks = ticks_to_next_slot()) {
        now_ += ticks;
        cascade();
        due_end = expire(due_end);
    }
    ticks_left_ = ticks == kNoSlot ? kNoSlot : ticks - (now_ms - now_);
    nearest_known_ = false;
    now_ = now_ms;
}

int TimerWheel::look_for_timeout() {
    if (due_ != nullptr) {
        return 0;
    }
    ticks_left_ = ticks_to_next_slot();
    nearest_known_ = true;
    return static_cast<int>(ticks_left_);  // kMaxDelayMs at most: something is linked
}

TimerNode* TimerWheel::pop_due() {
    while (due_ != nullptr) {
        TimerNode& node = *due_;
        unlink(node);
        if (is_later(node.deadline, now_)) {
            link(node);  // another node's handler moved it on
            continue;
        }
        --size_;
        return &node;
    }
    return nullptr;
}

// Whether a node whose slot came up has to wait on. `schedule` lets no deadline of a linked node get further
// than kMaxDelayMs from its slot, so anything else is due, however far time jumped.
bool TimerWheel::is_later(std::uint32_t deadline_ms, std::uint32_t than_ms) {
    return deadline_ms - than_ms - 1 < kMaxDelayMs;
}

void TimerWheel::relink(TimerNode& node, std::uint32_t deadline_ms) {
    const std::uint32_t delay = deadline_ms - now_;
    if (delay > kMaxDelayMs) {
        const bool past = delay > std::numeric_limits<std::uint32_t>::max() / 2;
        deadline_ms = past ? now_ : now_ + kMaxDelayMs;
    }
    if (node.linked()) {
        if (deadline_ms - node.linked_for <= kMaxDelayMs) {
            node.deadline = deadline_ms;
            return;
        }
        unlink(node);
    } else {
        ++size_;
    }
    node.deadline = deadline_ms;
    link(node);
}

void TimerWheel::link(TimerNode& node) {
    node.linked_for = node.deadline;
    const std::uint32_t delay = node.deadline - now_;
    const auto level = static_cast<std::uint32_t>(std::bit_width(delay | 1) - 1) / kSlotBits;
    const std::uint32_t slot = (node.deadline >> (level * kSlotBits)) % kSlots;
    TimerNode** head = &slots_[level][slot];
    node.next = *head;
    node.link = head;
    if (node.next != nullptr) {
        node.next->link = &node.next;
    }
    *head = &node;
    occupied_[level] |= std::uint64_t{1} << slot;
    const std::uint32_t slot_begins = node.deadline >> (level * kSlotBits) << (level * kSlotBits);
    ticks_left_ = std::min(ticks_left_, slot_begins - now_);
}

void TimerWheel::unlink(TimerNode& node) {
    *node.link = node.next;
    if (node.next != nullptr) {
        node.next->link = node.link;
        node.next = nullptr;
    } else {
        // The last of its list. If it was also the first, `link` points into the table and tells which slot
        // is now empty; an unsigned difference is out of range for all other places.
        const auto offset =
            reinterpret_cast<std::uintptr_t>(node.link) - reinterpret_cast<std::uintptr_t>(&slots_);
        if (offset < sizeof(slots_)) {
            const std::size_t index = offset / sizeof(TimerNode*);
            occupied_[index / kSlots] &= ~(std::uint64_t{1} << (index % kSlots));
            nearest_known_ = false;
        }
    }
    node.link = nullptr;
}

TimerNode* TimerWheel::take_slot(std::uint32_t level, std::uint32_t slot) {
    TimerNode* first = slots_[level][slot];
    slots_[level][slot] = nullptr;
    occupied_[level] &= ~(std::uint64_t{1} << slot);
    return first;
}

// Ticks until time reaches an occupied slot of any level; the maximum when there is none.
std::uint32_t TimerWheel::ticks_to_next_slot() const {
    std::uint32_t least = kNoSlot;
    if (occupied_[0] != 0) {
        least = static_cast<std::uint32_t>(
            std::countr_zero(std::rotr(occupied_[0], static_cast<int>(now_ % kSlots))));
    }
    for (std::uint32_t level = 1; level < kLevels; ++level) {
        if (occupied_[level] == 0) {
            continue;
        }
        const std::uint32_t shift = level * kSlotBits;
        const std::uint32_t next_digit = (now_ >> shift) + 1;
        const int distance =
            std::countr_zero(std::rotr(occupied_[level], static_cast<int>(next_digit % kSlots)));
        const std::uint32_t starts = (next_digit + static_cast<std::uint32_t>(distance)) << shift;
        least = std::min(least, starts - now_);
    }
    return least;
}

// Empties the slots that begin at `now_` into finer levels: coarse ones first, as they may fill finer ones.
// Must run before time leaves `now_`, or their digits would be read as those of the next round.
void TimerWheel::cascade() {
    const int aligned_levels = std::min(std::countr_zero(now_) / kSlotBits, kLevels - 1);
    for (auto level = static_cast<std::uint32_t>(aligned_levels); level > 0; --level) {
        TimerNode* node = take_slot(level, (now_ >> (level * kSlotBits)) % kSlots);
        while (node != nullptr) {
            TimerNode* next = node->next;
            link(*node);
            node = next;
        }
    }
}

// Moves what is due at `now_` to `*due_end`, and links again what was moved later in the meantime.
TimerNode** TimerWheel::expire(TimerNode** due_end) {
    TimerNode* node = take_slot(0, now_ % kSlots);
    while (node != nullptr) {
        TimerNode* next = node->next;
        if (is_later(node->deadline, now_)) {
            link(*node);
        } else {
            *due_end = node;
            node->link = due_end;
            node->next = nullptr;
            due_end = &node->next;
        }
        node = next;
    }
    return due_end;
}

}  // namespace penstock

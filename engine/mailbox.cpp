#include "penstock/engine/mailbox.h"

#include <algorithm>
#include <bit>
#include <thread>

#include "penstock/engine/ensure.h"
#include "penstock/platform/poller.h"

namespace penstock {

Message::Message(Message&& other) noexcept {
    *this = std::move(other);
}

Message& Message::operator=(Message&& other) noexcept {
    if (this != &other) {
        reset();
        if (other.actions_ != nullptr) {
            other.actions_->move(other.storage_, storage_);
            actions_ = std::exchange(other.actions_, nullptr);
        }
    }
    return *this;
}

void Message::reset() {
    // Emptied first: the callable's destructor may lead back here.
    if (const Actions* actions = std::exchange(actions_, nullptr); actions != nullptr) {
        actions->destroy(storage_);
    }
}

// Vyukov's bounded queue. A cell's sequence says whose turn it is: equal to a position, the writer who takes
// that position may fill it; one more, the reader may empty it; then it is set to that cell's position one
// round later.
struct Mailbox::Cell {
    std::atomic<std::uint64_t> sequence{0};
    Message message;
};

// One cell would be free and full at the same sequence, hence two.
Mailbox::Mailbox(std::uint32_t limit, platform::Poller& poller)
    : mask_(std::bit_ceil(std::uint64_t{std::max(limit, 2u)}) - 1),
      cells_(std::make_unique<Cell[]>(mask_ + 1)), poller_(poller) {
    static_assert(sizeof(Cell) == 64, "a cell is a cache line, so that two writers seldom share one");
    for (std::uint64_t position = 0; position <= mask_; ++position) {
        cells_[position].sequence.store(position, std::memory_order_relaxed);
    }
}

Mailbox::~Mailbox() {
    // Closed first: what a dropped message destroys may try to post here.
    close();
    for (; has_more(); ++head_) {
        cells_[head_ & mask_].message.reset();
    }
}

bool Mailbox::try_post(Message&& message) {
    ensure(static_cast<bool>(message), "an empty message is posted");
    std::uint64_t position = tail_.load(std::memory_order_relaxed);
    Cell* cell = nullptr;
    for (;;) {
        if ((position & kClosedBit) != 0) {
            return false;
        }
        cell = &cells_[position & mask_];
        const auto lead =
            static_cast<std::int64_t>(cell->sequence.load(std::memory_order_acquire) - position);
        if (lead < 0) {
            return false;  // the reader has not emptied it since the last round
        }
        if (lead > 0) {
            position = tail_.load(std::memory_order_relaxed);  // another writer took this position
        } else if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
            break;
        }
    }
    cell->message = std::move(message);
    cell->sequence.store(position + 1, std::memory_order_release);
    // Always a read-modify-write, although a plain load would be cheaper: a load could be answered before the
    // store above is seen by the reader, which then turns the flag off, finds no message and sleeps.
    if (!wake_pending_.exchange(true, std::memory_order_acq_rel)) {
        poller_.wake();
    }
    return true;
}

std::size_t Mailbox::run(std::size_t limit) {
    wake_pending_.exchange(false, std::memory_order_acq_rel);
    // Once it is closed the last position is known, and whoever has taken one fills it in a few instructions.
    const auto wait_for_writer = [this] {
        const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
        const bool one_is_left = (tail & kClosedBit) != 0 && (tail & ~kClosedBit) != head_;
        while (one_is_left && !has_more()) {
            std::this_thread::yield();
        }
        return one_is_left;
    };
    std::size_t count = 0;
    for (; count < limit && (has_more() || wait_for_writer()); ++count) {
        const std::uint64_t position = head_++;
        Cell& cell = cells_[position & mask_];
        cell.message();
        cell.message.reset();
        cell.sequence.store(position + mask_ + 1, std::memory_order_release);
    }
    return count;
}

// A writer that has taken the position but not yet filled the cell counts as not there: it wakes the poller
// when it has.
bool Mailbox::has_more() const {
    return cells_[head_ & mask_].sequence.load(std::memory_order_acquire) == head_ + 1;
}

void Mailbox::close() {
    tail_.fetch_or(kClosedBit, std::memory_order_relaxed);
}

}  // namespace penstock

#include "penstock/engine/connection_pool.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "penstock/engine/ensure.h"

namespace penstock {

namespace {

constexpr std::size_t kCacheLineBytes = 64;
static_assert(kSlotsPerSlab * sizeof(Connection) % kCacheLineBytes == 0, "aligned_alloc wants a multiple");

}  // namespace

ConnectionPool::ConnectionPool(std::uint32_t limit) : limit_(limit) {
    slabs_.reserve(limit / kSlotsPerSlab + 1);  // so that acquiring never throws
}

ConnectionPool::~ConnectionPool() { ensure(in_use_ == 0, "connection pool: destroyed with connections open"); }

Connection* ConnectionPool::try_acquire() {
    if (in_use_ >= limit_) {
        return nullptr;
    }
    std::uint32_t number = first_with_room_;
    while (number < slabs_.size() && slabs_[number].slots != nullptr &&
           slabs_[number].first_free == Connection::kNone) {
        ++number;
    }
    first_with_room_ = number;
    if ((number == slabs_.size() || slabs_[number].slots == nullptr) && !make_slab(number)) {
        return nullptr;
    }
    Slab& slab = slabs_[number];
    Connection& slot = slab.slots[slab.first_free % kSlotsPerSlab];
    slab.first_free = slot.ready_next_;
    slot.ready_next_ = Connection::kNone;
    if (slab.in_use++ == 0) {
        --empty_slabs_;
    }
    ++in_use_;
    return &slot;
}

bool ConnectionPool::make_slab(std::uint32_t number) {
    if (number == slabs_.size()) {
        slabs_.emplace_back();
    }
    Slab& slab = slabs_[number];
    void* const memory = std::aligned_alloc(kCacheLineBytes, kSlotsPerSlab * sizeof(Connection));
    if (memory == nullptr) {
        return false;
    }
    auto* const slots = static_cast<Connection*>(memory);
    std::uninitialized_default_construct_n(slots, kSlotsPerSlab);
    slab.slots.reset(slots);
    for (std::uint32_t i = 0; i < kSlotsPerSlab; ++i) {
        Connection& slot = slab.slots[i];
        slot.index_ = number * kSlotsPerSlab + i;
        slot.generation_ = slab.next_generation;
        slot.ready_next_ = i + 1 < kSlotsPerSlab ? slot.index_ + 1 : Connection::kNone;
    }
    slab.first_free = number * kSlotsPerSlab;
    ++empty_slabs_;
    return true;
}

void ConnectionPool::SlotsDeleter::operator()(Connection* slots) const {
    std::destroy_n(slots, kSlotsPerSlab);
    std::free(slots);
}

void ConnectionPool::release(Connection& connection) {
    const std::uint32_t number = connection.index_ / kSlotsPerSlab;
    Slab& slab = slabs_[number];
    connection.change_state(ConnectionState::free);
    ++connection.generation_;
    connection.ready_next_ = slab.first_free;
    slab.first_free = connection.index_;
    slab.next_generation = std::max(slab.next_generation, connection.generation_);
    first_with_room_ = std::min(first_with_room_, number);
    --in_use_;
    if (--slab.in_use == 0 && ++empty_slabs_ > kFreeSlabLimit) {
        slab.slots.reset();
        slab.first_free = Connection::kNone;
        --empty_slabs_;
    }
}

std::size_t ConnectionPool::memory_bytes() const {
    std::size_t bytes = slabs_.capacity() * sizeof(Slab);
    for (const Slab& slab : slabs_) {
        bytes += slab.slots != nullptr ? kSlotsPerSlab * sizeof(Connection) : 0;
    }
    return bytes;
}

}  // namespace penstock

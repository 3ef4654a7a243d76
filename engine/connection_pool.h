// Internal.
// The slots of a reactor's connections, in slabs that are made when needed and given back when empty, above a
// small cap. A slot's index names it for the poller; its generation tells a stale name from a live one.
//
// Owned by a Reactor, used by its thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/engine/config.h"
#include "penstock/engine/connection.h"

namespace penstock {

class ConnectionPool {
public:
    // At most `limit` slots in use at once.
    explicit ConnectionPool(std::uint32_t limit);
    ~ConnectionPool();
    ConnectionPool(const ConnectionPool&) = delete;
    ConnectionPool& operator=(const ConnectionPool&) = delete;

    // A slot in state `free`, or nullptr at the limit or without memory.
    [[nodiscard]] Connection* try_acquire();
    // Ends the slot's generation. May free its slab.
    void release(Connection& connection);

    // nullptr when the slot has been released since, whether or not it is in use again.
    [[nodiscard]] Connection* find(ConnectionToken token) {
        const std::uint32_t slab = token.index / kSlotsPerSlab;
        if (slab >= slabs_.size() || slabs_[slab].slots == nullptr) [[unlikely]] {
            return nullptr;
        }
        Connection& slot = slabs_[slab].slots[token.index % kSlotsPerSlab];
        return slot.generation_ == token.generation && slot.state_ != ConnectionState::free ? &slot : nullptr;
    }
    // A slot that is known to be in use.
    [[nodiscard]] Connection& at(std::uint32_t index) {
        return slabs_[index / kSlotsPerSlab].slots[index % kSlotsPerSlab];
    }

    // Calls function(Connection&) for each slot in use; it may close but not release.
    template <class Function>
    void for_each(Function function) {
        for (Slab& slab : slabs_) {
            for (std::uint32_t i = 0; slab.slots != nullptr && i < kSlotsPerSlab; ++i) {
                if (slab.slots[i].state_ != ConnectionState::free) {
                    function(slab.slots[i]);
                }
            }
        }
    }

    [[nodiscard]] std::uint32_t in_use() const { return in_use_; }
    // Bytes taken from the allocator for slots and for the table of slabs.
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    // Slots that begin at cache lines, without the bytes that new[] keeps in front of an array.
    struct SlotsDeleter {
        void operator()(Connection* slots) const;
    };
    // Of a size by which the table's end is found without a division.
    struct alignas(32) Slab {
        std::unique_ptr<Connection[], SlotsDeleter> slots;
        std::uint32_t in_use = 0;
        std::uint32_t first_free = Connection::kNone;
        // Generations of a freed slab's slots start here when it is made again, so that no old token fits.
        std::uint32_t next_generation = 1;
    };

    [[nodiscard]] bool make_slab(std::uint32_t number);

    const std::uint32_t limit_;
    std::uint32_t in_use_ = 0;
    std::uint32_t empty_slabs_ = 0;
    std::uint32_t first_with_room_ = 0;  // no slab below has a free slot
    std::vector<Slab> slabs_;
};

}  // namespace penstock

// Internal.
// Memory in pieces of one size, leased and given back: 16 KiB blocks for input and output, 4 KiB pages for
// exchanges. Free ones are kept up to a cap; above it they return to the allocator, so that a burst does not
// stay in the process. The pool never holds more than its limit, which is how memory follows from limits.
//
// Owned by a Reactor, used by its thread alone. Does not own what is leased: the lease-holder gives it back,
// and the destructor checks that all came back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "penstock/engine/ensure.h"
#include "penstock/engine/poison.h"

namespace penstock {

class BlockPool {
public:
    // `block_bytes`: a multiple of 64. At most `limit` leased at once, `free_limit` kept when free.
    BlockPool(std::size_t block_bytes, std::uint32_t limit, std::uint32_t free_limit);
    ~BlockPool();
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;

    // 64-byte aligned, contents undefined; nullptr at the limit (less `reserve`) or when the allocator has
    // nothing, which the caller must handle: a peer can bring it about.
    [[nodiscard]] std::byte* try_acquire(std::uint32_t reserve = 0);
    void release(std::byte* block);

    // Gives every free block back to the allocator.
    void trim();

    [[nodiscard]] std::size_t block_bytes() const { return block_bytes_; }
    [[nodiscard]] std::uint32_t leased() const { return held_ - free_; }
    [[nodiscard]] std::uint32_t free() const { return free_; }
    [[nodiscard]] std::uint32_t limit() const { return limit_; }

private:
    struct FreeBlock {
        FreeBlock* next;
    };

    [[nodiscard]] std::byte* acquire_from_allocator();
    static void release_to_allocator(std::byte* block);

    const std::size_t block_bytes_;
    const std::uint32_t limit_;
    const std::uint32_t free_limit_;
    std::uint32_t held_ = 0;  // leased or free
    std::uint32_t free_ = 0;
    FreeBlock* first_free_ = nullptr;  // last in, first out: the block that left the cache last comes first
};

inline std::byte* BlockPool::try_acquire(std::uint32_t reserve) {
    if (limit_ - leased() <= reserve) [[unlikely]] {
        return nullptr;
    }
    FreeBlock* block = first_free_;
    if (block == nullptr) [[unlikely]] {
        return acquire_from_allocator();
    }
    unpoison(block, block_bytes_);
    first_free_ = block->next;
    --free_;
    return reinterpret_cast<std::byte*>(block);
}

inline void BlockPool::release(std::byte* block) {
    ensure(leased() > 0, "a block is released that was not leased");
    ensure(!is_poisoned(block), "a block is released twice");
    if (free_ >= free_limit_) [[unlikely]] {
        --held_;
        unpoison(block, block_bytes_);  // its holder may have poisoned parts
        release_to_allocator(block);
        return;
    }
    first_free_ = ::new (static_cast<void*>(block)) FreeBlock{first_free_};
    ++free_;
    poison(block, block_bytes_);
}

}  // namespace penstock

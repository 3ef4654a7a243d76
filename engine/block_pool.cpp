#include "penstock/engine/block_pool.h"

namespace penstock {

namespace {

// A cache line: two blocks never share one, and pieces inside can be aligned to it.
constexpr std::size_t kBlockAlignment = 64;

}  // namespace

BlockPool::BlockPool(std::size_t block_bytes, std::uint32_t limit, std::uint32_t free_limit)
    : block_bytes_(block_bytes), limit_(limit), free_limit_(free_limit) {
    ensure(block_bytes > 0 && block_bytes % kBlockAlignment == 0, "a pool's block size is no multiple of 64");
}

BlockPool::~BlockPool() {
    ensure(leased() == 0, "a pool is destroyed while blocks of it are leased");
    trim();
}

void BlockPool::trim() {
    while (first_free_ != nullptr) {
        FreeBlock* block = first_free_;
        unpoison(block, block_bytes_);
        first_free_ = block->next;
        release_to_allocator(reinterpret_cast<std::byte*>(block));
    }
    held_ -= free_;
    free_ = 0;
}

std::byte* BlockPool::acquire_from_allocator() {
    void* block = ::operator new (block_bytes_, std::align_val_t{kBlockAlignment}, std::nothrow);
    if (block != nullptr) {
        ++held_;
    }
    return static_cast<std::byte*>(block);
}

void BlockPool::release_to_allocator(std::byte* block) {
    ::operator delete (block, std::align_val_t{kBlockAlignment});
}

}  // namespace penstock

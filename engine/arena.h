// Internal.
// Memory of one exchange, taken from pages and given back all at once. The first page is the caller's, and
// usually holds the exchange itself in front; further pages come from the pool; what is larger than a page
// comes from the heap. Nothing is destroyed: keep only trivially destructible things here, or destroy them.
//
// Owned by an Exchange, used by its reactor's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "penstock/engine/block_pool.h"
#include "penstock/engine/ensure.h"
#include "penstock/engine/poison.h"

namespace penstock {

class Arena {
public:
    // Takes over `first_page`, leased from `pages`; its first `used_bytes` are taken already.
    Arena(BlockPool& pages, std::byte* first_page, std::size_t used_bytes);
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    // Gives back every page but the first, whose holder may live in it, and every heap piece.
    ~Arena() {
        unpoison(first_page_, pages_.block_bytes());
        if (further_pages_ != nullptr || heap_pieces_ != nullptr) {
            release_extra();
        }
    }

    // Aligned to `alignment` (a power of two up to 64); nullptr when the page pool or the heap has nothing
    // or when this arena has reached `kHeapLimitBytes` of heap pieces.
    [[nodiscard]] void* try_allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t));
    // A copy that lives as long as the arena; a null view (data() == nullptr) when there is no memory.
    [[nodiscard]] std::string_view try_copy(std::string_view text);

    // Bytes taken from further pages and the heap, for tests and budgets.
    [[nodiscard]] std::size_t extra_bytes() const { return extra_bytes_; }

    // What one exchange may take from the heap: parameters, decoded text and frames are far below it.
    static constexpr std::size_t kHeapLimitBytes = 1 << 20;

private:
    struct Link {
        Link* next;
    };

    [[nodiscard]] void* allocate_slow(std::size_t bytes, std::size_t alignment);
    [[nodiscard]] void* allocate_from_heap(std::size_t bytes);
    void release_extra();

    BlockPool& pages_;
    std::byte* first_page_;
    std::byte* cursor_;
    std::byte* end_;
    Link* further_pages_ = nullptr;
    Link* heap_pieces_ = nullptr;
    std::size_t extra_bytes_ = 0;
    std::size_t heap_bytes_ = 0;
};

inline Arena::Arena(BlockPool& pages, std::byte* first_page, std::size_t used_bytes)
    : pages_(pages), first_page_(first_page), cursor_(first_page + used_bytes),
      end_(first_page + pages.block_bytes()) {
    ensure(used_bytes <= pages.block_bytes(), "an arena's first page is overfull");
    poison(cursor_, pages.block_bytes() - used_bytes);
}

inline void* Arena::try_allocate(std::size_t bytes, std::size_t alignment) {
    const std::size_t padding = -reinterpret_cast<std::uintptr_t>(cursor_) & (alignment - 1);
    const auto room = static_cast<std::size_t>(end_ - cursor_);
    if (padding > room || bytes > room - padding) [[unlikely]] {
        return allocate_slow(bytes, alignment);
    }
    std::byte* piece = cursor_ + padding;
    cursor_ = piece + bytes;
    unpoison(piece, bytes);
    return piece;
}

}  // namespace penstock

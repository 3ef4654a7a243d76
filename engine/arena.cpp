#include "penstock/engine/arena.h"

#include <cstring>

namespace penstock {

namespace {

// A heap piece is its link, then the bytes, aligned for whatever an arena may be asked for.
constexpr std::size_t kMaxAlignment = 64;

}  // namespace

std::string_view Arena::try_copy(std::string_view text) {
    void* copy = try_allocate(text.size(), 1);
    if (copy == nullptr) {
        return {};
    }
    if (!text.empty()) {
        std::memcpy(copy, text.data(), text.size());
    }
    return {static_cast<const char*>(copy), text.size()};
}

void* Arena::allocate_slow(std::size_t bytes, std::size_t alignment) {
    ensure(alignment > 0 && alignment <= kMaxAlignment && (alignment & (alignment - 1)) == 0,
           "an arena's alignment is no power of two up to 64");
    const std::size_t page_bytes = pages_.block_bytes();
    const std::size_t offset = (sizeof(Link) + alignment - 1) & ~(alignment - 1);
    if (bytes > page_bytes - offset) {
        return allocate_from_heap(bytes);
    }
    std::byte* page = pages_.try_acquire();
    if (page == nullptr) {
        return nullptr;
    }
    further_pages_ = ::new (static_cast<void*>(page)) Link{further_pages_};
    extra_bytes_ += page_bytes;
    poison(page + sizeof(Link), page_bytes - sizeof(Link));
    unpoison(page + offset, bytes);

    // Goes on in the page with more room left, so that a large piece does not strand a page hardly begun.
    std::byte* rest = page + offset + bytes;
    std::byte* page_end = page + page_bytes;
    if (page_end - rest > end_ - cursor_) {
        cursor_ = rest;
        end_ = page_end;
    }
    return page + offset;
}

void* Arena::allocate_from_heap(std::size_t bytes) {
    if (bytes > kHeapLimitBytes - heap_bytes_) {
        return nullptr;
    }
    void* piece = ::operator new (kMaxAlignment + bytes, std::align_val_t{kMaxAlignment}, std::nothrow);
    if (piece == nullptr) {
        return nullptr;
    }
    heap_pieces_ = ::new (piece) Link{heap_pieces_};
    heap_bytes_ += bytes;
    extra_bytes_ += bytes;
    return static_cast<std::byte*>(piece) + kMaxAlignment;
}

void Arena::release_extra() {
    while (further_pages_ != nullptr) {
        Link* page = further_pages_;
        further_pages_ = page->next;
        pages_.release(reinterpret_cast<std::byte*>(page));
    }
    while (heap_pieces_ != nullptr) {
        Link* piece = heap_pieces_;
        heap_pieces_ = piece->next;
        ::operator delete (static_cast<void*>(piece), std::align_val_t{kMaxAlignment});
    }
}

}  // namespace penstock

#include "penstock/protocols/http/coding_stream.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace penstock {

// Stands in front of what is given out, so that this has malloc's alignment too.
struct alignas(std::max_align_t) CodingMemory::Block {
    Block* previous;
    Block* next;
    std::size_t size;
};

bool ByteSink::append(void* target, std::string_view bytes) {
    try {
        static_cast<std::string*>(target)->append(bytes);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

void* CodingMemory::allocate(void* memory, std::size_t size) {
    auto& self = *static_cast<CodingMemory*>(memory);
    if (size > self.limit_bytes_ - self.used_bytes_ || size > SIZE_MAX - sizeof(Block)) {
        return nullptr;
    }
    auto* block = static_cast<Block*>(std::malloc(sizeof(Block) + size));
    if (block == nullptr) {
        return nullptr;
    }
    *block = {nullptr, self.first_, size};
    if (self.first_ != nullptr) {
        self.first_->previous = block;
    }
    self.first_ = block;
    self.used_bytes_ += size;
    self.peak_bytes_ = std::max(self.peak_bytes_, self.used_bytes_);
    return block + 1;
}

void CodingMemory::release(void* memory, void* given) {
    if (given == nullptr) {
        return;
    }
    auto& self = *static_cast<CodingMemory*>(memory);
    Block* block = static_cast<Block*>(given) - 1;
    (block->previous != nullptr ? block->previous->next : self.first_) = block->next;
    if (block->next != nullptr) {
        block->next->previous = block->previous;
    }
    self.used_bytes_ -= block->size;
    std::free(block);
}

void CodingMemory::release_all() {
    while (first_ != nullptr) {
        release(this, first_ + 1);
    }
}

}  // namespace penstock

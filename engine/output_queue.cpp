#include "penstock/engine/output_queue.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "penstock/engine/ensure.h"

namespace penstock {

namespace {

// How a string lies in a block before it is released.
void destroy_string(void* owner) {
    static_cast<std::string*>(owner)->~basic_string();
}

constexpr std::size_t align_up(std::size_t value, std::size_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace

void FileRange::drop() const {
    if (release != nullptr) {
        release(owner);
    } else {
        platform::close_descriptor(fd);
    }
}

OutputQueue::~OutputQueue() {
    ensure(first_ == nullptr, "an output queue is destroyed before it was cleared");
}

std::span<char> OutputQueue::try_reserve(BlockPool& pool, std::size_t size) {
    ensure(size <= kMaxReserveBytes, "more than a block's room is reserved in an output queue");
    Block* block = try_block_with(pool, std::max<std::size_t>(size, 1));
    if (block == nullptr) {
        return {};
    }
    return {block->cursor(), block->room()};
}

void OutputQueue::commit(std::size_t size) {
    if (size == 0) {
        return;
    }
    ensure(first_ != nullptr, "bytes are committed that were not reserved");
    Block* block = first_->last;
    ensure(size <= block->room(), "more bytes are committed than were reserved");
    if (block->count > 0 && block->piece(block->count - std::size_t{1})->ends_at(block->cursor())) {
        block->piece(block->count - std::size_t{1})->memory.size += size;
    } else {
        block->add_piece(std::string_view(block->cursor(), size), nullptr, nullptr);
    }
    block->used_bytes += static_cast<std::uint32_t>(size);
    memory_bytes_ += size;
}

bool OutputQueue::try_append_copy(BlockPool& pool, std::string_view bytes) {
    if (bytes.empty()) {
        return true;
    }
    const std::size_t room = first_ != nullptr ? first_->last->room() : 0;
    Block* block = first_ != nullptr ? first_->last : nullptr;
    if (bytes.size() > room) {
        constexpr std::size_t kFreshRoom = kIoBlockBytes - sizeof(Block) - sizeof(Piece);
        if (!try_add_blocks(pool, (bytes.size() - room - 1) / kFreshRoom + 1)) {
            return false;
        }
        block = block != nullptr ? block : first_;
    }
    // Filled block by block: `commit` adds to the one that is named last.
    for (;;) {
        first_->last = block;
        const std::size_t size = std::min(bytes.size(), block->room());
        std::memcpy(block->cursor(), bytes.data(), size);
        commit(size);
        bytes.remove_prefix(size);
        if (bytes.empty()) {
            return true;
        }
        block = block->next;
    }
}

bool OutputQueue::try_append_external(BlockPool& pool, std::string_view bytes, void* owner,
                                      void (*release)(void*)) {
    if (bytes.empty()) {
        if (release != nullptr) {
            release(owner);
        }
        return true;
    }
    Block* block = try_block_with(pool, 0);
    if (block == nullptr) {
        return false;
    }
    block->add_piece(bytes, owner, release);
    memory_bytes_ += bytes.size();
    return true;
}

// The string itself moves into the block, next to its descriptor: no memory is asked for. A short one, whose
// bytes lie inside it, stays where it is until it is released, as the block does.
bool OutputQueue::try_append_string(BlockPool& pool, std::string&& bytes) {
    if (bytes.empty()) {
        return true;
    }
    Block* block = try_block_with(pool, sizeof(std::string) + alignof(std::string) - 1);
    if (block == nullptr) {
        return false;
    }
    const std::size_t offset = align_up(block->used_bytes, alignof(std::string));
    void* place = reinterpret_cast<std::byte*>(block) + offset;
    auto* owner = ::new (place) std::string(std::move(bytes));
    block->used_bytes = static_cast<std::uint32_t>(offset + sizeof(std::string));
    block->add_piece(std::string_view(*owner), static_cast<void*>(owner), &destroy_string);
    memory_bytes_ += owner->size();
    return true;
}

bool OutputQueue::try_append_file(BlockPool& pool, const FileRange& range) {
    if (range.size == 0) {
        range.drop();
        return true;
    }
    Block* block = try_block_with(pool, 0);
    if (block == nullptr) {
        return false;
    }
    block->add_piece(range);
    return true;
}

bool OutputQueue::ends_with_file() const {
    if (first_ == nullptr || first_->last->spent()) {
        return false;
    }
    Block* last = first_->last;
    return last->piece(last->count - std::size_t{1})->is_file();
}

const FileRange* OutputQueue::front_file() const {
    if (first_ == nullptr || first_->spent()) {
        return nullptr;
    }
    const Piece* piece = first_->piece(first_->front);
    return piece->is_file() ? &piece->file : nullptr;
}

void OutputQueue::set_front_file_warm(std::uint64_t end) { first_->piece(first_->front)->file.warm_end = end; }

std::size_t OutputQueue::gather(std::span<platform::SendPiece> pieces, bool* file_follows) const {
    *file_follows = false;
    std::size_t filled = 0;
    for (Block* block = first_; block != nullptr; block = block->next) {
        for (std::size_t index = block->front; index < block->count; ++index) {
            const Piece* piece = block->piece(index);
            if (piece->is_file()) {
                *file_follows = true;
                return filled;
            }
            if (filled == pieces.size()) {
                return filled;
            }
            pieces[filled++] = {piece->memory.data, static_cast<std::size_t>(piece->memory.size)};
        }
    }
    return filled;
}

void OutputQueue::consume(BlockPool& pool, std::size_t bytes) {
    while (bytes > 0) {
        ensure(first_ != nullptr && !first_->spent(), "more is consumed than an output queue holds");
        Piece* piece = first_->piece(first_->front);
        if (bytes >= piece->size()) {
            bytes -= static_cast<std::size_t>(piece->size());
            drop_front_piece(pool);
        } else if (piece->is_file()) {
            piece->file.offset += bytes;
            piece->file.size -= bytes;
            return;
        } else {
            piece->memory.data += bytes;
            piece->memory.size -= bytes;
            memory_bytes_ -= bytes;
            return;
        }
    }
    drop_spent_blocks(pool);
}

void OutputQueue::clear(BlockPool& pool) {
    drop_spent_blocks(pool);
    while (first_ != nullptr) {
        drop_front_piece(pool);
    }
}

// The last block, or a fresh one, with room for `bytes` and one descriptor; nullptr when the pool has none.
OutputQueue::Block* OutputQueue::try_block_with(BlockPool& pool, std::size_t bytes) {
    static_assert(sizeof(Piece) <= 56 && sizeof(Piece) % alignof(Piece) == 0);
    static_assert(sizeof(Block) + kMaxReserveBytes + sizeof(Piece) <= kIoBlockBytes);
    static_assert(kIoBlockBytes / sizeof(Piece) <= std::numeric_limits<std::uint16_t>::max());
    if (first_ != nullptr) [[likely]] {
        Block* last = first_->last;
        if (last->used_bytes + bytes + (last->count + std::size_t{1}) * sizeof(Piece) <= last->size_bytes) {
            return last;
        }
    }
    if (first_ == nullptr) [[likely]] {
        std::byte* const memory = pool.try_acquire();
        if (memory == nullptr) [[unlikely]] {
            return nullptr;
        }
        first_ = ::new (static_cast<void*>(memory)) Block;
        return first_;
    }
    if (!try_add_blocks(pool, 1)) {
        return nullptr;
    }
    Block* fresh = first_->last->next;
    first_->last = fresh;
    return fresh;
}

// Hangs `count` fresh blocks behind the last one, which stays the one named last: all or none.
bool OutputQueue::try_add_blocks(BlockPool& pool, std::size_t count) {
    ensure(pool.block_bytes() == kIoBlockBytes, "an output queue is given a pool of other blocks");
    if (count > pool.limit() - pool.leased()) {
        return false;
    }
    Block* chain = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
        std::byte* memory = pool.try_acquire();
        if (memory == nullptr) {
            while (chain != nullptr) {
                pool.release(reinterpret_cast<std::byte*>(std::exchange(chain, chain->next)));
            }
            return false;
        }
        Block* block = ::new (static_cast<void*>(memory)) Block;
        block->next = chain;
        chain = block;
    }
    (first_ != nullptr ? first_->last->next : first_) = chain;
    return true;
}

// Without memory for it everything stays as it is.
void OutputQueue::slim(BlockPool& pool) {
    if (first_ == nullptr || first_->size_bytes != kIoBlockBytes || first_->next != nullptr || first_->front + 1 != first_->count) {
        return;
    }
    constexpr std::size_t kSlimBytes = sizeof(Block) + sizeof(Piece);
    static_assert(kSlimBytes % alignof(Block) == 0 && alignof(Piece) <= alignof(Block));
    Piece* const piece = first_->piece(first_->front);
    const auto lies_inside = [block = reinterpret_cast<const std::byte*>(first_)](const void* place) {
        return !std::less<>()(static_cast<const std::byte*>(place), block) &&
               std::less<>()(static_cast<const std::byte*>(place), block + kIoBlockBytes);
    };
    if (!piece->is_file() && (lies_inside(piece->memory.data) || lies_inside(piece->memory.owner))) {
        return;
    }
    void* const memory = ::operator new(kSlimBytes, std::nothrow);
    if (memory == nullptr) {
        return;
    }
    auto* const slim = ::new (memory) Block;
    slim->size_bytes = kSlimBytes;
    slim->count = 1;
    ::new (static_cast<void*>(slim->piece(0))) Piece(*piece);
    release_block(pool, std::exchange(first_, slim));
}

void OutputQueue::drop_front_piece(BlockPool& pool) {
    Piece* piece = first_->piece(first_->front);
    ++first_->front;
    if (piece->is_file()) {
        piece->release(piece);
    } else {
        memory_bytes_ -= piece->memory.size;
        if (piece->release != nullptr) {
            piece->release(piece->memory.owner);
        }
    }
    drop_spent_blocks(pool);
}

void OutputQueue::drop_spent_blocks(BlockPool& pool) {
    while (first_ != nullptr && first_->spent()) {
        Block* spent = first_;
        first_ = spent->next;
        if (first_ != nullptr) {
            first_->last = spent->last;
        }
        release_block(pool, spent);
    }
}

}  // namespace penstock

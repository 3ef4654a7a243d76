// Internal.
// What a connection still has to send, in order: bytes in leased blocks, bytes that somebody else owns, and
// file ranges. Everything that follows each other in blocks leaves in one gathering send. An empty queue
// holds no memory: it is one pointer and two counts in the connection's slot.
//
// The first block begins with the queue's bookkeeping; in each block bytes grow from the front and piece
// descriptors from the back, so a burst of pipelined answers is one piece. The memory of a piece stays leased
// until `consume` says that the kernel has it.
//
// Owned by a Connection, used by its reactor's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "penstock/engine/block_pool.h"
#include "penstock/engine/config.h"
#include "penstock/engine/ensure.h"
#include "penstock/platform/net.h"

namespace penstock {

// A range of an open file. The queue closes the descriptor when it is done with it, or calls `release(owner)` once instead,
// where others use it too; that must leave the queue alone.
struct FileRange {
    int fd = -1;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    void* owner = nullptr;
    void (*release)(void*) = nullptr;
    // Bytes before this offset have just been read, so that the disk has not to be waited for.
    std::uint64_t warm_end = 0;

    // It is not sent, or sent whole.
    void drop() const;
};

class OutputQueue {
public:
    OutputQueue() = default;
    OutputQueue(const OutputQueue&) = delete;
    OutputQueue& operator=(const OutputQueue&) = delete;
    // Must be cleared by then: it does not know its pool.
    ~OutputQueue();

    [[nodiscard]] bool empty() const { return first_ == nullptr; }
    // Bytes waiting in memory (blocks and owned pieces); file ranges count nothing.
    [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }

    // At least `size` contiguous writable bytes at the end of the queue (size <= kMaxReserveBytes), or an
    // empty span when the pool has no block. What is then written is made part of the queue by `commit`,
    // before anything else is appended or consumed. When nothing is committed to an empty queue, the block
    // stays until the next `consume` (of 0 bytes, too) or `clear`.
    [[nodiscard]] std::span<char> try_reserve(BlockPool& pool, std::size_t size);
    void commit(std::size_t size);

    // Copies; false, with nothing queued, when the pool has not enough blocks.
    [[nodiscard]] bool try_append_copy(BlockPool& pool, std::string_view bytes);
    // Bytes that live until `release(owner)` is called, which happens once: when they are sent, or cleared,
    // or at once when there are none. It must leave this queue alone. `release` may be nullptr for bytes that
    // live for ever. On false nothing is queued or released.
    [[nodiscard]] bool try_append_external(BlockPool& pool, std::string_view bytes, void* owner,
                                           void (*release)(void*));
    // Takes over the string. On false it is untouched.
    [[nodiscard]] bool try_append_string(BlockPool& pool, std::string&& bytes);
    // Takes over the descriptor. On false it is still the caller's. An empty range is closed at once.
    [[nodiscard]] bool try_append_file(BlockPool& pool, const FileRange& range);

    // The last thing queued is a file range: it counts no memory but holds a descriptor.
    [[nodiscard]] bool ends_with_file() const;
    // The next thing to send is a file range: returns it, else nullptr.
    [[nodiscard]] const FileRange* front_file() const;
    // Of that range.
    void set_front_file_warm(std::uint64_t end);
    // The memory pieces in front, at most pieces.size() of them and none behind a file range; returns how
    // many were filled in. `*file_follows` tells whether a file range comes right behind them.
    [[nodiscard]] std::size_t gather(std::span<platform::SendPiece> pieces, bool* file_follows) const;

    // The usual case in short. All that waits, when that is one piece of memory; else empty.
    [[nodiscard]] std::string_view only_bytes() const;
    // The kernel has all of them, and nothing was queued or consumed since they were asked for.
    void drop_only_bytes(BlockPool& pool);

    // `bytes` of what `gather` or `front_file` gave have been taken by the kernel; releases what is complete.
    void consume(BlockPool& pool, std::size_t bytes);
    // The peer keeps us waiting. When all that is left is one file range, or one run of bytes that somebody else owns, its block
    // goes back, and what is known of it stays in a few bytes of their own: a slow client must not keep a block for that.
    void slim(BlockPool& pool);
    // Drops everything: gives blocks back, releases owners, closes files.
    void clear(BlockPool& pool);

    // What one try_reserve may ask for: a block less its bookkeeping and one piece.
    static constexpr std::size_t kMaxReserveBytes = 15 << 10;

private:
    struct Piece;
    struct Block;

    [[nodiscard]] Block* try_block_with(BlockPool& pool, std::size_t bytes);
    [[nodiscard]] bool try_add_blocks(BlockPool& pool, std::size_t count);
    static void release_block(BlockPool& pool, Block* block);
    void drop_front_piece(BlockPool& pool);
    void drop_spent_blocks(BlockPool& pool);

    Block* first_ = nullptr;
    std::uint64_t memory_bytes_ = 0;
};

static_assert(sizeof(OutputQueue) == 16);

// What is left of one run of bytes, or of one file range. `release` tells which.
struct OutputQueue::Piece {
    struct Memory {
        const char* data;
        std::uint64_t size;
        void* owner;
    };

    Piece(std::string_view bytes, void* owner, void (*release_owner)(void*))
        : release(release_owner), memory{bytes.data(), bytes.size(), owner} {}
    explicit Piece(const FileRange& range) : release(&drop_file), file(range) {}

    // Not an empty marker: a linker that folds equal functions would make every empty callback look like it.
    static void drop_file(void* piece) { static_cast<Piece*>(piece)->file.drop(); }

    [[nodiscard]] bool is_file() const { return release == &drop_file; }
    [[nodiscard]] std::uint64_t size() const { return is_file() ? file.size : memory.size; }
    [[nodiscard]] bool ends_at(const char* place) const {
        return !is_file() && memory.data + memory.size == place;
    }

    void (*release)(void*);  // called with the owner; of a file range, with the piece
    union {
        Memory memory;
        FileRange file;
    };
};

// The head of a leased block, or of a slim one, which has room for a single descriptor and belongs to the queue alone. Bytes grow
// from behind it, descriptors from the block's end towards them.
struct OutputQueue::Block {
    Block* next = nullptr;
    Block* last = this;  // of the whole queue; kept only in its first block
    std::uint32_t used_bytes = sizeof(Block);
    std::uint16_t front = 0;  // descriptors before this one are done with
    std::uint16_t count = 0;
    std::uint32_t size_bytes = kIoBlockBytes;

    [[nodiscard]] Piece* piece(std::size_t index) {
        return reinterpret_cast<Piece*>(reinterpret_cast<std::byte*>(this) + size_bytes) - 1 - index;
    }
    [[nodiscard]] char* cursor() { return reinterpret_cast<char*>(this) + used_bytes; }
    [[nodiscard]] bool spent() const { return front == count; }
    // Bytes that fit together with a descriptor for them.
    [[nodiscard]] std::size_t room() const {
        const std::size_t taken = used_bytes + (count + std::size_t{1}) * sizeof(Piece);
        return taken < size_bytes ? size_bytes - taken : 0;
    }
    template <class... Arguments>
    void add_piece(Arguments&&... arguments) {
        ::new (static_cast<void*>(piece(count))) Piece(std::forward<Arguments>(arguments)...);
        ++count;
    }
};

inline std::string_view OutputQueue::only_bytes() const {
    Block* const block = first_;
    if (block == nullptr || block->front + 1 != block->count || block->next != nullptr) {
        return {};
    }
    const Piece* const piece = block->piece(block->front);
    return piece->is_file() ? std::string_view()
                            : std::string_view(piece->memory.data, static_cast<std::size_t>(piece->memory.size));
}

inline void OutputQueue::drop_only_bytes(BlockPool& pool) {
    Block* const block = first_;
    ensure_debug(block->next == nullptr && block->front + 1 == block->count, "more than the only bytes is dropped");
    const Piece* const piece = block->piece(block->front);
    first_ = nullptr;
    memory_bytes_ = 0;
    if (piece->release != nullptr) {
        piece->release(piece->memory.owner);
    }
    release_block(pool, block);
}

inline void OutputQueue::release_block(BlockPool& pool, Block* block) {
    if (block->size_bytes == kIoBlockBytes) [[likely]] {
        pool.release(reinterpret_cast<std::byte*>(block));
    } else {
        ::operator delete(block);
    }
}

}  // namespace penstock

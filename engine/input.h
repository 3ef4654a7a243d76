// Internal.
// The bytes of a connection that have arrived and are not consumed yet: a run inside one leased block. Empty, it
// holds no block. Views into it stay valid until the bytes are consumed, `compact` is called, or the block goes.
//
// Part of a Connection's slot. Knows no pool: who leases and gives back is the Connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "penstock/engine/config.h"
#include "penstock/engine/ensure.h"

namespace penstock {

class Input {
public:
    [[nodiscard]] bool empty() const { return begin_ == end_; }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
    [[nodiscard]] std::byte* data() const { return block_ + begin_; }
    // Where the kernel may put more.
    [[nodiscard]] std::span<std::byte> room() const {
        return block_ == nullptr ? std::span<std::byte>{} : std::span{block_ + end_, kIoBlockBytes - end_};
    }
    // How many bytes the run could hold if it began at the block's start.
    [[nodiscard]] static constexpr std::size_t capacity() { return kIoBlockBytes; }

    void commit(std::size_t bytes) {
        ensure_debug(end_ + bytes <= kIoBlockBytes, "input: more committed than there was room for");
        end_ = static_cast<std::uint16_t>(end_ + bytes);
    }
    void consume(std::size_t bytes) {
        ensure_debug(bytes <= size(), "input: more consumed than there was");
        begin_ = static_cast<std::uint16_t>(begin_ + bytes);
        if (begin_ == end_) {
            begin_ = end_ = 0;
        }
    }
    // Moves the run to the front of its block. Views become invalid; offsets from data() stay right.
    void compact() {
        std::memmove(block_, block_ + begin_, size());
        end_ = static_cast<std::uint16_t>(end_ - begin_);
        begin_ = 0;
    }

    [[nodiscard]] bool has_block() const { return block_ != nullptr; }
    void attach(std::byte* block) { block_ = block; }
    // Hands the block to the caller, who then owns the lease; the run is empty afterwards.
    [[nodiscard]] std::byte* detach() {
        std::byte* const block = block_;
        block_ = nullptr;
        begin_ = end_ = 0;
        return block;
    }

    // A number that its connection keeps here, where the slot has room for it: of the messages that were begun while it is
    // open, then of the bytes that it threw away while it lingers.
    [[nodiscard]] std::uint32_t tally() const { return tally_; }
    void set_tally(std::uint32_t value) { tally_ = value; }

private:
    static_assert(kIoBlockBytes <= 0xffff, "offsets into a block are 16 bits");

    std::byte* block_ = nullptr;
    std::uint16_t begin_ = 0;
    std::uint16_t end_ = 0;
    std::uint32_t tally_ = 0;
};

}  // namespace penstock

// Internal.
// An open-addressing hash table from a text, seen under a parent, to a number. Filled once, then read only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "penstock/protocols/http/short_text.h"

namespace penstock {

class RouteIndex {
public:
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;

    struct Item {
        std::uint32_t parent = 0;
        std::string_view text;    // must outlive the index
        std::uint32_t value = 0;  // anything but kNone
    };

    // No two items with the same parent and text. Replaces what was there.
    void assign(const std::vector<Item>& items);

    // kNone when there is no such item.
    [[nodiscard]] std::uint32_t find(std::uint32_t parent, std::string_view text) const;
    // A bit for each length that a text here has; bit 63 is for all lengths from there on.
    [[nodiscard]] std::uint64_t lengths() const { return lengths_; }

private:
    struct Slot {
        std::string_view text;
        std::uint32_t parent = 0;
        std::uint32_t value = kNone;
    };

    [[nodiscard]] static std::uint64_t length_bit(std::size_t length) {
        return std::uint64_t{1} << (length < 63 ? length : 63);
    }
    [[nodiscard]] std::size_t place_of(std::uint32_t parent, std::string_view text) const {
        return static_cast<std::size_t>(hash_short_text(parent, text) >> shift_);
    }

    std::vector<Slot> slots_;  // empty, or a power of two of which at most a third is used
    std::size_t last_place_ = 0;
    unsigned shift_ = 0;         // leaves of a hash as many upper bits as number the slots
    std::uint64_t lengths_ = 0;  // most texts that are not here need no hashing
};

// Its work is less than what a call would have its callers save.
[[gnu::always_inline]] inline std::uint32_t RouteIndex::find(std::uint32_t parent, std::string_view text) const {
    if ((lengths_ & length_bit(text.size())) == 0) {
        return kNone;
    }
    const Slot* const slots = slots_.data();
    for (std::size_t place = place_of(parent, text);; place = (place + 1) & last_place_) {
        const Slot& slot = slots[place];
        if (slot.value == kNone || (slot.parent == parent && same_text(slot.text, text))) {
            return slot.value;
        }
    }
}

}  // namespace penstock

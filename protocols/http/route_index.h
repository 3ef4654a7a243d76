// Internal.
// An open-addressing hash table from a text, seen under a parent, to a number. Filled once, then read only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

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

private:
    struct Slot {
        std::uint64_t hash = 0;
        std::string_view text;
        std::uint32_t parent = 0;
        std::uint32_t value = kNone;
    };

    std::vector<Slot> slots_;  // empty, or a power of two of which at most half is used
};

}  // namespace penstock

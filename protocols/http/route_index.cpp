#include "penstock/protocols/http/route_index.h"

#include <bit>

// Inlined: a call and the dispatch on the processor cost more than hashing a short path.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock {

namespace {

std::uint64_t hash_of(std::uint32_t parent, std::string_view text) {
    return XXH3_64bits_withSeed(text.data(), text.size(), parent);
}

}  // namespace

void RouteIndex::assign(const std::vector<Item>& items) {
    // Half empty, so that a miss meets an empty slot after a probe or two, and always meets one.
    slots_.assign(items.empty() ? 0 : std::bit_ceil(items.size() * 2), Slot{});
    for (const Item& item : items) {
        const std::uint64_t hash = hash_of(item.parent, item.text);
        std::size_t position = hash & (slots_.size() - 1);
        while (slots_[position].value != kNone) {
            position = (position + 1) & (slots_.size() - 1);
        }
        slots_[position] = {hash, item.text, item.parent, item.value};
    }
}

std::uint32_t RouteIndex::find(std::uint32_t parent, std::string_view text) const {
    if (slots_.empty()) {
        return kNone;
    }
    const std::uint64_t hash = hash_of(parent, text);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t position = hash & mask;; position = (position + 1) & mask) {
        const Slot& slot = slots_[position];
        if (slot.value == kNone || (slot.hash == hash && slot.parent == parent && slot.text == text)) {
            return slot.value;
        }
    }
}

}  // namespace penstock

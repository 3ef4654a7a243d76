#include "penstock/protocols/http/route_index.h"

#include <bit>

namespace penstock {

void RouteIndex::assign(const std::vector<Item>& items) {
    slots_.clear();
    lengths_ = 0;
    if (items.empty()) {
        return;
    }
    // Mostly empty, so that a miss meets an empty slot at once or soon, and always meets one.
    slots_.resize(std::bit_ceil(items.size() * 3));
    last_place_ = slots_.size() - 1;
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots_.size()));
    for (const Item& item : items) {
        std::size_t place = place_of(item.parent, item.text);
        while (slots_[place].value != kNone) {
            place = (place + 1) & last_place_;
        }
        slots_[place] = {item.text, item.parent, item.value};
        lengths_ |= length_bit(item.text.size());
    }
}

}  // namespace penstock

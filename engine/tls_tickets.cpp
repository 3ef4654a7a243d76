#include "penstock/engine/tls_tickets.h"

#include <algorithm>
#include <cstring>

namespace penstock {

const TlsTickets::Key* TlsTickets::Reader::newest(std::uint64_t now_ms) {
    look(now_ms);
    return keys_[0].is_there ? &keys_[0] : nullptr;
}

const TlsTickets::Key* TlsTickets::Reader::find(const std::uint8_t* name, std::uint64_t now_ms, bool* is_newest) {
    look(now_ms);
    for (const Key& key : keys_) {
        const bool is_alive = key.is_there && age_of(key, now_ms) < tickets_.half_life_ms_ * kKeys;
        if (is_alive && std::memcmp(key.name.data(), name, kNameBytes) == 0) {
            *is_newest = &key == &keys_[0];
            return &key;
        }
    }
    return nullptr;
}

void TlsTickets::Reader::look(std::uint64_t now_ms) {
    const std::uint64_t changes = tickets_.changes_.load(std::memory_order_acquire);
    if (changes == seen_ && !tickets_.is_due(keys_, now_ms)) {
        return;
    }
    const std::lock_guard lock(tickets_.mutex_);
    if (tickets_.is_due(tickets_.keys_, now_ms)) {
        tickets_.change(now_ms);
    }
    keys_ = tickets_.keys_;
    seen_ = tickets_.changes_.load(std::memory_order_relaxed);
}

// Without random bytes the keys stay as they are, and are asked for again with the next ticket.
void TlsTickets::change(std::uint64_t now_ms) {
    Key made;
    if (!random_(made.name.data(), made.name.size()) || !random_(made.secret.data(), made.secret.size())) {
        return;
    }
    made.made_ms = now_ms;
    made.is_there = true;
    std::rotate(keys_.begin(), keys_.end() - 1, keys_.end());
    keys_[0] = made;
    changes_.fetch_add(1, std::memory_order_release);
}

}  // namespace penstock

// Internal.
// The keys of session tickets, shared by all reactors, so that a client may come back to any of them. They change with time, by the
// reactor that notices first; tickets of the key before are still read.
//
// Any thread. Every reactor has a copy of its own (TlsTickets::Reader), so the mutex is only met when keys have changed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace penstock {

class TlsTickets {
public:
    static constexpr std::size_t kNameBytes = 16;
    static constexpr std::size_t kKeyBytes = 32;
    static constexpr std::size_t kKeys = 3;  // each is the newest for half of a lifetime, and then lives for a whole one

    struct Key {
        std::array<std::uint8_t, kNameBytes> name{};
        std::array<std::uint8_t, kKeyBytes> secret{};
        std::uint64_t made_ms = 0;
        bool is_there = false;
    };
    using Keys = std::array<Key, kKeys>;  // the newest first

    // Fills in random bytes; false when there are none.
    using Random = bool (*)(std::uint8_t* bytes, std::size_t size);

    TlsTickets(std::uint32_t lifetime_s, Random random) : half_life_ms_(std::uint64_t{lifetime_s} * 500), random_(random) {}

    [[nodiscard]] std::uint32_t lifetime_s() const { return static_cast<std::uint32_t>(half_life_ms_ / 500); }

    // How large what is sealed is, always the same: nothing else can have been a ticket. 0 before the first one.
    void note_sealed(std::size_t bytes) { sealed_bytes_.store(bytes, std::memory_order_relaxed); }
    [[nodiscard]] std::size_t sealed_bytes() const { return sealed_bytes_.load(std::memory_order_relaxed); }

    // A reactor's copy.
    class Reader {
    public:
        explicit Reader(TlsTickets& tickets) : tickets_(tickets) {}
        // For a new ticket; nullptr when none can be made.
        [[nodiscard]] const Key* newest(std::uint64_t now_ms);
        // Of a ticket that has come back; nullptr when it is unknown or too old. `*is_newest`: no other is to be made for it.
        [[nodiscard]] const Key* find(const std::uint8_t* name, std::uint64_t now_ms, bool* is_newest);

    private:
        void look(std::uint64_t now_ms);

        TlsTickets& tickets_;
        std::uint64_t seen_ = 0;
        Keys keys_{};
    };

private:
    // 0 for one that another reactor has just made, by a clock that it read a moment later.
    [[nodiscard]] static std::uint64_t age_of(const Key& key, std::uint64_t now_ms) {
        return now_ms > key.made_ms ? now_ms - key.made_ms : 0;
    }
    [[nodiscard]] bool is_due(const Keys& keys, std::uint64_t now_ms) const {
        return !keys[0].is_there || age_of(keys[0], now_ms) >= half_life_ms_;
    }
    void change(std::uint64_t now_ms);

    const std::uint64_t half_life_ms_;
    const Random random_;
    std::mutex mutex_;
    Keys keys_{};
    std::atomic<std::uint64_t> changes_{0};
    std::atomic<std::size_t> sealed_bytes_{0};
};

}  // namespace penstock

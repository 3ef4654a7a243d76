// Internal.
// What all TLS sessions of a reactor share: buffers that are empty between two calls, the list of handshakes under way, and how many
// steps of them this turn may still take.
//
// Owned by its Reactor, once it has a listener with TLS; used by its thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "penstock/engine/config.h"
#include "penstock/engine/ensure.h"

namespace penstock {

class TlsSession;

class TlsWork {
public:
    static constexpr std::size_t kRecordBytes = 16 << 10;  // of plain text (RFC 8446 §5.1)
    static constexpr std::size_t kRecordOverhead = 64;     // head, explicit nonce, type and tag: less than 40
    static constexpr std::size_t kRecordsAtOnce = 4;

    TlsWork() = default;
    TlsWork(const TlsWork&) = delete;
    TlsWork& operator=(const TlsWork&) = delete;

    // For plain text on its way into records.
    [[nodiscard]] std::span<std::byte> plain() { return {plain_.get(), kRecordsAtOnce * kRecordBytes}; }

    // Records that one session has made and that go out when its call is over. Room for kRecordsAtOnce of them.
    [[nodiscard]] std::span<const std::byte> records() const { return {records_.get(), records_size_}; }
    [[nodiscard]] bool has_room_for_record() const { return kCapacity - records_size_ >= kRecordBytes + kRecordOverhead; }
    // In whole records; at most what `plain` holds.
    [[nodiscard]] std::size_t plain_bytes_that_fit() const {
        return (kCapacity - records_size_) / (kRecordBytes + kRecordOverhead) * kRecordBytes;
    }
    // False when it does not fit.
    [[nodiscard]] bool try_add(std::span<const std::byte> bytes);
    void clear_records() { records_size_ = 0; }
    // The first `bytes` of them have left.
    void drop_records(std::size_t bytes);

    // ---- Handshakes: whoever has sent something, and is not done, the oldest first.

    // False when it is there already. `arrival`: its number among all that began to arrive (Reactor::number_arrival).
    bool add(TlsSession& session, std::uint64_t arrival);
    void remove(TlsSession& session);
    [[nodiscard]] TlsSession* oldest() const { return first_; }
    // Of those that keep an input block, since their first message is not complete; or nullptr.
    [[nodiscard]] TlsSession* oldest_hello() const;
    [[nodiscard]] std::uint32_t handshakes() const { return count_; }

    // A step is what costs: keys are agreed on, or something is signed.
    // Half of them are kept for those who wait from before: whoever comes with news is first in every turn, and could take all.
    void begin_turn() { steps_left_ = kHandshakeStepsPerTurn / 2; }
    void begin_second_share() { steps_left_ += kHandshakeStepsPerTurn - kHandshakeStepsPerTurn / 2; }
    [[nodiscard]] bool may_step() const { return steps_left_ > 0; }
    void note_step() { --steps_left_; }

private:
    static constexpr std::size_t kCapacity = kRecordsAtOnce * (kRecordBytes + kRecordOverhead);

    std::unique_ptr<std::byte[]> plain_{new std::byte[kRecordsAtOnce * kRecordBytes]};
    std::unique_ptr<std::byte[]> records_{new std::byte[kCapacity]};
    std::size_t records_size_ = 0;
    TlsSession* first_ = nullptr;
    TlsSession* last_ = nullptr;
    std::uint32_t count_ = 0;
    int steps_left_ = kHandshakeStepsPerTurn;
};

}  // namespace penstock

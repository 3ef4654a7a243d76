// Internal.
// What makes a session ticket unreadable and unchangeable for everybody else: AES-256-GCM by a key of TlsTickets.
//
// Any thread; owns nothing.
#pragma once

#include <cstdint>
#include <span>

#include "penstock/engine/tls_tickets.h"

namespace penstock {

// `fingerprint`: of the certificate that its session was made under. Under another one the ticket does not open, so what was agreed on
// with one of several sites of a server cannot be carried to another. `iv`: random, and never used twice with a key; the first 12
// bytes count. False when it has failed, and when `tag` does not fit the rest.
[[nodiscard]] bool seal_ticket(const TlsTickets::Key& key, std::span<const std::uint8_t, 32> fingerprint,
                               std::span<const std::uint8_t, 16> iv, std::span<std::uint8_t> in_place, std::span<std::uint8_t, 16> tag);
[[nodiscard]] bool open_ticket(const TlsTickets::Key& key, std::span<const std::uint8_t, 32> fingerprint,
                               std::span<const std::uint8_t, 16> iv, std::span<std::uint8_t> in_place,
                               std::span<const std::uint8_t, 16> tag);

}  // namespace penstock

// Public.
// The address of a peer, small enough for a connection's slot. A value; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace penstock {

enum class AddressFamily : std::uint8_t { none, ipv4, ipv6, unix_socket };

// IPv4 uses the first four bytes. Network byte order in `bytes`, host order in `port`.
struct PeerAddress {
    std::array<std::uint8_t, 16> bytes{};
    std::uint16_t port = 0;
    AddressFamily family = AddressFamily::none;

    // "127.0.0.1:80", "[::1]:80", "unix", or "unknown".
    [[nodiscard]] std::string to_string() const;
};

}  // namespace penstock

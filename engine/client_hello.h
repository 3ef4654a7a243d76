// Internal.
// What a server has to know of a client's first TLS message before it can answer: whom the client wants, and whose signatures it
// takes. By that the certificate is chosen, so nothing is made for a client that has not said all of it.
//
// Reads bytes that nobody has checked. Owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace penstock {

// Of a name (RFC 1035 §3.1): what is longer is none, whatever a client sends.
inline constexpr std::size_t kServerNameLimitBytes = 255;

// RFC 8446 §4.1.2, RFC 5246 §7.4.1.2.
struct ClientHello {
    std::string_view server_name;                     // RFC 6066 §3, as it was sent; empty when there is none
    std::span<const std::uint8_t> cipher_suites;      // numbers of two bytes each
    std::span<const std::uint8_t> signature_schemes;  // likewise (RFC 8446 §4.2.3); empty when there are none
    std::span<const std::uint8_t> protocols;          // RFC 7301 §3.1: each a byte of length and a name
    std::span<const std::uint8_t> groups;             // for key exchange, numbers of two bytes each (RFC 8446 §4.2.7)
    std::span<const std::uint8_t> key_shares;         // RFC 8446 §4.2.8: each a group's number, and a key behind two bytes of length
    std::size_t binder_bytes = 0;  // of the first ticket that is offered: as many as its suite's hash has (RFC 8446 §4.2.11); 0: none
    bool has_session_id = false;
    bool offers_tls13 = false;       // in supported_versions (RFC 8446 §4.2.1)
    bool sends_early_data = false;  // RFC 8446 §4.2.10

    [[nodiscard]] bool offers_suite(std::uint16_t number) const { return contains(cipher_suites, number); }
    [[nodiscard]] bool offers_scheme(std::uint16_t number) const { return contains(signature_schemes, number); }
    [[nodiscard]] bool offers_protocol(std::string_view name) const;
    [[nodiscard]] bool has_key_share(std::uint16_t group) const;
    // Of a group that it can use and has not sent a key for. Such a one can be asked for (RFC 8446 §4.1.4).
    [[nodiscard]] bool offers_group_later(std::uint16_t number) const { return contains(groups, number) && !has_key_share(number); }
    // It can do better than what it offers here, and has been made to try less (RFC 7507 §2).
    [[nodiscard]] bool falls_back() const { return offers_suite(0x5600) && !offers_tls13; }
    // An ECDSA certificate can be shown for TLS 1.2: one of the suites is for those.
    [[nodiscard]] bool offers_ecdsa_suite() const;

private:
    [[nodiscard]] static bool contains(std::span<const std::uint8_t> numbers, std::uint16_t wanted);
};

enum class HelloStatus : std::uint8_t {
    incomplete,  // as far as it goes it is well
    complete,
    no_tls,     // the first byte belongs to no handshake: most likely a request in plain text
    malformed,  // it is TLS, and will be told so by an alert
};

// Reads the message at the beginning of `input`, which may be spread over records: it is put together in `scratch`, which must be as
// large as `input`, and into which the views of `hello` point.
[[nodiscard]] HelloStatus read_client_hello(std::span<const std::byte> input, std::span<std::byte> scratch, ClientHello* hello);

}  // namespace penstock

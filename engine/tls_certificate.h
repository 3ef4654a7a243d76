// Internal.
// What a certificate says, as far as a server has to know it.
//
// Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/platform/error.h"

namespace penstock {

// Of a certificate's key: what a client must take to be shown it.
enum class TlsKeyKind : std::uint8_t { rsa, ecdsa_p256, ecdsa_p384, ecdsa_p521, ed25519 };

struct TlsCertificateFacts {
    std::vector<std::string> names;  // DNS names in lower case, "*.example.org" among them; without any, the common name
    std::string subject;             // "/C=NZ/O=Example/CN=alice"
    std::string not_before;          // "20261201030427", UTC
    std::string not_after;
    TlsKeyKind kind = TlsKeyKind::rsa;
    std::array<std::uint8_t, 32> fingerprint{};  // SHA-256 (RFC 8446 §4.4.2 names none; browsers show this one)
};

// What wolfSSL says of an error of its own: "RSA key too small (-409)".
[[nodiscard]] std::string tls_reason(int error);

// The error is a part of a sentence: "it holds a certificate that wolfSSL cannot read: ASN oid error, unknown sum id (-148)".
[[nodiscard]] Result<TlsCertificateFacts> read_certificate(std::span<const std::uint8_t> der);
// Each certificate of a PEM file (RFC 7468) in DER, in their order. Likewise.
[[nodiscard]] Result<std::vector<std::vector<std::uint8_t>>> read_certificates_of(std::string_view pem);

// Of a name, whose letters are ASCII (RFC 4343).
[[nodiscard]] std::string lower_case(std::string_view name);

}  // namespace penstock

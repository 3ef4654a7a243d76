// Internal.
// The files that a listener's TLS is made of: reads them, and says in a sentence what is wrong with one.
//
// Keeps nothing. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "penstock/engine/tls.h"
#include "penstock/engine/tls_certificate.h"
#include "penstock/platform/error.h"

struct WOLFSSL_CTX;

namespace penstock {

// "PATH: REASON"
[[nodiscard]] Error in_file(const std::string& path, const std::string& reason);

// All of a file, of which more than a megabyte is refused.
[[nodiscard]] Result<std::string> read_pem(const std::string& path);

// Whether a certificate's time has come, and is not over.
[[nodiscard]] std::optional<Error> check_dates(const std::string& path, const TlsCertificateFacts& facts);

// Gives a context the key of its certificate (DER, of this kind), once it is found to be that.
[[nodiscard]] std::optional<Error> use_key(WOLFSSL_CTX* context, const TlsCertificate& files, std::span<const std::uint8_t> certificate,
                                           TlsKeyKind kind);

}  // namespace penstock

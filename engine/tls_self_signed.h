// Public.
// A certificate that nobody vouches for, for trying out and for tests.
#pragma once

#include <string>
#include <vector>

#include "penstock/engine/tls.h"
#include "penstock/platform/error.h"

namespace penstock {

// ECDSA on P-256, with a key of its own, in memory (TlsCertificate::chain_pem, key_pem). `names`: host names and IP addresses that it
// is for; the first is also its common name. Valid for `days` from now on. Any thread.
[[nodiscard]] Result<TlsCertificate> make_self_signed_certificate(const std::vector<std::string>& names, unsigned days = 30);

// SHA-256 of the first certificate in PEM, "AB:CD:…", as browsers show it; empty when there is none.
[[nodiscard]] std::string certificate_fingerprint(const std::string& chain_pem);

}  // namespace penstock

// Public.
// What keeps browsers on TLS: Strict-Transport-Security where there is TLS, and a redirect where there is none.
//
// Made when the program starts; what they give is called by every reactor, at the same time.
#pragma once

#include <cstdint>

#include "penstock/protocols/http/middleware.h"
#include "penstock/protocols/http/router.h"

namespace penstock {

// RFC 6797 §6.1.
struct HstsOptions {
    // For how long browsers do without plain HTTP. Begin with an hour: it cannot be taken back before. 0 tells them to forget it.
    std::uint32_t max_age_s = 365 * 24 * 60 * 60;
    // For every name below this host as well.
    bool include_subdomains = false;
    // The site asks to be in the lists that browsers bring along (hstspreload.org), which wants a year and all subdomains.
    bool preload = false;
};

// Sets Strict-Transport-Security on every response of a route that leaves over TLS, and on none that does not (RFC 6797 §7.2).
[[nodiscard]] Middleware hsts(HstsOptions options = {});

// Answers any request with 308 and the same place by https, at `port`. The method stays (RFC 9110 §15.4.9). Who names no host, as
// HTTP/1.0 allows, gets 400. A route of the same Router that is more exact, such as one for /.well-known/acme-challenge/, goes first.
[[nodiscard]] PlainHandler redirect_to_https(std::uint16_t port = 443);

}  // namespace penstock

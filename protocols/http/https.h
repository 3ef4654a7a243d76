// Public.
// What a site on TLS tells those who come without it: the field that has browsers come by TLS from then on (HSTS, RFC 6797), and
// the answer that sends a client from a plain listener to the one with TLS.
// What is made here is constant, for any number of reactors.
#pragma once

#include <cstdint>

#include "penstock/platform/error.h"
#include "penstock/protocols/http/middleware.h"
#include "penstock/protocols/http/router.h"

namespace penstock {

struct HstsOptions {
    // So long after each answer a browser comes by TLS alone. 0: it forgets about it.
    std::uint64_t max_age_s = 31'536'000;
    // Also to every host below this one.
    bool include_subdomains = false;
    // Asks to be put on the lists that browsers are shipped with, from which there is no quick way back. The lists want
    // include_subdomains and a year or more.
    bool preload = false;
};

// Adds Strict-Transport-Security to every answer that passes middleware, on connections with TLS and on no others (RFC 6797 §7.2);
// it replaces a handler's own. The error names what of the options cannot be meant.
[[nodiscard]] Result<Middleware> hsts(HstsOptions options = {});

struct HttpsRedirectOptions {
    // Where the listener with TLS is reached.
    std::uint16_t port = 443;
    // 308 has every client send what it sent, with its method and its body. 301 is for clients that are older than that
    // (RFC 7538, 2015): they may make a GET of a POST. Or, where it is not for good, 307 and 302.
    unsigned status = 308;
};

// A handler for routes of a plain listener that answers with the same URL at https: host, path and query as they came. Hosts that
// are no name of letters, digits, "-", "." and "_" and no IP address get 400, and so does a request without one. Give it
// {.stream_body = true}, and it does not wait for a body. A route beside it wins as any does that says more of the path. On a
// listener with TLS it would go round for ever. The error names what of the options cannot be meant.
[[nodiscard]] Result<PlainHandler> redirect_to_https(HttpsRedirectOptions options = {});

// The same within a handler, for a port that is known later. What cannot be meant is not told: the answer is 500.
void send_https_redirect(const Request& request, Response& response, const HttpsRedirectOptions& options);

}  // namespace penstock

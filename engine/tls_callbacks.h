// Internal.
// What wolfSSL calls back, given to each context by TlsContext::load.
//
// Any thread, before the context is used.
#pragma once

struct WOLFSSL_CTX;

namespace penstock {

// Receiving, sending and tickets of the sessions that are made of it: each belongs to a TlsSession.
void install_tls_callbacks(WOLFSSL_CTX* context);

}  // namespace penstock

// Internal.
// What wolfSSL calls back, given to each context by TlsContext::load.
//
// Any thread, before the context is used.
#pragma once

#include "penstock/engine/tls_context.h"

struct WOLFSSL;
struct WOLFSSL_CTX;

namespace penstock {

// Receiving, sending and tickets of the sessions that are made of it: each belongs to a TlsSession.
void install_tls_callbacks(WOLFSSL_CTX* context);

// What a session needs of its own for stapling and for the key log; before its handshake.
void prepare_tls_session(WOLFSSL* session, const TlsContext& context, const TlsContext::Certificate& certificate);

}  // namespace penstock

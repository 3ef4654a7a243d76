// What stands in for the sources that call wolfSSL in a build without TLS (PENSTOCK_WOLFSSL=off): no listener has it, so of a session
// nothing is ever called.
#include "penstock/engine/ensure.h"
#include "penstock/engine/tls_context.h"
#include "penstock/engine/tls_random.h"
#include "penstock/engine/tls_self_signed.h"
#include "penstock/engine/tls_session.h"

namespace penstock {

namespace {

[[noreturn]] void never() {
    ensure(false, "TLS is used in a build without it");
    __builtin_unreachable();
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsOptions&, std::string_view, std::shared_ptr<TlsTickets>) {
    return Error{"a listener asks for TLS, and this Penstock was built without it; build it with PENSTOCK_WOLFSSL=system or bundled"};
}

TlsContext::~TlsContext() = default;

std::string tls_library() { return {}; }

Result<TlsCertificate> make_self_signed_certificate(const std::vector<std::string>&, unsigned) {
    return Error{"this Penstock was built without TLS; build it with PENSTOCK_WOLFSSL=system or bundled"};
}

std::string certificate_fingerprint(const std::string&) { return {}; }

bool random_bytes(std::uint8_t*, std::size_t) { return false; }

TlsSession::TlsSession(Connection& connection, Reactor& reactor, const TlsAcceptor& acceptor)
    : connection_(connection), reactor_(reactor), acceptor_(acceptor) {
    never();
}
TlsSession::~TlsSession() = default;
bool TlsSession::begin(const ClientHello&) { never(); }
TlsStep TlsSession::shake_hands() { never(); }
TlsStep TlsSession::read(std::span<std::byte>, std::size_t*) { never(); }
void TlsSession::fail() { never(); }
bool TlsSession::has_pending() const { never(); }
std::size_t TlsSession::wanted_bytes(std::size_t) const { never(); }
bool TlsSession::encrypt(std::span<const std::byte>) { never(); }
void TlsSession::say_goodbye() { never(); }
void TlsSession::refuse(std::uint8_t) { never(); }
bool TlsSession::keep(std::span<const std::byte>) { never(); }
const TlsInfo* TlsSession::info() { never(); }

}  // namespace penstock

#include "load/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <stdexcept>

namespace penstock::load {

struct TlsState {
    SSL* ssl = nullptr;
    SSL_SESSION* session = nullptr;
};

namespace {

SSL_CTX* as_context(void* context) {
    return static_cast<SSL_CTX*>(context);
}
int keep_session(SSL* ssl, SSL_SESSION* session);
std::string certificate_of(SSL* ssl);
void check(bool is_well, const char* what);

}  // namespace

TlsContext::TlsContext(const Options& options) {
    SSL_CTX* context = ::SSL_CTX_new(::TLS_client_method());
    check(context != nullptr, "OpenSSL");
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> owner(context, ::SSL_CTX_free);
    ::SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
    ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ::SSL_CTX_set_read_ahead(context, 1);
    ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    if (options.resumes) {
        ::SSL_CTX_sess_set_new_cb(context, keep_session);
    }
    const bool is_old = options.tls_version == "1.2";
    if (!options.tls_version.empty()) {
        const int version = is_old ? TLS1_2_VERSION : TLS1_3_VERSION;
        check(::SSL_CTX_set_min_proto_version(context, version) == 1 &&
                  ::SSL_CTX_set_max_proto_version(context, version) == 1,
              "--tls-version");
    }
    if (!options.tls_groups.empty()) {
        check(::SSL_CTX_set1_groups_list(context, options.tls_groups.c_str()) == 1, "--tls-groups");
    }
    if (!options.tls_suites.empty()) {
        const char* suites = options.tls_suites.c_str();
        check((is_old ? ::SSL_CTX_set_cipher_list(context, suites)
                      : ::SSL_CTX_set_ciphersuites(context, suites)) == 1,
              "--tls-suites");
    }
    ::SSL_CTX_up_ref(context);
    context_ = context;
}

TlsContext::~TlsContext() {
    ::SSL_CTX_free(as_context(context_));
}

TlsStream::TlsStream(TlsContext& context) : context_(context), state_(std::make_unique<TlsState>()) {}

TlsStream::~TlsStream() {
    close();
    ::SSL_SESSION_free(state_->session);
}

bool TlsStream::open(int fd) {
    close();
    state_->ssl = ::SSL_new(as_context(context_.context_));
    is_counted_ = has_more_ = false;
    if (state_->ssl == nullptr || ::SSL_set_fd(state_->ssl, fd) != 1) {
        return false;
    }
    SSL_set_app_data(state_->ssl, state_.get());
    ::SSL_set_connect_state(state_->ssl);
    return state_->session == nullptr || ::SSL_set_session(state_->ssl, state_->session) == 1;
}

void TlsStream::close() {
    if (state_->ssl != nullptr) {
        // The session would not be resumed otherwise: OpenSSL takes it for that of a connection that has failed.
        ::SSL_set_shutdown(state_->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        ::SSL_free(state_->ssl);
    }
    state_->ssl = nullptr;
    has_more_ = false;
}

std::ptrdiff_t TlsStream::send(const char* data, std::size_t size) {
    ::ERR_clear_error();
    errno = 0;
    const int sent = ::SSL_write(state_->ssl, data, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    count_handshake();
    return sent > 0 ? sent : outcome(sent);
}

std::ptrdiff_t TlsStream::receive(char* data, std::size_t size) {
    std::size_t received = 0;
    std::ptrdiff_t result = awaits_input;
    while (received < size) {
        ::ERR_clear_error();
        errno = 0;
        const int count = ::SSL_read(state_->ssl, data + received,
                                     static_cast<int>(std::min<std::size_t>(size - received, INT_MAX)));
        if (count <= 0) {
            result = outcome(count);
            break;
        }
        received += static_cast<std::size_t>(count);
    }
    count_handshake();
    const bool is_over = result == ended || result == failed;
    has_more_ = received > 0 && (received == size || is_over);
    return received > 0 ? static_cast<std::ptrdiff_t>(received) : result;
}

std::ptrdiff_t TlsStream::outcome(int result) {
    const int cause = errno;
    switch (::SSL_get_error(state_->ssl, result)) {
        case SSL_ERROR_WANT_READ: return awaits_input;
        case SSL_ERROR_WANT_WRITE: return awaits_output;
        case SSL_ERROR_ZERO_RETURN: return ended;
        default: break;
    }
    const char* reason = ::ERR_reason_error_string(::ERR_peek_last_error());
    if (reason != nullptr) {
        context_.figures_.problem = reason;
    } else {
        context_.figures_.problem = cause != 0 ? std::strerror(cause) : "the connection was ended";
    }
    errno = cause;
    return failed;
}

void TlsStream::count_handshake() {
    if (is_counted_ || ::SSL_is_init_finished(state_->ssl) == 0) {
        return;
    }
    is_counted_ = true;
    TlsFigures& figures = context_.figures_;
    ++figures.handshakes;
    if (::SSL_session_reused(state_->ssl) == 1) {
        ++figures.resumed;
    } else {
        figures.certificate = certificate_of(state_->ssl);
    }
    figures.version = ::SSL_get_version(state_->ssl);
    figures.suite = ::SSL_get_cipher_name(state_->ssl);
    const auto group = static_cast<int>(::SSL_get_negotiated_group(state_->ssl));
    const char* name = group == 0 ? nullptr : ::SSL_group_to_name(state_->ssl, group);
    figures.group = name == nullptr ? "" : name;
}

namespace {

// Tells OpenSSL that the session is ours now. In TLS 1.3 it comes after the handshake, and the latest one counts.
int keep_session(SSL* ssl, SSL_SESSION* session) {
    auto* state = static_cast<TlsState*>(SSL_get_app_data(ssl));
    ::SSL_SESSION_free(state->session);
    state->session = session;
    return 1;
}

std::string certificate_of(SSL* ssl) {
    X509* certificate = ::SSL_get0_peer_certificate(ssl);
    EVP_PKEY* key = certificate == nullptr ? nullptr : ::X509_get0_pubkey(certificate);
    const char* kind = key == nullptr ? nullptr : ::EVP_PKEY_get0_type_name(key);
    return kind == nullptr ? "" : std::string(kind) + " " + std::to_string(::EVP_PKEY_get_bits(key));
}

void check(bool is_well, const char* what) {
    if (!is_well) {
        const char* reason = ::ERR_reason_error_string(::ERR_peek_last_error());
        throw std::runtime_error(std::string(what) + ": " + (reason == nullptr ? "not known to OpenSSL" : reason));
    }
}

}  // namespace

}  // namespace penstock::load

#include "support/tls_client.h"

#include <wolfssl/options.h>
// Behind the options, which say what the library was built with.
#include <wolfssl/ssl.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace penstock::test {

struct TlsClientCallbacks {
    static int receive(WOLFSSL*, char* room, int size, void* context) {
        auto& self = *static_cast<TlsClient*>(context);
        const std::size_t count = std::min(self.incoming_.size(), static_cast<std::size_t>(size));
        if (count == 0) {
            return WOLFSSL_CBIO_ERR_WANT_READ;
        }
        std::memcpy(room, self.incoming_.data(), count);
        self.incoming_.erase(0, count);
        return static_cast<int>(count);
    }
    static int send(WOLFSSL*, char* bytes, int size, void* context) {
        static_cast<TlsClient*>(context)->outgoing_.append(bytes, static_cast<std::size_t>(size));
        return size;
    }
};

TlsClient::TlsClient(const TlsClientOptions& options) {
    wolfSSL_Init();
    context_ = wolfSSL_CTX_new(options.only_tls12 ? wolfTLSv1_2_client_method() : wolfTLSv1_3_client_method());
    REQUIRE(context_ != nullptr);
    wolfSSL_CTX_set_verify(context_, WOLFSSL_VERIFY_NONE, nullptr);
    wolfSSL_CTX_SetIORecv(context_, &TlsClientCallbacks::receive);
    wolfSSL_CTX_SetIOSend(context_, &TlsClientCallbacks::send);
    if (!options.suites.empty()) {
        REQUIRE(wolfSSL_CTX_set_cipher_list(context_, options.suites.c_str()) == WOLFSSL_SUCCESS);
    }
    if (!options.certificate.empty()) {
        REQUIRE(wolfSSL_CTX_use_certificate_chain_file(context_, options.certificate.c_str()) == WOLFSSL_SUCCESS);
        REQUIRE(wolfSSL_CTX_use_PrivateKey_file(context_, options.key.c_str(), WOLFSSL_FILETYPE_PEM) == WOLFSSL_SUCCESS);
    }
    ssl_ = wolfSSL_new(context_);
    REQUIRE(ssl_ != nullptr);
    wolfSSL_SetIOReadCtx(ssl_, this);
    wolfSSL_SetIOWriteCtx(ssl_, this);
    if (!options.server_name.empty()) {
        wolfSSL_UseSNI(ssl_, WOLFSSL_SNI_HOST_NAME, options.server_name.data(), static_cast<unsigned short>(options.server_name.size()));
    }
    if (!options.protocols.empty()) {
        std::string protocols = options.protocols;
        wolfSSL_UseALPN(ssl_, protocols.data(), static_cast<unsigned>(protocols.size()), WOLFSSL_ALPN_CONTINUE_ON_MISMATCH);
    }
}

TlsClient::~TlsClient() {
    wolfSSL_free(ssl_);
    wolfSSL_CTX_free(context_);
}

void TlsClient::shake_hands() {
    const int result = wolfSSL_connect(ssl_);
    if (result == WOLFSSL_SUCCESS) {
        established_ = true;
        return;
    }
    const int error = wolfSSL_get_error(ssl_, result);
    error_ = error == WOLFSSL_ERROR_WANT_READ ? 0 : error;
}

void TlsClient::write(std::string_view plain_text) {
    REQUIRE(wolfSSL_write(ssl_, plain_text.data(), static_cast<int>(plain_text.size())) == static_cast<int>(plain_text.size()));
}

void TlsClient::say_goodbye() { wolfSSL_shutdown(ssl_); }

void TlsClient::give(std::string_view bytes) {
    incoming_ += bytes;
    if (!established_ && error_ == 0) {
        shake_hands();
    }
    if (established_) {
        read_all();
    }
}

void TlsClient::read_all() {
    std::array<char, 16 << 10> room;
    while (!heard_goodbye_ && error_ == 0) {
        const int count = wolfSSL_read(ssl_, room.data(), static_cast<int>(room.size()));
        if (count > 0) {
            received_.append(room.data(), static_cast<std::size_t>(count));
            ++records_received_;
            continue;
        }
        const int error = wolfSSL_get_error(ssl_, count);
        if (error == WOLFSSL_ERROR_WANT_READ) {
            return;
        }
        heard_goodbye_ = error == WOLFSSL_ERROR_ZERO_RETURN;
        error_ = heard_goodbye_ ? 0 : error;
    }
}

}  // namespace penstock::test

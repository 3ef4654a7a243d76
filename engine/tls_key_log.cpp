#include "penstock/engine/tls_key_log.h"

#include <wolfssl/options.h>
// Behind the options, which say what the library was built with.
#include <wolfssl/ssl.h>

#include <array>
#include <new>

#include "penstock/platform/file.h"
#include "penstock/platform/net.h"

namespace penstock {

namespace {

void append_hexadecimal(std::string* line, std::span<const std::uint8_t> bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (const std::uint8_t byte : bytes) {
        line->append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
}

#ifdef HAVE_SECRET_CALLBACK
// Within a handshake, in C: nothing may be thrown.
int log_secret(WOLFSSL* session, int which, const unsigned char* secret, int size, void* log) {
    const char* label = nullptr;
    switch (which) {
        case CLIENT_HANDSHAKE_TRAFFIC_SECRET: label = "CLIENT_HANDSHAKE_TRAFFIC_SECRET"; break;
        case SERVER_HANDSHAKE_TRAFFIC_SECRET: label = "SERVER_HANDSHAKE_TRAFFIC_SECRET"; break;
        case CLIENT_TRAFFIC_SECRET: label = "CLIENT_TRAFFIC_SECRET_0"; break;
        case SERVER_TRAFFIC_SECRET: label = "SERVER_TRAFFIC_SECRET_0"; break;
        case EXPORTER_SECRET: label = "EXPORTER_SECRET"; break;
        default: return 0;
    }
    std::array<unsigned char, 32> random{};
    if (wolfSSL_get_client_random(session, random.data(), random.size()) != random.size()) {
        return 0;
    }
    try {
        static_cast<const TlsKeyLog*>(log)->write(label, random, {secret, static_cast<std::size_t>(size)});
    } catch (const std::bad_alloc&) {
    }
    return 0;
}
#endif

}  // namespace

#ifdef HAVE_SECRET_CALLBACK
bool TlsKeyLog::attach(WOLFSSL* session) const {
    return wolfSSL_set_tls13_secret_cb(session, &log_secret, const_cast<TlsKeyLog*>(this)) == WOLFSSL_SUCCESS;
}
#else
bool TlsKeyLog::attach(WOLFSSL*) const { return false; }
#endif

Result<std::shared_ptr<const TlsKeyLog>> TlsKeyLog::open(const std::string& path) {
#ifndef HAVE_SECRET_CALLBACK
    return Error{path + ": this wolfSSL tells no secrets, so there can be no key log; build with PENSTOCK_WOLFSSL=bundled"};
#endif
    const Result<int> opened = platform::open_to_append(path);
    if (!opened.ok()) {
        return opened.error();
    }
    return std::shared_ptr<const TlsKeyLog>(new TlsKeyLog(opened.value()));
}

TlsKeyLog::~TlsKeyLog() { platform::close_descriptor(fd_); }

void TlsKeyLog::write(std::string_view label, std::span<const std::uint8_t> client_random, std::span<const std::uint8_t> secret) const {
    std::string line(label);
    line += ' ';
    append_hexadecimal(&line, client_random);
    line += ' ';
    append_hexadecimal(&line, secret);
    line += '\n';
    platform::append_line(fd_, line);
}

}  // namespace penstock

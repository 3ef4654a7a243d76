#include "penstock/engine/tls_files.h"

#include <wolfssl/options.h>
// Behind the options, which say what the library was built with.
#include <wolfssl/ssl.h>
#include <wolfssl/wolfcrypt/asn_public.h>
#include <wolfssl/wolfcrypt/ecc.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

namespace penstock {

namespace {

constexpr std::size_t kFileLimitBytes = 1 << 20;

// By the system's clock, which wolfSSL looks at as well for the certificates of clients.
std::string now_as_date() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::array<char, 16> text{};
    const std::size_t size = std::strftime(text.data(), text.size(), "%Y%m%d%H%M%S", &parts);
    return {text.data(), size};
}

// "2026-12-01 03:04:27 UTC"
std::string readable(const std::string& date) {
    if (date.size() < 14) {
        return date;
    }
    return date.substr(0, 4) + "-" + date.substr(4, 2) + "-" + date.substr(6, 2) + " " + date.substr(8, 2) + ":" + date.substr(10, 2) + ":" +
           date.substr(12, 2) + " UTC";
}

int give_password(char* room, int size, int, void* password) {
    const auto& text = *static_cast<const std::string*>(password);
    const std::size_t count = std::min(text.size(), static_cast<std::size_t>(size));
    std::memcpy(room, text.data(), count);
    return static_cast<int>(count);
}

// Whether the certificate has the public half of this key on an elliptic curve. The distribution's wolfSSL takes any key of the same
// curve for that of a certificate.
bool is_pair(std::span<const std::uint8_t> certificate, const std::string& pem, const std::string& password) {
    std::vector<std::uint8_t> der(pem.size());
    const int size = wc_KeyPemToDer(reinterpret_cast<const unsigned char*>(pem.data()), static_cast<int>(pem.size()), der.data(),
                                    static_cast<int>(der.size()), password.c_str());
    ecc_key key;
    if (size <= 0 || wc_ecc_init(&key) != 0) {
        return false;
    }
    std::array<std::uint8_t, 2 * 66 + 1> point{};
    auto point_size = static_cast<word32>(point.size());
    word32 index = 0;
    const bool has_point = wc_EccPrivateKeyDecode(der.data(), &index, &key, static_cast<word32>(size)) == 0 &&
                           wc_ecc_make_pub(&key, nullptr) == 0 && wc_ecc_export_x963(&key, point.data(), &point_size) == 0;
    wc_ecc_free(&key);
    const auto end = point.begin() + static_cast<std::ptrdiff_t>(point_size);
    return has_point && std::search(certificate.begin(), certificate.end(), point.begin(), end) != certificate.end();
}

}  // namespace

Error in_file(const std::string& path, const std::string& reason) {
    return Error{(path.empty() ? "a certificate or key that was given without a file" : path) + ": " + reason};
}

Result<std::string> read_pem(const std::string& path) {
    if (path.empty()) {
        return Error{"a certificate names no file; give TlsCertificate::chain_file and key_file, or chain_pem and key_pem"};
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string content;
    char byte = 0;
    while (content.size() <= kFileLimitBytes && file.get(byte)) {
        content.push_back(byte);
    }
    if (!file.is_open() || file.bad() || (content.empty() && errno != 0)) {
        return Error{path + " cannot be read: " + std::strerror(errno != 0 ? errno : EIO)};
    }
    if (content.size() > kFileLimitBytes) {
        return in_file(path, "it has more than " + std::to_string(kFileLimitBytes) + " bytes, which no file of certificates has");
    }
    return content;
}

std::optional<Error> check_dates(const std::string& path, const TlsCertificateFacts& facts) {
    const std::string now = now_as_date();
    if (now > facts.not_after) {
        return in_file(path, "the certificate expired on " + readable(facts.not_after) + "; renew it");
    }
    if (now < facts.not_before) {
        return in_file(path, "the certificate is not valid before " + readable(facts.not_before) + "; look at the machine's clock, " +
                                 readable(now));
    }
    return std::nullopt;
}

std::optional<Error> use_key(WOLFSSL_CTX* context, const TlsCertificate& files, std::span<const std::uint8_t> certificate,
                             TlsKeyKind kind) {
    const auto key = files.key_pem.empty() ? read_pem(files.key_file) : Result<std::string>(files.key_pem);
    if (!key.ok()) {
        return key.error();
    }
    const std::string& pem = key.value();
    if (pem.find("PRIVATE KEY-----") == std::string::npos) {
        return in_file(files.key_file, "it holds no private key in PEM, which begins with -----BEGIN PRIVATE KEY-----");
    }
    const bool is_encrypted = pem.find("ENCRYPTED") != std::string::npos;
    if (is_encrypted && files.password.empty()) {
        return in_file(files.key_file, "the key is encrypted, and there is no password for it; give it in TlsCertificate::password, or to "
                                       "`penstock serve` by --tls-password-file");
    }
    std::string password = files.password;
    wolfSSL_CTX_set_default_passwd_cb(context, &give_password);
    wolfSSL_CTX_set_default_passwd_cb_userdata(context, &password);
    const int result = wolfSSL_CTX_use_PrivateKey_buffer(context, reinterpret_cast<const unsigned char*>(pem.data()),
                                                         static_cast<long>(pem.size()), WOLFSSL_FILETYPE_PEM);
    wolfSSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
    if (result != WOLFSSL_SUCCESS) {
        return in_file(files.key_file, is_encrypted ? "the key cannot be decrypted; the password is wrong, or the file is damaged"
                                                    : "it holds a private key that wolfSSL cannot read: " + tls_reason(result));
    }
    const bool is_on_curve = kind != TlsKeyKind::rsa && kind != TlsKeyKind::ed25519;
    if (wolfSSL_CTX_check_private_key(context) != WOLFSSL_SUCCESS || (is_on_curve && !is_pair(certificate, pem, files.password))) {
        return in_file(files.key_file, "the key is not that of the certificate in " + files.chain_file +
                                           (is_encrypted ? ", or the password is wrong" : ""));
    }
    return std::nullopt;
}

}  // namespace penstock

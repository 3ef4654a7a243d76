#include "penstock/engine/tls_self_signed.h"

#include <wolfssl/options.h>
// Behind the options, which say what the library was built with.
#include <wolfssl/ssl.h>
#include <wolfssl/wolfcrypt/asn_public.h>
#include <wolfssl/wolfcrypt/ecc.h>
#include <wolfssl/wolfcrypt/random.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "penstock/engine/tls_certificate.h"
#include "penstock/platform/net.h"

namespace penstock {

namespace {

constexpr std::size_t kNameLimitBytes = 253;  // RFC 1035 §3.1, as text

class Key {
public:
    Key() { well_ = wc_InitRng(&random_) == 0 && wc_ecc_init(&key_) == 0 && wc_ecc_make_key(&random_, 32, &key_) == 0; }
    ~Key() {
        wc_ecc_free(&key_);
        wc_FreeRng(&random_);
    }
    Key(const Key&) = delete;
    Key& operator=(const Key&) = delete;

    [[nodiscard]] bool well() const { return well_; }
    [[nodiscard]] ecc_key* get() { return &key_; }
    [[nodiscard]] WC_RNG* random() { return &random_; }

private:
    WC_RNG random_{};
    ecc_key key_{};
    bool well_ = false;
};

// GeneralNames (RFC 5280 §4.2.1.6). Empty when one of the names cannot be in it, or all together are too long.
std::string alternative_names(const std::vector<std::string>& names) {
    constexpr char kDnsName = '\x82';
    constexpr char kIpAddress = '\x87';
    std::string entries;
    for (const std::string& name : names) {
        std::array<std::uint8_t, 16> address{};
        const std::size_t address_size = platform::parse_ip(name, &address);
        const std::string content = address_size > 0 ? std::string(reinterpret_cast<const char*>(address.data()), address_size) : name;
        if (content.empty() || content.size() > 127) {
            return {};
        }
        entries += address_size > 0 ? kIpAddress : kDnsName;
        entries += static_cast<char>(content.size());
        entries += content;
    }
    if (entries.size() > 255) {
        return {};
    }
    const std::string length = entries.size() < 128 ? std::string() : std::string(1, '\x81');
    return std::string(1, '\x30') + length + static_cast<char>(entries.size()) + entries;
}

std::string as_pem(const std::vector<std::uint8_t>& der, int type) {
    std::vector<std::uint8_t> pem(der.size() * 2 + 200);
    const int size = wc_DerToPem(der.data(), static_cast<word32>(der.size()), pem.data(), static_cast<word32>(pem.size()), type);
    return size > 0 ? std::string(pem.begin(), pem.begin() + size) : std::string();
}

std::string make_certificate(Key& key, const std::string& common_name, const std::string& names, unsigned days) {
    Cert certificate;
    if (wc_InitCert(&certificate) != 0) {
        return {};
    }
    certificate.daysValid = static_cast<int>(days);
    certificate.sigType = CTC_SHA256wECDSA;
    std::memcpy(certificate.subject.commonName, common_name.data(), std::min<std::size_t>(common_name.size(), CTC_NAME_SIZE - 1));
    std::memcpy(certificate.altNames, names.data(), names.size());
    certificate.altNamesSz = static_cast<int>(names.size());
    std::vector<std::uint8_t> der(4'096);
    const auto room = static_cast<word32>(der.size());
    if (wc_MakeCert(&certificate, der.data(), room, nullptr, key.get(), key.random()) < 0) {
        return {};
    }
    const int size = wc_SignCert(certificate.bodySz, certificate.sigType, der.data(), room, nullptr, key.get(), key.random());
    if (size < 0) {
        return {};
    }
    der.resize(static_cast<std::size_t>(size));
    return as_pem(der, CERT_TYPE);
}

}  // namespace

Result<TlsCertificate> make_self_signed_certificate(const std::vector<std::string>& names, unsigned days) {
    const std::string alternatives = alternative_names(names);
    if (names.empty() || alternatives.empty() || names.front().size() > kNameLimitBytes) {
        return Error{"a certificate takes one name or more, each of 1 to 127 characters and all together of 255 at most"};
    }
    Key key;
    if (!key.well()) {
        return Error{"no key for a certificate can be made"};
    }
    TlsCertificate made;
    made.chain_pem = make_certificate(key, names.front(), alternatives, days);
    std::vector<std::uint8_t> der(512);
    const int size = wc_EccKeyToDer(key.get(), der.data(), static_cast<word32>(der.size()));
    der.resize(static_cast<std::size_t>(std::max(size, 0)));
    made.key_pem = size > 0 ? as_pem(der, ECC_PRIVATEKEY_TYPE) : std::string();
    if (made.chain_pem.empty() || made.key_pem.empty()) {
        return Error{"wolfSSL cannot make a certificate"};
    }
    return made;
}

std::string certificate_fingerprint(const std::string& chain_pem) {
    const auto ders = read_certificates_of(chain_pem);
    const auto facts = ders.ok() ? read_certificate(ders.value().front()) : Result<TlsCertificateFacts>(Error{});
    if (!facts.ok()) {
        return {};
    }
    constexpr char kDigits[] = "0123456789ABCDEF";
    std::string text;
    for (const std::uint8_t byte : facts.value().fingerprint) {
        text.append(text.empty() ? "" : ":").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
    return text;
}

}  // namespace penstock

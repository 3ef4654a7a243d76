#include "penstock/engine/tls_certificate.h"

#include <wolfssl/options.h>
// Behind the options, which say what the library was built with.
#include <wolfssl/ssl.h>
#include <wolfssl/wolfcrypt/asn.h>
#include <wolfssl/wolfcrypt/asn_public.h>
#include <wolfssl/wolfcrypt/sha256.h>

#include <algorithm>
#include <cctype>

namespace penstock {

namespace {

class Decoded {
public:
    explicit Decoded(std::span<const std::uint8_t> der) {
        wc_InitDecodedCert(&certificate_, der.data(), static_cast<word32>(der.size()), nullptr);
    }
    ~Decoded() { wc_FreeDecodedCert(&certificate_); }
    Decoded(const Decoded&) = delete;
    Decoded& operator=(const Decoded&) = delete;

    DecodedCert& operator*() { return certificate_; }

private:
    DecodedCert certificate_;
};

std::vector<std::string> names_of(const DecodedCert& certificate);
bool find_kind(const DecodedCert& certificate, TlsKeyKind* kind);
std::string date_of(std::span<const std::uint8_t> asn1);

}  // namespace

std::string tls_reason(int error) {
    return std::string(wolfSSL_ERR_reason_error_string(static_cast<unsigned long>(error))) + " (" + std::to_string(error) + ")";
}

Result<TlsCertificateFacts> read_certificate(std::span<const std::uint8_t> der) {
    Decoded decoded(der);
    if (const int error = wc_ParseCert(&*decoded, CERT_TYPE, NO_VERIFY, nullptr); error != 0) {
        return Error{"it holds a certificate that wolfSSL cannot read: " + tls_reason(error), error};
    }
    const DecodedCert& certificate = *decoded;
    TlsCertificateFacts facts;
    if (!find_kind(certificate, &facts.kind)) {
        return Error{"its key is of a kind that is not supported; it can be RSA, ECDSA on P-256, P-384 or P-521, or Ed25519"};
    }
    facts.names = names_of(certificate);
    facts.subject = certificate.subject;
    facts.not_before = date_of({certificate.beforeDate, static_cast<std::size_t>(certificate.beforeDateLen)});
    facts.not_after = date_of({certificate.afterDate, static_cast<std::size_t>(certificate.afterDateLen)});
    if (wc_Sha256Hash(der.data(), static_cast<word32>(der.size()), facts.fingerprint.data()) != 0) {
        return Error{"its fingerprint cannot be computed"};
    }
    return facts;
}

Result<std::vector<std::vector<std::uint8_t>>> read_certificates_of(std::string_view pem) {
    constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
    constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
    std::vector<std::vector<std::uint8_t>> found;
    for (std::size_t at = pem.find(kBegin); at != std::string_view::npos; at = pem.find(kBegin, at + 1)) {
        const std::size_t end = pem.find(kEnd, at);
        if (end == std::string_view::npos) {
            return Error{"it ends in the middle of a certificate"};
        }
        const std::string_view text = pem.substr(at, end + kEnd.size() - at);
        std::vector<std::uint8_t> der(text.size());
        const std::string with_line_end = std::string(text) + "\n";
        const int size = wc_CertPemToDer(reinterpret_cast<const unsigned char*>(with_line_end.data()), static_cast<int>(with_line_end.size()),
                                         der.data(), static_cast<int>(der.size()), CERT_TYPE);
        if (size <= 0) {
            return Error{"it holds a certificate that is not PEM (" + std::to_string(size) + ")"};
        }
        der.resize(static_cast<std::size_t>(size));
        found.push_back(std::move(der));
    }
    if (found.empty()) {
        return Error{"it holds no certificate in PEM, which begins with " + std::string(kBegin)};
    }
    return found;
}

namespace {

std::vector<std::string> names_of(const DecodedCert& certificate) {
    std::vector<std::string> names;
    for (const DNS_entry* entry = certificate.altNames; entry != nullptr; entry = entry->next) {
        if (entry->type == ASN_DNS_TYPE) {
            names.push_back(lower_case({entry->name, static_cast<std::size_t>(entry->len)}));
        }
    }
    // RFC 6125 §6.4.4: only where the certificate has no name of the right kind.
    if (names.empty() && certificate.subjectCN != nullptr) {
        names.push_back(lower_case({certificate.subjectCN, static_cast<std::size_t>(certificate.subjectCNLen)}));
    }
    return names;
}

bool find_kind(const DecodedCert& certificate, TlsKeyKind* kind) {
    switch (certificate.keyOID) {
        case RSAk: *kind = TlsKeyKind::rsa; return true;
        case ED25519k: *kind = TlsKeyKind::ed25519; return true;
        case ECDSAk: break;
        default: return false;
    }
    switch (certificate.pkCurveOID) {
        case ECC_SECP256R1_OID: *kind = TlsKeyKind::ecdsa_p256; return true;
        case ECC_SECP384R1_OID: *kind = TlsKeyKind::ecdsa_p384; return true;
        case ECC_SECP521R1_OID: *kind = TlsKeyKind::ecdsa_p521; return true;
        default: return false;
    }
}

// RFC 5280 §4.1.2.5: UTCTime up to 2049, GeneralizedTime from then on, both in UTC.
std::string date_of(std::span<const std::uint8_t> asn1) {
    constexpr std::uint8_t kUtcTime = 0x17;
    if (asn1.size() < 2) {
        return {};
    }
    std::string date(asn1.begin() + 2, asn1.end());
    if (asn1[0] == kUtcTime) {
        date.insert(0, date < "5" ? "20" : "19");
    }
    return date.substr(0, 14);
}

}  // namespace

std::string lower_case(std::string_view name) {
    std::string result(name);
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

}  // namespace penstock

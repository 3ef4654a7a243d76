#include "penstock/engine/tls_context.h"

#include <wolfssl/options.h>
// Behind the options, which say what the library was built with.
#include <wolfssl/ssl.h>

#include <algorithm>
#include <array>
#include <utility>

#include "penstock/engine/config.h"
#include "penstock/engine/tls_callbacks.h"
#include "penstock/engine/tls_files.h"

namespace penstock {

namespace {

constexpr std::uint32_t kTicketLifetimeLimitS = 7 * 24 * 60 * 60;  // RFC 8446 §4.6.1
// Ephemeral keys and authenticated encryption, nothing else (RFC 9325 §4.2); the server chooses, in this order.
constexpr const char* kSuites =
    "TLS13-AES128-GCM-SHA256:TLS13-AES256-GCM-SHA384:TLS13-CHACHA20-POLY1305-SHA256:"
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

bool start_library();
std::string host_name(std::string_view sent);
std::string suites_of(const TlsOptions& options) { return options.suites.empty() ? kSuites : options.suites; }
std::optional<Error> check_suites(const std::string& suites);
std::vector<std::string> names_in(const std::string& suites);
std::optional<std::uint16_t> suite_of(const std::string& name);
std::optional<Error> configure(WOLFSSL_CTX* context, const TlsOptions& options, const std::string& client_ca);
int load_authorities(WOLFSSL_CTX* context, const std::string& pem);
bool takes(const ClientHello& hello, TlsKeyKind kind);

}  // namespace

std::string tls_library() {
#ifdef PENSTOCK_BUNDLED_WOLFSSL
    constexpr const char* kOrigin = ", bundled";
#else
    constexpr const char* kOrigin = ", the system's";
#endif
    return std::string("wolfSSL ") + wolfSSL_lib_version() + kOrigin;
}

TlsContext::TlsContext(const TlsOptions& options, std::string_view protocols, std::shared_ptr<TlsTickets> tickets)
    : options_(options), protocols_(protocols), tickets_(std::move(tickets)) {}

TlsContext::~TlsContext() {
    for (const Certificate& certificate : certificates_) {
        wolfSSL_CTX_free(certificate.context);
    }
}

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsOptions& options, std::string_view protocols,
                                                           std::shared_ptr<TlsTickets> tickets) {
    if (!start_library()) {
        return Error{"TLS cannot be used: wolfSSL does not start"};
    }
    if (options.certificates.empty()) {
        return Error{"a listener with TLS has no certificate; name one in TlsOptions::certificates"};
    }
    if (options.certificates.size() > kTlsCertificateLimit) {
        return Error{"a listener with TLS has " + std::to_string(options.certificates.size()) + " certificates; at most " +
                     std::to_string(kTlsCertificateLimit) + " are possible"};
    }
    if (options.ticket_lifetime_s > kTicketLifetimeLimitS) {
        return Error{"ticket_lifetime_s is " + std::to_string(options.ticket_lifetime_s) + "; set it to " +
                     std::to_string(kTicketLifetimeLimitS) + " or less, which is a week: clients refuse more"};
    }
    if (auto wrong = check_suites(options.suites)) {
        return *std::move(wrong);
    }
    std::shared_ptr<TlsContext> made(new TlsContext(options, protocols, std::move(tickets)));
    if (options.client_certificate != ClientCertificate::none) {
        if (options.client_ca_file.empty()) {
            return Error{"clients are asked for certificates, and nothing says whose are valid; name the authorities' file in "
                         "TlsOptions::client_ca_file"};
        }
        auto read = read_pem(options.client_ca_file);
        if (!read.ok()) {
            return read.error();
        }
        made->client_ca_ = std::move(read.value());
    }
    if (!options.key_log_file.empty()) {
        auto log = TlsKeyLog::open(options.key_log_file);
        if (!log.ok()) {
            return log.error();
        }
        made->key_log_ = std::move(log.value());
    }
    for (const TlsCertificate& files : options.certificates) {
        if (auto wrong = made->add(files)) {
            return *std::move(wrong);
        }
    }
    made->index_names();
    return std::shared_ptr<const TlsContext>(std::move(made));
}

std::optional<Error> TlsContext::add(const TlsCertificate& files) {
    auto chain = files.chain_pem.empty() ? read_pem(files.chain_file) : Result<std::string>(files.chain_pem);
    if (!chain.ok()) {
        return chain.error();
    }
    const auto ders = read_certificates_of(chain.value());
    if (!ders.ok()) {
        return in_file(files.chain_file, ders.error().message);
    }
    auto facts = read_certificate(ders.value().front());
    if (!facts.ok()) {
        return in_file(files.chain_file, facts.error().message);
    }
    if (auto wrong = check_dates(files.chain_file, facts.value())) {
        return wrong;
    }
    WOLFSSL_CTX* const context = wolfSSL_CTX_new(wolfSSLv23_server_method());
    if (context == nullptr) {
        return Error{"no memory for the certificate of " + files.chain_file};
    }
    certificates_.push_back({context, std::move(facts.value())});
    const auto* const bytes = reinterpret_cast<const unsigned char*>(chain.value().data());
    if (const int result = wolfSSL_CTX_use_certificate_chain_buffer(context, bytes, static_cast<long>(chain.value().size()));
        result != WOLFSSL_SUCCESS) {
        return in_file(files.chain_file, "wolfSSL does not take this chain of certificates: " + tls_reason(result));
    }
    if (auto wrong = use_key(context, files, ders.value().front(), certificates_.back().facts.kind)) {
        return wrong;
    }
    if (auto wrong = configure(context, options_, client_ca_)) {
        return wrong;
    }
    install_tls_callbacks(context);
    if (tickets_ != nullptr) {
        wolfSSL_CTX_set_TicketHint(context, static_cast<int>(tickets_->lifetime_s()));
#ifndef NO_SESSION_CACHE
        wolfSSL_CTX_set_timeout(context, tickets_->lifetime_s());  // else TLS 1.3 takes none that is older than 500 s
#endif
    } else {
        wolfSSL_CTX_NoTicketTLSv12(context);
        wolfSSL_CTX_no_ticket_TLSv13(context);
    }
    return std::nullopt;
}

// Without memory for them the next clients are refused.
void TlsContext::forget_shown(const Certificate& certificate) const {
    wolfSSL_CTX_UnloadCAs(certificate.context);
    static_cast<void>(load_authorities(certificate.context, client_ca_));
}

void TlsContext::index_names() {
    for (std::size_t i = 0; i < certificates_.size(); ++i) {
        for (const std::string& name : certificates_[i].facts.names) {
            Candidates& candidates = by_name_[name];
            if (candidates.empty() || candidates.back() != i) {
                candidates.push_back(i);
            }
        }
    }
    // A sibling has all names of the first one, and another kind of key.
    const std::vector<std::string>& wanted = certificates_[0].facts.names;
    for (std::size_t i = 0; i < certificates_.size(); ++i) {
        const std::vector<std::string>& names = certificates_[i].facts.names;
        const bool has_all = std::all_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
            return std::find(names.begin(), names.end(), name) != names.end();
        });
        if (i == 0 || (has_all && !wanted.empty())) {
            default_.push_back(i);
        }
    }
}

// By the name, then by the wildcard that it falls under: the first of them with a key that the client takes.
const TlsContext::Certificate* TlsContext::choose(const ClientHello& hello) const {
    const std::string name = host_name(hello.server_name);
    const std::size_t dot = name.find('.');
    const std::string wildcard = dot == std::string::npos || dot == 0 ? std::string() : "*" + name.substr(dot);  // RFC 6125 §6.4.3
    const Candidates* const exact = find(name);
    const Candidates* const broader = find(wildcard);
    const Candidates& candidates = exact != nullptr ? *exact : broader != nullptr ? *broader : default_;
    const Certificate* best = best_of(candidates, hello);
    if (best == nullptr && broader != nullptr) {
        best = best_of(*broader, hello);
    }
    return best != nullptr ? best : &certificates_[candidates.front()];
}

// The first that is not RSA, else the first; nullptr when the client takes none of them.
const TlsContext::Certificate* TlsContext::best_of(const Candidates& candidates, const ClientHello& hello) const {
    const Certificate* best = nullptr;
    for (const std::size_t i : candidates) {
        const TlsKeyKind kind = certificates_[i].facts.kind;
        const bool is_better = best == nullptr || (best->facts.kind == TlsKeyKind::rsa && kind != TlsKeyKind::rsa);
        if (is_better && takes(hello, kind)) {
            best = &certificates_[i];
        }
    }
    return best;
}

bool TlsContext::takes_suite(std::uint16_t number) const {
    const std::vector<std::string> names = names_in(suites_of(options_));
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return suite_of(name) == number; });
}

const TlsContext::Candidates* TlsContext::find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found != by_name_.end() ? &found->second : nullptr;
}

namespace {

// As certificates have it; empty when it can be none.
std::string host_name(std::string_view sent) {
    if (sent.ends_with('.')) {
        sent.remove_suffix(1);
    }
    return sent.size() <= kServerNameLimitBytes ? lower_case(sent) : std::string();
}

// Never ended: there is no knowing who else in the process uses it.
bool start_library() {
    static const bool started = wolfSSL_Init() == WOLFSSL_SUCCESS;
    return started;
}

// wolfSSL itself leaves out what it does not know, and takes what nobody should use (RFC 9325 §4.1): suites that encrypt nothing, that
// know no server, or whose ciphers are broken.
std::optional<Error> check_suites(const std::string& suites) {
    static constexpr std::array<std::string_view, 6> kWeak = {"NULL", "ANON", "ADH", "RC4", "DES", "MD5"};
    for (const std::string& name : names_in(suites)) {
        if (!suite_of(name)) {
            return Error{"wolfSSL knows no cipher suite \"" + name + "\"; the default is " + kSuites};
        }
        if (std::any_of(kWeak.begin(), kWeak.end(), [&](std::string_view part) { return name.find(part) != std::string::npos; })) {
            return Error{"the cipher suite \"" + name + "\" keeps nobody out; the default is " + kSuites};
        }
    }
    return std::nullopt;
}

std::vector<std::string> names_in(const std::string& suites) {
    std::vector<std::string> names;
    for (std::size_t at = 0; at < suites.size();) {
        const std::size_t end = std::min(suites.find(':', at), suites.size());
        names.push_back(suites.substr(at, end - at));
        at = end + 1;
    }
    return names;
}

// Its number.
std::optional<std::uint16_t> suite_of(const std::string& name) {
    unsigned char first = 0;
    unsigned char second = 0;
    int flags = 0;
    if (wolfSSL_get_cipher_suite_from_name(name.c_str(), &first, &second, &flags) != 0) {
        return std::nullopt;
    }
    return static_cast<std::uint16_t>(first << 8 | second);
}

std::optional<Error> configure(WOLFSSL_CTX* context, const TlsOptions& options, const std::string& client_ca) {
    const std::string suites = suites_of(options);
    std::array<int, TlsContext::kGroups.size()> groups{};
    std::copy(TlsContext::kGroups.begin(), TlsContext::kGroups.end(), groups.begin());
    const int minimum = options.minimum_version == TlsVersion::tls13 ? WOLFSSL_TLSV1_3 : WOLFSSL_TLSV1_2;
    if (wolfSSL_CTX_SetMinVersion(context, minimum) != WOLFSSL_SUCCESS ||
        wolfSSL_CTX_set_cipher_list(context, suites.c_str()) != WOLFSSL_SUCCESS ||
        wolfSSL_CTX_set_groups(context, groups.data(), static_cast<int>(groups.size())) != WOLFSSL_SUCCESS) {
        return Error{"wolfSSL does not take the cipher suites " + suites + " with this minimum version"};
    }
#ifndef NO_SESSION_CACHE
    wolfSSL_CTX_set_session_cache_mode(context, WOLFSSL_SESS_CACHE_OFF);  // it knows no names and no listeners; tickets do
#endif
    if (options.client_certificate == ClientCertificate::none) {
        wolfSSL_CTX_set_verify(context, WOLFSSL_VERIFY_NONE, nullptr);
        return std::nullopt;
    }
    if (const int result = load_authorities(context, client_ca); result != WOLFSSL_SUCCESS) {
        return in_file(options.client_ca_file,
                       "it holds no authority's certificate in PEM that wolfSSL can use: " + tls_reason(result));
    }
    return std::nullopt;
}

int load_authorities(WOLFSSL_CTX* context, const std::string& pem) {
    return wolfSSL_CTX_load_verify_buffer(context, reinterpret_cast<const unsigned char*>(pem.data()), static_cast<long>(pem.size()),
                                          WOLFSSL_FILETYPE_PEM);
}

// Whether the client can check a signature by such a key (RFC 8446 §4.2.3; without the extension, RFC 5246 §7.4.1.4.1). In TLS 1.2 a
// scheme names the hash alone, whatever the curve.
bool takes(const ClientHello& hello, TlsKeyKind kind) {
    constexpr std::uint16_t kEcdsaSha256 = 0x0403;
    constexpr std::uint16_t kEcdsaSha384 = 0x0503;
    constexpr std::uint16_t kEcdsaSha512 = 0x0603;
    constexpr std::uint16_t kEd25519 = 0x0807;
    if (kind == TlsKeyKind::rsa) {
        return true;
    }
    if (!hello.offers_tls13 && !hello.offers_ecdsa_suite()) {
        return false;
    }
    const bool takes_sha256 = !hello.offers_tls13 && hello.offers_scheme(kEcdsaSha256);
    switch (kind) {
        case TlsKeyKind::ecdsa_p256:
            return hello.offers_scheme(kEcdsaSha256) || (!hello.offers_tls13 && hello.signature_schemes.empty());
        case TlsKeyKind::ecdsa_p384: return hello.offers_scheme(kEcdsaSha384) || takes_sha256;
        case TlsKeyKind::ecdsa_p521: return hello.offers_scheme(kEcdsaSha512) || takes_sha256;
        case TlsKeyKind::ed25519: return hello.offers_scheme(kEd25519);
        case TlsKeyKind::rsa: break;
    }
    return true;
}

}  // namespace

}  // namespace penstock

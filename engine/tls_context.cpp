#include "penstock/engine/tls_context.h"

#include <wolfssl/options.h>
// Behind the options, which say what the library was built with.
#include <wolfssl/ssl.h>
#include <wolfssl/wolfcrypt/asn_public.h>
#include <wolfssl/wolfcrypt/ecc.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>
#include <span>
#include <utility>

#include "penstock/engine/config.h"
#include "penstock/engine/tls_callbacks.h"

namespace penstock {

namespace {

constexpr std::size_t kFileLimitBytes = 1 << 20;
constexpr std::uint32_t kTicketLifetimeLimitS = 7 * 24 * 60 * 60;  // RFC 8446 §4.6.1
// Ephemeral keys and authenticated encryption, nothing else (RFC 9325 §4.2); the server chooses, in this order.
constexpr const char* kSuites =
    "TLS13-AES128-GCM-SHA256:TLS13-AES256-GCM-SHA384:TLS13-CHACHA20-POLY1305-SHA256:"
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

bool start_library();
Result<std::string> read_whole(const std::string& path);
std::optional<Error> check_suites(const std::string& suites);
Result<std::shared_ptr<const TlsKeyLog>> open_key_log(const std::string& path);
#ifdef HAVE_SECRET_CALLBACK
int log_secret(WOLFSSL* session, int which, const unsigned char* secret, int size, void* log);
#endif
std::optional<Error> check_dates(const std::string& path, const TlsCertificateFacts& facts);
std::optional<Error> use_key(WOLFSSL_CTX* context, const TlsCertificate& files, std::span<const std::uint8_t> certificate, TlsKeyKind kind);
std::optional<Error> configure(WOLFSSL_CTX* context, const TlsOptions& options, const std::string& client_ca);
bool takes(const ClientHello& hello, TlsKeyKind kind);

Error in_file(const std::string& path, const std::string& reason) {
    return Error{(path.empty() ? "a certificate or key that was given without a file" : path) + ": " + reason};
}

}  // namespace

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
        auto read = read_whole(options.client_ca_file);
        if (!read.ok()) {
            return read.error();
        }
        made->client_ca_ = std::move(read.value());
    }
    if (!options.key_log_file.empty()) {
        auto log = open_key_log(options.key_log_file);
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
    auto chain = files.chain_pem.empty() ? read_whole(files.chain_file) : Result<std::string>(files.chain_pem);
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
        return in_file(files.chain_file, "wolfSSL does not take this chain of certificates (" + std::to_string(result) + ")");
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

const TlsContext::Certificate* TlsContext::choose(const ClientHello& hello) const {
    const Candidates* const named = find(hello.server_name);
    const Candidates& candidates = named != nullptr ? *named : default_;
    const auto is_better = [&](std::size_t i, const Certificate* best) {
        const TlsKeyKind kind = certificates_[i].facts.kind;
        return takes(hello, kind) && (best == nullptr || (best->facts.kind == TlsKeyKind::rsa && kind != TlsKeyKind::rsa));
    };
    const Certificate* best = nullptr;
    for (const std::size_t i : candidates) {
        if (is_better(i, best)) {
            best = &certificates_[i];
        }
    }
    return best != nullptr ? best : &certificates_[candidates.front()];
}

// The name itself, else with its first label replaced (RFC 6125 §6.4.3).
const TlsContext::Candidates* TlsContext::find(std::string_view name) const {
    if (name.ends_with('.')) {
        name.remove_suffix(1);
    }
    if (name.empty() || name.size() > kServerNameLimitBytes) {
        return nullptr;
    }
    std::string wanted(name);
    std::transform(wanted.begin(), wanted.end(), wanted.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (const auto found = by_name_.find(wanted); found != by_name_.end()) {
        return &found->second;
    }
    const std::size_t dot = wanted.find('.');
    if (dot == std::string::npos || dot == 0) {
        return nullptr;
    }
    const auto found = by_name_.find("*" + wanted.substr(dot));
    return found != by_name_.end() ? &found->second : nullptr;
}

void prepare_tls_session([[maybe_unused]] WOLFSSL* session, [[maybe_unused]] const TlsContext& context) {
#ifdef HAVE_SECRET_CALLBACK
    if (context.key_log() != nullptr) {
        wolfSSL_set_tls13_secret_cb(session, &log_secret, const_cast<TlsKeyLog*>(context.key_log()));
    }
#endif
}

namespace {

// Never ended: there is no knowing who else in the process uses it.
bool start_library() {
    static const bool started = wolfSSL_Init() == WOLFSSL_SUCCESS;
    return started;
}

Result<std::string> read_whole(const std::string& path) {
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

// wolfSSL itself leaves out what it does not know.
std::optional<Error> check_suites(const std::string& suites) {
    for (std::size_t at = 0; at < suites.size();) {
        const std::size_t end = std::min(suites.find(':', at), suites.size());
        const std::string name = suites.substr(at, end - at);
        unsigned char first = 0;
        unsigned char second = 0;
        int flags = 0;
        if (wolfSSL_get_cipher_suite_from_name(name.c_str(), &first, &second, &flags) != 0) {
            return Error{"wolfSSL knows no cipher suite \"" + name + "\"; the default is " + kSuites};
        }
        at = end + 1;
    }
    return std::nullopt;
}

#ifdef HAVE_SECRET_CALLBACK
Result<std::shared_ptr<const TlsKeyLog>> open_key_log(const std::string& path) { return TlsKeyLog::open(path); }

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
#else
Result<std::shared_ptr<const TlsKeyLog>> open_key_log(const std::string& path) {
    return Error{path + ": this wolfSSL tells no secrets, so there can be no key log; build with PENSTOCK_WOLFSSL=bundled"};
}
#endif

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

std::optional<Error> use_key(WOLFSSL_CTX* context, const TlsCertificate& files, std::span<const std::uint8_t> certificate, TlsKeyKind kind) {
    const auto key = files.key_pem.empty() ? read_whole(files.key_file) : Result<std::string>(files.key_pem);
    if (!key.ok()) {
        return key.error();
    }
    const std::string& pem = key.value();
    if (pem.find("PRIVATE KEY-----") == std::string::npos) {
        return in_file(files.key_file, "it holds no private key in PEM, which begins with -----BEGIN PRIVATE KEY-----");
    }
    const bool is_encrypted = pem.find("ENCRYPTED") != std::string::npos;
    if (is_encrypted && files.password.empty()) {
        return in_file(files.key_file, "the key is encrypted, and there is no password for it");
    }
    std::string password = files.password;
    wolfSSL_CTX_set_default_passwd_cb(context, &give_password);
    wolfSSL_CTX_set_default_passwd_cb_userdata(context, &password);
    const int result = wolfSSL_CTX_use_PrivateKey_buffer(context, reinterpret_cast<const unsigned char*>(pem.data()),
                                                         static_cast<long>(pem.size()), WOLFSSL_FILETYPE_PEM);
    wolfSSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
    if (result != WOLFSSL_SUCCESS) {
        return in_file(files.key_file, is_encrypted ? "the key cannot be decrypted; the password is wrong, or the file is damaged"
                                                    : "it holds a private key that wolfSSL cannot read (" + std::to_string(result) + ")");
    }
    const bool is_on_curve = kind != TlsKeyKind::rsa && kind != TlsKeyKind::ed25519;
    if (wolfSSL_CTX_check_private_key(context) != WOLFSSL_SUCCESS || (is_on_curve && !is_pair(certificate, pem, files.password))) {
        return in_file(files.key_file, "the key is not that of the certificate in " + files.chain_file +
                                           (is_encrypted ? ", or the password is wrong" : ""));
    }
    return std::nullopt;
}

std::optional<Error> configure(WOLFSSL_CTX* context, const TlsOptions& options, const std::string& client_ca) {
    const std::string suites = options.suites.empty() ? kSuites : options.suites;
    std::array<int, 4> groups = {WOLFSSL_ECC_X25519, WOLFSSL_ECC_SECP256R1, WOLFSSL_ECC_SECP384R1, WOLFSSL_ECC_SECP521R1};
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
    if (const int result = wolfSSL_CTX_load_verify_buffer(context, reinterpret_cast<const unsigned char*>(client_ca.data()),
                                                          static_cast<long>(client_ca.size()), WOLFSSL_FILETYPE_PEM);
        result != WOLFSSL_SUCCESS) {
        return in_file(options.client_ca_file, "it holds no authority's certificate in PEM that wolfSSL can use (" + std::to_string(result) + ")");
    }
    return std::nullopt;
}

// Whether the client can check a signature by such a key (RFC 8446 §4.2.3; without the extension, RFC 5246 §7.4.1.4.1).
bool takes(const ClientHello& hello, TlsKeyKind kind) {
    const bool says_nothing = hello.signature_schemes.empty();
    const bool suits_tls12 = hello.offers_ecdsa_suite();
    switch (kind) {
        case TlsKeyKind::rsa: return true;
        case TlsKeyKind::ed25519: return hello.offers_scheme(0x0807) && (hello.offers_tls13 || suits_tls12);
        case TlsKeyKind::ecdsa_p256: return hello.offers_tls13 ? hello.offers_scheme(0x0403) : suits_tls12 && (says_nothing || hello.offers_scheme(0x0403));
        case TlsKeyKind::ecdsa_p384: return (hello.offers_tls13 || suits_tls12) && (hello.offers_scheme(0x0503) || (!hello.offers_tls13 && hello.offers_scheme(0x0403)));
        case TlsKeyKind::ecdsa_p521: return (hello.offers_tls13 || suits_tls12) && (hello.offers_scheme(0x0603) || (!hello.offers_tls13 && hello.offers_scheme(0x0403)));
    }
    return false;
}

}  // namespace

}  // namespace penstock

// Public.
// TLS for a listener: `ListenOptions::tls`. TLS 1.2 and 1.3, by wolfSSL. Files are read and checked when the server starts and when
// it is told to read them again (Server::reload_tls); what is wrong with one is told then, by its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

// A certificate and its key, ECDSA, RSA or Ed25519. For the same names there may be one of each kind: a client is shown an ECDSA one
// when it takes it.
struct TlsCertificate {
    // PEM: the certificate itself, then those that lead to an authority's.
    std::string chain_file{};
    // PEM: its private key.
    std::string key_file{};
    // Their contents, where they come from no files.
    std::string chain_pem{};
    std::string key_pem{};
    // Of the key, where it is encrypted.
    std::string password{};
};

enum class TlsVersion : std::uint8_t { tls12, tls13 };

// Whether a client shows a certificate of its own.
enum class ClientCertificate : std::uint8_t {
    none,      // it is not asked for
    optional,  // one that is shown must be valid
    required,  // without a valid one there is no connection
};

struct TlsOptions {
    // Chosen by the name that the client wants (SNI, RFC 6066 §3) among those that the certificates are for; wildcards stand for one
    // label. The first is for whoever wants none of them.
    std::vector<TlsCertificate> certificates{};
    TlsVersion minimum_version = TlsVersion::tls12;
    // wolfSSL's names, the best first, with colons between. Empty: AES-GCM and ChaCha20-Poly1305 with ephemeral keys, and nothing else.
    std::string suites{};
    ClientCertificate client_certificate = ClientCertificate::none;
    // PEM: the authorities whose clients' certificates are valid. Required where any are asked for.
    std::string client_ca_file{};
    // Sessions can be resumed for so long, without a state on the server (RFC 8446 §4.6.1, RFC 5077); the keys for it change
    // twice in that time and are shared by all reactors, and each opens tickets for one and a half times as long. A week at most
    // (RFC 8446 §4.6.1). 0: none are. Not where clients show certificates: those would not be
    // looked at again.
    std::uint32_t ticket_lifetime_s = 12 * 60 * 60;
    // The secrets of all connections by TLS 1.3 are appended there, for Wireshark: whoever has the file can read everything. Only
    // with the wolfSSL that Penstock builds for itself, since Debian's does not tell them. Empty: never.
    std::string key_log_file{};
};

// Whose TLS it is: "wolfSSL 5.5.4, bundled", or "wolfSSL 5.5.4, the system's", which is several times slower. Empty in a build
// without TLS. Any thread.
[[nodiscard]] std::string tls_library();

// What is known of a connection's TLS. Its views live as long as the connection.
struct TlsInfo {
    std::string_view version;      // "TLSv1.3"
    std::string_view suite;        // "TLS13-AES128-GCM-SHA256", wolfSSL's name
    std::string_view server_name;  // that the client wanted, in its own words, 255 bytes at most; empty when it wanted none
    // The subject of the client's certificate, which was found valid, "/C=NZ/O=Example/CN=alice"; empty when it has shown none. Nothing in
    // it is escaped: an authority that certifies the common name "a/CN=b", or line ends, can make it look like another.
    std::string_view client_subject;
    bool resumed = false;
};

}  // namespace penstock

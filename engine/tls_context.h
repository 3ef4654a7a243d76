// Internal.
// What a listener's TLS is made of: its files, read and found well, as wolfSSL's contexts, one for each certificate, and which of
// them a client is shown.
//
// Shared by all reactors and changed by nobody, except that each reactor has one of its own where clients show certificates
// (forget_shown). When files are read again there is a new one; sessions keep the one they began with.
// Any thread: wolfSSL counts by a mutex who uses a context, which a handshake meets twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "penstock/engine/client_hello.h"
#include "penstock/engine/tls.h"
#include "penstock/engine/tls_certificate.h"
#include "penstock/engine/tls_key_log.h"
#include "penstock/engine/tls_tickets.h"
#include "penstock/platform/error.h"

struct WOLFSSL_CTX;

namespace penstock {

class TlsContext {
public:
    // For key exchange, the best first: X25519, P-256, P-384, P-521 (RFC 8446 §4.2.7).
    static constexpr std::array<std::uint16_t, 4> kGroups = {29, 23, 24, 25};

    // What it has of one certificate.
    struct Certificate {
        WOLFSSL_CTX* context = nullptr;  // owned by the TlsContext
        TlsCertificateFacts facts;       // tickets are bound to its fingerprint
    };

    // Reads and checks all of it. `protocols`: for ALPN (RFC 7301), the best first, commas between, or empty. `tickets`: keys that
    // outlive it, so that sessions can be resumed after files were read again; nullptr: no tickets. The error names the file and
    // the reason.
    [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> load(const TlsOptions& options, std::string_view protocols,
                                                                        std::shared_ptr<TlsTickets> tickets);
    ~TlsContext();
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;

    // The one to be shown to this client: by the name that it wants, then by the signatures that it takes. Never nullptr: a client
    // that can be shown none gets the first, and wolfSSL tells it so.
    [[nodiscard]] const Certificate* choose(const ClientHello& hello) const;
    // It is one of `options().suites`, or of the defaults. Looks them up each time.
    [[nodiscard]] bool takes_suite(std::uint16_t number) const;
    // The authorities that a client has shown below ours: wolfSSL adds them to those by which it finds the next clients' certificates
    // valid, for good, also when they have expired. Called between two steps of handshakes, by the one thread that has this context.
    void forget_shown(const Certificate& certificate) const;
    [[nodiscard]] const TlsOptions& options() const { return options_; }
    [[nodiscard]] const std::string& protocols() const { return protocols_; }
    [[nodiscard]] const std::shared_ptr<TlsTickets>& tickets() const { return tickets_; }
    // nullptr: nobody is to know.
    [[nodiscard]] const TlsKeyLog* key_log() const { return key_log_.get(); }

private:
    using Candidates = std::vector<std::size_t>;  // certificates, in the order of the options

    TlsContext(const TlsOptions& options, std::string_view protocols, std::shared_ptr<TlsTickets> tickets);
    [[nodiscard]] std::optional<Error> add(const TlsCertificate& files);
    void index_names();
    [[nodiscard]] const Certificate* best_of(const Candidates& candidates, const ClientHello& hello) const;
    [[nodiscard]] const Candidates* find(const std::string& name) const;

    const TlsOptions options_;
    const std::string protocols_;
    const std::shared_ptr<TlsTickets> tickets_;
    std::string client_ca_;
    std::shared_ptr<const TlsKeyLog> key_log_;
    std::vector<Certificate> certificates_;
    std::unordered_map<std::string, Candidates> by_name_;
    Candidates default_;  // for who wants no name, or one that nobody has: all that the first certificate's names are for
};

}  // namespace penstock

// Internal.
// What the command line says of TLS, and what becomes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/engine/server.h"
#include "penstock/platform/error.h"

namespace CLI {
class App;
}

namespace penstock::program {

// As given; the options of the library are made of it by `make_tls`.
struct TlsArguments {
    std::vector<std::pair<std::string, std::string>> certificates;  // chain and key
    bool self_signed = false;
    std::string password_file;
    std::string minimum;
    std::string client_certificate;
    TlsOptions options;  // what is taken as it stands
    std::optional<std::uint32_t> hsts_s;
    std::optional<std::uint16_t> redirect_port;

    [[nodiscard]] bool is_on() const { return self_signed || !certificates.empty(); }
};

void add_tls_options(CLI::App& command, TlsArguments* tls);

// What two of them say against each other, as one sentence, or nothing.
[[nodiscard]] std::string check_tls_options(const CLI::App& command, const TlsArguments& tls, const ListenOptions& listen);

// Reads the password, and makes the certificate that --tls-self-signed wants; then `*fingerprint` is its fingerprint.
[[nodiscard]] Result<TlsOptions> make_tls(const TlsArguments& tls, std::string* fingerprint);

}  // namespace penstock::program

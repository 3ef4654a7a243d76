#include "tls_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "penstock/engine/tls_self_signed.h"

namespace penstock::program {

namespace {

TlsOptions& tls_of(Options* options) {
    if (!options->listen.tls.has_value()) {
        options->listen.tls.emplace();
    }
    return *options->listen.tls;
}

Result<std::string> first_line_of(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line)) {
        return Error{path + " cannot be read, or its first line, which is the password, is empty"};
    }
    return line;
}

std::vector<std::string> own_names() {
    std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
    std::array<char, 128> name{};
    if (::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0') {
        names.emplace_back(name.data());
    }
    return names;
}

}  // namespace

void add_tls_options(CLI::App& command, Options* options) {
    CLI::Option* const tls = command.add_option_function<std::vector<std::pair<std::string, std::string>>>(
        "--tls",
        [options](const std::vector<std::pair<std::string, std::string>>& given) {
            for (const auto& [chain, key] : given) {
                TlsCertificate certificate;
                certificate.chain_file = chain;
                certificate.key_file = key;
                tls_of(options).certificates.push_back(certificate);
            }
        },
        "Speak TLS with this certificate and key, PEM both; may be given again for\n"
        "other names or another kind of key. SIGHUP reads them again");
    tls->type_name("CHAIN KEY");
    CLI::Option* const self_signed = command.add_flag("--tls-self-signed", options->tls_self_signed,
                                                      "Speak TLS with a certificate made for this run, for trying out");
    self_signed->excludes(tls);
    const auto add = [&](const char* name, auto function, const char* type, const char* description) {
        return command.add_option_function<std::string>(name, function, description)->type_name(type);
    };
    command.add_option("--tls-password-file", options->tls_password_file, "Its first line is the password of the keys")
        ->type_name("FILE")
        ->needs(tls);
    add("--tls-minimum", [options](const std::string& version) {
        tls_of(options).minimum_version = version == "1.3" ? TlsVersion::tls13 : TlsVersion::tls12;
    }, "VERSION", "The oldest version that is spoken, 1.2 or 1.3 (1.2)")->check(CLI::IsMember({"1.2", "1.3"}));
    add("--tls-suites", [options](const std::string& suites) { tls_of(options).suites = suites; }, "LIST",
        "Cipher suites by wolfSSL's names, with colons between, the best first");
    CLI::Option* const authority = add("--tls-client-ca", [options](const std::string& file) { tls_of(options).client_ca_file = file; },
                                       "FILE", "The authorities whose clients' certificates are valid");
    const std::map<std::string, ClientCertificate> kinds = {{"optional", ClientCertificate::optional},
                                                            {"required", ClientCertificate::required}};
    CLI::Option* const wanted = add("--tls-client-certificate", [options, kinds](const std::string& kind) {
        tls_of(options).client_certificate = kinds.at(kind);
    }, "KIND", "Ask clients for certificates: optional or required");
    wanted->check(CLI::IsMember({"optional", "required"}))->needs(authority);
    authority->needs(wanted);
    command.add_option_function<std::uint32_t>("--tls-ticket-lifetime", [options](const std::uint32_t& seconds) {
        tls_of(options).ticket_lifetime_s = seconds;
    }, "How long a session can be resumed, in seconds; 0: never (43200)")->type_name("S");
    add("--tls-ocsp", [options](const std::string& file) {
        if (tls_of(options).certificates.empty()) {
            tls_of(options).certificates.emplace_back();
        }
        tls_of(options).certificates.front().ocsp_file = file;
    }, "FILE", "An OCSP response, DER, that is stapled to the first certificate")->needs(tls);
    add("--tls-key-log", [options](const std::string& file) { tls_of(options).key_log_file = file; }, "FILE",
        "Append the secrets of all connections, for Wireshark: whoever has the\nfile can read everything");
    command.add_option("--hsts", options->hsts_s, "Tell browsers to come back by https only, for so many seconds")->type_name("S");
    command.add_option("--redirect-port", options->redirect_port, "Send who comes to this port, without TLS, to the other one")
        ->type_name("PORT");
}

Result<void> complete_tls_options(Options* options) {
    if (options->tls_self_signed) {
        auto made = make_self_signed_certificate(own_names());
        if (!made.ok()) {
            return made.error();
        }
        tls_of(options).certificates = {made.value()};
    }
    if (!options->listen.tls.has_value()) {
        if (options->hsts_s != 0 || options->redirect_port != 0) {
            return Error{"--hsts and --redirect-port lead to TLS, and there is none; give --tls CHAIN KEY or --tls-self-signed"};
        }
        return {};
    }
    if (options->listen.tls->certificates.empty()) {
        return Error{"options of TLS were given without a certificate; add --tls CHAIN KEY or --tls-self-signed"};
    }
    if (!options->tls_password_file.empty()) {
        const auto password = first_line_of(options->tls_password_file);
        if (!password.ok()) {
            return password.error();
        }
        for (TlsCertificate& certificate : options->listen.tls->certificates) {
            certificate.password = password.value();
        }
    }
    return {};
}

}  // namespace penstock::program

#include "tls_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <string_view>

#include "number_option.h"
#include "penstock/engine/tls_self_signed.h"

namespace penstock::program {

namespace {

// Options that mean nothing without a certificate.
constexpr const char* kOthers[] = {
    "--tls-password-file", "--tls-minimum",         "--tls-suites", "--tls-client-ca", "--tls-client-certificate",
    "--tls-ticket-lifetime", "--tls-key-log",       "--hsts",       "--redirect-port"};

// Longer than any password that a key is encrypted with.
constexpr std::size_t kPasswordLimitBytes = 1'024;

void add_file_option(CLI::App& command, const std::string& name, std::string* file, const std::string& description);
void add_choice(CLI::App& command, const std::string& name, std::string* choice, std::vector<std::string> choices,
                const std::string& description);
Result<std::string> read_password(const std::string& file);
std::vector<std::string> own_names();

}  // namespace

void add_tls_options(CLI::App& command, TlsArguments* tls) {
    command
        .add_option("--tls", tls->certificates,
                    "Speak TLS, with the certificate and those that lead to an authority's in\n"
                    "CHAIN and its private key in KEY, both PEM; may be given again, for other\n"
                    "names or with another kind of key. SIGHUP reads the files again")
        ->type_name("CHAIN KEY")
        ->expected(1)
        ->allow_extra_args(false)  // what follows is another option's, or DIR
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command.add_flag("--tls-self-signed", tls->self_signed,
                     "The same with a certificate that is made now, for localhost and this\n"
                     "machine's name, and gone at the end: to try it with");
    add_file_option(command, "--tls-password-file", &tls->password_file,
                    "Its first line is the password of all keys that are encrypted");
    add_choice(command, "--tls-minimum", &tls->minimum, {"1.2", "1.3"}, "The oldest version that is spoken (1.2)");
    command
        .add_option("--tls-suites", tls->options.suites,
                    "wolfSSL's names of the cipher suites, the best first, with colons between")
        ->type_name("LIST");
    add_file_option(command, "--tls-client-ca", &tls->options.client_ca_file,
                    "PEM: the authorities whose clients' certificates are valid");
    add_choice(command, "--tls-client-certificate", &tls->client_certificate, {"optional", "required"},
               "Ask clients for one, and refuse those that show none that is valid, or\nthat show none at all");
    add_number(command, "--tls-ticket-lifetime", &tls->options.ticket_lifetime_s, "SECONDS",
               "How long a session can be resumed; 0: never");
    add_file_option(command, "--tls-key-log", &tls->options.key_log_file,
                    "Append the secrets of TLS 1.3, for Wireshark: whoever has the file\ncan read everything");
    add_optional_number(command, "--hsts", &tls->hsts_s, "SECONDS",
                        "Have browsers come by TLS alone for so long (Strict-Transport-Security)");
    add_optional_number(command, "--redirect-port", &tls->redirect_port, "PORT",
                        "A second port, without TLS, that sends everybody to the one with it; 0\ntakes any that is free");
}

std::string check_tls_options(const CLI::App& command, const TlsArguments& tls, const ListenOptions& listen) {
    if (!tls.is_on()) {
        const auto* const given = std::find_if(std::begin(kOthers), std::end(kOthers),
                                               [&command](const char* name) { return command.count(name) != 0; });
        return given == std::end(kOthers)
                   ? std::string()
                   : std::string(*given) + " is about TLS, which is off; give a certificate with --tls CHAIN KEY";
    }
    if (tls.self_signed && !tls.certificates.empty()) {
        return "--tls-self-signed is for those who have no certificate, and --tls gives one; leave one of them out";
    }
    if (tls.self_signed && !tls.password_file.empty()) {
        return "--tls-password-file is for the key of --tls, and --tls-self-signed makes its own; leave one of them out";
    }
    if (!tls.client_certificate.empty() && tls.options.client_ca_file.empty()) {
        return "--tls-client-certificate asks for certificates that nobody could judge; name their authorities with "
               "--tls-client-ca FILE";
    }
    if (tls.client_certificate.empty() && !tls.options.client_ca_file.empty()) {
        return "--tls-client-ca judges certificates that nobody asks for; add --tls-client-certificate optional or required";
    }
    if (!tls.redirect_port) {
        return {};
    }
    if (listen.address.starts_with("unix:")) {
        return "--redirect-port sends clients to a port, and " + listen.address + " has none; leave one of them out";
    }
    return *tls.redirect_port != 0 && *tls.redirect_port == listen.port
               ? "--redirect-port and --port are both " + std::to_string(listen.port) + "; choose another for one of them"
               : std::string();
}

Result<TlsOptions> make_tls(const TlsArguments& tls, std::string* fingerprint) {
    TlsOptions options = tls.options;
    std::string password;
    if (!tls.password_file.empty()) {
        Result<std::string> read = read_password(tls.password_file);
        if (!read.ok()) {
            return read.error();
        }
        password = std::move(read.value());
    }
    for (const auto& [chain, key] : tls.certificates) {
        options.certificates.push_back({.chain_file = chain, .key_file = key, .password = password});
    }
    if (tls.self_signed) {
        const Result<TlsCertificate> made = make_self_signed_certificate(own_names());
        if (!made.ok()) {
            return made.error();
        }
        options.certificates.push_back(made.value());
        *fingerprint = certificate_fingerprint(made.value().chain_pem);
    }
    options.minimum_version = tls.minimum == "1.3" ? TlsVersion::tls13 : TlsVersion::tls12;
    if (!tls.client_certificate.empty()) {
        options.client_certificate =
            tls.client_certificate == "required" ? ClientCertificate::required : ClientCertificate::optional;
    }
    return options;
}

namespace {

void add_file_option(CLI::App& command, const std::string& name, std::string* file, const std::string& description) {
    command.add_option(name, *file, description)
        ->type_name("FILE")
        ->check(CLI::Validator(
            [](const std::string& given) { return given.empty() ? "it names no file" : std::string(); }, ""));
}

void add_choice(CLI::App& command, const std::string& name, std::string* choice, std::vector<std::string> choices,
                const std::string& description) {
    const std::string type = choices[0] + "|" + choices[1];
    const std::string either = choices[0] + " or " + choices[1];
    command.add_option(name, *choice, description)
        ->type_name(type)
        ->check(CLI::Validator(
            [choices = std::move(choices), either](const std::string& given) {
                return std::find(choices.begin(), choices.end(), given) != choices.end()
                           ? std::string()
                           : "\"" + given + "\" is not " + either;
            },
            ""));
}

// As which a client on this machine, or near it, may ask for it.
std::vector<std::string> own_names() {
    std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
    std::array<char, 65> name{};  // man 7 hostname: 64 at most
    if (::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0') {
        names.emplace_back(name.data());
    }
    return names;
}

// Not on the command line, where every user of the machine sees it (man 1 ps).
Result<std::string> read_password(const std::string& file) {
    std::ifstream input(file);
    std::string line(kPasswordLimitBytes + 1, '\0');
    input.read(line.data(), static_cast<std::streamsize>(line.size()));
    const std::size_t size = static_cast<std::size_t>(input.gcount());
    if (!input.is_open() || input.bad() || size == 0) {
        return Error{"--tls-password-file: \"" + file + "\" cannot be read, or is empty; check its name and its permissions"};
    }
    line.resize(std::min(size, line.find_first_of("\r\n")));
    if (line.empty() || line.size() > kPasswordLimitBytes) {
        return Error{"--tls-password-file: the first line of \"" + file + "\" is no password of 1 to " +
                     std::to_string(kPasswordLimitBytes) + " bytes; write the password there, and nothing else"};
    }
    return line;
}

}  // namespace

}  // namespace penstock::program

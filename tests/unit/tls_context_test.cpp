// What a listener with TLS is made of: files that are wrong are told by name, and each client is shown the right certificate.
#include "penstock/engine/tls_context.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "penstock/engine/tls_self_signed.h"
#include "support/certificates.h"

namespace penstock::test {
namespace {

using Loaded = Result<std::shared_ptr<const TlsContext>>;

std::string file_with(const std::string& name, const std::string& content) {
    const std::string path = TestCertificates::get().folder() + "/" + name;
    std::ofstream(path) << content;
    return path;
}

void run(const std::string& command) { REQUIRE_MESSAGE(std::system((command + " 2>/dev/null").c_str()) == 0, command); }

TlsOptions options_of(std::vector<TlsCertificate> certificates) {
    TlsOptions options;
    options.certificates = std::move(certificates);
    return options;
}

std::string error_of(const TlsOptions& options) {
    const Loaded loaded = TlsContext::load(options, "http/1.1", nullptr);
    return loaded.ok() ? std::string("nothing is wrong") : loaded.error().message;
}

bool says(const TlsOptions& options, std::string_view what) {
    const std::string message = error_of(options);
    INFO(message);
    INFO(std::string(what));
    const bool found = message.find(what) != std::string::npos;
    CHECK(found);
    return found;
}

struct Client {
    std::string name{};
    std::vector<unsigned> schemes = {0x0403, 0x0503, 0x0603, 0x0804};
    std::vector<unsigned> suites = {0x1301, 0xc02b, 0xc02f};
    bool tls13 = true;
};

std::vector<std::uint8_t> as_numbers(const std::vector<unsigned>& values) {
    std::vector<std::uint8_t> bytes;
    for (const unsigned value : values) {
        bytes.push_back(static_cast<std::uint8_t>(value >> 8));
        bytes.push_back(static_cast<std::uint8_t>(value));
    }
    return bytes;
}

// The number of the certificate that this client is shown.
std::size_t shown(const TlsContext& context, const Client& client, const std::vector<TlsCertificate>& certificates) {
    const std::vector<std::uint8_t> schemes = as_numbers(client.schemes);
    const std::vector<std::uint8_t> suites = as_numbers(client.suites);
    ClientHello hello;
    hello.server_name = client.name;
    hello.signature_schemes = schemes;
    hello.cipher_suites = suites;
    hello.offers_tls13 = client.tls13;
    const TlsContext::Certificate* const chosen = context.choose(hello);
    REQUIRE(chosen != nullptr);
    for (std::size_t i = 0; i < certificates.size(); ++i) {
        const Loaded alone = TlsContext::load(options_of({certificates[i]}), "", nullptr);
        REQUIRE(alone.ok());
        if (alone.value()->choose(hello)->facts.fingerprint == chosen->facts.fingerprint) {
            return i;
        }
    }
    return certificates.size();
}

}  // namespace

TEST_CASE("what is wrong with the files of TLS is told by their names") {
    const TestCertificates& test = TestCertificates::get();
    CHECK(error_of(options_of({test.ecdsa, test.rsa, test.ed25519})) == "nothing is wrong");
    says(options_of({}), "has no certificate");
    TlsCertificate wrong = test.ecdsa;
    wrong.chain_file = "/nowhere/cert.pem";
    says(options_of({wrong}), "/nowhere/cert.pem cannot be read: No such file");
    wrong = test.ecdsa;
    wrong.key_file = "/nowhere/key.pem";
    says(options_of({wrong}), "/nowhere/key.pem cannot be read: No such file");
    wrong = test.ecdsa;
    wrong.chain_file = test.folder();
    says(options_of({wrong}), test.folder() + " cannot be read");
    wrong = test.ecdsa;
    wrong.chain_file = test.ecdsa.key_file;
    says(options_of({wrong}), test.ecdsa.key_file + ": it holds no certificate in PEM");
    wrong.chain_file = file_with("half.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    says(options_of({wrong}), "half.pem: it ends in the middle");
    wrong.chain_file = file_with("garbage.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
    says(options_of({wrong}), "garbage.pem: it holds a certificate that");
    wrong = test.ecdsa;
    wrong.key_file = test.ecdsa.chain_file;
    says(options_of({wrong}), test.ecdsa.chain_file + ": it holds no private key in PEM");
    says(options_of({test.short_rsa}), "RSA key too small (-409)");  // told of the certificate or of the key, as wolfSSL was built
    wrong.key_file = test.other.key_file;
    says(options_of({wrong}), test.other.key_file + ": the key is not that of the certificate in " + test.ecdsa.chain_file);
    wrong.key_file = test.rsa.key_file;
    says(options_of({wrong}), "the key is not that of the certificate");
    wrong = {};
    says(options_of({wrong}), "names no file");
    says(options_of(std::vector<TlsCertificate>(1'001, test.ecdsa)), "1001 certificates; at most 1000");
}

TEST_CASE("a certificate that is over, or not yet valid, is told with its date") {
    const TestCertificates& test = TestCertificates::get();
    const std::string folder = test.folder();
    TlsCertificate old = test.ecdsa;
    old.chain_file = folder + "/old.pem";
    run("openssl req -new -key " + old.key_file + " -subj /CN=old -out " + folder + "/old.csr");
    file_with("ca.cnf", "[ca]\ndefault_ca=c\n[c]\ndatabase=" + folder + "/index\nnew_certs_dir=" + folder + "\nserial=" + folder +
                            "/serial\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n");
    file_with("serial", "01\n");
    file_with("index", "");
    const std::string sign = "openssl ca -batch -selfsign -config " + folder + "/ca.cnf -keyfile " + old.key_file + " -in " + folder +
                             "/old.csr -out " + old.chain_file;
    run(sign + " -startdate 20200101000000Z -enddate 20210102030405Z");
    says(options_of({old}), "old.pem: the certificate expired on 2021-01-02 03:04:05 UTC; renew it");
    run(sign + " -startdate 20520101000000Z -enddate 20530101000000Z");
    says(options_of({old}), "old.pem: the certificate is not valid before 2052-01-01 00:00:00 UTC");
}

TEST_CASE("an encrypted key needs its password") {
    const TestCertificates& test = TestCertificates::get();
    TlsCertificate locked = test.ecdsa;
    locked.key_file = test.folder() + "/locked.key";
    const std::string commands[] = {
        "openssl pkcs8 -topk8 -in " + test.ecdsa.key_file + " -passout pass:secret -out " + locked.key_file,
        "openssl ec -aes256 -in " + test.ecdsa.key_file + " -passout pass:secret -out " + locked.key_file,
    };
    for (const std::string& command : commands) {
        run(command);
        locked.password.clear();
        says(options_of({locked}), "locked.key: the key is encrypted, and there is no password for it");
        locked.password = "wrong";
        says(options_of({locked}), "the password is wrong");
        locked.password = "secret";
        CHECK(error_of(options_of({locked})) == "nothing is wrong");
    }
}

TEST_CASE("suites and client certificates are checked at the start") {
    const TestCertificates& test = TestCertificates::get();
    TlsOptions options = options_of({test.ecdsa});
    options.suites = "TLS13-AES128-GCM-SHA256:NO-SUCH-SUITE";
    says(options, "no cipher suite \"NO-SUCH-SUITE\"");
    // The wolfSSL that is built along knows none of these; the distribution's does, and would take them.
    for (const char* const weak : {"ECDHE-ECDSA-NULL-SHA", "ECDHE-RSA-RC4-SHA", "ECDHE-ECDSA-DES-CBC3-SHA"}) {
        options.suites = std::string("TLS13-AES128-GCM-SHA256:") + weak;
        says(options, std::string("cipher suite \"") + weak + "\"");
    }
    options.suites.clear();
    options.ticket_lifetime_s = 604'801;
    says(options, "ticket_lifetime_s is 604801; set it to 604800 or less");
    options.ticket_lifetime_s = 604'800;
    options.suites = "TLS13-AES128-GCM-SHA256";
    CHECK(error_of(options) == "nothing is wrong");
    options.client_certificate = ClientCertificate::required;
    says(options, "TlsOptions::client_ca_file");
    options.client_ca_file = "/nowhere/ca.pem";
    says(options, "/nowhere/ca.pem cannot be read");
    options.client_ca_file = test.ecdsa.key_file;
    says(options, test.ecdsa.key_file + ": it holds no authority's certificate");
    options.client_ca_file = test.client_ca_file;
    CHECK(error_of(options) == "nothing is wrong");
}

TEST_CASE("a client is shown the certificate for the name that it wants") {
    const TestCertificates& test = TestCertificates::get();
    const std::vector<TlsCertificate> all = {test.ecdsa, test.other};
    const Loaded loaded = TlsContext::load(options_of(all), "", nullptr);
    REQUIRE(loaded.ok());
    const auto shown_to = [&](const std::string& name) { return shown(*loaded.value(), {.name = name}, all); };
    CHECK(shown_to("") == 0);
    CHECK(shown_to("localhost") == 0);
    CHECK(shown_to("other.example.net") == 1);
    CHECK(shown_to("OTHER.Example.NET") == 1);
    CHECK(shown_to("other.example.net.") == 1);
    CHECK(shown_to("a.example.org") == 0);      // by the wildcard
    CHECK(shown_to("a.b.example.org") == 0);    // by nothing: the first
    CHECK(shown_to("x.other.example.net") == 0);
    CHECK(shown_to(".example.net") == 0);
    CHECK(shown_to(".") == 0);
    CHECK(shown_to(std::string(300, 'a')) == 0);
}

TEST_CASE("of several kinds of key a client is shown one that it can check, elliptic curves first") {
    const TestCertificates& test = TestCertificates::get();
    for (const std::vector<TlsCertificate>& all : {std::vector{test.ecdsa, test.rsa}, std::vector{test.rsa, test.ecdsa}}) {
        const Loaded loaded = TlsContext::load(options_of(all), "", nullptr);
        REQUIRE(loaded.ok());
        const std::size_t ecdsa = all[0].chain_file == test.ecdsa.chain_file ? 0 : 1;
        const auto shown_to = [&](const Client& client) { return shown(*loaded.value(), client, all); };
        CHECK(shown_to({}) == ecdsa);
        CHECK(shown_to({.name = "a.example.org"}) == ecdsa);
        CHECK(shown_to({.schemes = {0x0804}}) == 1 - ecdsa);
        CHECK(shown_to({.schemes = {0x0401, 0x0403}, .suites = {0xc02b}, .tls13 = false}) == ecdsa);
        CHECK(shown_to({.schemes = {0x0401, 0x0403}, .suites = {0xc02f}, .tls13 = false}) == 1 - ecdsa);
        CHECK(shown_to({.schemes = {}, .suites = {0xc02b}, .tls13 = false}) == ecdsa);
    }
    const std::vector<TlsCertificate> all = {test.rsa, test.ed25519};
    const Loaded loaded = TlsContext::load(options_of(all), "", nullptr);
    REQUIRE(loaded.ok());
    CHECK(shown(*loaded.value(), {.schemes = {0x0804, 0x0807}}, all) == 1);
    CHECK(shown(*loaded.value(), {.schemes = {0x0804}}, all) == 0);
}

TEST_CASE("a client that cannot check the certificate of the very name is shown the wildcard's") {
    const auto exact = make_self_signed_certificate({"a.example.org"});
    REQUIRE(exact.ok());
    const std::vector<TlsCertificate> all = {exact.value(), TestCertificates::get().rsa};
    const Loaded loaded = TlsContext::load(options_of(all), "", nullptr);
    REQUIRE(loaded.ok());
    CHECK(shown(*loaded.value(), {.name = "a.example.org"}, all) == 0);
    CHECK(shown(*loaded.value(), {.name = "a.example.org", .schemes = {0x0804}}, all) == 1);
    CHECK(shown(*loaded.value(), {.name = "b.example.org"}, all) == 1);
}

TEST_CASE("a certificate that was made for this run can be used") {
    const auto made = make_self_signed_certificate({"localhost", "127.0.0.1", "::1", "my-machine"});
    REQUIRE(made.ok());
    const Loaded loaded = TlsContext::load(options_of({made.value()}), "", nullptr);
    REQUIRE_MESSAGE(loaded.ok(), loaded.error().message);
    std::vector<std::string> names = loaded.value()->choose({})->facts.names;
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{"localhost", "my-machine"});
    CHECK_FALSE(make_self_signed_certificate({}).ok());
    CHECK_FALSE(make_self_signed_certificate({""}).ok());
    CHECK_FALSE(make_self_signed_certificate({std::string(128, 'a')}).ok());
}

}  // namespace penstock::test

#include "support/certificates.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

namespace penstock::test {

namespace {

constexpr const char* kP256 = "ec -pkeyopt ec_paramgen_curve:P-256";

std::string make_folder() {
    std::string path = (std::filesystem::temp_directory_path() / "penstock-certificates-XXXXXX").string();
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    return path;
}

void run(const std::string& command) { REQUIRE_MESSAGE(std::system((command + " 2>/dev/null").c_str()) == 0, command); }

}  // namespace

const TestCertificates& TestCertificates::get() {
    static const TestCertificates certificates;
    return certificates;
}

TestCertificates::TestCertificates() : folder_(make_folder()) {
    const std::string names = " -addext subjectAltName=DNS:localhost,DNS:*.example.org,IP:127.0.0.1";
    ecdsa = make("ecdsa", kP256, "/CN=localhost", names);
    rsa = make("rsa", "rsa:2048", "/CN=localhost", names);
    ed25519 = make("ed25519", "ed25519", "/CN=localhost", names);
    short_rsa = make("short_rsa", "rsa:512", "/CN=short", "");
    other = make("other", kP256, "/CN=other", " -addext subjectAltName=DNS:other.example.net");
    const TlsCertificate ca = make("ca", kP256, "/CN=Authority", "");
    client_ca_file = ca.chain_file;
    client = make("client", kP256, "/C=NZ/O=Example/CN=alice", " -CA " + ca.chain_file + " -CAkey " + ca.key_file);
    stranger = make("stranger", kP256, "/CN=mallory", "");
}

TestCertificates::~TestCertificates() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

TlsCertificate TestCertificates::make(const std::string& name, const std::string& key, const std::string& subject, const std::string& more) {
    TlsCertificate made;
    made.chain_file = folder_ + "/" + name + ".pem";
    made.key_file = folder_ + "/" + name + ".key";
    run("openssl req -x509 -newkey " + key + " -nodes -days 30 -subj " + subject + " -keyout " + made.key_file + " -out " + made.chain_file +
        more);
    return made;
}

}  // namespace penstock::test

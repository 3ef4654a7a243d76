// Internal.
// Certificates for tests, made by openssl when the first test wants one, in a temporary folder that goes with the program.
//
// Any thread.
#pragma once

#include <string>

#include "penstock/engine/tls.h"

namespace penstock::test {

class TestCertificates {
public:
    [[nodiscard]] static const TestCertificates& get();
    ~TestCertificates();
    TestCertificates(const TestCertificates&) = delete;
    TestCertificates& operator=(const TestCertificates&) = delete;

    [[nodiscard]] const std::string& folder() const { return folder_; }

    // For "localhost" and "*.example.org".
    TlsCertificate ecdsa;
    TlsCertificate rsa;
    TlsCertificate ed25519;
    // With a key of 512 bits.
    TlsCertificate short_rsa;
    // For "other.example.net".
    TlsCertificate other;
    // Signs `client`, "/CN=alice", and not `stranger`.
    std::string client_ca_file;
    TlsCertificate client;
    TlsCertificate stranger;

private:
    TestCertificates();
    [[nodiscard]] TlsCertificate make(const std::string& name, const std::string& key, const std::string& subject, const std::string& more);

    std::string folder_;
};

}  // namespace penstock::test

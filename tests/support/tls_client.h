// Internal.
// A TLS client in memory: bytes of the wire in and out, no socket. wolfSSL's own, so it proves nothing about whether others
// understand the server; it is there to choose how what it says is cut into records and pieces.
//
// Owned by one test; its thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

struct WOLFSSL;
struct WOLFSSL_CTX;

namespace penstock::test {

struct TlsClientOptions {
    std::string server_name{};
    bool only_tls12 = false;
    std::string protocols{};    // for ALPN, with commas between
    std::string suites{};       // wolfSSL's names
    std::string certificate{};  // PEM files of its own, or none
    std::string key{};
};

class TlsClient {
public:
    explicit TlsClient(const TlsClientOptions& options = {});
    ~TlsClient();
    TlsClient(const TlsClient&) = delete;
    TlsClient& operator=(const TlsClient&) = delete;

    // Goes on with the handshake, as far as what was received lets it.
    void shake_hands();
    [[nodiscard]] bool established() const { return established_; }
    // Makes one record of it, at most 16 KiB.
    void write(std::string_view plain_text);
    void say_goodbye();

    // From the wire; what is plain text in it is added to `received`.
    void give(std::string_view bytes);
    // For the wire.
    [[nodiscard]] std::string take_outgoing() { return std::exchange(outgoing_, {}); }
    [[nodiscard]] std::string take_received() { return std::exchange(received_, {}); }

    [[nodiscard]] bool heard_goodbye() const { return heard_goodbye_; }
    // wolfSSL's number of what has gone wrong, or 0.
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] std::uint64_t records_received() const { return records_received_; }
    [[nodiscard]] WOLFSSL* session() { return ssl_; }

private:
    friend struct TlsClientCallbacks;
    void read_all();

    WOLFSSL_CTX* context_ = nullptr;
    WOLFSSL* ssl_ = nullptr;
    std::string incoming_;
    std::string outgoing_;
    std::string received_;
    std::uint64_t records_received_ = 0;
    bool established_ = false;
    bool heard_goodbye_ = false;
    int error_ = 0;
};

}  // namespace penstock::test

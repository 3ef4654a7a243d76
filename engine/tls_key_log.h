// Internal.
// The file to which the secrets of connections are appended for Wireshark, in the format that all TLS libraries share
// (SSLKEYLOGFILE).
//
// Any thread: each line is one write at the file's end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/platform/error.h"

struct WOLFSSL;

namespace penstock {

class TlsKeyLog {
public:
    // Made for its owner alone where it is not there. An error too where wolfSSL tells no secrets.
    [[nodiscard]] static Result<std::shared_ptr<const TlsKeyLog>> open(const std::string& path);
    ~TlsKeyLog();
    TlsKeyLog(const TlsKeyLog&) = delete;
    TlsKeyLog& operator=(const TlsKeyLog&) = delete;

    // Has the secrets of a session written, whose handshake has not begun; it must not outlive this. False when wolfSSL refuses.
    [[nodiscard]] bool attach(WOLFSSL* session) const;

    // What cannot be written is lost: nobody is to wait for that.
    void write(std::string_view label, std::span<const std::uint8_t> client_random, std::span<const std::uint8_t> secret) const;

private:
    explicit TlsKeyLog(int fd) : fd_(fd) {}

    const int fd_;
};

}  // namespace penstock

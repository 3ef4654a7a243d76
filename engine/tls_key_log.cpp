#include "penstock/engine/tls_key_log.h"

#include "penstock/platform/file.h"
#include "penstock/platform/net.h"

namespace penstock {

namespace {

void append_hexadecimal(std::string* line, std::span<const std::uint8_t> bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (const std::uint8_t byte : bytes) {
        line->append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
}

}  // namespace

Result<std::shared_ptr<const TlsKeyLog>> TlsKeyLog::open(const std::string& path) {
    const Result<int> opened = platform::open_to_append(path);
    if (!opened.ok()) {
        return opened.error();
    }
    return std::shared_ptr<const TlsKeyLog>(new TlsKeyLog(opened.value()));
}

TlsKeyLog::~TlsKeyLog() { platform::close_descriptor(fd_); }

void TlsKeyLog::write(std::string_view label, std::span<const std::uint8_t> client_random, std::span<const std::uint8_t> secret) const {
    std::string line(label);
    line += ' ';
    append_hexadecimal(&line, client_random);
    line += ' ';
    append_hexadecimal(&line, secret);
    line += '\n';
    platform::append_line(fd_, line);
}

}  // namespace penstock

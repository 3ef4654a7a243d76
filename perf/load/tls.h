// Internal.
// TLS as a client of the load program, by OpenSSL. Certificates are not verified: it speaks to the loopback interface only.
// Without OpenSSL the context says so when it is made, by std::runtime_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "load/options.h"

namespace penstock::load {

struct TlsState;

struct TlsFigures {
    std::uint64_t handshakes = 0;  // that were completed
    std::uint64_t resumed = 0;     // of them
    // Of the latest handshake; the certificate that of the latest full one.
    std::string version;
    std::string suite;
    std::string group;
    std::string certificate;
    std::string problem;  // of the latest connection that failed
};

class TlsContext {
public:
    explicit TlsContext(const Options& options);
    ~TlsContext();

    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;

    TlsFigures& figures() { return figures_; }

private:
    friend class TlsStream;

    [[maybe_unused]] void* context_ = nullptr;
    TlsFigures figures_;
};

// One connection after the other; the session of one is what the next resumes.
class TlsStream {
public:
    enum Outcome : std::ptrdiff_t { ended = 0, awaits_input = -1, awaits_output = -2, failed = -3 };

    explicit TlsStream(TlsContext& context);
    ~TlsStream();

    TlsStream(const TlsStream&) = delete;
    TlsStream& operator=(const TlsStream&) = delete;

    bool open(int fd);
    void close();
    // Bytes, or what keeps them. Sending makes the handshake first.
    std::ptrdiff_t send(const char* data, std::size_t size);
    std::ptrdiff_t receive(char* data, std::size_t size);
    // Whether there is something to receive of which the socket no longer tells.
    bool has_more() const { return has_more_; }

private:
    std::ptrdiff_t outcome(int result);
    void count_handshake();

    [[maybe_unused]] TlsContext& context_;
    std::unique_ptr<TlsState> state_;
    [[maybe_unused]] bool is_counted_ = false;
    bool has_more_ = false;
};

}  // namespace penstock::load

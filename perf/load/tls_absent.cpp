// In place of tls.cpp where OpenSSL was not found.
#include <stdexcept>

#include "load/tls.h"

namespace penstock::load {

struct TlsState {};

TlsContext::TlsContext(const Options& /*options*/) {
    throw std::runtime_error("built without OpenSSL, so without TLS: install libssl-dev, configure and build again");
}

TlsContext::~TlsContext() = default;

TlsStream::TlsStream(TlsContext& context) : context_(context) {}

TlsStream::~TlsStream() = default;

bool TlsStream::open(int /*fd*/) {
    return false;
}

void TlsStream::close() {}

std::ptrdiff_t TlsStream::send(const char* /*data*/, std::size_t /*size*/) {
    return failed;
}

std::ptrdiff_t TlsStream::receive(char* /*data*/, std::size_t /*size*/) {
    return failed;
}

}  // namespace penstock::load

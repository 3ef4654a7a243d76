#include "penstock/engine/tls_random.h"

#include "penstock/platform/random.h"

namespace penstock {

bool random_bytes(std::uint8_t* bytes, std::size_t size) { return platform::fill_random({reinterpret_cast<std::byte*>(bytes), size}) == 0; }

}  // namespace penstock

// Our own build of wolfSSL takes all its random numbers here (tools/cmake/wolfssl_settings.h.in).
extern "C" int penstock_wolfssl_random(unsigned char* bytes, unsigned int size);

extern "C" int penstock_wolfssl_random(unsigned char* bytes, unsigned int size) { return penstock::random_bytes(bytes, size) ? 0 : -1; }

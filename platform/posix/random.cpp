#include "penstock/platform/random.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

namespace penstock::platform {

int fill_random(std::span<std::byte> bytes) {
    constexpr std::size_t kMost = 256;  // that much comes at once (man 3 getentropy)
    while (!bytes.empty()) {
        const std::size_t size = std::min(bytes.size(), kMost);
        if (::getentropy(bytes.data(), size) != 0) {
            return errno;
        }
        bytes = bytes.subspan(size);
    }
    return 0;
}

}  // namespace penstock::platform

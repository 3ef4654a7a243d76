#include "penstock/platform/error.h"

#include <system_error>

namespace penstock {

// Not strerror_r: it has two signatures (man 3 strerror_r), and which one a build sees depends on its macros.
Error system_error(const std::string& what, int code) {
    return {what + ": " + std::generic_category().message(code), code};
}

}  // namespace penstock

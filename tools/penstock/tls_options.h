// Internal.
// The options that are about TLS, and what becomes of them.
#pragma once

#include "options.h"
#include "penstock/platform/error.h"

namespace CLI {
class App;
}

namespace penstock::program {

void add_tls_options(CLI::App& command, Options* options);
// When all are known: reads the password, and makes the certificate that was asked for, of which it tells on stdout.
[[nodiscard]] Result<void> complete_tls_options(Options* options);

}  // namespace penstock::program

// Internal.
// What the command line and the configuration file ask the program for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/engine/config.h"
#include "penstock/engine/server.h"
#include "penstock/protocols/http/static_files.h"
#include "tls_options.h"

namespace penstock::program {

enum class Command : std::uint8_t { serve, echo };

struct Options {
    Command command = Command::serve;
    std::string directory;
    StaticFileOptions files;
    bool demo = false;
    bool compress = false;
    ListenOptions listen;
    TlsArguments tls;
    Config config;
};

inline constexpr int kExitFailure = 1;  // what was asked for could not be done
inline constexpr int kExitUsage = 2;    // what was asked for makes no sense

// With an exit status the program is over: help was printed, or what is wrong was told on stderr.
struct ParsedOptions {
    std::optional<int> exit_status;
    Options options;
};

[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

// "0.1.0"
[[nodiscard]] const char* version();

}  // namespace penstock::program

// Internal.
// Options that are numbers, for CLI11, whose own check does not say what would be right, and takes "010" for eight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace penstock::program {

// What `*value` holds is told as the default. Instantiated for unsigned numbers of 16, 32 and 64 bits.
template <class Number>
void add_number(CLI::App& command, const std::string& name, Number* value, const char* unit, const std::string& description);

// For those that are not there unless they are given: std::uint16_t and std::uint32_t.
template <class Number>
void add_optional_number(CLI::App& command, const std::string& name, std::optional<Number>* value, const char* unit,
                         const std::string& description);

}  // namespace penstock::program

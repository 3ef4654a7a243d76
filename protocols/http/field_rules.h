// Internal.
// Which fields a program may set in a response, and what is wrong with the others. No state; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "penstock/protocols/http/tables.h"

namespace penstock {

// By bits of HeaderName: those that the server writes itself, of which a program may set "Connection: close" alone.
inline constexpr std::uint64_t kFieldsOfServer =
    bit_of(HeaderName::content_length) | bit_of(HeaderName::transfer_encoding) | bit_of(HeaderName::date) |
    bit_of(HeaderName::connection);

struct FieldFault {
    const char* reason = nullptr;  // none: nothing is wrong
    std::string_view about{};
};

// Whether it can stand in a head or a trailer at all. `known`: what find_header_name says of `name`.
[[nodiscard]] FieldFault find_text_fault(HeaderName known, std::string_view name, std::string_view value);
// The same, and whether it is for a program to set.
[[nodiscard]] FieldFault find_field_fault(HeaderName known, std::string_view name, std::string_view value);

}  // namespace penstock

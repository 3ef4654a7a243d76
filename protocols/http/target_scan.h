// Internal.
// Which kinds of bytes a request target holds. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock {

// As bits, so that those of many bytes can be joined. A plain byte is more than RFC 3986 takes ('"', '<', '|', …),
// since browsers send some of that unescaped and nothing here could be confused by it.
struct TargetBytes {
    static constexpr std::uint8_t kPlain = 0;
    static constexpr std::uint8_t kDot = 1;
    static constexpr std::uint8_t kPercent = 2;
    static constexpr std::uint8_t kQuestionMark = 4;
    static constexpr std::uint8_t kForbidden = 8;  // controls, space, '#', what is no ASCII
};

[[nodiscard]] unsigned target_bytes(std::string_view text);

}  // namespace penstock

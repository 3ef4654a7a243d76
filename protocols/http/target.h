// Internal.
// The request target (RFC 9112 §3.2) taken apart and its path brought to one form, once: percent-decoded, dot
// segments resolved. Nothing is decoded twice afterwards. Views point into the target or into the arena. And the Host
// field that goes with it: what it may be, and a memo of the one that came last, which a reactor's protocol keeps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/engine/arena.h"
#include "penstock/protocols/http/short_text.h"

namespace penstock {

enum class TargetForm : std::uint8_t { origin, absolute, authority, asterisk };

struct Target {
    TargetForm form = TargetForm::origin;
    std::string_view authority;  // of the absolute form, else empty
    std::string_view raw_path;   // as sent, without the query; "/" when the absolute form has none
    std::string_view query;      // as sent, without '?'
    // Decoded and resolved, always beginning with '/'. An encoded slash (%2F) is data and no separator: it
    // stands here as a NUL, which cannot occur otherwise since %00 is refused.
    std::string_view path;
    bool has_encoded_slash = false;  // whether `path` holds a NUL
};

enum class TargetError : std::uint8_t { none, malformed, no_memory };

// Refuses controls, spaces, non-ASCII, fragments, in the path a bad percent escape and %00, and a path that
// climbs above the root. Escapes in the query are checked by whoever decodes it. `is_connect` selects the
// authority form, `is_options` allows "*"; both leave `path` empty.
[[nodiscard]] TargetError parse_target(std::string_view target, bool is_connect, bool is_options,
                                       Arena& arena, Target* result);

// Whether the target is a path as it stands, with nothing to refuse, decode, resolve or split off: what parse_target
// would give as `path`, without a query. Most are.
[[nodiscard]] bool is_plain_path(std::string_view target);

// Decodes %XX and, where `plus_is_space`, '+'. Returns `text` itself when there is nothing to decode; a null
// view (data() == nullptr) on a bad escape or without memory.
[[nodiscard]] std::string_view percent_decode(std::string_view text, bool plus_is_space, Arena& arena);

// Escapes what RFC 3986 §3.3 does not allow in a path, whose slashes stay. A backslash is such a byte, and browsers
// would take it for a slash.
[[nodiscard]] std::string encode_path(std::string_view path);

// The Host field's value (RFC 9110 §7.2, RFC 3986 §3.2.2): host [":" port], host may be empty. Refuses user
// info, a path, spaces, two ports, a port above 65535, unclosed or malformed IPv6 literals, quotes,
// non-ASCII.
[[nodiscard]] bool is_valid_host(std::string_view value);

// is_valid_host for one after the other: most requests to a server name it alike, so the value that was found valid
// last is remembered. Says what is_valid_host says, always. Owned by an Http1.
class HostMemo {
public:
    // Longer values are checked each time. Room for most names, in a cache line with the length.
    static constexpr std::size_t kLongestBytes = 63;

    [[nodiscard]] bool is_valid(std::string_view value) {
        return same_text(value, {bytes_.data(), size_}) || check(value);
    }

private:
    [[nodiscard]] bool check(std::string_view value);

    std::array<char, kLongestBytes> bytes_{};
    std::uint8_t size_ = 0;  // an empty value is valid
};

}  // namespace penstock

// Public.
// The names of HTTP: methods, known field names and status codes, each as a small number and back. Constant
// data; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock {

// RFC 9110 §9.3, RFC 5789 (PATCH). `other` is a method that the parser knows and no route can name.
enum class Method : std::uint8_t { get, head, post, put, del, patch, options, connect, trace, other };
inline constexpr std::size_t kRoutableMethods = 7;  // get … options

// "GET", …; "" for `other`.
[[nodiscard]] std::string_view method_name(Method method);

// Fields that the server itself or most handlers look at; found without comparing names one by one.
enum class HeaderName : std::uint8_t {
    unknown,
    accept,
    accept_encoding,
    accept_language,
    authorization,
    cache_control,
    connection,
    content_encoding,
    content_length,
    content_type,
    cookie,
    date,
    expect,
    forwarded,
    host,
    if_match,
    if_modified_since,
    if_none_match,
    if_range,
    if_unmodified_since,
    keep_alive,
    origin,
    range,
    referer,
    sec_websocket_extensions,
    sec_websocket_key,
    sec_websocket_protocol,
    sec_websocket_version,
    te,
    trailer,
    transfer_encoding,
    upgrade,
    user_agent,
    via,
    x_forwarded_for,
    x_forwarded_host,
    x_forwarded_proto,
    count_,
};
inline constexpr std::size_t kKnownHeaders = static_cast<std::size_t>(HeaderName::count_);

// For sets of them.
[[nodiscard]] constexpr std::uint64_t bit_of(HeaderName name) { return std::uint64_t{1} << static_cast<unsigned>(name); }
static_assert(kKnownHeaders <= 64);

// Any letter case. `unknown` when it is none of the above. One table look-up and one comparison.
[[nodiscard]] HeaderName find_header_name(std::string_view name);
// It describes a message's frame, its way or its connection, so it means nothing in a trailer (RFC 9110 §6.5.1, which forbids
// more; the rest does no harm there): a program that passes a message on, with its trailers behind its headers, would make
// another message of it.
[[nodiscard]] bool is_for_heads_only(HeaderName name);
// In the usual letter case: "Content-Type". "" for `unknown`.
[[nodiscard]] std::string_view header_name(HeaderName name);

// "HTTP/1.1 200 OK\r\n" for 100 … 599; a code without a registered phrase gets an empty one (RFC 9112 §4).
// The view lives for ever.
[[nodiscard]] std::string_view status_line(unsigned status);
inline constexpr std::size_t kLongestStatusLineBytes = 46;
// "OK"; "" when there is none.
[[nodiscard]] std::string_view status_phrase(unsigned status);

// ASCII only, as field names and tokens want it.
[[nodiscard]] bool equal_ignoring_case(std::string_view left, std::string_view right);
// A token of RFC 9110 §5.6.2: one or more tchar.
[[nodiscard]] bool is_token(std::string_view text);
// HTAB, SP, VCHAR and obs-text only (RFC 9110 §5.5): no line break could forge what follows.
[[nodiscard]] bool is_field_text(std::string_view text);
// Whether a comma-separated list holds `token`, any letter case (RFC 9110 §5.6.1).
[[nodiscard]] bool list_has_token(std::string_view list, std::string_view token);

}  // namespace penstock

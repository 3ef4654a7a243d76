// Internal.
// The content codings of RFC 9110 §8.4.1, Brotli (RFC 7932) and Zstandard (RFC 8878): their names, and which of them this
// build can encode and decode. Constant data; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

// `deflate` is the zlib format (RFC 1950), as RFC 9110 §8.4.1.2 has it, and not a bare stream of RFC 1951.
enum class ContentCoding : std::uint8_t { identity, gzip, deflate, brotli, zstd };
inline constexpr std::size_t kContentCodings = 5;

// As a field writes it: "identity", "gzip", "deflate", "br", "zstd". The view lives for ever.
[[nodiscard]] std::string_view content_coding_name(ContentCoding coding);
// Any letter case; "x-gzip" is gzip (RFC 9110 §8.4.1.3). None when it is another coding, or no name.
[[nodiscard]] std::optional<ContentCoding> find_content_coding(std::string_view name);

// What is compiled in, the one to be preferred first: Brotli and Zstandard are optional, gzip and deflate always there.
// Without identity, which needs no code. The span lives for ever.
[[nodiscard]] std::span<const ContentCoding> available_codings();
// The same as a field's value: "br, zstd, gzip, deflate".
[[nodiscard]] std::string accepted_codings();
[[nodiscard]] bool is_available(ContentCoding coding);

}  // namespace penstock

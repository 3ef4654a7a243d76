#include "penstock/protocols/http/content_coding.h"

#include <algorithm>
#include <array>

#include "penstock/protocols/http/tables.h"

namespace penstock {

namespace {

constexpr std::array<std::string_view, kContentCodings> kNames = {"identity", "gzip", "deflate", "br", "zstd"};

// Brotli makes the smallest text for its time, gzip is what every client has.
constexpr ContentCoding kAvailable[] = {
#if PENSTOCK_HAS_BROTLI
    ContentCoding::brotli,
#endif
#if PENSTOCK_HAS_ZSTD
    ContentCoding::zstd,
#endif
    ContentCoding::gzip,
    ContentCoding::deflate,
};

}  // namespace

std::string_view content_coding_name(ContentCoding coding) {
    return kNames[static_cast<std::size_t>(coding)];
}

std::optional<ContentCoding> find_content_coding(std::string_view name) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (equal_ignoring_case(name, kNames[i])) {
            return static_cast<ContentCoding>(i);
        }
    }
    if (equal_ignoring_case(name, "x-gzip")) {
        return ContentCoding::gzip;
    }
    return std::nullopt;
}

std::span<const ContentCoding> available_codings() {
    return kAvailable;
}

std::string accepted_codings() {
    std::string value;
    for (const ContentCoding coding : kAvailable) {
        value.append(value.empty() ? "" : ", ").append(content_coding_name(coding));
    }
    return value;
}

bool is_available(ContentCoding coding) {
    return std::find(std::begin(kAvailable), std::end(kAvailable), coding) != std::end(kAvailable);
}

}  // namespace penstock

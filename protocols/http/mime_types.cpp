#include "penstock/protocols/http/mime_types.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace penstock {

namespace {

struct MimeType {
    std::string_view extension;
    std::string_view type;
};

// Ascending, in small letters. Names as registered with IANA; where none is registered, what browsers go by.
// Only text/* takes a charset: JSON, SVG and other XML say theirs themselves (RFC 8259 §8.1, RFC 7303 §3).
constexpr MimeType kTypes[] = {
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"apng", "image/apng"},
    {"atom", "application/atom+xml"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"epub", "application/epub+zip"},
    {"flac", "audio/flac"},
    {"geojson", "application/geo+json"},
    {"gif", "image/gif"},
    {"glb", "model/gltf-binary"},
    {"gltf", "model/gltf+json"},
    {"gz", "application/gzip"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/vnd.microsoft.icon"},
    {"ics", "text/calendar; charset=utf-8"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"jsonld", "application/ld+json"},
    {"jxl", "image/jxl"},
    {"m4a", "audio/mp4"},
    {"m4v", "video/mp4"},
    {"map", "application/json"},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"rss", "application/rss+xml"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain; charset=utf-8"},
    {"vtt", "text/vtt; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"weba", "audio/webm"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

constexpr std::string_view kUnknownType = "application/octet-stream";
constexpr std::size_t kLongestExtension = 11;

constexpr char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

consteval bool types_are_sound() {
    for (std::size_t i = 0; i < std::size(kTypes); ++i) {
        const std::string_view extension = kTypes[i].extension;
        if (extension.empty() || extension.size() > kLongestExtension ||
            (i > 0 && kTypes[i - 1].extension >= extension)) {
            return false;
        }
        for (const char letter : extension) {
            if (lower(letter) != letter) {
                return false;
            }
        }
    }
    return true;
}
static_assert(types_are_sound(), "the search below needs an ascending table of small letters");

std::string_view extension_of(std::string_view path);

}  // namespace

std::string_view mime_type(std::string_view path) {
    const std::string_view extension = extension_of(path);
    if (extension.size() > kLongestExtension) {
        return kUnknownType;
    }
    std::array<char, kLongestExtension> letters{};
    std::transform(extension.begin(), extension.end(), letters.begin(), lower);
    const std::string_view wanted(letters.data(), extension.size());
    const auto* const found =
        std::lower_bound(std::begin(kTypes), std::end(kTypes), wanted,
                         [](const MimeType& type, std::string_view name) { return type.extension < name; });
    return found != std::end(kTypes) && found->extension == wanted ? found->type : kUnknownType;
}

namespace {

// Empty where there is none. A dot in front makes a name hidden and no extension: ".html" has none.
std::string_view extension_of(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const std::size_t dot = name.rfind('.');
    return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot + 1);
}

}  // namespace

}  // namespace penstock

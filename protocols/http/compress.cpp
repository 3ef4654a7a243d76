#include "penstock/protocols/http/compress.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "penstock/protocols/http/compress_policy.h"
#include "penstock/protocols/http/response_encoding.h"
#include "penstock/protocols/http/static_file_rules.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

namespace {

// Longer types than any that there are: what does not fit is no type that a pattern could mean.
constexpr std::size_t kTypeLimitBytes = 128;
constexpr std::string_view kDefaultType = "text/plain";

Error option_error(std::string_view option, std::string_view value, std::string_view reason);
bool is_type_pattern(std::string_view pattern);
char small_letter(char letter);

}  // namespace

std::vector<std::string> default_compressed_types() {
    return {"text/*",
            "*+json",
            "*+xml",
            "application/json",
            "application/javascript",
            "application/x-javascript",
            "application/x-ndjson",
            "application/xml",
            "application/wasm",
            "application/rtf",
            "application/vnd.ms-fontobject",
            "font/otf",
            "font/ttf",
            "font/collection",
            "image/bmp",
            "image/vnd.microsoft.icon",
            "image/x-icon"};
}

Result<Middleware> compress(CompressOptions options) {
    Result<CompressPolicy> made = CompressPolicy::make(options);
    if (!made.ok()) {
        return made.error();
    }
    Middleware middleware;
    middleware.before = [policy = std::make_shared<const CompressPolicy>(std::move(made.value()))](
                            Request&, Response& response) { ResponseEncoding::attach(response, *policy); };
    return middleware;
}

Result<CompressPolicy> CompressPolicy::make(const CompressOptions& options) {
    CompressPolicy policy;
    policy.min_size_bytes_ = options.min_size_bytes;
    policy.cache_bytes_ = options.cache_bytes;
    for (const Result<void>& checked :
         {policy.set_types(options.types), policy.set_codings(options.codings),
          policy.set_level(ContentCoding::brotli, "brotli_level", options.brotli_level),
          policy.set_level(ContentCoding::zstd, "zstd_level", options.zstd_level),
          policy.set_level(ContentCoding::gzip, "gzip_level", options.gzip_level),
          policy.set_level(ContentCoding::deflate, "deflate_level", options.deflate_level)}) {
        if (!checked.ok()) {
            return checked.error();
        }
    }
    return policy;
}

Result<void> CompressPolicy::set_types(const std::vector<std::string>& types) {
    for (const std::string& type : types) {
        if (!is_type_pattern(type)) {
            return option_error("types", type, "is no media type; write one like \"text/*\", \"application/json\" or \"*+xml\"");
        }
        std::string& kept = types_.emplace_back(type);
        std::transform(kept.begin(), kept.end(), kept.begin(), small_letter);
    }
    return {};
}

Result<void> CompressPolicy::set_codings(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        const std::optional<ContentCoding> coding = find_content_coding(name);
        if (!coding || *coding == ContentCoding::identity) {
            return option_error("codings", name, "is no coding; write \"br\", \"zstd\", \"gzip\" or \"deflate\"");
        }
        if (!is_available(*coding)) {
            return option_error("codings", name, "is not in this build; leave it out, or build with its library");
        }
        if (std::find(codings_.begin(), codings_.end(), *coding) != codings_.end()) {
            return option_error("codings", name, "is there twice; leave one of them out");
        }
        codings_.push_back(*coding);
    }
    if (codings_.empty()) {
        codings_.assign(available_codings().begin(), available_codings().end());
    }
    return {};
}

Result<void> CompressPolicy::set_level(ContentCoding coding, const char* option, int level) {
    if (level < 1 || level > 9) {
        return option_error(option, std::to_string(level), "is no level; write 1, the fastest, to 9, the smallest");
    }
    levels_[static_cast<std::size_t>(coding)] = level;
    return {};
}

bool CompressPolicy::fits(std::string_view content_type) const {
    content_type = content_type.substr(0, content_type.find(';'));
    content_type = content_type.substr(0, content_type.find_last_not_of(" \t") + 1);  // npos + 1 is 0
    if (content_type.empty()) {
        content_type = kDefaultType;
    }
    std::array<char, kTypeLimitBytes> small;
    if (content_type.size() > small.size()) {
        return false;
    }
    std::transform(content_type.begin(), content_type.end(), small.begin(), small_letter);
    const std::string_view type(small.data(), content_type.size());
    return std::any_of(types_.begin(), types_.end(), [type](const std::string& pattern) { return matches_glob(pattern, type); });
}

namespace {

Error option_error(std::string_view option, std::string_view value, std::string_view reason) {
    std::string text = "compress: CompressOptions::";
    return Error{text.append(option).append(": \"").append(value).append("\" ").append(reason), 0};
}

// Token characters, stars among them, and a slash between them where there is no star in its place.
bool is_type_pattern(std::string_view pattern) {
    const std::size_t slash = pattern.find('/');
    if (slash == std::string_view::npos) {
        return pattern.find('*') != std::string_view::npos && is_token(pattern);
    }
    return is_token(pattern.substr(0, slash)) && is_token(pattern.substr(slash + 1));
}

char small_letter(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter; }

}  // namespace

}  // namespace penstock

#include "penstock/protocols/http/static_file_rules.h"

#include <algorithm>
#include <cstddef>

#include "penstock/protocols/http/mime_types.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

namespace {

Error option_error(std::string_view option, std::string_view value, std::string_view reason);
Result<void> check_page(std::string_view option, std::string_view path);
bool is_file_name(std::string_view name);
bool is_field_value(std::string_view value);
bool is_media_type(std::string_view text);
bool has_extension(std::string_view path, std::string_view extension);

constexpr std::string_view kBuiltInCharset = "; charset=utf-8";

}  // namespace

Result<void> check_static_file_options(const StaticFileOptions& options) {
    for (const std::string& name : options.index_files) {
        if (!is_file_name(name)) {
            return option_error("index_files", name, "is no file name; write one without '/', like \"index.html\"");
        }
    }
    for (const CacheControlRule& rule : options.cache_control) {
        if (rule.pattern.empty()) {
            return option_error("cache_control", rule.value,
                                "stands behind an empty pattern, which fits no file; write \"*\" for all files");
        }
        if (rule.pattern.front() == '/') {
            return option_error("cache_control", rule.pattern,
                                "begins with '/', and paths below the directory do not; leave it out");
        }
        if (rule.pattern.find(' ') != std::string::npos) {
            return option_error("cache_control", rule.pattern,
                                "has a space, most likely by a slip; write '?' in its place where names have one");
        }
        if (!is_field_value(rule.value)) {
            return option_error("cache_control", rule.pattern,
                                "has a value that no header field can have; write one like \"max-age=3600\"");
        }
    }
    for (const ExtraMimeType& extra : options.mime_types) {
        if (extra.extension.size() < 2 || extra.extension.front() != '.' || !is_file_name(extra.extension)) {
            return option_error("mime_types", extra.extension, "is no file extension; write one like \".glsl\"");
        }
        if (!is_media_type(extra.type)) {
            return option_error("mime_types", extra.type, "is no media type; write one like \"text/plain\"");
        }
    }
    if (!options.charset.empty() && !is_token(options.charset)) {
        return option_error("charset", options.charset, "names no charset; write one like \"utf-8\", or \"\" for none");
    }
    if (options.cache.entries == 0 && !options.prewarm.empty()) {
        return option_error("prewarm", options.prewarm.front(), "would be forgotten at once; raise cache.entries above 0");
    }
    for (const std::string& path : options.prewarm) {
        if (Result<void> checked = check_page("prewarm", path); !checked.ok()) {
            return checked;
        }
    }
    if (Result<void> checked = check_page("not_found_page", options.not_found_page); !checked.ok()) {
        return checked;
    }
    return check_page("spa_fallback", options.spa_fallback);
}

bool is_servable(std::string_view name, bool hidden_files) {
    while (!name.empty()) {
        const std::size_t end = std::min(name.find('/'), name.size());
        if (end == 0 || (name.front() == '.' && !hidden_files)) {
            return false;
        }
        name.remove_prefix(std::min(end + 1, name.size()));
    }
    return true;
}

std::string_view content_type_of(const StaticFileOptions& options, std::string_view path, std::string* room) {
    std::string_view type = mime_type(path);
    for (const ExtraMimeType& extra : options.mime_types) {
        if (has_extension(path, extra.extension)) {
            type = extra.type;
            break;
        }
    }
    if (type.ends_with(kBuiltInCharset)) {
        if (options.charset == "utf-8") {
            return type;
        }
        type.remove_suffix(kBuiltInCharset.size());
    }
    if (options.charset.empty() || !type.starts_with("text/") || type.find(';') != std::string_view::npos) {
        return type;
    }
    return room->assign(type).append("; charset=").append(options.charset);
}

std::string_view cache_control_of(const StaticFileOptions& options, std::string_view path) {
    for (const CacheControlRule& rule : options.cache_control) {
        if (matches_glob(rule.pattern, path)) {
            return rule.value;
        }
    }
    return {};
}

// Only the last star has to be tried again: what an earlier one took could only have been less (so that the time is at most
// the product of both sizes, and no pattern makes it grow further).
bool matches_glob(std::string_view pattern, std::string_view text) {
    constexpr std::size_t kNone = std::string_view::npos;
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = kNone;
    std::size_t star_end = 0;  // where in the text that which the star stands for ends
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            star_end = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != kNone) {
            p = star + 1;
            t = ++star_end;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == kNone;
}

bool wants_spa_fallback(std::string_view path) {
    while (path.ends_with('/')) {
        path.remove_suffix(1);
    }
    return path.find('.', path.rfind('/') + 1) == std::string_view::npos;
}

namespace {

Error option_error(std::string_view option, std::string_view value, std::string_view reason) {
    std::string message = "cannot serve files: StaticFileOptions::";
    message.append(option).append(": \"").append(value).append("\" ").append(reason);
    return {message, 0};
}

Result<void> check_page(std::string_view option, std::string_view path) {
    if (path.starts_with('/') || path.ends_with('/')) {
        return option_error(option, path, "must be the path of a file below the directory, without '/' at either end");
    }
    if (path.find('\0') != std::string_view::npos) {
        return option_error(option, path, "has a NUL in it, which no path can have; leave it out");
    }
    return {};
}

bool is_file_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
           name.find('\0') == std::string_view::npos;
}

// Visible ASCII, spaces and tabs (RFC 9110 §5.5).
bool is_field_value(std::string_view value) {
    return !value.empty() && std::all_of(value.begin(), value.end(), [](char letter) {
        return letter == '\t' || (letter >= ' ' && letter <= '~');
    });
}

// With or without parameters behind it (RFC 9110 §8.3.1).
bool is_media_type(std::string_view text) {
    const std::string_view bare = text.substr(0, text.find_first_of("; "));
    const std::size_t slash = bare.find('/');
    return slash != std::string_view::npos && is_token(bare.substr(0, slash)) && is_token(bare.substr(slash + 1)) &&
           is_field_value(text);
}

// In any letter case. What is nothing but the extension is a hidden file, and has none.
bool has_extension(std::string_view path, std::string_view extension) {
    const auto lower = [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    };
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.size() > extension.size() &&
           std::equal(extension.begin(), extension.end(), name.end() - static_cast<std::ptrdiff_t>(extension.size()),
                      [&](char left, char right) { return lower(left) == lower(right); });
}

}  // namespace

}  // namespace penstock

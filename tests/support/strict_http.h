// Internal.
// A second opinion about HTTP/1 messages: readers of whole byte strings, written from RFC 9112, RFC 9110 and RFC 3986 alone.
// Simple and slow, and nothing of the library in them, so that a mistake would have to be made twice to go unseen. Where
// Penstock refuses what the standards let it refuse, the reader says so where it does the same ("stricter:").
// Plain functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::strict {

struct Field {
    std::string name;
    std::string value;

    bool operator==(const Field&) const = default;
};

struct Limits {
    std::size_t target_bytes;
    std::size_t field_count;  // of a head, and of trailers
    std::uint64_t body_bytes;
};

struct RequestMessage {
    std::string method;
    std::string target;
    std::string path;  // decoded, dot segments resolved, an encoded slash as NUL; "" for "*"
    std::string query;
    std::string host;
    unsigned minor_version = 0;
    std::vector<Field> fields;
    std::string body;
    std::vector<Field> trailers;
    std::size_t end = 0;  // how many bytes it takes

    bool operator==(const RequestMessage&) const = default;
};

// unfinished_chunks: what has come of the chunked body's framing is right up to its last line, which is not judged.
enum class Verdict : std::uint8_t { whole, refused, unfinished_head, unfinished_body, unfinished_chunks };

// ---- Letters -------------------------------------------------------------------------------------------

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline int hex_value(char c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

inline std::string lowered(std::string_view text) {
    std::string result(text);
    for (char& c : result) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return result;
}

// RFC 9110 §5.6.2.
inline bool is_token(std::string_view text) {
    for (const char c : text) {
        if (!is_digit(c) && !is_letter(c) && std::string_view("!#$%&'*+-.^_`|~").find(c) == std::string_view::npos) {
            return false;
        }
    }
    return !text.empty();
}

// RFC 9110 §5.5, white space at the ends included.
inline bool is_field_text(std::string_view text) {
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte != '\t' && (byte < ' ' || byte == 0x7f)) {
            return false;
        }
    }
    return true;
}

inline std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
        text.remove_prefix(1);
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
        text.remove_suffix(1);
    }
    return text;
}

// ---- Fields --------------------------------------------------------------------------------------------

// field-name ":" OWS field-value OWS; no white space before the colon (RFC 9112 §5.1), no folding (§5.2).
inline std::optional<Field> read_field(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || !is_field_text(line.substr(colon + 1))) {
        return std::nullopt;
    }
    return Field{std::string(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))};
}

inline std::vector<std::string> values_of(const std::vector<Field>& fields, std::string_view lower_name) {
    std::vector<std::string> values;
    for (const Field& field : fields) {
        if (lowered(field.name) == lower_name) {
            values.push_back(field.value);
        }
    }
    return values;
}

// The lines of `text`, each of which ends with CRLF. A CR or LF elsewhere stays in its line, where no field may have it.
inline std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find("\r\n");
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
    }
    return lines;
}

// ---- Hosts (RFC 3986 §3.2.2, RFC 9110 §7.2) ------------------------------------------------------------

// At least one digit, none above `limit`.
inline bool is_number(std::string_view text, unsigned limit) {
    unsigned value = 0;
    for (const char c : text) {
        if (!is_digit(c) || (value = value * 10 + static_cast<unsigned>(c - '0')) > limit) {
            return false;
        }
    }
    return !text.empty();
}

inline std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
        parts.push_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    parts.push_back(text);
    return parts;
}

inline bool is_ipv4(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, '.');
    for (const std::string_view part : parts) {
        if (!is_number(part, 255) || (part.size() > 1 && part.front() == '0')) {
            return false;
        }
    }
    return parts.size() == 4;
}

// How many groups of 16 bits a run without "::" has; nothing when it is none. Empty: 0.
inline std::optional<std::size_t> count_groups(std::string_view run, bool may_end_in_ipv4) {
    if (run.empty()) {
        return 0;
    }
    std::size_t count = 0;
    const std::vector<std::string_view> groups = split(run, ':');
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (may_end_in_ipv4 && i + 1 == groups.size() && is_ipv4(groups[i])) {
            return count + 2;
        }
        for (const char c : groups[i]) {
            if (hex_value(c) < 0) {
                return std::nullopt;
            }
        }
        if (groups[i].empty() || groups[i].size() > 4) {
            return std::nullopt;
        }
        ++count;
    }
    return count;
}

inline bool is_ipv6(std::string_view text) {
    const std::size_t gap = text.find("::");
    if (gap == std::string_view::npos) {
        return count_groups(text, true) == 8;
    }
    const auto before = count_groups(text.substr(0, gap), false);
    const auto behind = count_groups(text.substr(gap + 2), true);
    return before && behind && *before + *behind <= 7;
}

inline bool is_name_letter(char c) {
    return is_digit(c) || is_letter(c) || std::string_view("-._~!$&'()*+,;=").find(c) != std::string_view::npos;
}

inline bool is_future_address(std::string_view text) {
    const std::size_t dot = text.find('.');
    if (text.empty() || lowered(text.substr(0, 1)) != "v" || dot == std::string_view::npos || dot < 2 ||
        dot + 1 == text.size()) {
        return false;
    }
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (i != dot && (i < dot ? hex_value(text[i]) < 0 : text[i] != ':' && !is_name_letter(text[i]))) {
            return false;
        }
    }
    return true;
}

inline bool is_registered_name(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%') {
            if (i + 2 >= text.size() || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0) {
                return false;
            }
            i += 2;
        } else if (!is_name_letter(text[i])) {
            return false;
        }
    }
    return true;
}

// uri-host [ ":" port ]. Stricter: a port is below 65536.
inline bool is_host(std::string_view text, bool may_be_empty) {
    std::string_view port;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos ||
            (!is_ipv6(text.substr(1, end - 1)) && !is_future_address(text.substr(1, end - 1)))) {
            return false;
        }
        port = text.substr(end + 1);
    } else {
        const std::size_t end = text.find(':');
        const std::string_view name = text.substr(0, end);
        if (!is_registered_name(name) || (name.empty() && !may_be_empty)) {
            return false;
        }
        port = end == std::string_view::npos ? std::string_view() : text.substr(end);
    }
    return port.empty() || port == ":" || (port.front() == ':' && is_number(port.substr(1), 65'535));
}

// ---- Paths (RFC 3986 §3.3, §5.2.4, §6.2.2) -------------------------------------------------------------

// Stricter: a path above the root and a byte 0 are refused. An encoded slash, which is data, becomes NUL.
inline std::optional<std::string> resolve_path(std::string_view raw) {
    std::vector<std::string> kept;
    bool ends_in_slash = false;
    for (const std::string_view part : split(raw.substr(1), '/')) {
        std::string segment;
        for (std::size_t i = 0; i < part.size(); ++i) {
            if (part[i] != '%') {
                segment += part[i];
                continue;
            }
            if (i + 2 >= part.size() || hex_value(part[i + 1]) < 0 || hex_value(part[i + 2]) < 0) {
                return std::nullopt;
            }
            const int value = hex_value(part[i + 1]) * 16 + hex_value(part[i + 2]);
            if (value == 0) {
                return std::nullopt;
            }
            segment += value == '/' ? '\0' : static_cast<char>(value);
            i += 2;
        }
        ends_in_slash = segment == "." || segment == "..";
        if (segment == "..") {
            if (kept.empty()) {
                return std::nullopt;
            }
            kept.pop_back();
        } else if (segment != ".") {
            kept.push_back(segment);
        }
    }
    std::string path;
    for (const std::string& segment : kept) {
        path.append("/").append(segment);
    }
    return ends_in_slash ? path + "/" : path;
}

}  // namespace penstock::strict

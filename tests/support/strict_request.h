// Internal.
// Reads one request from the front of a whole byte string (RFC 9112 §2 to §7); see strict_http.h.
#pragma once

#include <algorithm>

#include "support/strict_http.h"

namespace penstock::strict {

// origin-form, absolute-form, and asterisk-form for OPTIONS (RFC 9112 §3.2). Stricter: of schemes http and https only, no
// CONNECT, no fragment. What browsers send unescaped is let through: any visible ASCII.
inline bool read_target(RequestMessage* message) {
    std::string_view rest = message->target;
    for (const char c : rest) {
        if (c <= ' ' || c >= 0x7f || c == '#') {  // above 0x7f a char is negative
            return false;
        }
    }
    if (rest == "*") {
        return message->method == "OPTIONS";
    }
    if (!rest.starts_with('/')) {
        const std::size_t scheme = lowered(rest).starts_with("http://") ? 7 : lowered(rest).starts_with("https://") ? 8 : 0;
        const std::size_t end = rest.find_first_of("/?", scheme);
        message->host = rest.substr(scheme, end == std::string_view::npos ? end : end - scheme);
        if (scheme == 0 || !is_host(message->host, false)) {
            return false;
        }
        rest.remove_prefix(scheme + message->host.size());
    }
    const std::size_t question = rest.find('?');
    if (question != std::string_view::npos) {
        message->query = rest.substr(question + 1);
    }
    const std::string_view raw = rest.substr(0, question);
    const std::optional<std::string> path = resolve_path(raw.empty() ? "/" : raw);
    message->path = path.value_or("");
    return path.has_value();
}

// method SP request-target SP HTTP-version (RFC 9112 §3). Stricter: methods that are known only.
inline bool read_request_line(std::string_view line, const Limits& limits, RequestMessage* message) {
    const std::vector<std::string_view> words = split(line, ' ');
    if (words.size() != 3 || (words[2] != "HTTP/1.0" && words[2] != "HTTP/1.1")) {
        return false;
    }
    message->method = words[0];
    message->target = words[1];
    message->minor_version = words[2].back() == '1' ? 1 : 0;
    bool known = false;
    for (const std::string_view method : {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"}) {
        known = known || words[0] == method;
    }
    return known && !words[1].empty() && words[1].size() <= limits.target_bytes;
}

struct Framing {
    bool chunked = false;
    std::uint64_t length = 0;
};

// RFC 9112 §6. Stricter: one length, once; no coding but chunked; never both.
inline bool read_framing(const RequestMessage& message, const Limits& limits, Framing* framing) {
    const std::vector<std::string> codings = values_of(message.fields, "transfer-encoding");
    const std::vector<std::string> lengths = values_of(message.fields, "content-length");
    if (!codings.empty()) {
        framing->chunked = true;
        return lengths.empty() && codings.size() == 1 && lowered(codings[0]) == "chunked" && message.minor_version == 1;
    }
    if (lengths.empty()) {
        return true;
    }
    for (const char c : lengths[0]) {
        if (!is_digit(c)) {
            return false;
        }
        framing->length = framing->length * 10 + static_cast<unsigned>(c - '0');
        if (framing->length > limits.body_bytes) {
            return false;
        }
    }
    return lengths.size() == 1 && !lengths[0].empty();
}

// `head`: lines with their CRLF, without the empty one.
inline bool read_head(std::string_view head, const Limits& limits, RequestMessage* message, Framing* framing) {
    const std::vector<std::string_view> lines = lines_of(head);
    if (!read_request_line(lines[0], limits, message)) {
        return false;
    }
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const std::optional<Field> field = read_field(lines[i]);
        if (!field) {
            return false;
        }
        message->fields.push_back(*field);
    }
    const std::vector<std::string> hosts = values_of(message->fields, "host");  // RFC 9112 §3.2
    if (hosts.size() > 1 || (hosts.empty() && message->minor_version == 1) || (!hosts.empty() && !is_host(hosts[0], true))) {
        return false;
    }
    message->host = hosts.empty() ? "" : hosts[0];
    const std::vector<std::string> expectations = values_of(message->fields, "expect");  // RFC 9110 §10.1.1
    if (message->minor_version == 1 && !expectations.empty() &&
        (expectations.size() > 1 || lowered(expectations[0]) != "100-continue")) {
        return false;
    }
    return message->fields.size() <= limits.field_count && read_target(message) && read_framing(*message, limits, framing);
}

// ---- Chunks (RFC 9112 §7.1) ----------------------------------------------------------------------------

inline std::size_t skip_white(std::string_view text, std::size_t at) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) {
        ++at;
    }
    return at;
}

inline std::size_t skip_token(std::string_view text, std::size_t at) {
    while (at < text.size() && is_token(text.substr(at, 1))) {
        ++at;
    }
    return at;
}

// Behind the quoted string that begins at `at`; nothing when it is none.
inline std::optional<std::size_t> skip_quoted(std::string_view text, std::size_t at) {
    for (++at; at < text.size(); ++at) {
        if (text[at] == '"') {
            return at + 1;
        }
        at += text[at] == '\\' ? 1 : 0;
        if (at >= text.size() || !is_field_text(text.substr(at, 1))) {
            return std::nullopt;
        }
    }
    return std::nullopt;
}

// *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )
inline bool are_extensions(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
        at = skip_white(text, at);
        if (at == text.size() || text[at] != ';') {
            return false;
        }
        const std::size_t name = skip_white(text, at + 1);
        at = skip_token(text, name);
        if (at == name) {
            return false;
        }
        const std::size_t equals = skip_white(text, at);
        if (equals == text.size() || text[equals] != '=') {
            continue;
        }
        const std::size_t value = skip_white(text, equals + 1);
        if (value < text.size() && text[value] == '"') {
            const std::optional<std::size_t> end = skip_quoted(text, value);
            if (!end) {
                return false;
            }
            at = *end;
        } else if ((at = skip_token(text, value)) == value) {
            return false;
        }
    }
    return true;
}

// chunk-size [ chunk-ext ]. Stricter: sixteen digits at most.
inline std::optional<std::uint64_t> read_chunk_line(std::string_view line) {
    std::size_t digits = 0;
    std::uint64_t size = 0;
    while (digits < line.size() && digits <= 16 && hex_value(line[digits]) >= 0) {
        size = size << 4 | static_cast<std::uint64_t>(hex_value(line[digits++]));
    }
    const bool good = digits > 0 && digits <= 16 && are_extensions(line.substr(digits));
    return good ? std::optional(size) : std::nullopt;
}

// RFC 9110 §6.5.1: of these a trailer is left out; all others are handed over.
inline bool is_left_out(std::string_view name) {
    for (const std::string_view one : {"content-length", "transfer-encoding", "trailer", "host", "connection", "keep-alive",
                                       "te", "upgrade", "expect"}) {
        if (lowered(name) == one) {
            return true;
        }
    }
    return false;
}

inline Verdict read_trailers(std::string_view bytes, const Limits& limits, std::size_t at, RequestMessage* message) {
    for (std::size_t count = 0;; ++count) {
        const std::size_t end = bytes.find("\r\n", at);
        if (end == std::string_view::npos) {
            return Verdict::unfinished_chunks;
        }
        if (end == at) {
            message->end = end + 2;
            return Verdict::whole;
        }
        const std::optional<Field> field = read_field(bytes.substr(at, end - at));
        if (!field || count == limits.field_count) {
            return Verdict::refused;
        }
        if (!is_left_out(field->name)) {
            message->trailers.push_back(*field);
        }
        at = end + 2;
    }
}

inline Verdict read_chunks(std::string_view bytes, const Limits& limits, std::size_t at, RequestMessage* message) {
    for (;;) {
        const std::size_t end = bytes.find("\r\n", at);
        if (end == std::string_view::npos) {
            return Verdict::unfinished_chunks;
        }
        const std::optional<std::uint64_t> size = read_chunk_line(bytes.substr(at, end - at));
        if (!size || *size > limits.body_bytes - message->body.size()) {
            return Verdict::refused;
        }
        at = end + 2;
        if (*size == 0) {
            return read_trailers(bytes, limits, at, message);
        }
        message->body += bytes.substr(at, static_cast<std::size_t>(*size));
        at += static_cast<std::size_t>(*size);
        const std::string_view line_end = bytes.substr(std::min(at, bytes.size()), 2);
        if (!std::string_view("\r\n").starts_with(line_end)) {
            return Verdict::refused;
        }
        if (line_end.size() < 2) {
            return Verdict::unfinished_chunks;
        }
        at += 2;
    }
}

inline Verdict read_request(std::string_view bytes, const Limits& limits, RequestMessage* message) {
    std::size_t begin = 0;
    while (bytes.substr(begin).starts_with("\r\n")) {  // RFC 9112 §2.2
        begin += 2;
    }
    const std::size_t head_end = bytes.find("\r\n\r\n", begin);
    if (head_end == std::string_view::npos) {
        return Verdict::unfinished_head;
    }
    Framing framing;
    if (!read_head(bytes.substr(begin, head_end + 2 - begin), limits, message, &framing)) {
        return Verdict::refused;
    }
    const std::size_t body = head_end + 4;
    if (framing.chunked) {
        return read_chunks(bytes, limits, body, message);
    }
    message->body = bytes.substr(body, static_cast<std::size_t>(framing.length));
    message->end = body + message->body.size();
    return message->body.size() == framing.length ? Verdict::whole : Verdict::unfinished_body;
}

}  // namespace penstock::strict

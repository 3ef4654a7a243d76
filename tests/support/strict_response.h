// Internal.
// Reads a whole response (RFC 9112 §2, §4, §6); see strict_http.h.
#pragma once

#include "support/strict_http.h"

namespace penstock::strict {

struct ResponseMessage {
    unsigned status = 0;
    std::vector<Field> fields;
    std::string body;  // all that follows the head
};

// HTTP-version SP status-code SP [ reason-phrase ], fields, an empty line. All lines end with CRLF, and no CR or LF is
// anywhere else.
inline std::optional<ResponseMessage> read_response(std::string_view bytes) {
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    const std::vector<std::string_view> lines = lines_of(bytes.substr(0, end + 2));
    const std::string_view line = lines[0];
    if (line.size() < 13 || !line.starts_with("HTTP/1.1 ") || !is_number(line.substr(9, 3), 599) || line[12] != ' ' ||
        !is_field_text(line)) {
        return std::nullopt;
    }
    ResponseMessage message;
    for (const char digit : line.substr(9, 3)) {
        message.status = message.status * 10 + static_cast<unsigned>(digit - '0');
    }
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const std::optional<Field> field = read_field(lines[i]);
        if (!field) {
            return std::nullopt;
        }
        message.fields.push_back(*field);
    }
    message.body = bytes.substr(end + 4);
    return message;
}

}  // namespace penstock::strict

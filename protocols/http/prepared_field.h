// Public.
// A field that many responses have, made and checked once: `response.header(field)` then only copies it, and
// `response.header_static(field)` not even that, of one that lives as long as the server.
// Constant; any thread, several at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/protocols/http/tables.h"

namespace penstock {

class PreparedField {
public:
    // Copies. Throws std::invalid_argument, which says what is wrong, for what Response::header would refuse: a name that is
    // no token, a value with a line break or another control character, Content-Length, Transfer-Encoding, Date, of
    // Connection anything but "close", and what is larger than a response's fields may be.
    PreparedField(std::string_view name, std::string_view value);
    // Responses may point to its text.
    PreparedField(const PreparedField&) = delete;
    PreparedField& operator=(const PreparedField&) = delete;

    [[nodiscard]] std::string_view name() const { return std::string_view(line_).substr(0, name_size_); }
    [[nodiscard]] std::string_view value() const {
        return std::string_view(line_).substr(name_size_ + 2u, line_.size() - name_size_ - 4u);
    }

private:
    friend class Response;

    std::string line_;  // "Name: value\r\n"
    std::uint16_t name_size_ = 0;
    HeaderName known_ = HeaderName::unknown;
    std::uint64_t name_bit_ = 0;  // of Response::names_set_
};

}  // namespace penstock

#include "penstock/protocols/http/forms.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace penstock {

class FormParser {
public:
    FormParser(std::string_view body, std::size_t field_limit) : body_(body), field_limit_(field_limit) {}
    [[nodiscard]] Result<FormFields> parse();

private:
    void reserve();
    [[nodiscard]] bool add(std::string_view field);
    [[nodiscard]] bool append_decoded(std::string_view encoded);

    std::string_view body_;
    std::size_t field_limit_;
    FormFields fields_;
    std::size_t bad_escape_ = 0;  // where in the body, after `add` has failed
};

namespace {

// The value of a hexadecimal digit, or -1.
int hex_value(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    const int letter = digit | 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

}  // namespace

Result<FormFields> parse_form(std::string_view body, std::size_t field_limit) {
    try {
        return FormParser(body, field_limit).parse();
    } catch (const std::bad_alloc&) {
        return Error{"form: no memory", ENOMEM};
    }
}

std::string_view FormFields::get(std::string_view name) const {
    for (std::size_t i = 0; i < size(); ++i) {
        if (const FormField field = at(i); field.name == name) {
            return field.value;
        }
    }
    return {};
}

std::vector<std::string_view> FormFields::all(std::string_view name) const {
    std::vector<std::string_view> values;
    for (std::size_t i = 0; i < size(); ++i) {
        if (const FormField field = at(i); field.name == name) {
            values.push_back(field.value);
        }
    }
    return values;
}

FormField FormFields::at(std::size_t index) const {
    const Place& place = places_[index];
    const std::string_view text(text_);
    return {text.substr(place.name_offset, place.name_size),
            text.substr(place.name_offset + place.name_size, place.value_size)};
}

Result<FormFields> FormParser::parse() {
    reserve();
    for (std::size_t begin = 0; begin < body_.size();) {
        const std::size_t end = std::min(body_.find('&', begin), body_.size());
        const std::string_view field = body_.substr(begin, end - begin);
        begin = end + 1;
        if (field.empty()) {
            continue;
        }
        if (fields_.size() == field_limit_) {
            return Error{"form: more than " + std::to_string(field_limit_) + " fields, send fewer"};
        }
        if (!add(field)) {
            return Error{"form: the '%' at byte " + std::to_string(bad_escape_) +
                         " is not followed by two hexadecimal digits, send '%' itself as %25"};
        }
    }
    return std::move(fields_);
}

// All that the fields will take, at once: decoding never makes a text longer.
void FormParser::reserve() {
    const auto separators = static_cast<std::size_t>(std::count(body_.begin(), body_.end(), '&'));
    fields_.places_.reserve(std::min(separators + 1, field_limit_));
    fields_.text_.reserve(body_.size());
}

bool FormParser::add(std::string_view field) {
    const std::size_t equals = std::min(field.find('='), field.size());
    const std::size_t name_offset = fields_.text_.size();
    if (!append_decoded(field.substr(0, equals))) {
        return false;
    }
    const std::size_t value_offset = fields_.text_.size();
    if (!append_decoded(field.substr(std::min(equals + 1, field.size())))) {
        return false;
    }
    fields_.places_.push_back({name_offset, value_offset - name_offset, fields_.text_.size() - value_offset});
    return true;
}

bool FormParser::append_decoded(std::string_view encoded) {
    for (std::size_t i = 0; i < encoded.size(); ++i) {
        if (encoded[i] != '%') {
            fields_.text_.push_back(encoded[i] == '+' ? ' ' : encoded[i]);
            continue;
        }
        const int high = i + 1 < encoded.size() ? hex_value(encoded[i + 1]) : -1;
        const int low = i + 2 < encoded.size() ? hex_value(encoded[i + 2]) : -1;
        if (high < 0 || low < 0) {
            bad_escape_ = static_cast<std::size_t>(encoded.data() - body_.data()) + i;
            return false;
        }
        fields_.text_.push_back(static_cast<char>(high * 16 + low));
        i += 2;
    }
    return true;
}

}  // namespace penstock

// Public.
// A form that was sent as application/x-www-form-urlencoded (URL Standard §5.1), taken apart and decoded once. It does
// not look at the Content-Type, and does not check that the text is UTF-8: a field may hold any bytes, NUL among them.
// The fields own their text and are independent of the body. Any thread, one at a time for each object.
//
//     const auto form = parse_form(co_await request.read_all(), 100);
//     if (!form) {
//         response.status(400).send(form.error().message);
//         co_return;
//     }
//     const std::string_view user = form.value().get("user");
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/platform/error.h"

namespace penstock {

struct FormField {
    std::string_view name;
    std::string_view value;
};

// The fields in the order in which they were sent, repeated ones included. Can be moved, not copied. Its views are valid
// as long as it is neither moved nor destroyed.
class FormFields {
public:
    FormFields() = default;
    FormFields(FormFields&&) = default;
    FormFields& operator=(FormFields&&) = default;
    FormFields(const FormFields&) = delete;
    FormFields& operator=(const FormFields&) = delete;

    // The first value of that name; a null view (data() == nullptr) when there is none.
    [[nodiscard]] std::string_view get(std::string_view name) const;
    // All of them, in order; empty when there is none.
    [[nodiscard]] std::vector<std::string_view> all(std::string_view name) const;

    [[nodiscard]] std::size_t size() const { return places_.size(); }
    // `index` must be below `size()`.
    [[nodiscard]] FormField at(std::size_t index) const;

private:
    friend class FormParser;

    // Places instead of views, since a short string moves its characters along with itself.
    struct Place {
        std::size_t name_offset;
        std::size_t name_size;
        std::size_t value_size;  // the value stands directly behind the name
    };

    std::string text_;
    std::vector<Place> places_;
};

// Fields stand between '&'; empty ones are passed over, one without '=' has an empty value, and '+' is a space. An error,
// which the client made and may read, when there are more than `field_limit` fields or when a '%' is not followed by two
// hexadecimal digits: such a text was cut or never encoded, and a guess at its meaning is how two readers come to
// disagree. Also an error, with the code ENOMEM, when there is no memory.
[[nodiscard]] Result<FormFields> parse_form(std::string_view body, std::size_t field_limit);

}  // namespace penstock

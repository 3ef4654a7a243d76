#include "penstock/protocols/http/field_rules.h"

namespace penstock {

FieldFault find_text_fault(HeaderName known, std::string_view name, std::string_view value) {
    if (known == HeaderName::unknown && !is_token(name)) {
        return {"a field name is a token (RFC 9110 section 5.1), not", name};
    }
    if (!is_field_text(value)) {
        return {"the value holds a line break or another control character, field", name};
    }
    return {};
}

FieldFault find_field_fault(HeaderName known, std::string_view name, std::string_view value) {
    if (const FieldFault fault = find_text_fault(known, name, value); fault.reason != nullptr) {
        return fault;
    }
    if ((kFieldsOfServer & bit_of(known)) == 0) {
        return {};
    }
    if (known != HeaderName::connection) {
        return {"the server sets this field itself, leave it out:", name};
    }
    return equal_ignoring_case(value, "close") ? FieldFault{} : FieldFault{"of Connection a handler may only set \"close\", not", value};
}

}  // namespace penstock

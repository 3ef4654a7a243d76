#include "penstock/protocols/http/prepared_field.h"

#include <stdexcept>

#include "penstock/engine/config.h"
#include "penstock/protocols/http/field_rules.h"

namespace penstock {

static_assert(kResponseFieldsLimitBytes <= 0xFFFF, "sizes of fields fit 16 bits");

PreparedField::PreparedField(std::string_view name, std::string_view value)
    : known_(find_header_name(name)), name_bit_(bit_of(known_)) {
    FieldFault fault = find_field_fault(known_, name, value);
    if (fault.reason == nullptr && name.size() + value.size() + 4 > kResponseFieldsLimitBytes) {
        fault = {"it is larger than kResponseFieldsLimitBytes:", name};
    }
    if (fault.reason != nullptr) {
        throw std::invalid_argument(std::string("PreparedField: ").append(fault.reason).append(" ").append(fault.about));
    }
    line_.reserve(name.size() + value.size() + 4);
    line_.append(name).append(": ").append(value).append("\r\n");
    name_size_ = static_cast<std::uint16_t>(name.size());
}

}  // namespace penstock

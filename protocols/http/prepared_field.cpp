#include "penstock/protocols/http/prepared_field.h"

#include <stdexcept>

#include "penstock/engine/config.h"
#include "penstock/protocols/http/field_rules.h"

namespace penstock {

static_assert(kResponseFieldsLimitBytes <= 0xFFFF, "sizes of fields fit 16 bits");

namespace {

constexpr std::size_t kNameShownBytes = 64;

std::string words_on_size(std::string_view name, std::size_t bytes) {
    return std::string(name.substr(0, kNameShownBytes)) + " takes " + std::to_string(bytes) +
           " bytes, and a response's fields have " + std::to_string(kResponseFieldsLimitBytes) +
           " together (kResponseFieldsLimitBytes): shorten its value, or send it in a body";
}

}  // namespace

PreparedField::PreparedField(std::string_view name, std::string_view value)
    : known_(find_header_name(name)), name_bit_(bit_of(known_)) {
    const FieldFault fault = find_field_fault(known_, name, value);
    if (fault.reason != nullptr) {
        throw std::invalid_argument(std::string("PreparedField: ").append(fault.reason).append(" ").append(fault.about));
    }
    const std::size_t bytes = name.size() + value.size() + 4;
    if (bytes > kResponseFieldsLimitBytes) {
        throw std::invalid_argument("PreparedField: " + words_on_size(name, bytes));
    }
    line_.reserve(bytes);
    line_.append(name).append(": ").append(value).append("\r\n");
    name_size_ = static_cast<std::uint16_t>(name.size());
}

}  // namespace penstock

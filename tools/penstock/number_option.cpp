#include "number_option.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace penstock::program {

namespace {

// Empty, or what is wrong with it.
std::string check_number(std::string* text, std::uint64_t most) {
    const std::string given = *text;
    text->erase(0, std::min(text->find_first_not_of('0'), text->empty() ? 0 : text->size() - 1));
    const std::string limit = std::to_string(most);
    const bool has_digits_only = !text->empty() && text->find_first_not_of("0123456789") == std::string::npos;
    if (has_digits_only &&
        (text->size() < limit.size() || (text->size() == limit.size() && *text <= limit))) {
        return {};
    }
    return "\"" + given + "\" is not a number from 0 to " + limit;
}

CLI::Validator number_up_to(std::uint64_t most) {
    return CLI::Validator([most](std::string& text) { return check_number(&text, most); }, "");
}

}  // namespace

template <class Number>
void add_number(CLI::App& command, const std::string& name, Number* value, const char* unit,
                const std::string& description) {
    command.add_option(name, *value, description + " (" + std::to_string(*value) + ")")
        ->type_name(unit)
        ->transform(number_up_to(std::numeric_limits<Number>::max()));
}

template <class Number>
void add_optional_number(CLI::App& command, const std::string& name, std::optional<Number>* value, const char* unit,
                         const std::string& description) {
    command.add_option_function<Number>(name, [value](const Number& given) { *value = given; }, description)
        ->type_name(unit)
        ->transform(number_up_to(std::numeric_limits<Number>::max()));
}

template void add_number(CLI::App&, const std::string&, std::uint16_t*, const char*, const std::string&);
template void add_number(CLI::App&, const std::string&, std::uint32_t*, const char*, const std::string&);
template void add_number(CLI::App&, const std::string&, unsigned long*, const char*, const std::string&);
template void add_number(CLI::App&, const std::string&, unsigned long long*, const char*, const std::string&);
template void add_optional_number(CLI::App&, const std::string&, std::optional<std::uint16_t>*, const char*, const std::string&);
template void add_optional_number(CLI::App&, const std::string&, std::optional<std::uint32_t>*, const char*, const std::string&);

}  // namespace penstock::program

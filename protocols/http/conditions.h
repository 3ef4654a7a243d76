// Internal.
// Whether the conditions that a request sets hold for what the resource is now (RFC 9110 §13): compares fields with
// validators, and touches neither files nor responses. A server asks only when it would answer 2xx otherwise, since it must
// ignore conditions in all other cases (§13.2.1). No state; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "penstock/protocols/http/tables.h"

namespace penstock {

// The values of the request's fields. A view without data means that there is no such field; an empty one that has data is
// a field without a value. A field that came several times stands here as one list, joined with commas (RFC 9110 §5.3).
struct ConditionFields {
    std::string_view if_match{};
    std::string_view if_none_match{};
    std::string_view if_modified_since{};
    std::string_view if_unmodified_since{};
    std::string_view if_range{};
};

// What the resource is now. There is one: "*" matches it even without a tag.
struct Validators {
    std::string_view entity_tag{};  // as in ETag, quotes included; empty: none
    std::optional<std::int64_t> modified_seconds{};  // as in Last-Modified, so not later than `now`
};

enum class ConditionOutcome : std::uint8_t {
    proceed,
    not_modified,         // 304
    precondition_failed,  // 412
};

// In the order of RFC 9110 §13.2.2, If-Range apart. `now`: seconds since 1970, the Date of the response.
[[nodiscard]] ConditionOutcome evaluate_conditions(Method method, const ConditionFields& fields,
                                                   const Validators& validators, std::int64_t now);

// Whether Range counts, as far as If-Range has a say: true when there is none. Otherwise only what is the same byte for byte
// will do, a strong tag or an old enough date, and with false the whole is sent.
[[nodiscard]] bool if_range_holds(std::string_view if_range, const Validators& validators, std::int64_t now);

}  // namespace penstock

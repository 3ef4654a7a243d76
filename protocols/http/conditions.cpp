#include "penstock/protocols/http/conditions.h"

#include <cstddef>

#include "penstock/engine/http_date.h"

namespace penstock {

namespace {

// RFC 9110 §8.8.3.2: two tags are the same weakly when their quoted parts are, strongly when besides neither is weak.
enum class Comparison : std::uint8_t { strong, weak };

struct EntityTag {
    bool is_weak = false;
    std::string_view opaque{};  // quotes included
};

bool is_present(std::string_view field) {
    return field.data() != nullptr;
}

bool has_conditions(Method method);
bool take_entity_tag(std::string_view* text, EntityTag* tag);
bool is_same(const EntityTag& left, const EntityTag& right, Comparison comparison);
bool list_matches(std::string_view list, std::string_view current, Comparison comparison);
bool is_modified_after(const Validators& validators, std::int64_t seconds);

}  // namespace

ConditionOutcome evaluate_conditions(Method method, const ConditionFields& fields, const Validators& validators,
                                     std::int64_t now) {
    if (!has_conditions(method)) {
        return ConditionOutcome::proceed;
    }
    if (is_present(fields.if_match)) {
        if (!list_matches(fields.if_match, validators.entity_tag, Comparison::strong)) {
            return ConditionOutcome::precondition_failed;
        }
    } else if (const auto since = parse_http_date(fields.if_unmodified_since, now);
               since && is_modified_after(validators, *since)) {
        return ConditionOutcome::precondition_failed;
    }
    const bool is_read = method == Method::get || method == Method::head;
    if (is_present(fields.if_none_match)) {
        // Matched or not, If-Modified-Since is not looked at: the tag is the more exact of the two.
        if (!list_matches(fields.if_none_match, validators.entity_tag, Comparison::weak)) {
            return ConditionOutcome::proceed;
        }
        return is_read ? ConditionOutcome::not_modified : ConditionOutcome::precondition_failed;
    }
    if (is_read && validators.modified_seconds) {
        const auto since = parse_http_date(fields.if_modified_since, now);
        if (since && !is_modified_after(validators, *since)) {
            return ConditionOutcome::not_modified;
        }
    }
    return ConditionOutcome::proceed;
}

bool if_range_holds(std::string_view if_range, const Validators& validators, std::int64_t now) {
    if (!is_present(if_range)) {
        return true;
    }
    EntityTag asked;
    if (take_entity_tag(&if_range, &asked)) {
        // One tag, not a list of them (RFC 9110 §13.1.5).
        EntityTag current;
        std::string_view text = validators.entity_tag;
        return if_range.empty() && take_entity_tag(&text, &current) && text.empty() &&
               is_same(asked, current, Comparison::strong);
    }
    // What has changed within this second may change again and keep its date. One that is a second old is taken to tell
    // versions apart (RFC 9110 §8.8.2.2).
    const auto date = parse_http_date(if_range, now);
    return date && validators.modified_seconds == date && *date < now;
}

namespace {

// Methods that neither select nor change a representation have no conditions (RFC 9110 §13.2.1).
bool has_conditions(Method method) {
    return method != Method::connect && method != Method::options && method != Method::trace;
}

bool is_modified_after(const Validators& validators, std::int64_t seconds) {
    return validators.modified_seconds && *validators.modified_seconds > seconds;
}

std::string_view without_spaces(std::string_view text);

// Of a list that is malformed anywhere nothing matches: what its sender meant is unknown, and so a read gets the whole and a
// change behind If-Match is refused. Empty places between commas are none of that (RFC 9110 §5.6.1.2).
bool list_matches(std::string_view list, std::string_view current, Comparison comparison) {
    list = without_spaces(list);
    if (list == "*") {
        return true;
    }
    EntityTag wanted;
    const bool has_tag = take_entity_tag(&current, &wanted) && current.empty();
    bool found = false;
    while (!list.empty()) {
        if (list.front() != ',') {
            EntityTag tag;
            if (!take_entity_tag(&list, &tag)) {
                return false;
            }
            found = found || (has_tag && is_same(tag, wanted, comparison));
            list = without_spaces(list);
            if (list.empty()) {
                break;
            }
            if (list.front() != ',') {
                return false;
            }
        }
        list.remove_prefix(1);
        list = without_spaces(list);
    }
    return found;
}

bool is_same(const EntityTag& left, const EntityTag& right, Comparison comparison) {
    const bool may_match = comparison == Comparison::weak || (!left.is_weak && !right.is_weak);
    return may_match && left.opaque == right.opaque;
}

// Spaces and tabs at both ends.
std::string_view without_spaces(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

// "W/" counts in large letters only; within the quotes anything may stand that can be seen, a comma too, but no quote and
// no space (RFC 9110 §8.8.3).
bool take_entity_tag(std::string_view* text, EntityTag* tag) {
    tag->is_weak = text->starts_with("W/");
    const std::string_view quoted = text->substr(tag->is_weak ? 2 : 0);
    if (!quoted.starts_with('"')) {
        return false;
    }
    for (std::size_t i = 1; i < quoted.size(); ++i) {
        const auto letter = static_cast<unsigned char>(quoted[i]);
        if (letter == '"') {
            tag->opaque = quoted.substr(0, i + 1);
            *text = quoted.substr(i + 1);
            return true;
        }
        if (letter <= ' ' || letter == 0x7f) {
            return false;
        }
    }
    return false;
}

}  // namespace

}  // namespace penstock

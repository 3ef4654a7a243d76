#include "penstock/protocols/http/conditions.h"

#include <string>

#include <doctest/doctest.h>

using namespace penstock;

namespace {

// What the resource is: changed at noon, looked at an hour later.
constexpr std::string_view kTag = "\"a,b\"";
constexpr std::string_view kBefore = "Fri, 15 Jan 2027 11:59:59 GMT";
constexpr std::string_view kModified = "Fri, 15 Jan 2027 12:00:00 GMT";
constexpr std::string_view kAfter = "Fri, 15 Jan 2027 12:00:01 GMT";
constexpr std::int64_t kNoon = 1'800'014'400;
constexpr std::int64_t kNow = kNoon + 3'600;

constexpr auto kProceed = ConditionOutcome::proceed;
constexpr auto kNotModified = ConditionOutcome::not_modified;
constexpr auto kFailed = ConditionOutcome::precondition_failed;

constexpr Validators kBoth = {.entity_tag = kTag, .modified_seconds = kNoon};

struct Case {
    std::string_view name;
    Method method;
    ConditionFields fields;
    ConditionOutcome outcome;
};

void check_cases(std::initializer_list<Case> cases, const Validators& validators) {
    for (const Case& request : cases) {
        CAPTURE(request.name);
        CHECK(evaluate_conditions(request.method, request.fields, validators, kNow) == request.outcome);
    }
}

bool matches_none(std::string_view list, std::string_view tag) {
    return evaluate_conditions(Method::get, {.if_none_match = list}, {.entity_tag = tag}, kNow) == kNotModified;
}

bool matches(std::string_view list, std::string_view tag) {
    return evaluate_conditions(Method::get, {.if_match = list}, {.entity_tag = tag}, kNow) == kProceed;
}

}  // namespace

TEST_CASE("each condition alone") {
    check_cases(
        {
            {"no condition", Method::get, {}, kProceed},
            {"no condition on a change", Method::put, {}, kProceed},
            {"the tag is known", Method::get, {.if_none_match = kTag}, kNotModified},
            {"the tag is known, for HEAD", Method::head, {.if_none_match = kTag}, kNotModified},
            {"the tag is known, for a change", Method::put, {.if_none_match = kTag}, kFailed},
            {"another tag is known", Method::get, {.if_none_match = "\"c\""}, kProceed},
            {"another tag is known, for a change", Method::del, {.if_none_match = "\"c\""}, kProceed},
            {"any tag", Method::get, {.if_none_match = "*"}, kNotModified},
            {"only if there is none", Method::put, {.if_none_match = "*"}, kFailed},
            {"the tag is wanted", Method::put, {.if_match = kTag}, kProceed},
            {"the tag is wanted, for a read", Method::get, {.if_match = kTag}, kProceed},
            {"another tag is wanted", Method::put, {.if_match = "\"c\""}, kFailed},
            {"another tag is wanted, for a read", Method::get, {.if_match = "\"c\""}, kFailed},
            {"any tag is wanted", Method::put, {.if_match = "*"}, kProceed},
            {"since before", Method::get, {.if_modified_since = kBefore}, kProceed},
            {"since then", Method::get, {.if_modified_since = kModified}, kNotModified},
            {"since after", Method::get, {.if_modified_since = kAfter}, kNotModified},
            {"since then, for HEAD", Method::head, {.if_modified_since = kModified}, kNotModified},
            {"since then, for a change", Method::post, {.if_modified_since = kModified}, kProceed},
            {"since then, RFC 850", Method::get, {.if_modified_since = "Friday, 15-Jan-27 12:00:00 GMT"}, kNotModified},
            {"since then, asctime", Method::get, {.if_modified_since = "Fri Jan 15 12:00:00 2027"}, kNotModified},
            {"since no date", Method::get, {.if_modified_since = "yesterday"}, kProceed},
            {"since an empty date", Method::get, {.if_modified_since = ""}, kProceed},
            {"since a day that is none", Method::get, {.if_modified_since = "Fri, 31 Feb 2027 12:00:00 GMT"}, kProceed},
            {"since two dates",
             Method::get,
             {.if_modified_since = "Fri, 15 Jan 2027 12:00:00 GMT, Fri, 15 Jan 2027 12:00:00 GMT"},
             kProceed},
            {"unmodified since before", Method::put, {.if_unmodified_since = kBefore}, kFailed},
            {"unmodified since before, for a read", Method::get, {.if_unmodified_since = kBefore}, kFailed},
            {"unmodified since then", Method::put, {.if_unmodified_since = kModified}, kProceed},
            {"unmodified since after", Method::put, {.if_unmodified_since = kAfter}, kProceed},
            {"unmodified since no date", Method::put, {.if_unmodified_since = "yesterday"}, kProceed},
            {"If-Range is none of these", Method::get, {.if_range = kTag}, kProceed},
        },
        kBoth);
}

TEST_CASE("a condition with precedence hides another") {
    check_cases(
        {
            {"a new tag beside an old date", Method::get,
             {.if_none_match = "\"c\"", .if_modified_since = kAfter}, kProceed},
            {"a malformed tag beside an old date", Method::get,
             {.if_none_match = "c", .if_modified_since = kAfter}, kProceed},
            {"an empty list beside an old date", Method::get,
             {.if_none_match = "", .if_modified_since = kAfter}, kProceed},
            {"the same tag beside a new date", Method::get,
             {.if_none_match = kTag, .if_modified_since = kBefore}, kNotModified},
            {"the wanted tag beside a date that is over", Method::put,
             {.if_match = kTag, .if_unmodified_since = kBefore}, kProceed},
            {"another tag beside a date that holds", Method::put,
             {.if_match = "\"c\"", .if_unmodified_since = kAfter}, kFailed},
            {"the wanted tag is known", Method::get, {.if_match = kTag, .if_none_match = kTag}, kNotModified},
            {"another wanted tag, this one known", Method::get,
             {.if_match = "\"c\"", .if_none_match = kTag}, kFailed},
            {"a date that is over, the tag known", Method::get,
             {.if_none_match = kTag, .if_unmodified_since = kBefore}, kFailed},
            {"both dates hold", Method::get,
             {.if_modified_since = kModified, .if_unmodified_since = kModified}, kNotModified},
            {"the wanted tag beside an old date", Method::get,
             {.if_match = kTag, .if_modified_since = kModified}, kNotModified},
        },
        kBoth);
}

TEST_CASE("methods that have to do with no representation have no conditions") {
    for (const Method method : {Method::options, Method::connect, Method::trace}) {
        check_cases({{"tags", method, {.if_match = "\"c\"", .if_none_match = kTag}, kProceed},
                     {"dates", method, {.if_modified_since = kModified, .if_unmodified_since = kBefore}, kProceed}},
                    kBoth);
    }
    check_cases({{"unknown", Method::other, {.if_none_match = kTag}, kFailed}}, kBoth);
}

TEST_CASE("what the resource lacks cannot be compared") {
    check_cases(
        {
            {"known tag", Method::get, {.if_none_match = kTag}, kProceed},
            {"empty tag", Method::get, {.if_none_match = "\"\""}, kProceed},
            {"wanted tag", Method::get, {.if_match = kTag}, kFailed},
            {"any wanted", Method::get, {.if_match = "*"}, kProceed},
            {"any known", Method::get, {.if_none_match = "*"}, kNotModified},
            {"since then", Method::get, {.if_modified_since = kAfter}, kProceed},
            {"unmodified since", Method::put, {.if_unmodified_since = kBefore}, kProceed},
        },
        {});
}

TEST_CASE("lists of entity tags are read to the letter") {
    struct ListCase {
        std::string_view list;
        bool matches;
    };
    for (const ListCase& tags : std::initializer_list<ListCase>{
             {"\"a,b\"", true},
             {"\"x\", \"a,b\"", true},
             {"\"a,b\",\"x\"", true},
             {"\"x\"\t ,\t\"a,b\" , \"y\"", true},
             {" \"a,b\"\t", true},
             {",, \"a,b\",,", true},
             {" * ", true},
             {"\"a\", \"b\"", false},
             {"\"a\",\"b\"", false},
             {"\"A,B\"", false},
             {"\"a,b \"", false},
             {"\"\"", false},
             {"", false},
             {" ", false},
             {",", false},
             // malformed, if only behind the tag or before it
             {"a,b", false},
             {"\"a,b", false},
             {"a,b\"", false},
             {"\"a,b\" \"x\"", false},
             {"\"a,b\"\"x\"", false},
             {"\"a,b\"; \"x\"", false},
             {"\"a,b\", x", false},
             {"x, \"a,b\"", false},
             {"\"a,b\", \"x y\"", false},
             {"\"a,b\", \"x\x7f\"", false},
             {"\"a,b\", \"x\ty\"", false},
             {"\"a,b\", *", false},
             {"*, \"a,b\"", false},
             {"*,", false},
             {"**", false},
             {"\"*\"", false},
             {"'a,b'", false},
             {"W/\"x\", W/", false},
         }) {
        CAPTURE(tags.list);
        CHECK(matches_none(tags.list, kTag) == tags.matches);
        CHECK(matches(tags.list, kTag) == tags.matches);
    }
    CHECK(matches("\"caf\xc3\xa9!\"", "\"caf\xc3\xa9!\""));
    CHECK(matches("\"\"", "\"\""));
}

TEST_CASE("weak tags match for reads, and never where bytes must be the same") {
    struct WeakCase {
        std::string_view list;
        std::string_view tag;
        bool weakly;
        bool strongly;
    };
    // The first four are those of RFC 9110 §8.8.3.2.
    for (const WeakCase& tags : std::initializer_list<WeakCase>{
             {"W/\"1\"", "W/\"1\"", true, false},
             {"W/\"1\"", "W/\"2\"", false, false},
             {"W/\"1\"", "\"1\"", true, false},
             {"\"1\"", "\"1\"", true, true},
             {"\"1\"", "W/\"1\"", true, false},
             {"W/\"1\", \"1\"", "\"1\"", true, true},
             {"w/\"1\"", "\"1\"", false, false},
             {"W\"1\"", "\"1\"", false, false},
             {"W/ \"1\"", "\"1\"", false, false},
             {"\"W/1\"", "W/\"1\"", false, false},
         }) {
        CAPTURE(tags.list);
        CAPTURE(tags.tag);
        CHECK(matches_none(tags.list, tags.tag) == tags.weakly);
        CHECK(matches(tags.list, tags.tag) == tags.strongly);
    }
}

TEST_CASE("fields that came several times are one list") {
    std::string list = "\"0\"";
    for (int i = 1; i < 300; ++i) {
        list += ", \"" + std::to_string(i) + "\"";
    }
    CHECK(matches_none(list, "\"299\""));
    CHECK_FALSE(matches_none(list, "\"300\""));
    CHECK_FALSE(matches_none(list + ", 300", "\"299\""));
}

TEST_CASE("If-Range holds for what is the same byte for byte") {
    struct RangeCase {
        std::string_view field;
        bool holds;
    };
    for (const RangeCase& range : std::initializer_list<RangeCase>{
             {{}, true},  // absent
             {kTag, true},
             {kModified, true},
             {"Friday, 15-Jan-27 12:00:00 GMT", true},
             {"Fri Jan 15 12:00:00 2027", true},
             {"\"c\"", false},
             {"W/\"a,b\"", false},
             {"\"a,b\", \"c\"", false},
             {"\"a,b\" ", false},
             {"\"a,b", false},
             {"*", false},
             {"", false},
             {kBefore, false},
             {kAfter, false},
             {"yesterday", false},
         }) {
        CAPTURE(range.field);
        CHECK(if_range_holds(range.field, kBoth, kNow) == range.holds);
    }
}

TEST_CASE("If-Range with a weak tag, or with nothing to compare, does not hold") {
    CHECK_FALSE(if_range_holds("W/\"1\"", {.entity_tag = "W/\"1\""}, kNow));
    CHECK_FALSE(if_range_holds("\"1\"", {.entity_tag = "W/\"1\""}, kNow));
    CHECK_FALSE(if_range_holds("\"\"", {}, kNow));
    CHECK_FALSE(if_range_holds(kModified, {.entity_tag = kTag}, kNow));
    CHECK_FALSE(if_range_holds(kTag, {.modified_seconds = kNoon}, kNow));
}

TEST_CASE("a date tells versions apart once its second is over") {
    CHECK_FALSE(if_range_holds(kModified, kBoth, kNoon - 1));
    CHECK_FALSE(if_range_holds(kModified, kBoth, kNoon));
    CHECK(if_range_holds(kModified, kBoth, kNoon + 1));
}

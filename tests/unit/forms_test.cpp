#include "penstock/protocols/http/forms.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>

using namespace penstock;
using namespace std::string_view_literals;

namespace {

FormFields parsed(std::string_view body, std::size_t field_limit = 100) {
    Result<FormFields> form = parse_form(body, field_limit);
    REQUIRE_MESSAGE(form.ok(), (form.ok() ? "" : form.error().message));
    return std::move(form.value());
}

// "name=value|" for each field.
std::string listed(std::string_view body) {
    const FormFields fields = parsed(body);
    std::string text;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        text.append(fields.at(i).name).append("=").append(fields.at(i).value).append("|");
    }
    return text;
}

std::string refusal(std::string_view body, std::size_t field_limit = 100) {
    const Result<FormFields> form = parse_form(body, field_limit);
    return form.ok() ? std::string() : form.error().message;
}

}  // namespace

TEST_CASE("a form's fields come in order, decoded once") {
    CHECK(listed("") == "");
    CHECK(listed("a=1") == "a=1|");
    CHECK(listed("a=1&b=2&a=3") == "a=1|b=2|a=3|");
    CHECK(listed("full+name=J%C3%BCrgen+%2B+Co%2e") == "full name=J\xc3\xbcrgen + Co.|");
    CHECK(listed("%61%3d=%26%3D") == "a==&=|");
    CHECK(listed("a=%2541") == "a=%41|");
    CHECK(listed("a=b=c") == "a=b=c|");
    CHECK(listed("a;b=1;c") == "a;b=1;c|");
}

TEST_CASE("empty fields are passed over, empty names and values are not") {
    CHECK(listed("&&") == "");
    CHECK(listed("&a=1&&b&c=&=d&=&") == "a=1|b=|c=|=d|=|");
}

TEST_CASE("a field may hold any byte") {
    const FormFields fields = parsed("a=%00x%FF%0d%0A&\xff=\x01");
    CHECK(fields.get("a") == "\0x\xff\r\n"sv);
    CHECK(fields.get("\xff") == "\x01");
}

TEST_CASE("get gives the first value, all gives each, a missing name is told from an empty value") {
    const FormFields fields = parsed("tag=x&name=&tag=y&Tag=z&tag=");
    CHECK(fields.get("tag") == "x");
    CHECK(fields.get("Tag") == "z");
    CHECK(fields.all("tag") == std::vector<std::string_view>{"x", "y", ""});
    CHECK(fields.all("none").empty());
    CHECK(fields.get("none").data() == nullptr);
    CHECK(fields.get("name").empty());
    CHECK(fields.get("name").data() != nullptr);
    CHECK(parsed("a").get("a").data() != nullptr);
    CHECK(FormFields().get("a").data() == nullptr);
}

TEST_CASE("fields own their text, and may be moved") {
    std::string body = "a=1";
    FormFields first = parsed(body);
    body.assign("zzzz");
    const FormFields second = std::move(first);
    CHECK(second.get("a") == "1");
}

TEST_CASE("a broken escape is refused, with its place") {
    for (const std::string_view body : {"ab=%"sv, "ab=%4"sv, "ab=%4&c=1"sv, "ab=%&41"sv, "ab=%zz"sv, "ab=%4g"sv, "ab=%g4"sv,
                                        "ab=%%41"sv, "ab=%+1"sv, "ab=%-1"sv, "ab=%\x00\x00"sv, "ab=%u0041"sv, "ab=% 1"sv}) {
        CAPTURE(std::string(body));
        CHECK(refusal(body).find("'%' at byte 3 ") != std::string::npos);
    }
    CHECK(refusal("%4=1").find("byte 0 ") != std::string::npos);
    CHECK(refusal("a=1&b=%41&c%=").find("byte 11 ") != std::string::npos);
}

TEST_CASE("no more fields than the limit") {
    CHECK(refusal("a&b&c", 3).empty());
    CHECK(refusal("&a&&b&c&", 3).empty());
    CHECK(refusal("a&b&c&d", 3).find("more than 3 fields") != std::string::npos);
    CHECK(refusal("", 0).empty());
    CHECK(refusal("a", 0).find("more than 0 fields") != std::string::npos);
    // What lies behind the limit is not looked at, and takes no memory.
    CHECK(refusal(std::string(1'000'000, '&') + "a&b", 1).find("more than 1 fields") != std::string::npos);
}

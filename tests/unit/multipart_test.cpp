#include "penstock/protocols/http/multipart.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace penstock;
using namespace std::string_literals;

namespace {

using Event = MultipartParser::Event;

std::string describe(const MultipartPart& part) {
    std::string text = "{" + std::string(part.name);
    if (part.has_filename()) {
        text.append("|file ").append(part.filename);
    }
    if (part.content_type.data() != nullptr) {
        text.append("|type ").append(part.content_type);
    }
    return text + ":";
}

// Everything up to the point where more is needed.
Event drain(MultipartParser& parser, std::string& log) {
    for (;;) {
        const Event event = parser.next();
        switch (event) {
            case Event::part_begin: log += describe(parser.part()); break;
            case Event::data:
                CHECK_FALSE(parser.data().empty());
                log += parser.data();
                break;
            case Event::part_end: log += "}"; break;
            default: return event;
        }
    }
}

// "{name|file f|type t:data}{…}." for a whole form; "!400" or "!413" where it breaks.
std::string events(std::string_view form, std::size_t first, std::size_t then, const MultipartLimits& limits = {}) {
    MultipartParser parser("XyZ", limits);
    std::string log;
    std::size_t size = first;
    while (!form.empty()) {
        const std::string piece(form.substr(0, size));  // of its own, so that reading beyond it is noticed
        form.remove_prefix(piece.size());
        size = then;
        parser.feed(piece);
        if (drain(parser, log) == Event::failed) {
            break;
        }
    }
    if (parser.finish() == Event::form_end) {
        CHECK(parser.next() == Event::form_end);
        CHECK(std::string_view(parser.error()).empty());
        return log + ".";
    }
    CHECK(parser.next() == Event::failed);
    CHECK(parser.failed());
    CHECK(std::string_view(parser.error()).starts_with("multipart: "));
    return log + "!" + std::to_string(parser.error_status());
}

struct Form {
    std::string name;
    std::string bytes;
    std::string events;
};

void run(const std::vector<Form>& forms, const MultipartLimits& limits = {}) {
    for (const Form& form : forms) {
        CAPTURE(form.name);
        const std::size_t size = std::max<std::size_t>(form.bytes.size(), 1);
        CHECK(events(form.bytes, size, size, limits) == form.events);
        CHECK(events(form.bytes, 1, 1, limits) == form.events);
        for (std::size_t at = 1; at < form.bytes.size(); ++at) {
            CAPTURE(at);
            CHECK(events(form.bytes, at, size, limits) == form.events);
        }
    }
}

// A head with the name "a", then `data`, without the delimiter behind it.
std::string part(std::string_view data, std::string_view name = "a") {
    return "--XyZ\r\nContent-Disposition: form-data; name=\"" + std::string(name) + "\"\r\n\r\n" + std::string(data);
}

std::string with_head(std::string_view head) { return "--XyZ\r\n" + std::string(head) + "\r\n\r\nd\r\n--XyZ--\r\n"; }

std::string disposition(std::string_view parameters) {
    return with_head("Content-Disposition: form-data" + std::string(parameters));
}

const std::string kEnd = "\r\n--XyZ--\r\n";

}  // namespace

TEST_CASE("forms give their parts, however they are cut") {
    run({
        {"one field", part("value") + kEnd, "{a:value}."},
        {"no line end behind the last delimiter", part("value") + "\r\n--XyZ--", "{a:value}."},
        {"two fields", part("1") + "\r\n" + part("2", "b") + kEnd, "{a:1}{b:2}."},
        {"an empty value", part("") + kEnd, "{a:}."},
        {"no value at all", part("") + "--XyZ--", "{a:}."},
        {"no parts", "--XyZ--\r\n", "."},
        {"a preamble and an epilogue", "for old\r\nreaders\r\n" + part("v") + kEnd + "\r\nthe\0end--XyZ"s, "{a:v}."},
        {"white space behind delimiters", "--XyZ \t\r\n" + part("v").substr(7) + "\r\n--XyZ-- \t\r\n", "{a:v}."},
        {"line ends in the data", part("\r\n\r\n") + kEnd, "{a:\r\n\r\n}."},
        {"nearly delimiters in the data", part("\r\r\n\r\n-\r\n--\r\n--Xy\r\n--Xyz--XyZ\n--XyZ\r--XyZ-\r\n--X") + kEnd,
         "{a:\r\r\n\r\n-\r\n--\r\n--Xy\r\n--Xyz--XyZ\n--XyZ\r--XyZ-\r\n--X}."},
        {"data that begins like a delimiter", part("--XyW--") + kEnd, "{a:--XyW--}."},
        {"nearly a delimiter in the preamble", "--Xy\r\n--X" + ("\r\n" + part("v")) + kEnd, "{a:v}."},
        {"binary data", part("\0\xff\x01"s) + kEnd, "{a:\0\xff\x01}."s},
    });
}

TEST_CASE("heads of parts give name, filename and type") {
    run({
        {"a file", with_head("Content-Disposition: form-data; name=\"f\"; filename=\"x.png\"\r\nContent-Type: image/png"),
         "{f|file x.png|type image/png:d}."},
        {"letter case and white space",
         with_head("content-type:\t text/plain;charset=x \r\nCONTENT-DISPOSITION:FORM-Data ;\tNAME=f ; FileName=x ;"),
         "{f|file x|type text/plain;charset=x:d}."},
        {"escapes", disposition("; name=\"a\\\"b\\\\c\""), "{a\"b\\c:d}."},
        {"a path as it stands", disposition("; name=f; filename=\"C:\\dir\\..\\x.txt\""), "{f|file C:\\dir\\..\\x.txt:d}."},
        {"no percent-decoding", disposition("; name=\"a%22b\""), "{a%22b:d}."},
        {"UTF-8", disposition("; name=\"\xc3\xa4\""), "{\xc3\xa4:d}."},
        {"delimiters of parameters in quotes", disposition("; name=\"a; filename=b\""), "{a; filename=b:d}."},
        {"empty ones", disposition("; name=\"\"; filename=\"\""), "{|file :d}."},
        {"unknown fields and parameters", with_head("X-A: b\r\nContent-Disposition: form-data; x=y; name=a; filename*=z"), "{a:d}."},
        {"an identity encoding", with_head("Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: 8BIT"), "{a:d}."},
    });
}

TEST_CASE("broken forms fail at the same place, however they are cut") {
    run({
        {"nothing", "", "!400"},
        {"no delimiter", "a=b", "!400"},
        {"no end", part("value"), "{a:value!400"},
        {"an end cut short", part("value") + "\r\n--XyZ-", "{a:value!400"},
        {"an end with half a line end", part("value") + "\r\n--XyZ--\r", "{a:value}!400"},
        {"no end behind a part", part("value") + "\r\n--XyZ\r\n", "{a:value}!400"},
        {"an end in a head", "--XyZ\r\nContent-Dis", "!400"},
        {"text behind a boundary", part("v") + "\r\n--XyZa\r\n", "{a:v!400"},
        {"text behind the end", part("v") + "\r\n--XyZ--a", "{a:v}!400"},
        {"a delimiter that ends in LF", "--XyZ\n" + part("v").substr(7) + kEnd, "!400"},
        {"a delimiter with CR inside", "--XyZ\r\r\n", "!400"},
        {"LF alone", with_head("Content-Disposition: form-data; name=a\nX: y"), "!400"},
        {"CR alone", with_head("Content-Disposition: form-data; name=a\rX: y"), "!400"},
        {"two CR", with_head("Content-Disposition: form-data; name=a\r\r\nX: y"), "!400"},
        {"no head", "--XyZ\r\n\r\nd" + kEnd, "!400"},
        {"no disposition", with_head("Content-Type: text/plain"), "!400"},
        {"two dispositions", with_head("Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b"), "!400"},
        {"two types", with_head("Content-Disposition: form-data; name=a\r\nContent-Type: a/b\r\nContent-Type: a/b"), "!400"},
        {"an encoding", with_head("Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64"), "!400"},
        {"a folded field", with_head("Content-Disposition: form-data;\r\n name=a"), "!400"},
        {"no colon", with_head("Content-Disposition form-data; name=a"), "!400"},
        {"white space in front of the colon", with_head("Content-Disposition : form-data; name=a"), "!400"},
        {"another disposition", with_head("Content-Disposition: attachment; name=a"), "!400"},
        {"no name", disposition("; filename=a"), "!400"},
        {"two names", disposition("; name=a; name=b"), "!400"},
        {"two filenames", disposition("; name=a; filename=a; FILENAME=b"), "!400"},
        {"an open quote", disposition("; name=\"a"), "!400"},
        {"a quote that stays open by its escape", disposition("; name=\"a\\\""), "!400"},
        {"text behind a quote", disposition("; name=\"a\"b"), "!400"},
        {"no equals sign", disposition("; name"), "!400"},
        {"no value", disposition("; name="), "!400"},
        {"NUL in a name", disposition("; name=\"a\0b\""s), "!400"},
        {"a control in a name", disposition("; name=\"a\x1f\""), "!400"},
        {"DEL in a name", disposition("; name=\"a\x7f\""), "!400"},
        {"a tab in a filename", disposition("; name=a; filename=\"a\tb\""), "!400"},
    });
}

TEST_CASE("limits hold exactly, however a form is cut") {
    const std::string head = "Content-Disposition: form-data; name=a";
    MultipartLimits limits;
    limits.part_limit = 2;
    limits.field_limit = 2;
    limits.head_limit_bytes = static_cast<std::uint32_t>(head.size() + 4);
    limits.part_limit_bytes = 9;
    limits.outside_limit_bytes = 10;
    run({
        {"a head of the limit", with_head(head), "{a:d}."},
        {"a head above it", with_head(head + "b"), "!413"},
        {"a part of the limit", "--XyZ\r\n" + head + "\r\n\r\n12345\r\n89" + kEnd, "{a:12345\r\n89}."},
        {"a part above it", "--XyZ\r\n" + head + "\r\n\r\n12345\r\n890" + kEnd, "{a:12345\r\n89!413"},
        {"parts of the limit", with_head(head).substr(0, with_head(head).size() - 4) + "\r\n" + head + "\r\n\r\n" + kEnd, "{a:d}{a:}."},
        {"a preamble of the limit", "1234567890\r\n" + with_head(head), "{a:d}."},
        {"a preamble above it", "12345678901\r\n" + with_head(head), "!413"},
        {"white space of the limit", "--XyZ" + std::string(10, ' ') + "\r\n" + with_head(head).substr(7), "{a:d}."},
        {"white space above it", "--XyZ" + std::string(11, ' ') + "\r\n" + with_head(head).substr(7), "!413"},
        {"an epilogue of the limit", with_head(head) + "1234567890", "{a:d}."},
        {"an epilogue above it", with_head(head) + "12345678901", "{a:d}!413"},
    }, limits);
    limits.head_limit_bytes = 200;
    run({
        {"fields of the limit", with_head(head + "\r\nX: y"), "{a:d}."},
        {"fields above it", with_head(head + "\r\nX: y\r\nX: y"), "!413"},
        {"parts above the limit", part("1") + "\r\n" + part("2") + "\r\n" + part("3") + kEnd, "{a:1}{a:2}!413"},
    }, limits);
}

TEST_CASE("data is a view of what was fed") {
    const std::string form = part(std::string(10'000, 'd') + "\r\n--Xy" + std::string(10'000, 'e')) + kEnd;
    MultipartParser parser("XyZ");
    parser.feed(form);
    CHECK(parser.next() == Event::part_begin);
    CHECK(parser.next() == Event::data);
    CHECK(parser.data().size() == 20'006);
    CHECK(parser.data().data() > form.data());
    CHECK(parser.data().data() + parser.data().size() < form.data() + form.size());
    CHECK(parser.next() == Event::part_end);
    CHECK(parser.next() == Event::need_input);
    CHECK(parser.finish() == Event::form_end);
}

TEST_CASE("a boundary is taken from a Content-Type") {
    const std::string longest(70, 'b');
    const std::vector<std::pair<std::string, std::string>> table = {
        {"multipart/form-data; boundary=XyZ", "XyZ"},
        {"Multipart/Form-Data;BOUNDARY=XyZ", "XyZ"},
        {"multipart/form-data ; charset=utf-8 ; boundary=\"a b:/=?,\" ;", "a b:/=?,"},
        {"multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", "----WebKitFormBoundary7MA4YWxkTrZu0gW"},
        {"multipart/form-data; x=\"; boundary=no\"; boundary=yes", "yes"},
        {"multipart/form-data; boundary=" + longest, longest},
    };
    for (const auto& row : table) {
        CAPTURE(row.first);
        const Result<std::string> result = multipart_boundary(row.first);
        REQUIRE(result.ok());
        CHECK(result.value() == row.second);
    }
    for (const std::string& content_type : std::vector<std::string>{
             "", "multipart/form-data", "multipart/form-data; boundary", "multipart/form-data; boundary=",
             "multipart/form-data; boundary=\"\"", "multipart/form-data; boundary=\"a", "multipart/form-data; boundary=\"a \"",
             "multipart/form-data; boundary=\"a\"b", "multipart/form-data; boundary=a b", "multipart/form-data; boundary=a; boundary=a",
             "multipart/form-data; boundary=\"a\r\nb\"", "multipart/form-data; boundary=a*b", "multipart/form-data; boundary=\"\xc3\xa4\"",
             "multipart/form-data, boundary=a", "multipart/form-data boundary=a", "multipart/mixed; boundary=a",
             "application/x-www-form-urlencoded", "multipart/form-datax; boundary=a", "multipart/form-data; boundary=" + longest + "b"}) {
        CAPTURE(content_type);
        const Result<std::string> result = multipart_boundary(content_type);
        REQUIRE_FALSE(result.ok());
        CHECK(result.error().message.find("boundary of 1 to 70") != std::string::npos);
    }
}

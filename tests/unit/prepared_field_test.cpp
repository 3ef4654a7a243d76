#include "penstock/protocols/http/prepared_field.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "penstock/engine/config.h"

namespace penstock::test {

TEST_CASE("a prepared field keeps its name and its value as they were given") {
    const PreparedField field("Content-Type", "application/json");
    CHECK(field.name() == "Content-Type");
    CHECK(field.value() == "application/json");
    const PreparedField empty("X-Empty", "");
    CHECK(empty.name() == "X-Empty");
    CHECK(empty.value().empty());
    CHECK(empty.value().data() != nullptr);
}

TEST_CASE("a field that no response may have is refused when it is prepared") {
    struct {
        const char* name;
        const char* value;
    } const fields[] = {
        {"", "a"},
        {"a b", "a"},
        {"a:", "a"},
        {"Na\xc3\xafve", "a"},
        {"X-A", "a\r\nb"},
        {"X-A", "a\x7f"},
        {"Content-Length", "1"},
        {"content-length", "1"},
        {"Transfer-Encoding", "chunked"},
        {"DATE", "now"},
        {"Connection", "keep-alive"},
        {"Connection", ""},
    };
    for (const auto& field : fields) {
        CAPTURE(field.name);
        CHECK_THROWS_AS(PreparedField(field.name, field.value), std::invalid_argument);
    }
    CHECK_NOTHROW(PreparedField("connection", "Close"));
    CHECK_THROWS_WITH(PreparedField("Date", "now"), "PreparedField: the server sets this field itself, leave it out: Date");
}

TEST_CASE("a prepared field is no larger than a response's fields may be") {
    const std::string name = "X-Large";
    const std::size_t room = kResponseFieldsLimitBytes - name.size() - 4;
    CHECK_NOTHROW(PreparedField(name, std::string(room, 'a')));
    CHECK_THROWS_WITH_AS(PreparedField(name, std::string(room + 1, 'a')),
                         "PreparedField: X-Large takes 12289 bytes, and a response's fields have 12288 together "
                         "(kResponseFieldsLimitBytes): shorten its value, or send it in a body",
                         std::invalid_argument);
}

}  // namespace penstock::test

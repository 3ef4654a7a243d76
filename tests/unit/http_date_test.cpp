#include "penstock/engine/http_date.h"

#include <string>

#include <doctest/doctest.h>

using namespace penstock;

namespace {

constexpr std::int64_t kNow = 1'800'000'000;  // Fri, 15 Jan 2027 08:00:00 GMT

std::string written(std::int64_t seconds) {
    std::string text(kHttpDateBytes, ' ');
    write_http_date(seconds, text.data());
    return text;
}

struct Case {
    std::string_view text;
    std::int64_t seconds;
};

void check_dates(std::initializer_list<Case> cases, std::int64_t now) {
    for (const Case& date : cases) {
        CAPTURE(date.text);
        const auto seconds = parse_http_date(date.text, now);
        REQUIRE(seconds.has_value());
        CHECK(*seconds == date.seconds);
    }
}

void check_none(std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) {
        CAPTURE(text);
        CHECK_FALSE(parse_http_date(text, kNow).has_value());
    }
}

// Written anew, for those who read a failure; "" for none.
std::string read_in(std::string_view text, std::string_view now) {
    const auto now_seconds = parse_http_date(now, 0);
    REQUIRE(now_seconds.has_value());
    const auto seconds = parse_http_date(text, *now_seconds);
    return seconds ? written(*seconds) : std::string();
}

}  // namespace

TEST_CASE("all three forms of a date say the same moment") {
    check_dates(
        {
            {"Sun, 06 Nov 1994 08:49:37 GMT", 784'111'777},
            {"Sunday, 06-Nov-94 08:49:37 GMT", 784'111'777},
            {"Sun Nov  6 08:49:37 1994", 784'111'777},
            {"Sun Nov 06 08:49:37 1994", 784'111'777},
            {"Wed Nov 16 08:49:37 1994", 784'975'777},
        },
        kNow);
}

TEST_CASE("the ends of days, months and years are dates") {
    check_dates(
        {
            {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
            {"Wed, 31 Dec 1969 23:59:59 GMT", -1},
            {"Tue, 29 Feb 2000 00:00:00 GMT", 951'782'400},
            {"Fri, 15 Jan 2027 08:00:00 GMT", kNow},
            {"Tue, 19 Jan 2038 03:14:08 GMT", 2'147'483'648},
            {"Fri, 31 Dec 9999 23:59:59 GMT", 253'402'300'799},
            {"Sat, 01 Jan 0000 00:00:00 GMT", -62'167'219'200},
            // Leap seconds, one that was and one that was not: nobody can tell for years to come.
            {"Sat, 31 Dec 2016 23:59:60 GMT", 1'483'228'800},
            {"Mon, 02 Jan 2017 23:59:60 GMT", 1'483'401'600},
        },
        kNow);
}

TEST_CASE("a wrong day of the week does not matter, one that is none does") {
    check_dates({{"Mon, 06 Nov 1994 08:49:37 GMT", 784'111'777},
                 {"Wednesday, 06-Nov-94 08:49:37 GMT", 784'111'777},
                 {"Sat Nov  6 08:49:37 1994", 784'111'777}},
                kNow);
    CHECK_FALSE(parse_http_date("Day, 06 Nov 1994 08:49:37 GMT", kNow));
}

TEST_CASE("each date that is written is read") {
    // A prime number of seconds, so that all fields change: about 41 days.
    for (std::int64_t seconds = 0; seconds < 253'402'300'800; seconds += 3'555'557) {
        const std::string text = written(seconds);
        const auto read = parse_http_date(text, kNow);
        if (read != seconds) {
            FAIL_CHECK("not read back: " << text);
        }
    }
}

TEST_CASE("days and times that do not exist are none") {
    check_none({
        "Mon, 31 Feb 2025 00:00:00 GMT",
        "Sat, 29 Feb 2025 00:00:00 GMT",
        "Thu, 29 Feb 1900 00:00:00 GMT",
        "Thu, 31 Apr 2025 00:00:00 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 32 Jan 1994 08:49:37 GMT",
        "Sun Nov  0 08:49:37 1994",
        "Sun Feb 30 08:49:37 1994",
        "Sunday, 30-Feb-94 08:49:37 GMT",
        "Sunday, 29-Feb-95 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:60 GMT",
        "Sun, 06 Nov 1994 22:59:60 GMT",
        "Sun, 06 Nov 1994 23:59:61 GMT",
    });
}

TEST_CASE("what is not a date to the letter is none") {
    check_none({
        "",
        " ",
        "0",
        "784111777",
        "Sun, 06 Nov 1994",
        // letter case
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 NOV 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "SUNDAY, 06-Nov-94 08:49:37 GMT",
        // spaces
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov   08:49:37 1994",
        "Sun, 06 Nov 1994\t08:49:37 GMT",
        // zones
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun Nov  6 08:49:37 1994 GMT",
        // forms mixed, or more than one
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT; length=5",
        // what is no digit
        "Sun, 06 Nov +994 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:4a:37 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT",
        "Sun, 06 unN 1994 08:49:37 GMT",
        "Sun, 06 ovD 1994 08:49:37 GMT",
    });
}

TEST_CASE("no beginning of a date is a date") {
    for (const std::string_view whole : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                         "Sun Nov  6 08:49:37 1994"}) {
        for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
            CAPTURE(bytes);
            CHECK_FALSE(parse_http_date(whole.substr(0, bytes), kNow).has_value());
        }
    }
}

TEST_CASE("a year of two digits is the latest that is not more than 50 years ahead") {
    struct CenturyCase {
        std::string_view now;
        std::string_view text;
        std::string_view expected;
    };
    for (const CenturyCase& century : std::initializer_list<CenturyCase>{
             {"Fri, 15 Jan 2027 08:00:00 GMT", "Friday, 15-Jan-27 08:00:00 GMT", "Fri, 15 Jan 2027 08:00:00 GMT"},
             {"Fri, 15 Jan 2027 08:00:00 GMT", "Friday, 31-Dec-76 23:59:59 GMT", "Thu, 31 Dec 2076 23:59:59 GMT"},
             {"Fri, 15 Jan 2027 08:00:00 GMT", "Friday, 15-Jan-77 08:00:00 GMT", "Fri, 15 Jan 2077 08:00:00 GMT"},
             {"Fri, 15 Jan 2027 08:00:00 GMT", "Friday, 15-Jan-77 08:00:01 GMT", "Sat, 15 Jan 1977 08:00:01 GMT"},
             {"Fri, 15 Jan 2027 08:00:00 GMT", "Friday, 15-Jan-99 00:00:00 GMT", "Fri, 15 Jan 1999 00:00:00 GMT"},
             // near the ends of a century
             {"Fri, 31 Dec 1999 23:59:59 GMT", "Saturday, 01-Jan-00 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT"},
             {"Fri, 31 Dec 1999 23:59:59 GMT", "Friday, 31-Dec-49 23:59:59 GMT", "Fri, 31 Dec 2049 23:59:59 GMT"},
             {"Fri, 31 Dec 1999 23:59:59 GMT", "Saturday, 01-Jan-50 00:00:00 GMT", "Sun, 01 Jan 1950 00:00:00 GMT"},
             {"Sat, 01 Jan 2000 00:00:00 GMT", "Friday, 31-Dec-99 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:59 GMT"},
             // 50 years after 29 February is 1 March
             {"Thu, 29 Feb 2024 00:00:00 GMT", "Sunday, 01-Mar-74 00:00:00 GMT", "Thu, 01 Mar 2074 00:00:00 GMT"},
             {"Thu, 29 Feb 2024 00:00:00 GMT", "Sunday, 01-Mar-74 00:00:01 GMT", "Fri, 01 Mar 1974 00:00:01 GMT"},
             // 2100 has no such day
             {"Fri, 01 Jan 2060 00:00:00 GMT", "Tuesday, 29-Feb-00 00:00:00 GMT", "Tue, 29 Feb 2000 00:00:00 GMT"},
         }) {
        CAPTURE(century.now);
        CAPTURE(century.text);
        CHECK(read_in(century.text, century.now) == century.expected);
    }
}

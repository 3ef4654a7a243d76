#include "penstock/protocols/http/byte_ranges.h"

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/abort_message.h"
#include "support/seed.h"

using namespace penstock;

namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

// "none", "unsatisfiable", or the ranges as "offset+size …", with "whole: " in front when they are.
std::string described(std::string_view field, std::uint64_t size) {
    const ByteRanges result = parse_byte_ranges(field, size);
    if (result.kind() != ByteRanges::Kind::ranges) {
        CHECK(result.ranges().empty());
        CHECK_FALSE(result.is_whole());
        return result.kind() == ByteRanges::Kind::none ? "none" : "unsatisfiable";
    }
    std::string text = result.is_whole() ? "whole:" : "";
    for (const ByteRange range : result.ranges()) {
        text += (text.empty() ? "" : " ") + std::to_string(range.offset) + "+" + std::to_string(range.size);
    }
    return text;
}

struct Case {
    std::string_view field;
    std::string_view expected;
};

void check_cases(std::initializer_list<Case> cases, std::uint64_t size) {
    for (const Case& request : cases) {
        CAPTURE(request.field);
        CHECK(described(request.field, size) == request.expected);
    }
}

std::string repeated(std::string_view range, int times) {
    std::string field = "bytes=";
    for (int i = 0; i < times; ++i) {
        field.append(i == 0 ? "" : ",").append(range);
    }
    return field;
}

}  // namespace

TEST_CASE("one range of 26 bytes") {
    check_cases(
        {
            {"bytes=0-0", "0+1"},
            {"bytes=0-4", "0+5"},
            {"bytes=5-5", "5+1"},
            {"bytes=20-", "20+6"},
            {"bytes=20-25", "20+6"},
            {"bytes=20-26", "20+6"},
            {"bytes=20-1000", "20+6"},
            {"bytes=25-", "25+1"},
            {"bytes=-1", "25+1"},
            {"bytes=-5", "21+5"},
            {"bytes=-25", "1+25"},
            {"bytes=0-", "whole: 0+26"},
            {"bytes=0-25", "whole: 0+26"},
            {"bytes=0-99", "whole: 0+26"},
            {"bytes=-26", "whole: 0+26"},
            {"bytes=-27", "whole: 0+26"},
            {"bytes=-1000", "whole: 0+26"},
            {"bytes=0000000000000000000000000000005-06", "5+2"},
            {"Bytes=0-4", "0+5"},
            {"BYTES=-5", "21+5"},
        },
        26);
}

TEST_CASE("ranges outside of 26 bytes cannot be satisfied") {
    check_cases(
        {
            {"bytes=26-", "unsatisfiable"},
            {"bytes=99-", "unsatisfiable"},
            {"bytes=26-26", "unsatisfiable"},
            {"bytes=99-100,26-", "unsatisfiable"},
            {"bytes=-0", "unsatisfiable"},
            {"bytes=-00,99-", "unsatisfiable"},
            // one that can be is enough
            {"bytes=99-,0-4", "0+5"},
            {"bytes=0-4,-0", "0+5"},
        },
        26);
}

TEST_CASE("a field that is no set of ranges of bytes does not count") {
    check_cases(
        {
            {"", "none"},
            {"bytes", "none"},
            {"bytes=", "none"},
            {"bytes= ", "none"},
            {"bytes=,", "none"},
            {"bytes= , ,,", "none"},
            {"=0-5", "none"},
            {"0-5", "none"},
            {"items=0-5", "none"},
            {"byte=0-5", "none"},
            {"bytess=0-5", "none"},
            {" bytes=0-5", "none"},
            {"bytes =0-5", "none"},
            {"bytes 0-5", "none"},
            {"bytes:0-5", "none"},
            {"bytes=5-2", "none"},
            {"bytes=0-1,5-2", "none"},
            {"bytes=99-98", "none"},
            {"bytes=5", "none"},
            {"bytes=-", "none"},
            {"bytes=--5", "none"},
            {"bytes=0--5", "none"},
            {"bytes=0-5-", "none"},
            {"bytes=0-5-9", "none"},
            {"bytes=a-b", "none"},
            {"bytes=0-b", "none"},
            {"bytes=0x0-5", "none"},
            {"bytes=+0-5", "none"},
            {"bytes=0-+5", "none"},
            {"bytes=0.0-5", "none"},
            {"bytes=0 - 5", "none"},
            {"bytes=0- 5", "none"},
            {"bytes=0 -5", "none"},
            {"bytes=- 5", "none"},
            {"bytes=1 2-5", "none"},
            {"bytes=0-5;6-7", "none"},
            {"bytes=0-5 6-7", "none"},
            {"bytes=0-5,x", "none"},
            {"bytes=x,0-5", "none"},
            {"bytes=0-5,items=0-5", "none"},
            {"bytes=0-5, bytes=7-8", "none"},
            {"bytes==0-5", "none"},
            {"bytes=0-5/26", "none"},
            {"bytes=*", "none"},
        },
        26);
    check_cases({{std::string_view("bytes=0-5\0", 10), "none"}}, 26);
}

TEST_CASE("spaces, tabs and empty places around commas do not matter") {
    check_cases(
        {
            {"bytes=0-0, 5-5", "0+1 5+1"},
            {"bytes=0-0 ,\t5-5", "0+1 5+1"},
            {"bytes= 0-0,5-5 ", "0+1 5+1"},
            {"bytes=,0-0,,,5-5,", "0+1 5+1"},
            {"bytes= , 0-0 , , 5-5 , ", "0+1 5+1"},
        },
        26);
}

TEST_CASE("several ranges keep their order, and those that overlap or touch become one") {
    check_cases(
        {
            {"bytes=0-0,-1", "0+1 25+1"},
            {"bytes=-1,0-0", "25+1 0+1"},
            {"bytes=20-21,10-11,0-1", "20+2 10+2 0+2"},
            {"bytes=0-4,3-8", "0+9"},
            {"bytes=3-8,0-4", "0+9"},
            {"bytes=0-4,5-8", "0+9"},
            {"bytes=5-8,0-4", "0+9"},
            {"bytes=0-4,6-8", "0+5 6+3"},
            {"bytes=0-9,2-3", "0+10"},
            {"bytes=2-3,0-9", "0+10"},
            {"bytes=4-5,4-5,4-5", "4+2"},
            {"bytes=20-20,0-4,10-10,3-8", "20+1 0+9 10+1"},
            // what joins two takes the place of the first
            {"bytes=10-11,20-21,0-1,2-9", "0+12 20+2"},
            {"bytes=0-1,20-21,10-11,2-9", "0+12 20+2"},
            {"bytes=20-21,0-1,15-15,4-5,2-3", "20+2 0+6 15+1"},
            {"bytes=0-0,2-2,4-4,6-6,0-24", "0+25"},
            {"bytes=0-0,2-2,4-4,6-6,0-", "whole: 0+26"},
            {"bytes=0-12,13-", "whole: 0+26"},
            {"bytes=13-,0-12", "whole: 0+26"},
            {"bytes=0-12,-13", "whole: 0+26"},
            {"bytes=-26,5-6", "whole: 0+26"},
        },
        26);
}

TEST_CASE("no more than a limit of ranges may be asked for") {
    CHECK(described(repeated("0-", 200), 26) == "none");
    CHECK(described(repeated("0-", static_cast<int>(kRangeLimit)), 26) == "whole: 0+26");
    CHECK(described(repeated("0-", static_cast<int>(kRangeLimit) + 1), 26) == "none");
    CHECK(described(repeated("99-", static_cast<int>(kRangeLimit)), 26) == "unsatisfiable");
    CHECK(described(repeated("99-", static_cast<int>(kRangeLimit) + 1), 26) == "none");

    std::string apart = "bytes=";
    for (std::size_t i = 0; i < kRangeLimit; ++i) {
        apart += std::to_string(10 * i) + "-" + std::to_string(10 * i + 1) + ",";
    }
    CHECK(parse_byte_ranges(apart, 1'000).ranges().size() == kRangeLimit);
    CHECK(described(apart + "900-", 1'000) == "none");
    // empty places are no ranges
    CHECK(parse_byte_ranges(apart + std::string(500, ','), 1'000).ranges().size() == kRangeLimit);
}

TEST_CASE("there are no ranges of nothing, and the smallest sizes work") {
    check_cases({{"bytes=0-", "none"}, {"bytes=-5", "none"}, {"bytes=-0", "none"}, {"bytes=0-0", "none"}}, 0);
    check_cases({{"bytes=0-0", "whole: 0+1"},
                 {"bytes=-1", "whole: 0+1"},
                 {"bytes=0-0,-1", "whole: 0+1"},
                 {"bytes=1-", "unsatisfiable"}},
                1);
    check_cases({{"bytes=0-0,-1", "whole: 0+2"}, {"bytes=-1,0-0", "whole: 0+2"}, {"bytes=1-1", "1+1"}}, 2);
}

TEST_CASE("numbers too large for their type are as good as the largest") {
    check_cases(
        {
            {"bytes=0-18446744073709551615", "whole: 0+26"},
            {"bytes=0-18446744073709551616", "whole: 0+26"},
            {"bytes=5-99999999999999999999999999999999", "5+21"},
            {"bytes=-18446744073709551615", "whole: 0+26"},
            {"bytes=-18446744073709551617", "whole: 0+26"},
            {"bytes=18446744073709551615-", "unsatisfiable"},
            {"bytes=18446744073709551616-", "unsatisfiable"},
            {"bytes=18446744073709551621-18446744073709551630", "unsatisfiable"},
            {"bytes=36893488147419103232-5", "none"},
        },
        26);
    check_cases(
        {
            {"bytes=0-", "whole: 0+18446744073709551615"},
            {"bytes=18446744073709551614-", "18446744073709551614+1"},
            {"bytes=18446744073709551614-99999999999999999999", "18446744073709551614+1"},
            {"bytes=1-,-18446744073709551614", "1+18446744073709551614"},
            {"bytes=0-9223372036854775807,9223372036854775808-", "whole: 0+18446744073709551615"},
            {"bytes=0-0,-1", "0+1 18446744073709551614+1"},
        },
        kLargest);
}

TEST_CASE("whatever is asked for, the ranges cover just these bytes, each once") {
    std::mt19937_64 random(test_seed());
    constexpr std::uint64_t kSize = 40;
    for (int round = 0; round < 5'000; ++round) {
        std::vector<bool> wanted(kSize, false);
        std::string field = "bytes=";
        const std::size_t asked = 1 + random() % kRangeLimit;
        for (std::size_t i = 0; i < asked; ++i) {
            const std::uint64_t first = random() % (kSize + 5);
            const std::uint64_t last = first + random() % 6;
            field += std::to_string(first) + "-" + std::to_string(last) + ",";
            for (std::uint64_t at = first; at < std::min(last + 1, kSize); ++at) {
                wanted[at] = true;
            }
        }
        CAPTURE(field);
        const ByteRanges result = parse_byte_ranges(field, kSize);
        std::vector<bool> given(kSize + 2, false);
        bool is_sound = true;
        for (const ByteRange range : result.ranges()) {
            is_sound = is_sound && range.size > 0 && range.offset + range.size <= kSize;
            for (std::uint64_t at = range.offset; is_sound && at < range.offset + range.size; ++at) {
                is_sound = !given[at];
                given[at] = true;
            }
        }
        std::size_t runs = 0;
        for (std::size_t at = 0; at < kSize; ++at) {
            runs += wanted[at] && (at == 0 || !wanted[at - 1]) ? 1 : 0;
        }
        given.resize(kSize);
        REQUIRE(is_sound);
        REQUIRE(given == wanted);
        REQUIRE(result.ranges().size() == runs);
    }
}

TEST_CASE("Content-Range is written without a byte too many") {
    std::array<char, kContentRangeBytes> out;
    CHECK(write_content_range({0, 500}, 1'234, out) == "bytes 0-499/1234");
    CHECK(write_content_range({25, 1}, 26, out) == "bytes 25-25/26");
    CHECK(write_content_range({0, 1}, 1, out) == "bytes 0-0/1");
    CHECK(write_content_range({kLargest - 1, 1}, kLargest, out) ==
          "bytes 18446744073709551614-18446744073709551614/18446744073709551615");
    CHECK(write_content_range({kLargest - 1, 1}, kLargest, out).size() == kContentRangeBytes);
    CHECK(write_unsatisfied_range(1'234, out) == "bytes */1234");
    CHECK(write_unsatisfied_range(0, out) == "bytes */0");
    CHECK(write_unsatisfied_range(kLargest, out) == "bytes */18446744073709551615");
}

TEST_CASE("Content-Range of what lies outside is our own mistake") {
    for (const ByteRange range : {ByteRange{0, 0}, ByteRange{26, 1}, ByteRange{20, 7}, ByteRange{1, kLargest}}) {
        CAPTURE(range.offset);
        CHECK(abort_message([range] {
                  std::array<char, kContentRangeBytes> out;
                  static_cast<void>(write_content_range(range, 26, out));
              }).find("a range to be written is empty or reaches outside") != std::string::npos);
    }
}

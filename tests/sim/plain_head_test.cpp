// PlainHead takes nothing that llhttp would not take in the same way: both read the same bytes and are compared.
#include "penstock/protocols/http/plain_head.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "http_fixture.h"
#include "support/head_reading.h"

namespace penstock::test {
namespace {

constexpr std::string_view kHead = "POST /a?b=c HTTP/1.1\r\nHost: t:80\r\nContent-Length:\t3\r\nConnection: keep-alive\r\n\r\n";

Config bench_config() {
    Config config;
    config.reactors = 1;
    return config;
}

enum class Way { plain, other };

// That the readers agree, and which of them it was.
void check(HeadBench& bench, std::string_view bytes, Way way) {
    CAPTURE(bytes.substr(0, 300));
    bool plain = false;
    CHECK(bench.find_difference(bytes, &plain) == "");
    CHECK(plain == (way == Way::plain));
}

void check_same(HeadBench& bench, std::string_view bytes) {
    if (const std::string difference = bench.find_difference(bytes); !difference.empty()) {
        FAIL_CHECK(bytes << "\n" << difference);
    }
}

std::string with_line(std::string_view line) { return std::string(line) + "\r\nHost: t\r\n\r\n"; }

std::string with_field(std::string_view field) { return get("/", std::string(field) + "\r\n"); }

std::string numbered_fields(int count) {
    std::string fields;
    for (int i = 0; i < count; ++i) {
        fields += "X-" + std::to_string(i) + ": " + std::to_string(i) + "\r\n";
    }
    return fields;
}

}  // namespace

TEST_CASE("heads as clients write them are plain") {
    HeadBench bench(bench_config());
    for (const std::string_view method : {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
        check(bench, with_line(std::string(method) + " /a/b%20c?d=e&f HTTP/1.1"), Way::plain);
    }
    check(bench, "GET / HTTP/1.0\r\n\r\n", Way::plain);
    check(bench, "GET / HTTP/1.1\r\n\r\n", Way::plain);  // refused for its lack of a Host, behind the readers
    check(bench, kHead, Way::plain);
    check(bench, std::string(kHead) + "abcGET / HTTP/1.1\r\n", Way::plain);
    check(bench, get("/", "Expect: 100-continue\r\nConnection: close, keep-alive\r\nUpgrade: h2c\r\nCookie: a=b; c\r\n"), Way::plain);
    check(bench, get("/", "Host: u\r\n"), Way::plain);
    check(bench, get("/", "Connection: close\r\nConnection: keep-alive\r\n"), Way::plain);
}

TEST_CASE("what is rare or wrong is left to llhttp") {
    HeadBench bench(bench_config());
    for (const std::string_view line :
         {"TRACE / HTTP/1.1", "CONNECT t:80 HTTP/1.1", "PROPFIND / HTTP/1.1", "PRI * HTTP/2.0", "get / HTTP/1.1", "GET  / HTTP/1.1",
          "GET /  HTTP/1.1", "GET\t/ HTTP/1.1", "GET / HTTP/1.2", "GET / HTTP/2.0", "GET / HTTP/1.1 ", "GET / http/1.1",
          "GET / RTSP/1.0", "GET * HTTP/1.1", "OPTIONS * HTTP/1.1", "GET http://t/ HTTP/1.1", "GET /#a HTTP/1.1", "GET /\x7f HTTP/1.1",
          "GET /\xc3\xa4 HTTP/1.1", "GET  HTTP/1.1", "GET HTTP/1.1", "\r\nGET / HTTP/1.1", " GET / HTTP/1.1", "GETS / HTTP/1.1"}) {
        check(bench, with_line(line), Way::other);
    }
    for (const std::string_view field :
         {"X_Y: a", "X.Y: a", ": a", "X : a", " X: a", "X\t: a", "X", "X: a\r\n b", "X: a\rb", "X: a\nb", "X: a\x01", "X: a\x7f",
          "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Transfer-Encoding:", "\xe4: a"}) {
        check(bench, with_field(field), Way::other);
    }
}

TEST_CASE("a length is plain when it is one number of few digits") {
    HeadBench bench(bench_config());
    for (const std::string_view value : {"0", "5", " 5 ", "\t5\t", " \t 5\t \t", "007", "123456789012345678"}) {
        check(bench, with_field("Content-Length:" + std::string(value)), Way::plain);
    }
    for (const std::string_view value : {"", " ", "-1", "+1", "1,1", "1, 1", "1 1", "1\t1", "0x1", "a", "1a", "1234567890123456789",
                                         "18446744073709551615", "18446744073709551616", "5\r\nContent-Length: 5",
                                         "5\r\nTransfer-Encoding: chunked"}) {
        check(bench, with_field("Content-Length:" + std::string(value)), Way::other);
    }
}

TEST_CASE("a plain head in which any byte is another, more or missing") {
    HeadBench bench(bench_config());
    int taken = 0;
    for (std::size_t at = 0; at < kHead.size(); ++at) {
        for (int value = 0; value < 256; ++value) {
            std::string bytes(kHead);
            bytes[at] = static_cast<char>(value);
            check_same(bench, bytes);
            taken += bench.read_plain(bytes) != 0 ? 1 : 0;
            bytes[at] = kHead[at];
            bytes.insert(at, 1, static_cast<char>(value));
            check_same(bench, bytes);
        }
        check_same(bench, std::string(kHead).erase(at, 1));
        check_same(bench, std::string(kHead).erase(at, 2));
        CHECK(bench.read_plain(kHead.substr(0, at)) == 0);
    }
    CHECK(taken > 2'000);  // of 20,000: most often it is a value or a target that has changed
}

TEST_CASE("a plain head whose parts have any length, so that they end at any place of sixteen") {
    HeadBench bench(bench_config());
    for (std::size_t size = 0; size < 70; ++size) {
        const std::string run(size, 'a');
        check(bench, "GET /" + run + " HTTP/1.1\r\nHost: t\r\n\r\n", Way::plain);
        check(bench, with_field("a" + run + ": b"), Way::plain);
        check(bench, with_field("X: " + run), Way::plain);
        check(bench, with_field("X:" + run), Way::plain);
        check(bench, with_field("X: " + std::string(size, ' ') + "b" + std::string(size, '\t')), Way::plain);
        check(bench, with_field("X:" + std::string(size, '\t')), Way::plain);
        for (const char* const end : {"\r", "\r\n", "\r\n\r", "\r\r\n\r\n", "\n\r\n\r\n", "\n\n", ""}) {
            check(bench, "GET / HTTP/1.1\r\nHost: t\r\nX: " + run + end, Way::other);
            check(bench, "GET /" + run + end, Way::other);
            check(bench, "GET / HTTP/1.1\r\nHost: t\r\nX" + run + end, Way::other);
        }
    }
}

TEST_CASE("what the limits allow is plain, and no more") {
    HeadBench bench(bench_config());
    check(bench, get("/", numbered_fields(99)), Way::plain);
    check(bench, get("/", numbered_fields(100)), Way::other);
    check(bench, get("/" + std::string(7'999, 'a')), Way::plain);
    check(bench, get("/" + std::string(8'000, 'a')), Way::other);
    check(bench, with_field("X: " + std::string(10'000, 'x')), Way::plain);
    check(bench, with_field(std::string(10'000, 'x') + ": y"), Way::plain);
    check(bench, with_field("X:" + std::string(10'000, ' ')), Way::plain);
    check(bench, with_field("X: " + std::string(10'000, 'x') + "\x01"), Way::other);
    std::string full = get("/", "X-Fill: \r\n");
    full.insert(full.size() - 4, kIoBlockBytes - full.size(), 'f');
    check(bench, full, Way::plain);
}

TEST_CASE("what low limits allow is plain, and no more") {
    Config low = bench_config();
    low.header_count_limit = 30;
    low.head_limit_bytes = 4'096;
    low.target_limit_bytes = 20;
    HeadBench bench(low);
    check(bench, get("/", numbered_fields(29)), Way::plain);  // more than lie in the request itself
    check(bench, get("/", numbered_fields(30)), Way::other);
    check(bench, get("/", numbered_fields(28) + "X : y\r\nA: b\r\nB: c\r\n"), Way::other);
    check(bench, get("/" + std::string(19, 'a')), Way::plain);
    check(bench, get("/" + std::string(20, 'a')), Way::other);
    std::string most = get("/", "X-Fill: \r\n");
    most.insert(most.size() - 4, low.head_limit_bytes - most.size(), 'f');
    check(bench, most, Way::plain);
    check(bench, most + "GET / HTTP/1.1\r\n", Way::plain);
    most.insert(most.size() - 4, 1, 'f');
    check(bench, most, Way::other);
}

TEST_CASE("every known field, alone, twice and in any letter case") {
    HeadBench bench(bench_config());
    for (std::size_t i = 1; i < kKnownHeaders; ++i) {
        const std::string name(header_name(static_cast<HeaderName>(i)));
        std::string upper = name;
        for (char& letter : upper) {
            letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
        }
        for (const std::string_view value : {"", "1", "close", "a, b"}) {
            for (const std::string& lines : {name + ": " + std::string(value), upper + ":" + std::string(value),
                                             name + ": a\r\n" + upper + ":" + std::string(value),
                                             name + "x: " + std::string(value), "x" + name + ": " + std::string(value)}) {
                check_same(bench, with_field(lines));
                check_same(bench, "GET / HTTP/1.0\r\n" + lines + "\r\n\r\n");
            }
        }
    }
}

// Its last fields are recorded where they lay before the head moved to the front of its block.
TEST_CASE("a head that moves within its block before its last byte comes is read where it lies then") {
    Engine engine(case_router(), case_config());
    const std::string first = get("/letters");
    std::string second = "GET /value HTTP/1.1\r\nX-Value: here\r\nX-Fill: \r\nHost: t\r\n\r\n";
    second.insert(second.find("\r\nHost"), kIoBlockBytes - 2'000, 'f');
    const std::string both = first + second;
    const Answer whole = feed_whole(engine, both);
    CHECK(statuses_in(whole.bytes) == "200 200");
    CHECK(whole.bytes.ends_with("[here]"));
    for (std::size_t missing = 1; missing <= 6; ++missing) {
        CHECK(feed_cut(engine, both, both.size() - missing) == whole);
    }
    engine.server.check_nothing_left();
}

}  // namespace penstock::test

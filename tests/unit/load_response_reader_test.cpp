// What penstock_load makes of the bytes that a server sends.
#include "load/response_reader.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <string_view>

#include "support/seed.h"

namespace penstock::load {

namespace {

std::string response(std::string_view status, std::string_view body, std::string_view fields = "") {
    return "HTTP/1.1 " + std::string(status) + " Whatever\r\n" + std::string(fields) +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

struct Reading {
    explicit Reading(std::optional<std::uint64_t> length = {}, bool to_head_requests = false)
        : shape(200, length, to_head_requests) {}

    std::size_t take(std::string_view bytes) { return reader.take(bytes, tally); }

    ResponseShape shape;
    ResponseReader reader{shape};
    Tally tally;
};

void check_malformed(std::string_view bytes) {
    CAPTURE(bytes);
    Reading reading;
    CHECK(reading.take(bytes) == 0);
    CHECK(reading.reader.has_failed());
    CHECK(reading.tally.malformed == 1);
    CHECK(reading.tally.sum() == 1);
    CHECK(reading.take(response("200", "x")) == 0);  // and that is its end
}

TEST_CASE("responses are counted when they are whole") {
    const std::string all = response("200", "hello") + response("200", "world") + response("200", "third");
    for (std::size_t cut = 0; cut <= all.size(); ++cut) {
        Reading reading;
        const std::size_t first = reading.take(std::string_view(all).substr(0, cut));
        CHECK(first == cut / (all.size() / 3));
        CHECK(reading.reader.is_between_responses() == (cut % (all.size() / 3) == 0));
        CHECK(first + reading.take(std::string_view(all).substr(cut)) == 3);
        CHECK(reading.reader.is_between_responses());
        CHECK(reading.tally.sum() == 0);
    }
}

TEST_CASE("heads that differ are read again, in pieces of any size") {
    std::mt19937_64 random(test_seed());
    for (int turn = 0; turn < 200; ++turn) {
        std::string all;
        std::size_t count = 0;
        for (; count < 20; ++count) {
            const std::string date = "Date: " + std::to_string(random() % 3) + "\r\n";
            all += response("200", "12345", date);
        }
        Reading reading;
        std::size_t ended = 0;
        for (std::string_view rest = all; !rest.empty();) {
            const std::size_t size = 1 + random() % (random() % 2 == 0 ? 5 : 200);
            ended += reading.take(rest.substr(0, size));
            rest.remove_prefix(std::min(size, rest.size()));
        }
        CHECK(ended == count);
        CHECK(reading.tally.sum() == 0);
    }
}

TEST_CASE("two connections share what is known and nothing else") {
    Reading reading;
    ResponseReader other(reading.shape);
    const std::string bytes = response("200", "hello");
    CHECK(reading.take(bytes.substr(0, 10)) == 0);
    CHECK(other.take(bytes, reading.tally) == 1);
    CHECK(reading.take(bytes.substr(10)) == 1);
    CHECK(reading.tally.sum() == 0);
}

TEST_CASE("another status is counted, and its response is passed over") {
    Reading reading;
    CHECK(reading.take(response("404", "not here") + response("200", "hello") + response("500", "")) == 3);
    CHECK(reading.tally.wrong_status == 2);
    CHECK(reading.tally.sum() == 2);
    CHECK_FALSE(reading.reader.has_failed());
}

TEST_CASE("another length is counted") {
    Reading by_first;
    CHECK(by_first.take(response("200", "hello") + response("200", "hell") + response("200", "hello")) == 3);
    CHECK(by_first.tally.wrong_length == 1);
    Reading given(4);
    CHECK(given.take(response("200", "hello") + response("200", "hell")) == 2);
    CHECK(given.tally.wrong_length == 1);
    CHECK(given.tally.sum() == 1);
}

TEST_CASE("an empty body ends with its head") {
    Reading reading;
    CHECK(reading.take(response("200", "") + response("200", "")) == 2);
    CHECK(reading.tally.sum() == 0);
    Reading head_requests({}, true);
    CHECK(head_requests.take("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n") == 1);
    CHECK(head_requests.reader.is_between_responses());
    Reading no_content;
    CHECK(no_content.take("HTTP/1.1 204 No Content\r\n\r\n" + response("200", "x")) == 2);
    CHECK(no_content.tally.wrong_status == 1);
}

TEST_CASE("names of fields have no case, and values may have space around them") {
    Reading reading;
    CHECK(reading.take("HTTP/1.1 200 OK\r\ncONTENT-lENGTH: \t3 \r\nX: Content-Length: 9\r\n\r\nabc") == 1);
    CHECK(reading.tally.sum() == 0);
}

TEST_CASE("an announced end is told") {
    Reading reading;
    CHECK(reading.take(response("200", "hello", "connection:  Close\r\n")) == 1);
    CHECK(reading.reader.announces_end());
    reading.reader.reset();
    CHECK_FALSE(reading.reader.announces_end());
    CHECK(reading.take(response("200", "hello", "Connection: keep-alive\r\n")) == 1);
    CHECK_FALSE(reading.reader.announces_end());
}

TEST_CASE("what is no response ends the reading") {
    check_malformed("hello");
    check_malformed("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n");
    check_malformed("HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n");
    check_malformed("HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n");
    check_malformed("HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n");
    check_malformed("HTTP/1.1 20\r\n\r\n");
    check_malformed("HTTP/1.1 200 OK\r\n\r\n");
    check_malformed("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n");
    check_malformed("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n");
    check_malformed("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n");
    check_malformed("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n");
    check_malformed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    check_malformed("HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x'));
    check_malformed("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n");
}

TEST_CASE("bytes behind a response are the beginning of one that nobody may have asked for") {
    Reading reading;
    CHECK(reading.take(response("200", "hello") + "H") == 1);
    CHECK_FALSE(reading.reader.is_between_responses());
    CHECK(reading.take("!") == 0);
    CHECK(reading.tally.malformed == 1);
    reading.reader.reset();
    CHECK(reading.reader.is_between_responses());
    CHECK(reading.take(response("200", "hello")) == 1);
}

}  // namespace

}  // namespace penstock::load

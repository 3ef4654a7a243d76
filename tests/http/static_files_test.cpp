// Files asked for in parts, under conditions and with codings (RFC 9110 §§12 to 15): what bytes alone can show.
#include "http/static_cases.h"

namespace penstock::test {
namespace {

using Kind = DiskEntry::Kind;

// A case of one request for a file that stays on its connection.
Case asking(std::string name, std::string_view target, std::string_view fields, std::string status, std::string contains,
            std::string lacks = "") {
    return {std::move(name), get(target, fields), std::move(status), Ending::stays, std::move(contains), std::move(lacks)};
}

Case asking_head(std::string name, std::string_view target, std::string_view fields, std::string status, std::string contains,
                 std::string lacks = "") {
    Case made = asking(std::move(name), target, fields, std::move(status), std::move(contains), std::move(lacks));
    made.request.replace(0, 3, "HEAD");
    made.heads = 1;
    return made;
}

std::string body(std::string_view text) { return "\r\n\r\n" + std::string(text); }

const std::string kWhole = body(kLetters);

Disk letters_disk() {
    return {.entries = {
                {Kind::file, "site/f.txt", std::string(kLetters)},
                {Kind::file, "site/empty.txt"},
                {Kind::file, "site/large.bin", std::string(70'000, 'l')},
                {Kind::file, "secret.txt", std::string(kSecret)},
            }};
}

}  // namespace

TEST_CASE("a part of a file, or the file (RFC 9110 §14)") {
    const auto ranges = [](std::string_view value) { return "Range: " + std::string(value) + "\r\n"; };
    std::string many = "bytes=0-";
    for (int i = 1; i < 200; ++i) {
        many += ",0-";
    }
    const std::string no_part = "Content-Range";
    const Case cases[] = {
        asking("the first byte", "/f.txt", ranges("bytes=0-0"), "206", body("a")),
        asking("the last byte", "/f.txt", ranges("bytes=25-25"), "206", "Content-Range: bytes 25-25/26\r\n"),
        asking("the middle", "/f.txt", ranges("bytes=5-9"), "206", body("fghij")),
        asking("an end beyond the file", "/f.txt", ranges("bytes=20-99"), "206", "Content-Range: bytes 20-25/26\r\n"),
        asking("a suffix", "/f.txt", ranges("bytes=-3"), "206", body("xyz")),
        asking("a suffix longer than the file", "/f.txt", ranges("bytes=-9999"), "200", kWhole, no_part),
        asking("a number beyond 64 bits", "/f.txt", ranges("bytes=0-99999999999999999999"), "200", kWhole, no_part),
        asking("a first byte beyond 64 bits", "/f.txt", ranges("bytes=99999999999999999999-"), "416",
               "Content-Range: bytes */26\r\n"),
        asking("behind the end", "/f.txt", ranges("bytes=26-"), "416", "Content-Range: bytes */26\r\n"),
        asking("a suffix of nothing", "/f.txt", ranges("bytes=-0"), "416", "Content-Range: bytes */26\r\n"),
        asking("backwards", "/f.txt", ranges("bytes=5-2"), "200", kWhole, no_part),
        asking("a negative number", "/f.txt", ranges("bytes=--1"), "200", kWhole, no_part),
        asking("no numbers", "/f.txt", ranges("bytes=-"), "200", kWhole, no_part),
        asking("another unit", "/f.txt", ranges("items=0-5"), "200", kWhole, no_part),
        asking("no unit", "/f.txt", ranges("0-5"), "200", kWhole, no_part),
        asking("the unit in another letter case", "/f.txt", ranges("Bytes=0-0"), "206", body("a")),
        asking("200 overlapping ranges do not multiply the file", "/f.txt", ranges(many), "200", kWhole, no_part),
        asking("ranges that meet are one", "/f.txt", ranges("bytes=0-1, 2-3"), "206", body("abcd")),
        asking("ranges that overlap are one", "/f.txt", ranges("bytes=0-5,3-7"), "206", body("abcdefgh")),
        asking("one of two is behind the end", "/f.txt", ranges("bytes=3-4,99-"), "206", body("de")),
        asking("an empty file has no parts", "/empty.txt", ranges("bytes=0-0"), "200", body(""), no_part),
        asking("a part that is sent by the kernel", "/large.bin", ranges("bytes=10000-49999"), "206",
               "Content-Range: bytes 10000-49999/70000\r\n"),
        asking("no file", "/none", ranges("bytes=0-0"), "404", body("Not Found"), no_part),
        asking_head("HEAD knows no parts", "/f.txt", ranges("bytes=0-0"), "200", "Content-Length: 26\r\n", no_part),
        {"POST knows no parts", post("Content-Length: 5\r\nRange: bytes=0-1\r\n", "hello"), "200", Ending::stays,
         kWhole, no_part},
    };
    Disk disk = letters_disk();
    disk.entries.push_back({Kind::file, "site/echo", std::string(kLetters)});
    run_static_cases(disk, cases);
}

TEST_CASE("several parts of a file, none of them twice (RFC 9110 §14.6)") {
    const auto ranges = [](std::string_view value) { return "Range: bytes=" + std::string(value) + "\r\n"; };
    const auto part = [](std::string_view range, std::string_view bytes) {
        return "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes " + std::string(range) + "/26\r\n\r\n" +
               std::string(bytes) + "\r\n--";
    };
    std::string sixteen = "0-0";
    for (int i = 1; i < 13; ++i) {
        sixteen += "," + std::to_string(2 * i) + "-" + std::to_string(2 * i);
    }
    const std::string multipart = "Content-Type: multipart/byteranges; boundary=";
    const Case cases[] = {
        asking("two, the first", "/f.txt", ranges("0-4,10-12"), "206", part("0-4", "abcde")),
        asking("two, the second", "/f.txt", ranges("0-4,10-12"), "206", part("10-12", "klm")),
        asking("in the order asked for", "/f.txt", ranges("10-12,0-4"), "206", multipart),
        asking("a suffix among them", "/f.txt", ranges("0-0,-2"), "206", part("24-25", "yz")),
        asking("two that overlap, and one more", "/f.txt", ranges("0-4,3-7,20-"), "206", part("0-7", "abcdefgh")),
        asking("one behind the end is left out", "/f.txt", ranges("0-0,5-6,99-"), "206", part("5-6", "fg")),
        asking("every second byte", "/f.txt", ranges(sixteen), "206", part("24-24", "y")),
        asking("more than are taken", "/f.txt", ranges(sixteen + ",1-1,3-3,5-5,7-7"), "200", kWhole, "Content-Range"),
        asking("all behind the end", "/f.txt", ranges("26-,30-40"), "416", "Content-Range: bytes */26\r\n"),
        asking("one of them is none", "/f.txt", ranges("0-0,5-2"), "200", kWhole, "Content-Range"),
        asking("empty elements", "/f.txt", ranges(", 0-0,, 5-5 ,"), "206", part("5-5", "f")),
        {"several, and the whole behind them", get("/f.txt", ranges("0-4,10-12")) + get("/f.txt"), "206 200", Ending::stays, kWhole},
    };
    run_static_cases(letters_disk(), cases);
}

TEST_CASE("Range means nothing with POST") {
    const Case cases[] = {
        {"the whole body comes back", post("Content-Length: 5\r\nRange: bytes=0-1\r\n", "hello"), "200", Ending::stays,
         body("hello"), "Content-Range"},
    };
    run_cases(cases);
}

TEST_CASE("a file under conditions, of which the tag counts before the date (RFC 9110 §13)") {
    const std::string date = "Last-Modified: " + std::string(kFileDate) + "\r\n";
    const std::string since = "If-Modified-Since: ";
    const std::string unless = "If-Unmodified-Since: ";
    const std::string at = std::string(kFileDate) + "\r\n";
    const std::string future = "Fri, 01 Jan 2100 00:00:00 GMT\r\n";
    const std::string past = "Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    const std::string tag_field = "ETag: {tag}\r\n";
    const std::string no_length = "Content-Length";
    const Case cases[] = {
        asking("no condition", "/f.txt", "", "200", date),
        asking("its tag", "/f.txt", "If-None-Match: {tag}\r\n", "304", tag_field, no_length),
        asking("its tag, compared weakly", "/f.txt", "If-None-Match: W/{tag}\r\n", "304", tag_field, no_length),
        asking("its tag in a list", "/f.txt", "If-None-Match: \"a\", \"b\" ,{tag}\r\n", "304", tag_field, no_length),
        asking("its tag in a second field", "/f.txt", "If-None-Match: \"a\"\r\nIf-None-Match: {tag}\r\n", "304", tag_field,
               no_length),
        asking("any tag", "/f.txt", "If-None-Match: *\r\n", "304", tag_field, no_length),
        asking("another tag", "/f.txt", "If-None-Match: \"nope\"\r\n", "200", kWhole),
        asking("another tag, and a date that would do", "/f.txt", "If-None-Match: \"nope\"\r\n" + since + future, "200", kWhole),
        asking("its tag, and a date that would not do", "/f.txt", "If-None-Match: {tag}\r\n" + since + past, "304", tag_field,
               no_length),
        asking("since its date", "/f.txt", since + at, "304", tag_field, no_length),
        asking("since before", "/f.txt", since + past, "200", kWhole),
        asking("since a date in the older form", "/f.txt", since + "Saturday, 05-Nov-94 08:49:37 GMT\r\n", "304", tag_field,
               no_length),
        asking("since a date in C's form", "/f.txt", since + "Sat Nov  5 08:49:37 1994\r\n", "304", tag_field, no_length),
        asking("since no date", "/f.txt", since + "yesterday\r\n", "200", kWhole),
        asking("if it is this one", "/f.txt", "If-Match: {tag}\r\n", "200", kWhole),
        asking("if there is any", "/f.txt", "If-Match: *\r\n", "200", kWhole),
        asking("if it is another", "/f.txt", "If-Match: \"nope\"\r\n", "412", "\r\n\r\n"),
        asking("if it is this one, which a weak tag cannot say", "/f.txt", "If-Match: W/{tag}\r\n", "412", "\r\n\r\n"),
        asking("if it is this one, and a date that would not do", "/f.txt", "If-Match: {tag}\r\n" + unless + past, "200", kWhole),
        asking("unless since its date", "/f.txt", unless + at, "200", kWhole),
        asking("unless since before", "/f.txt", unless + past, "412", "\r\n\r\n"),
        asking("if it is this one and not this one", "/f.txt", "If-Match: {tag}\r\nIf-None-Match: {tag}\r\n", "304", tag_field,
               no_length),
        asking("no file has no tag", "/none", "If-None-Match: *\r\n", "404", body("Not Found")),
        asking("a condition counts before a part", "/f.txt", "If-None-Match: {tag}\r\nRange: bytes=0-0\r\n", "304", tag_field,
               "Content-Range"),
        asking_head("HEAD", "/f.txt", "", "200", "Content-Length: 26\r\n"),
        asking_head("HEAD under a condition", "/f.txt", "If-None-Match: {tag}\r\n", "304", tag_field, no_length),
    };
    run_static_cases(letters_disk(), cases);
}

TEST_CASE("a part if it is still the same file (RFC 9110 §13.1.5)") {
    const std::string range = "Range: bytes=0-1\r\nIf-Range: ";
    const Case cases[] = {
        asking("its tag", "/f.txt", range + "{tag}\r\n", "206", body("ab")),
        asking("a weak tag", "/f.txt", range + "W/{tag}\r\n", "200", kWhole, "Content-Range"),
        asking("another tag", "/f.txt", range + "\"nope\"\r\n", "200", kWhole, "Content-Range"),
        asking("its date", "/f.txt", range + std::string(kFileDate) + "\r\n", "206", body("ab")),
        asking("a later date", "/f.txt", range + "Sun, 06 Nov 1994 08:49:37 GMT\r\n", "200", kWhole, "Content-Range"),
        asking("no date", "/f.txt", range + "soon\r\n", "200", kWhole, "Content-Range"),
        asking("without a range it means nothing", "/f.txt", "If-Range: \"nope\"\r\n", "200", kWhole),
        asking("another tag, and a range behind the end", "/f.txt", "Range: bytes=26-\r\nIf-Range: \"nope\"\r\n", "200", kWhole),
    };
    run_static_cases(letters_disk(), cases);
}

TEST_CASE("a coding only where it is accepted (RFC 9110 §12.5.3)") {
    Disk disk = letters_disk();
    disk.options.precompressed = true;
    for (const char* const suffix : {".gz", ".br", ".zst"}) {
        disk.entries.push_back({Kind::file, "site/f.txt" + std::string(suffix), "it is " + std::string(suffix)});
    }
    disk.entries.push_back({Kind::file, "site/g.txt", "plain"});
    disk.entries.push_back({Kind::link, "site/g.txt.gz", "../secret.txt"});
    const auto accept = [](std::string_view value) { return "Accept-Encoding: " + std::string(value) + "\r\n"; };
    const std::string varies = "Vary: Accept-Encoding\r\n";
    const std::string coded = "Content-Encoding";
    const Case cases[] = {
        asking("gzip", "/f.txt", accept("gzip"), "200", "Content-Encoding: gzip\r\n"),
        asking("gzip by its other name", "/f.txt", accept("x-gzip"), "200", body("it is .gz")),
        asking("Brotli", "/f.txt", accept("gzip, br"), "200", body("it is .br")),
        asking("Zstandard", "/f.txt", accept("gzip;q=0.5, zstd"), "200", body("it is .zst")),
        asking("any", "/f.txt", accept("*"), "200", body("it is .br")),
        asking("gzip is forbidden", "/f.txt", accept("gzip;q=0"), "200", kWhole, coded),
        asking("gzip is forbidden, and varies", "/f.txt", accept("gzip;q=0"), "200", varies, coded),
        asking("gzip is forbidden in more digits", "/f.txt", accept("gzip;q=0.000"), "200", kWhole, coded),
        asking("all but gzip", "/f.txt", accept("gzip;q=0, *;q=0.1"), "200", body("it is .br")),
        asking("nothing is said", "/f.txt", "", "200", kWhole, coded),
        asking("nothing is said, and it varies", "/f.txt", "", "200", varies, coded),
        asking("nothing but identity", "/f.txt", accept("identity"), "200", kWhole, coded),
        asking("an empty field", "/f.txt", accept(""), "200", kWhole, coded),
        asking("unknown ones", "/f.txt", accept("compress, exi"), "200", kWhole, coded),
        asking("a longer name", "/f.txt", accept("gzipped"), "200", kWhole, coded),
        asking("identity is forbidden too", "/f.txt", accept("*;q=0"), "200", kWhole, coded),
        asking("the tag is of the file that is sent", "/f.txt", accept("gzip") + "If-None-Match: {tag}\r\n", "200",
               body("it is .gz")),
        asking("a part is of the file that is sent", "/f.txt", accept("gzip") + "Range: bytes=6-8\r\n", "206", body(".gz")),
        asking("a file beside it that lies outside", "/g.txt", accept("gzip"), "200", body("plain"), coded),
        asking_head("HEAD", "/f.txt", accept("gzip"), "200", "Content-Length: 9\r\n"),
    };
    run_static_cases(disk, cases);
    const Case without[] = {
        asking("the file alone", "/f.txt", accept("gzip, br, zstd"), "200", kWhole, coded),
    };
    run_static_cases(letters_disk(), without);
}

TEST_CASE("whole files, one behind the other") {
    const std::string whole = get("/f.txt");
    const Case cases[] = {
        {"three files", whole + get("/empty.txt") + get("/large.bin"), "200 200 200", Ending::stays, kWhole},
        {"a file and its end", get("/large.bin") + get("/f.txt", "Connection: close\r\n"), "200 200",
         Ending::closes_as_asked, kWhole},
        {"a part and the whole", get("/large.bin", "Range: bytes=0-39999\r\n") + whole, "206 200", Ending::stays, kWhole},
        {"what is not there stays in step", get("/none") + get("/f.txt", "If-None-Match: {tag}\r\n") + whole, "404 304 200",
         Ending::stays, kWhole},
        {"a body is read past", "GET /f.txt HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello" + whole, "200 200",
         Ending::stays, kWhole},
        {"HTTP/1.0", "GET /f.txt HTTP/1.0\r\nHost: t\r\n\r\n", "200", Ending::closes, kWhole, "chunked"},
    };
    run_static_cases(letters_disk(), cases);
}

}  // namespace penstock::test

#include "penstock/protocols/http/target.h"

#include <cstddef>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "penstock/engine/arena.h"
#include "penstock/engine/block_pool.h"

using namespace penstock;
using namespace std::string_view_literals;

namespace {

struct LeasedPage {
    explicit LeasedPage(BlockPool& from) : pool(from), bytes(from.try_acquire()) {}
    ~LeasedPage() { pool.release(bytes); }
    LeasedPage(const LeasedPage&) = delete;
    LeasedPage& operator=(const LeasedPage&) = delete;

    BlockPool& pool;
    std::byte* bytes;
};

// An exchange's memory without the exchange. The arena goes before its first page.
struct Memory {
    BlockPool pages{4096, 8, 8};
    LeasedPage first_page{pages};
    Arena arena{pages, first_page.bytes, 0};
};

struct Parsed {
    TargetError error;
    Target target;
};

// `memory` must outlive what is returned.
Parsed parse(Memory& memory, std::string_view text, bool is_connect = false, bool is_options = false) {
    Parsed parsed{};
    parsed.error = parse_target(text, is_connect, is_options, memory.arena, &parsed.target);
    return parsed;
}

bool points_into(std::string_view piece, std::string_view whole) {
    return piece.data() >= whole.data() && piece.data() + piece.size() <= whole.data() + whole.size();
}

}  // namespace

TEST_CASE("a path with nothing to decode is a view of the target") {
    for (const std::string_view text :
         {"/"sv, "/index.html"sv, "/a/b/c"sv, "/a//b"sv, "//"sv, "//host/path"sv, "/a/"sv, "/a.b"sv,
          "/~user/x;y=1,2"sv, "/a..b"sv, "/a./b"sv, "/x:y@z!$&'()*+=-_"sv, "/|\\^`{}\"<>[]"sv}) {
        CAPTURE(text);
        Memory memory;
        const Parsed parsed = parse(memory, text);
        REQUIRE(parsed.error == TargetError::none);
        CHECK(parsed.target.form == TargetForm::origin);
        CHECK(parsed.target.path == text);
        CHECK(parsed.target.path.data() == text.data());
        CHECK(parsed.target.raw_path == text);
        CHECK(parsed.target.query.empty());
        CHECK(parsed.target.authority.empty());
    }
}

namespace {

struct DecodedPath {
    std::string_view target;
    std::string_view path;
};

constexpr DecodedPath kDecodedPaths[] = {
    {"/a%20b", "/a b"},
    {"/%41%5a%7A", "/AZz"},
    {"/caf%C3%A9", "/caf\xC3\xA9"},
    {"/%ff%0a%09%7f", "/\xFF\n\t\x7F"},
    {"/%2541", "/%41"},
    {"/100%25", "/100%"},
    {"/a%3Fb%23c", "/a?b#c"},
    {"/a+b%2B", "/a+b+"},
    {"/a%2Fb", "/a\0b"sv},
    {"/a%2fb/c", "/a\0b/c"sv},
    {"/%2F", "/\0"sv},
    {"/a%5Cb", "/a\\b"},
    {"/.", "/"},
    {"/./", "/"},
    {"/a/.", "/a/"},
    {"/a/./", "/a/"},
    {"/a/./b", "/a/b"},
    {"/a/..", "/"},
    {"/a/../", "/"},
    {"/a/../b", "/b"},
    {"/a/b/..", "/a/"},
    {"/a/b/../", "/a/"},
    {"/a/b/../../c/./d/..", "/c/"},
    {"/a/b/c/./../../g", "/a/g"},
    {"//..", "/"},
    {"//../a", "/a"},
    {"/a//../b", "/a/b"},
    {"/a//..//b", "/a//b"},
    {"/a/b//", "/a/b//"},
    {"/./a//", "/a//"},
    {"/%2e", "/"},
    {"/%2E/a", "/a"},
    {"/a/%2e%2E/b", "/b"},
    {"/a/.%2e/b", "/b"},
    {"/a/%2e./b", "/b"},
    {"/a/%252e%252e/b", "/a/%2e%2e/b"},
    {"/...", "/..."},
    {"/.../a", "/.../a"},
    {"/.well-known/acme", "/.well-known/acme"},
    {"/a/..b/.c/..d..", "/a/..b/.c/..d.."},
    {"/a/..%2fb", "/a/..\0b"sv},
    {"/..%2f..%2fetc", "/..\0..\0etc"sv},
    {"/a/..;x=1/b", "/a/..;x=1/b"},
};

}  // namespace

TEST_CASE("paths are decoded and resolved once") {
    for (const DecodedPath& test : kDecodedPaths) {
        CAPTURE(test.target);
        Memory memory;
        const Parsed parsed = parse(memory, test.target);
        REQUIRE(parsed.error == TargetError::none);
        CHECK(parsed.target.path == test.path);
        CHECK(parsed.target.raw_path == test.target);
    }
}

TEST_CASE("a path that climbs above the root is refused, however it is written") {
    for (const std::string_view text :
         {"/..", "/../", "/../a", "/a/../..", "/a/../../b", "/%2e%2e", "/%2E./x", "/.%2e", "/./..",
          "/a/./../..", "//../..", "/a/b/../../..", "/%2e%2e/%2e%2e/etc/passwd"}) {
        CAPTURE(text);
        Memory memory;
        CHECK(parse(memory, text).error == TargetError::malformed);
    }
}

TEST_CASE("what no target may hold") {
    for (const std::string_view text :
         {""sv,           " "sv,           "a"sv,          "a/b"sv,       "*"sv,
          "**"sv,         "?"sv,           "?a"sv,         "/a b"sv,      "/a\tb"sv,
          "/a\nb"sv,      "/a\0b"sv,       "/a\x7F"sv,     "/\x80"sv,     "/caf\xC3\xA9"sv,
          "/#"sv,         "/a#b"sv,        "/a?b#c"sv,     "/a?b c"sv,    "/a?\xC3\xA9"sv,
          "/a?b\x7F"sv,   "/a?\0"sv,       "/%"sv,         "/%4"sv,       "/%4/"sv,
          "/%zz"sv,       "/%4g"sv,        "/%g4"sv,       "/% 41"sv,     "/%%41"sv,
          "/a/%2"sv,      "/%00"sv,        "/a%00b"sv,     "/%u0041"sv,   "/%-1"sv,
          "/%+1"sv,       "/%2/F"sv,       "/%?41"sv,      "./a"sv,       "../a"sv,
          "host:80"sv,    "ftp://host/"sv, "http:/host"sv, "http:host"sv, "://host"sv,
          "file:///etc"sv}) {
        CAPTURE(text);
        Memory memory;
        CHECK(parse(memory, text).error == TargetError::malformed);
    }
}

TEST_CASE("every byte alone in a path and in a query") {
    for (int byte = 0; byte < 256; ++byte) {
        CAPTURE(byte);
        Memory memory;
        const bool is_visible = byte > 0x20 && byte < 0x7F && byte != '#';
        const std::string in_path = std::string("/a") + static_cast<char>(byte) + "b";
        CHECK((parse(memory, in_path).error == TargetError::none) == (is_visible && byte != '%'));
        const std::string in_query = std::string("/?a") + static_cast<char>(byte) + "b";
        CHECK((parse(memory, in_query).error == TargetError::none) == is_visible);
    }
}

TEST_CASE("the query is what follows the first question mark, as sent") {
    struct {
        std::string_view target;
        std::string_view path;
        std::string_view query;
    } const cases[] = {
        {"/?", "/", ""},
        {"/?a=1", "/", "a=1"},
        {"/a?b?c", "/a", "b?c"},
        {"/a?/../..", "/a", "/../.."},
        {"/a%20b?c%20d", "/a b", "c%20d"},
        {"/a/?%00%zz%", "/a/", "%00%zz%"},
        {"/search?q=100%", "/search", "q=100%"},
        {"/a?b=http://x/y", "/a", "b=http://x/y"},
    };
    for (const auto& test : cases) {
        CAPTURE(test.target);
        Memory memory;
        const Parsed parsed = parse(memory, test.target);
        REQUIRE(parsed.error == TargetError::none);
        CHECK(parsed.target.path == test.path);
        CHECK(parsed.target.query == test.query);
        CHECK(points_into(parsed.target.query, test.target));
    }
}

TEST_CASE("the absolute form") {
    struct {
        std::string_view target;
        std::string_view authority;
        std::string_view raw_path;
        std::string_view path;
        std::string_view query;
    } const cases[] = {
        {"http://example.org", "example.org", "/", "/", ""},
        {"http://example.org/", "example.org", "/", "/", ""},
        {"HTTP://Example.ORG/a", "Example.ORG", "/a", "/a", ""},
        {"https://example.org:8443/a/b?c", "example.org:8443", "/a/b", "/a/b", "c"},
        {"hTTpS://h/a/%2e%2e/b", "h", "/a/%2e%2e/b", "/b", ""},
        {"http://example.org?a=1", "example.org", "/", "/", "a=1"},
        {"http://example.org:", "example.org:", "/", "/", ""},
        {"http://[::1]:80//x", "[::1]:80", "//x", "//x", ""},
        {"http://127.0.0.1/x", "127.0.0.1", "/x", "/x", ""},
    };
    for (const auto& test : cases) {
        CAPTURE(test.target);
        Memory memory;
        const Parsed parsed = parse(memory, test.target);
        REQUIRE(parsed.error == TargetError::none);
        CHECK(parsed.target.form == TargetForm::absolute);
        CHECK(parsed.target.authority == test.authority);
        CHECK(parsed.target.raw_path == test.raw_path);
        CHECK(parsed.target.path == test.path);
        CHECK(parsed.target.query == test.query);
    }
}

TEST_CASE("absolute forms that are refused") {
    for (const std::string_view text : {"http://",
                                        "http:///a",
                                        "http://?a",
                                        "http://:80/",
                                        "http://user@host/",
                                        "http://user:pw@host/",
                                        "http://host:99999/",
                                        "http://host:8x/",
                                        "http://a b/",
                                        "http://[::1/",
                                        "http://[::1]x/",
                                        "http://host#a",
                                        "http://host/#a",
                                        "http://host/..",
                                        "http://host/%00",
                                        "httpx://host/",
                                        "http//host/",
                                        "http://h\\x/",
                                        "http://\xC3\xA9/",
                                        "https:/h/",
                                        "ws://host/"}) {
        CAPTURE(text);
        Memory memory;
        CHECK(parse(memory, text).error == TargetError::malformed);
    }
}

TEST_CASE("the asterisk is for OPTIONS alone") {
    Memory memory;
    const Parsed parsed = parse(memory, "*", false, true);
    REQUIRE(parsed.error == TargetError::none);
    CHECK(parsed.target.form == TargetForm::asterisk);
    CHECK(parsed.target.raw_path == "*");
    CHECK(parsed.target.path.empty());
    CHECK(parse(memory, "*", false, false).error == TargetError::malformed);
    CHECK(parse(memory, "*", true, false).error == TargetError::malformed);
    CHECK(parse(memory, "*a", false, true).error == TargetError::malformed);
    CHECK(parse(memory, "/a", false, true).target.path == "/a");
}

TEST_CASE("CONNECT takes a host with a port and nothing else") {
    Memory memory;
    for (const std::string_view text : {"example.org:443", "127.0.0.1:80", "[2001:db8::1]:8080"}) {
        CAPTURE(text);
        const Parsed parsed = parse(memory, text, true);
        REQUIRE(parsed.error == TargetError::none);
        CHECK(parsed.target.form == TargetForm::authority);
        CHECK(parsed.target.authority == text);
        CHECK(parsed.target.path.empty());
        CHECK(parse(memory, text).error == TargetError::malformed);
    }
    for (const std::string_view text :
         {"", "example.org", "example.org:", "example.org:0", ":443", "a:1:2", "/a", "http://example.org/",
          "example.org:443/", "u@example.org:443", "example.org:65536", "example.org:443?a", "[::1]"}) {
        CAPTURE(text);
        CHECK(parse(memory, text, true).error == TargetError::malformed);
    }
}

TEST_CASE("a path that must be decoded without memory is told apart from a bad one") {
    BlockPool pages(4096, 1, 1);
    const LeasedPage page(pages);
    Arena arena(pages, page.bytes, 4096);
    Target target;
    CHECK(parse_target("/a%20b", false, false, arena, &target) == TargetError::no_memory);
    CHECK(parse_target("/a", false, false, arena, &target) == TargetError::none);
    CHECK(percent_decode("a%20b", false, arena).data() == nullptr);
    CHECK(percent_decode("a", false, arena) == "a");
}

TEST_CASE("percent decoding of query pieces") {
    struct {
        std::string_view text;
        bool plus_is_space;
        std::string_view decoded;
    } const cases[] = {
        {"", true, ""},
        {"abc", true, "abc"},
        {"a+b", true, "a b"},
        {"a+b", false, "a+b"},
        {"+", true, " "},
        {"%2B+%2b", true, "+ +"},
        {"a%20b%2Fc", false, "a b/c"},
        {"%00", false, "\0"sv},
        {"%25%32%35", false, "%25"},
        {"x%C3%A9", true, "x\xC3\xA9"},
    };
    for (const auto& test : cases) {
        CAPTURE(test.text);
        Memory memory;
        const std::string_view decoded = percent_decode(test.text, test.plus_is_space, memory.arena);
        REQUIRE(decoded.data() != nullptr);
        CHECK(decoded == test.decoded);
    }
    Memory memory;
    const std::string_view plain = "plain";
    CHECK(percent_decode(plain, true, memory.arena).data() == plain.data());
    CHECK(percent_decode({}, true, memory.arena).data() != nullptr);
    for (const std::string_view text : {"%", "a%", "%4", "%4g", "%zz", "a+%", "%%41", "abc%2"}) {
        CAPTURE(text);
        CHECK(percent_decode(text, true, memory.arena).data() == nullptr);
        CHECK(percent_decode(text, false, memory.arena).data() == nullptr);
    }
}

constexpr std::string_view kValidHosts[] = {
    "",
    "a",
    "localhost",
    "example.org",
    "EXAMPLE.org.",
    "example.org:80",
    "example.org:",
    "example.org:0",
    "example.org:65535",
    "example.org:0000000000080",
    ":80",
    ":",
    "127.0.0.1",
    "127.0.0.1:8080",
    "999.1.2.3",
    "a_b.c~d-e",
    "!$&'()*+,;=",
    "caf%C3%A9.example",
    "a%2fb",
    "xn--caf-dma.example:1",
    "[::]",
    "[::]:80",
    "[::]:",
    "[::1]",
    "[1::]",
    "[1:2:3:4:5:6:7:8]",
    "[1:2:3:4:5:6:7::]",
    "[::2:3:4:5:6:7:8]",
    "[1::3:4:5:6:7:8]",
    "[1:2::8]",
    "[2001:DB8::aBcD]",
    "[0000:0000::]",
    "[::1.2.3.4]",
    "[::ffff:255.255.255.255]",
    "[1:2:3:4:5:6:0.0.0.0]",
    "[1:2:3:4:5::1.2.3.4]",
    "[64:ff9b::192.0.2.33]:443",
    "[v1.a]",
    "[vF0.a:b!c]",
    "[V1.:]:80",
};

TEST_CASE("hosts that are valid") {
    for (const std::string_view text : kValidHosts) {
        CAPTURE(text);
        CHECK(is_valid_host(text));
    }
}

constexpr std::string_view kRefusedHosts[] = {
    " ",
    " a",
    "a ",
    "a b",
    "a\t",
    "a\r",
    "a/b",
    "/",
    "a?b",
    "a#b",
    "user@a",
    "user:pw@a",
    "@",
    "a\\b",
    "a\"b",
    "\"a\"",
    "<a>",
    "a^b",
    "a|b",
    "{a}",
    "a`b",
    "a,b c",
    "caf\xC3\xA9",
    "a\x7F",
    "a%",
    "a%4",
    "a%zz",
    "a:b",
    "a:1:2",
    "a::",
    "a:-1",
    "a:+1",
    "a: 1",
    "a:1 ",
    "a:65536",
    "a:99999999999999999999",
    "a:0x50",
    "::1",
    "1:2:3:4:5:6:7:8",
    "[",
    "]",
    "[]",
    "[:]",
    "[::1",
    "::1]",
    "[::1]]",
    "[[::1]]",
    "[::1]a",
    "[::1]80",
    "[::1]:a",
    "[::1]:80:80",
    "[::1]:65536",
    "a[::1]",
    "[:::]",
    "[1:::2]",
    "[1::2::3]",
    "[::1::]",
    "[1:2:3:4:5:6:7]",
    "[1:2:3:4:5:6:7:8:9]",
    "[1:2:3:4:5:6:7:8::]",
    "[::1:2:3:4:5:6:7:8]",
    "[1:2:3:4::5:6:7:8]",
    "[:1:2:3:4:5:6:7]",
    "[1:2:3:4:5:6:7:]",
    "[1:]",
    "[::1:]",
    "[12345::]",
    "[g::]",
    "[ ::1]",
    "[::1.2.3]",
    "[::1.2.3.4.5]",
    "[::1.2.3.256]",
    "[::1.2.3.04]",
    "[::1.2.3.]",
    "[::1..3.4]",
    "[::1.2.3.4:5]",
    "[1.2.3.4::]",
    "[1.2.3.4]",
    "[1:2:3:4:5:6:7:1.2.3.4]",
    "[1:2:3:4:5:1.2.3.4]",
    "[fe80::1%eth0]",
    "[fe80::1%25eth0]",
    "[v.a]",
    "[v1.]",
    "[v1]",
    "[vg.a]",
    "[v1.a/b]",
    "[x1.a]",
};

TEST_CASE("hosts that are refused") {
    for (const std::string_view text : kRefusedHosts) {
        CAPTURE(text);
        CHECK_FALSE(is_valid_host(text));
    }
    CHECK_FALSE(is_valid_host("a\0b"sv));
}

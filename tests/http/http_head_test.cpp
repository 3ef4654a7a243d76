// What a request line and fields may be (RFC 9112 §2 to §5, RFC 9110 §5 and §7.2).
#include "http/http_cases.h"

namespace penstock::test {
namespace {

std::string with_line(std::string_view line, std::string_view end = "\r\n") {
    return std::string(line) + std::string(end) + "Host: t\r\n\r\n";
}

std::string with_field(std::string_view field) {
    return get("/value", std::string(field) + "\r\n");
}

std::string with_host(std::string_view host) {
    return "GET /host HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
}

std::string many_fields(std::size_t count) {
    std::string fields;
    for (std::size_t i = 0; i < count; ++i) {
        fields += "X-" + std::to_string(i) + ": " + std::to_string(i) + "\r\n";
    }
    return fields;
}

}  // namespace

TEST_CASE("a request line is method, space, target, space, version, CRLF") {
    const Case cases[] = {
        {"plain", with_line("GET / HTTP/1.1"), "200", Ending::stays, "home"},
        {"query", with_line("GET /?a=b&c=%20d?e/f HTTP/1.1"), "200", Ending::stays, "home"},
        {"space in the target", with_line("GET /h i HTTP/1.1"), "400"},
        {"two spaces before the target", with_line("GET  / HTTP/1.1"), "400"},
        {"two spaces before the version", with_line("GET /  HTTP/1.1"), "400"},
        {"space at the end", with_line("GET / HTTP/1.1 "), "400"},
        {"space at the beginning", with_line(" GET / HTTP/1.1"), "400"},
        {"tab before the target", with_line("GET\t/ HTTP/1.1"), "400"},
        {"tab before the version", with_line("GET /\tHTTP/1.1"), "400"},
        {"form feed before the version", with_line("GET /\fHTTP/1.1"), "400"},
        {"no target", with_line("GET HTTP/1.1"), "400"},
        {"an empty target", with_line("GET  HTTP/1.1"), "400"},
        {"bare LF", with_line("GET / HTTP/1.1", "\n"), "400"},
        {"bare CR", with_line("GET / HTTP/1.1", "\r"), "400"},
        {"LF CR", with_line("GET / HTTP/1.1", "\n\r"), "400"},
        {"two CR", with_line("GET / HTTP/1.1", "\r\r\n"), "400"},
        {"bare CR before the version", with_line("GET /\rHTTP/1.1"), "400"},
        {"bare LF before the version", with_line("GET /\nHTTP/1.1"), "400"},
        {"bare LF behind the target, and a bad expectation later",
         "GET / HTTP/1.1\nHost: t\r\nExpect: nothing\r\n\r\n", "400"},
        {"NUL in the target", with_line(std::string_view("GET /\0 HTTP/1.1", 15)), "400"},
        {"DEL in the target", with_line("GET /\x7f HTTP/1.1"), "400"},
        {"obs-text in the target", with_line("GET /\xc3\xa4 HTTP/1.1"), "400"},
        {"fragment", with_line("GET /#top HTTP/1.1"), "400"},
        {"fragment behind a query", with_line("GET /?a#top HTTP/1.1"), "400"},
        {"no slash", with_line("GET index.html HTTP/1.1"), "400"},
        {"asterisk, which only OPTIONS may", with_line("GET * HTTP/1.1"), "400"},
        {"authority, which only CONNECT may", with_line("GET t:80 HTTP/1.1"), "400"},
        {"above the root", with_line("GET /../etc/passwd HTTP/1.1"), "400"},
        {"above the root, encoded", with_line("GET /%2e%2e/etc/passwd HTTP/1.1"), "400"},
        {"encoded NUL", with_line("GET /%00 HTTP/1.1"), "400"},
        {"a broken escape", with_line("GET /%2 HTTP/1.1"), "400"},
        {"no escape", with_line("GET /%zz HTTP/1.1"), "400"},
        {"TLS on a plain port", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), "400"},
    };
    run_cases(cases);
}

TEST_CASE("empty lines before a request are skipped") {
    const Case cases[] = {
        {"one", "\r\n" + get("/"), "200", Ending::stays, "home"},
        {"three", "\r\n\r\n\r\n" + get("/"), "200", Ending::stays, "home"},
        {"bare LF", "\n" + get("/"), "400"},
        {"bare CR", "\r" + get("/"), "400"},
        {"LF CR", "\n\r" + get("/"), "400"},
        {"space", "\r\n " + get("/"), "400"},
        {"bare CR before an unknown method", "\rFOO / HTTP/1.1\r\nHost: t\r\n\r\n", "400"},
    };
    run_cases(cases);
}

TEST_CASE("versions") {
    const Case cases[] = {
        {"HTTP/1.0 closes", "GET / HTTP/1.0\r\n\r\n", "200", Ending::closes, "Connection: close",
         "Transfer-Encoding"},
        {"HTTP/0.9", "GET /\r\n\r\n", "505"},
        {"HTTP/0.9 by name", with_line("GET / HTTP/0.9"), "505"},
        {"HTTP/1.2", with_line("GET / HTTP/1.2"), "505"},
        {"HTTP/2.0", with_line("GET / HTTP/2.0"), "505"},
        {"HTTP/3.0", with_line("GET / HTTP/3.0"), "505"},
        {"HTTP/01.01", with_line("GET / HTTP/01.01"), "505"},
        {"HTTP/1.10", with_line("GET / HTTP/1.10"), "400"},
        {"HTTP/1", with_line("GET / HTTP/1"), "400"},
        {"HTTP/1,1", with_line("GET / HTTP/1,1"), "400"},
        {"HTTP/", with_line("GET / HTTP/"), "505"},
        {"HTTP/1.1x", with_line("GET / HTTP/1.1x"), "400"},
        {"letters", with_line("GET / HTTP/a.b"), "505"},
        {"small letters", with_line("GET / http/1.1"), "400"},
        {"another protocol", with_line("GET / HTCPCP/1.1"), "400"},
        {"RTSP", with_line("OPTIONS * RTSP/1.0"), "400"},
        {"RTSP in a method of its own", with_line("PLAY / RTSP/1.0"), "400"},
        {"ICE", with_line("SOURCE / ICE/1.0"), "400"},
        {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
        {"half of that preface", "PRI * HTTP/2.0\r\nHost: t\r\n\r\n", "505"},
        {"less than half of it", "PRI * HTTP/2.0\r\n\r\n", "505"},
    };
    run_cases(cases);
}

TEST_CASE("methods") {
    const Case cases[] = {
        {"unknown", with_line("FOOBAR / HTTP/1.1"), "501"},
        {"unknown, one letter", with_line("X / HTTP/1.1"), "501"},
        {"a known one and more", with_line("GETS / HTTP/1.1"), "501"},
        {"a known one cut short", with_line("GE / HTTP/1.1"), "501"},
        {"small letters", with_line("get / HTTP/1.1"), "501"},
        {"all that a token may hold", with_line("!#$%&'*+-.^_`|~09azAZ / HTTP/1.1"), "501"},
        {"of WebDAV", with_line("PROPFIND / HTTP/1.1"), "501"},
        {"of RTSP", with_line("PLAY / HTTP/1.1"), "501"},
        {"long", with_line(std::string(63, 'X') + " / HTTP/1.1"), "501"},
        {"endless", std::string(64, 'X'), "501"},
        {"no token", with_line("FO(O / HTTP/1.1"), "400"},
        {"no token behind a known one", with_line("GET\"/ HTTP/1.1"), "400"},
        {"alone in its line", with_line("FOO"), "400"},
        {"known, alone in its line", with_line("GET"), "400"},
        {"NUL", with_line(std::string_view("GE\0T / HTTP/1.1", 15)), "400"},
        {"obs-text", with_line("G\xc4T / HTTP/1.1"), "400"},
        {"CONNECT", with_line("CONNECT t:443 HTTP/1.1"), "501"},
        {"TRACE, which `any` does not take", with_line("TRACE /echo HTTP/1.1"), "405", Ending::stays,
         "\r\nAllow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"},
        {"TRACE, which no route can have", with_line("TRACE / HTTP/1.1"), "405", Ending::stays,
         "\r\nAllow: GET, HEAD, OPTIONS"},
    };
    run_cases(cases);
}

TEST_CASE("a field is name, colon, value, CRLF") {
    const std::string obs_text = "\xe4\xff\x80";
    const Case cases[] = {
        {"plain", with_field("X-Value: a b"), "200", Ending::stays, "[a b]"},
        {"white space around the value", with_field("X-Value: \t  a \t"), "200", Ending::stays, "[a]"},
        {"no white space", with_field("X-Value:a"), "200", Ending::stays, "[a]"},
        {"tab inside", with_field("X-Value: a\tb"), "200", Ending::stays, "[a\tb]"},
        {"empty", with_field("X-Value:"), "200", Ending::stays, "[]"},
        {"only white space", with_field("X-Value: \t "), "200", Ending::stays, "[]"},
        {"obs-text", with_field("X-Value: " + obs_text), "200", Ending::stays, "[" + obs_text + "]"},
        {"colons", with_field("X-Value: :a:"), "200", Ending::stays, "[:a:]"},
        {"of no use to anybody", get("/f", "X-Long-Name: value\r\n"), "404", Ending::stays},
        {"any letter case", with_field("x-vALUE: a"), "200", Ending::stays, "[a]"},
        {"the first of two", with_field("X-Value: a\r\nX-VALUE: b"), "200", Ending::stays, "[a]"},
        {"name of all that a token may hold", with_field("!#$%&'*+-.^_`|~09azAZ: a"), "200", Ending::stays,
         "[]"},
        {"2,000 spaces, then a bare CR", with_field("X-Value: " + std::string(2'000, ' ') + "\rzzzz"), "400"},
        {"2,000 spaces in a field that nobody asks for, then a bare CR",
         get("/", "a:" + std::string(2'000, ' ') + "\r" + std::string(20, 'z') + "\r\n"), "400"},
        {"2,000 spaces", with_field("X-Value: " + std::string(2'000, ' ') + "a"), "200", Ending::stays,
         "[a]"},
        {"space before the colon", with_field("X-Value : a"), "400"},
        {"tab before the colon", with_field("X-Value\t: a"), "400"},
        {"space in the name", with_field("X Value: a"), "400"},
        {"space before the name", with_field(" X-Value: a"), "400"},
        {"tab before the name", with_field("\tX-Value: a"), "400"},
        {"empty name", with_field(": a"), "400"},
        {"no colon", with_field("X-Value"), "400"},
        {"parenthesis in the name", with_field("X(Value): a"), "400"},
        {"NUL in the name", with_field(std::string_view("X\0: a", 5)), "400"},
        {"obs-text in the name", with_field("X\xe4: a"), "400"},
        {"NUL in the value", with_field(std::string_view("X-Value: \0", 10)), "400"},
        {"control in the value", with_field("X-Value: a\x01"), "400"},
        {"escape in the value", with_field("X-Value: \x1b[2J"), "400"},
        {"DEL in the value", with_field("X-Value: a\x7f"), "400"},
        {"bare CR in the value", with_field("X-Value: a\rb"), "400"},
        {"bare CR before the value", with_field("X-Value: \ra"), "400"},
        {"bare LF in the value", with_field("X-Value: a\nb: c"), "400"},
        {"bare LF at the end", get("/value", "X-Value: a\n"), "400"},
        {"bare CR at the end", get("/value", "X-Value: a\r"), "400"},
        {"two CR at the end", get("/value", "X-Value: a\r\r\n"), "400"},
        {"folded", with_field("X-Value: a\r\n b"), "400"},
        {"folded with a tab", with_field("X-Value: a\r\n\tb"), "400"},
        {"folded before the value", with_field("X-Value:\r\n b"), "400"},
        {"folded into nothing", with_field("X-Value: a\r\n "), "400"},
        {"the first line folded", "GET / HTTP/1.1\r\n X: y\r\nHost: t\r\n\r\n", "400"},
        {"bare LF as the empty line", "GET / HTTP/1.1\r\nHost: t\r\n\n", "400"},
        {"bare CR as the empty line", "GET / HTTP/1.1\r\nHost: t\r\n\rX", "400"},
        {"bare LF throughout", "GET / HTTP/1.1\nHost: t\n\n", "400"},
    };
    run_cases(cases);
}

TEST_CASE("Host: exactly one, and valid (RFC 9112 §3.2)") {
    const Case cases[] = {
        {"name", with_host("example.org"), "200", Ending::stays, "\r\n\r\nexample.org"},
        {"name and port", with_host("example.org:8080"), "200", Ending::stays, "example.org:8080"},
        {"name and empty port", with_host("example.org:"), "200", Ending::stays, "example.org:"},
        {"IPv4", with_host("127.0.0.1:80"), "200", Ending::stays, "127.0.0.1:80"},
        {"IPv6", with_host("[2001:db8::1]:80"), "200", Ending::stays, "[2001:db8::1]:80"},
        {"empty", with_host(""), "200", Ending::stays, "Content-Length: 0\r\n"},
        {"escape", with_host("a%20b"), "200", Ending::stays, "a%20b"},
        {"missing", "GET / HTTP/1.1\r\n\r\n", "400"},
        {"missing in HTTP/1.0", "GET /host HTTP/1.0\r\n\r\n", "200", Ending::closes, "Content-Length: 0\r\n"},
        {"two", "GET / HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n", "400"},
        {"two that agree", "GET / HTTP/1.1\r\nHost: t\r\nhost: t\r\n\r\n", "400"},
        {"two in HTTP/1.0", "GET / HTTP/1.0\r\nHost: t\r\nHost: u\r\n\r\n", "400"},
        {"the second one empty", "GET / HTTP/1.1\r\nHost: t\r\nHost:\r\n\r\n", "400"},
        {"list", with_host("t, u"), "400"},
        {"user information", with_host("user@t"), "400"},
        {"user and password", with_host("user:password@t"), "400"},
        {"path", with_host("t/path"), "400"},
        {"query", with_host("t?query"), "400"},
        {"fragment", with_host("t#top"), "400"},
        {"scheme", with_host("http://t"), "400"},
        {"two ports", with_host("t:80:80"), "400"},
        {"port of letters", with_host("t:http"), "400"},
        {"negative port", with_host("t:-1"), "400"},
        {"port too large", with_host("t:65536"), "400"},
        {"unclosed IPv6", with_host("[::1"), "400"},
        {"IPv6 without brackets", with_host("::1"), "400"},
        {"nothing in brackets", with_host("[]"), "400"},
        {"text behind the bracket", with_host("[::1]x"), "400"},
        {"zone", with_host("[fe80::1%25eth0]"), "400"},
        {"quotes", with_host("\"t\""), "400"},
        {"space", with_host("t u"), "400"},
        {"backslash", with_host("t\\u"), "400"},
        {"non-ASCII", with_host("t\xc3\xa4"), "400"},
        {"broken escape", with_host("t%2"), "400"},
    };
    run_cases(cases);
}

TEST_CASE("a target in absolute form says the host, whatever the field says") {
    const auto absolute = [](std::string_view target, std::string_view host = "Host: other\r\n") {
        return "GET " + std::string(target) + " HTTP/1.1\r\n" + std::string(host) + "\r\n";
    };
    const Case cases[] = {
        {"root", absolute("http://t/"), "200", Ending::stays, "home"},
        {"without a path", absolute("http://t"), "200", Ending::stays, "home"},
        {"only a query", absolute("http://t?a=b"), "200", Ending::stays, "home"},
        {"its host wins", absolute("http://t:81/host"), "200", Ending::stays, "\r\n\r\nt:81"},
        {"any letter case of the scheme", absolute("HTTP://t/host"), "200", Ending::stays, "\r\n\r\nt"},
        {"https", absolute("https://t/host"), "200", Ending::stays, "\r\n\r\nt"},
        {"IPv6", absolute("http://[::1]:80/host"), "200", Ending::stays, "\r\n\r\n[::1]:80"},
        {"the field is still needed", absolute("http://t/", ""), "400"},
        {"the field must still be valid", absolute("http://t/", "Host: a b\r\n"), "400"},
        {"empty host", absolute("http:///"), "400"},
        {"only a port", absolute("http://:80/"), "400"},
        {"user information", absolute("http://user@t/"), "400"},
        {"two ports", absolute("http://t:80:80/"), "400"},
        {"unclosed IPv6", absolute("http://[::1/"), "400"},
        {"another scheme", absolute("ftp://t/"), "400"},
        {"no scheme", absolute("//t/"), "404", Ending::stays},
    };
    run_cases(cases);
}

TEST_CASE("limits of the head") {
    const auto target = [](std::size_t size) {
        return "GET /" + std::string(size - 1, 'a') + " HTTP/1.1\r\nHost: t\r\n\r\n";
    };
    // The empty line ends exactly where a block does.
    std::string full = get("/value", "X-Value: \r\nX-Fill: \r\n");
    full.insert(full.size() - 4, kIoBlockBytes - full.size(), 'f');
    std::string over = full;
    over.insert(over.size() - 4, 1, 'f');
    std::string empty_lines;
    while (empty_lines.size() <= kIoBlockBytes) {
        empty_lines += "\r\n";
    }
    const Case cases[] = {
        {"the longest target", target(8'000), "404", Ending::stays},
        {"a longer target", target(8'001), "414"},
        {"a target that fills a block", target(17'000), "414"},
        {"as many fields as may be", get("/", many_fields(99)), "200", Ending::stays, "home"},
        {"one more", get("/", many_fields(100)), "431"},
        {"a head that fills a block", full, "200", Ending::stays, "[]"},
        {"one byte more", over, "431"},
        {"an endless field", get("/", "X: " + std::string(17'000, 'x') + "\r\n"), "431"},
        {"an endless name", get("/", std::string(17'000, 'x') + ": x\r\n"), "431"},
        {"endless empty lines", empty_lines, "431"},
    };
    run_cases(cases);
}

TEST_CASE("limits of the head, set low") {
    Config config = case_config();
    config.target_limit_bytes = 20;
    config.header_count_limit = 3;
    const Case cases[] = {
        {"as long as may be", get("/echo?0123456789abcd"), "200", Ending::stays},
        {"a longer target", get("/echo?0123456789abcde"), "414"},
        {"a longer target, then what no target may hold", get("/echo?0123456789abcde\"\x7f"), "400"},
        {"a longer target, then a bare LF", "GET /echo?0123456789abcde HTTP/1.1\nHost: t\r\n\r\n", "414"},
        {"as many fields as may be", get("/", many_fields(2)), "200", Ending::stays},
        {"one more", get("/", many_fields(3)), "431"},
        {"one more, and that one is wrong", get("/", many_fields(2) + "X : y\r\n"), "400"},
        {"one more, with a bare LF", get("/", many_fields(2) + "X: y\n"), "400"},
    };
    run_cases(cases, config);
}

TEST_CASE("a field that is known is found and counted behind hundreds of others") {
    Config config = case_config();
    config.header_count_limit = 1'000;
    const Case cases[] = {
        {"Host behind 300", "GET /host HTTP/1.1\r\n" + many_fields(300) + "Host: t\r\n\r\n", "200",
         Ending::stays, "\r\n\r\nt"},
        {"two behind 300", "GET /host HTTP/1.1\r\n" + many_fields(300) + "Host: t\r\nHost: t\r\n\r\n", "400"},
        {"a coding behind 300",
         post(many_fields(300) + "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), "200",
         Ending::stays, "hello"},
    };
    run_cases(cases, config);
}

}  // namespace penstock::test

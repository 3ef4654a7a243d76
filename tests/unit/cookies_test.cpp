#include "penstock/protocols/http/cookies.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace penstock;
using namespace std::string_view_literals;

namespace {

// "name=value|" for each pair.
std::string walk(std::string_view field) {
    std::string text;
    CookieWalker walker(field);
    for (CookiePair pair; walker.next(&pair);) {
        text.append(pair.name).append("=").append(pair.value).append("|");
    }
    return text;
}

std::string built(const CookieBuilder& builder) {
    const Result<std::string> cookie = builder.build();
    REQUIRE_MESSAGE(cookie.ok(), (cookie.ok() ? "" : cookie.error().message));
    return cookie.value();
}

// The reason, or "" when it was built after all.
std::string refusal(const CookieBuilder& builder) {
    const Result<std::string> cookie = builder.build();
    return cookie.ok() ? std::string() : cookie.error().message;
}

bool refused_for(const CookieBuilder& builder, std::string_view reason) {
    return refusal(builder).find(reason) != std::string::npos;
}

}  // namespace

TEST_CASE("a Cookie field's pairs come in order, white space and broken parts are passed over") {
    CHECK(walk("") == "");
    CHECK(walk("a=1") == "a=1|");
    CHECK(walk("a=1; b=2; a=3") == "a=1|b=2|a=3|");
    CHECK(walk("a=1;b=2") == "a=1|b=2|");
    CHECK(walk("  a = 1 ;\tb=\t2\t;; ; c=") == "a=1|b=2|c=|");
    CHECK(walk("alone; =nameless; a=1; ") == "a=1|");
    CHECK(walk("a=b=c==; d=\"x y\"") == "a=b=c==|d=\"x y\"|");
    CHECK(walk(";") == "");
    CHECK(walk("=") == "");
}

TEST_CASE("a cookie is found by its exact name, the first of several") {
    const std::string_view field = "sid=1; SID=2; sid=3; empty=; xsid=4";
    CHECK(find_cookie(field, "sid") == "1");
    CHECK(find_cookie(field, "SID") == "2");
    CHECK(find_cookie(field, "xsid") == "4");
    CHECK(find_cookie(field, "si").data() == nullptr);
    CHECK(find_cookie(field, "").data() == nullptr);
    CHECK(find_cookie({}, "sid").data() == nullptr);
    CHECK(find_cookie(field, "empty").empty());
    CHECK(find_cookie(field, "empty").data() != nullptr);
    CHECK(find_cookie("empty=", "empty").data() != nullptr);
    CHECK(find_cookie("empty=  ", "empty").data() != nullptr);
}

TEST_CASE("a Cookie field is walked over to kCookiePartLimit parts") {
    std::string field;
    for (std::size_t i = 1; i < kCookiePartLimit; ++i) {
        field += i % 2 == 0 ? ";" : "a=1;";
    }
    CHECK(find_cookie(field + "last=1", "last") == "1");
    CHECK(find_cookie(field + ";last=1", "last").data() == nullptr);
}

TEST_CASE("a cookie is written with the attributes that were set") {
    CHECK(built(CookieBuilder("a", "1")) == "a=1");
    CHECK(built(CookieBuilder("a", "")) == "a=");
    CHECK(built(CookieBuilder("a", "\"1\"")) == "a=\"1\"");
    CHECK(built(CookieBuilder("sid", "31d4").path("/shop").domain("example.org").max_age_s(3'600).expires(784'111'777)
                    .secure().http_only().same_site(SameSite::strict)) ==
          "sid=31d4; Path=/shop; Domain=example.org; Max-Age=3600; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Secure; "
          "HttpOnly; SameSite=Strict");
    CHECK(built(CookieBuilder("a", "1").same_site(SameSite::lax)) == "a=1; SameSite=Lax");
    CHECK(built(CookieBuilder("a", "1").same_site(SameSite::none).secure()) == "a=1; Secure; SameSite=None");
    CHECK(built(CookieBuilder("a", "1").secure().secure(false)) == "a=1");
    CHECK(built(CookieBuilder("a", "").max_age_s(0)) == "a=; Max-Age=0");
    CHECK(built(CookieBuilder("a", "").expires(0)) == "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT");
    CHECK(built(CookieBuilder("a", "").expires(253'402'300'799)).ends_with("Fri, 31 Dec 9999 23:59:59 GMT"));
}

TEST_CASE("what a browser would drop or read differently is refused") {
    for (const std::string_view name : {""sv, "a b"sv, "a=b"sv, "a;b"sv, "a\r\nb"sv, "\xc3\xa4"sv, "a\0b"sv, "a,b"sv}) {
        CHECK(refused_for(CookieBuilder(name, "1"), "name is no token"));
    }
    for (const std::string_view value : {" "sv, "a;b"sv, "a,b"sv, "a\"b"sv, "\""sv, "\"\"\""sv, "a\\b"sv, "a\nb"sv,
                                         "a\0b"sv, "\x7f"sv, "\xc3\xa4"sv}) {
        CHECK(refused_for(CookieBuilder("a", value), "value holds a character"));
    }
    for (const std::string_view path : {"shop"sv, "/a;b"sv, "/a\nb"sv, "/\xc3\xa4"sv, "/\x7f"sv}) {
        CHECK(refused_for(CookieBuilder("a", "1").path(path), "path must begin"));
    }
    for (const std::string_view domain : {".example.org"sv, "example.org."sv, "a..b"sv, "a:80"sv, "http://a"sv, "a;b"sv,
                                          "."sv, "a b"sv}) {
        CHECK(refused_for(CookieBuilder("a", "1").domain(domain), "domain must be a host name"));
    }
    CHECK(refused_for(CookieBuilder("a", "1").max_age_s(-1), "set 0"));
    CHECK(refused_for(CookieBuilder("a", "1").expires(-1), "1970 to 9999"));
    CHECK(refused_for(CookieBuilder("a", "1").expires(253'402'300'800), "1970 to 9999"));
    CHECK(refused_for(CookieBuilder("a", "1").same_site(SameSite::none), "SameSite=None without Secure"));
    CHECK(refusal(CookieBuilder("a", std::string(kCookieLimitBytes - 1, 'x'))).empty());
    CHECK(refused_for(CookieBuilder("a", std::string(kCookieLimitBytes, 'x')), "4096"));
    CHECK(refusal(CookieBuilder("a", "").path("/" + std::string(kCookieAttributeLimitBytes - 1, 'x'))).empty());
    CHECK(refused_for(CookieBuilder("a", "").path("/" + std::string(kCookieAttributeLimitBytes, 'x')), "1024"));
}

TEST_CASE("the promises of __Host- and __Secure- names are kept, in any letter case") {
    for (const std::string_view name : {"__Host-sid"sv, "__host-sid"sv, "__HOST-sid"sv}) {
        CHECK(built(CookieBuilder(name, "1").secure().path("/")) == std::string(name) + "=1; Path=/; Secure");
        CHECK(refused_for(CookieBuilder(name, "1").path("/"), "__Host-"));
        CHECK(refused_for(CookieBuilder(name, "1").secure(), "__Host-"));
        CHECK(refused_for(CookieBuilder(name, "1").secure().path("/a"), "__Host-"));
        CHECK(refused_for(CookieBuilder(name, "1").secure().path("/").domain("a.org"), "__Host-"));
    }
    CHECK(refused_for(CookieBuilder("__Secure-sid", "1"), "__Secure-"));
    CHECK(refused_for(CookieBuilder("__sEcure-sid", "1"), "__Secure-"));
    CHECK(refusal(CookieBuilder("__Secure-sid", "1").secure().domain("a.org")).empty());
    CHECK(refusal(CookieBuilder("__Hostsid", "1")).empty());
}

TEST_CASE("a refusal names the cookie on one line, and never its value") {
    const std::string text = refusal(CookieBuilder("s\r\n\"id", "secret;"));
    CHECK(text.starts_with("cookie \"s???id\": "));
    CHECK(refusal(CookieBuilder("sid", "secret;")).starts_with("cookie \"sid\": "));
    CHECK(refusal(CookieBuilder("sid", "secret;")).find("secret") == std::string::npos);
    CHECK(refusal(CookieBuilder(std::string(100'000, ' '), "1")).size() < 500);
}

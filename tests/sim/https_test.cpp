// HSTS, and the answer that sends a client to TLS: where it is sent, and that no host that a client makes up gets through.
#include <string>
#include <vector>

#include "engine_fixture.h"
#include "penstock/protocols/http/https.h"

namespace penstock::test {

namespace {

Reply reply_of(const std::string& bytes) {
    const auto replies = replies_in(bytes);
    REQUIRE(replies.size() == 1);
    return replies.front();
}

Router redirecting(HttpsRedirectOptions options = {}) {
    Router router;
    const Result<PlainHandler> redirect = redirect_to_https(options);
    REQUIRE_MESSAGE(redirect.ok(), redirect.error().message);
    router.get("/.well-known/acme-challenge/:token",
               [](Request& request, Response& response) { response.send(request.parameter("token")); });
    router.any("/*path", redirect.value(), {.stream_body = true});
    return router;
}

std::string request(std::string_view target, std::string_view host, std::string_view method = "GET") {
    return std::string(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: ").append(host).append("\r\n\r\n");
}

// The status alone where there is no Location.
std::string sent_to(Engine& engine, const std::string& bytes) {
    sim::Peer peer = engine.world.connect(kPort);
    const Reply reply = reply_of(engine.exchange(peer, bytes));
    peer.close();
    engine.server.settle();
    return std::to_string(reply.status) + (reply.has_field("Location") ? " " + reply.field("Location") : "");
}

std::string error_of(const HstsOptions& options) {
    const Result<Middleware> made = hsts(options);
    return made.ok() ? "" : made.error().message;
}

std::string error_of(const HttpsRedirectOptions& options) {
    const Result<PlainHandler> made = redirect_to_https(options);
    return made.ok() ? "" : made.error().message;
}

}  // namespace

TEST_CASE("https: a redirect keeps the host, the path and the query as they came, and drops the plain port") {
    Engine engine(redirecting());
    CHECK(sent_to(engine, request("/", "example.org")) == "308 https://example.org/");
    CHECK(sent_to(engine, request("/a%20b/../c//d;x?q=1&r=%zz?", "example.org:80")) ==
          "308 https://example.org/a%20b/../c//d;x?q=1&r=%zz?");
    CHECK(sent_to(engine, request("//evil.example/", "Example.ORG:8080")) == "308 https://Example.ORG//evil.example/");
    CHECK(sent_to(engine, request("/", "example.org:")) == "308 https://example.org/");
    CHECK(sent_to(engine, request("/", "10.1.2.3:80")) == "308 https://10.1.2.3/");
    CHECK(sent_to(engine, request("/x", "[2001:db8::1]")) == "308 https://[2001:db8::1]/x");
    CHECK(sent_to(engine, request("/x", "[::ffff:10.0.0.1]:8080")) == "308 https://[::ffff:10.0.0.1]/x");
    CHECK(sent_to(engine, "GET / HTTP/1.0\r\nHost: old.example\r\n\r\n") == "308 https://old.example/");
    engine.server.check_nothing_left();
}

TEST_CASE("https: of a target in absolute form the host in it counts, and what is behind it is kept") {
    Engine engine(redirecting());
    CHECK(sent_to(engine, request("http://named.example:80/a?b=http://x/", "other.example")) ==
          "308 https://named.example/a?b=http://x/");
    CHECK(sent_to(engine, request("HTTP://named.example", "other.example")) == "308 https://named.example/");
    CHECK(sent_to(engine, request("http://named.example?q", "other.example")) == "308 https://named.example/?q");
    CHECK(sent_to(engine, request("http://user@named.example/", "other.example")) == "400");
}

TEST_CASE("https: another port is named in the URL, and the status is the one that was asked for") {
    Engine engine(redirecting({.port = 8443, .status = 301}));
    CHECK(sent_to(engine, request("/a", "example.org")) == "301 https://example.org:8443/a");
    CHECK(sent_to(engine, request("/a", "[::1]:8080")) == "301 https://[::1]:8443/a");
}

TEST_CASE("https: every method is sent on, before its body has come") {
    Engine engine(redirecting());
    for (const std::string_view method : {"GET", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
        CHECK_MESSAGE(sent_to(engine, request("/a", "example.org", method)) == "308 https://example.org/a", method);
    }
    CHECK(sent_to(engine, "POST /a HTTP/1.1\r\nHost: example.org\r\nContent-Length: 1000\r\n\r\n") == "308 https://example.org/a");
    sim::Peer head = engine.world.connect(kPort);
    CHECK(engine.exchange(head, request("/a", "example.org", "HEAD")).find("Location: https://example.org/a\r\n") !=
          std::string::npos);
}

TEST_CASE("https: a route beside the redirect answers for itself") {
    Engine engine(redirecting());
    CHECK(body_of(engine.ask(request("/.well-known/acme-challenge/abc", "example.org"))) == "abc");
    CHECK(sent_to(engine, request("/.well-known/acme-challenge/", "example.org")) ==
          "308 https://example.org/.well-known/acme-challenge/");
}

TEST_CASE("https: a host that is no plain name and no address gets 400, and nothing of it comes back") {
    Engine engine(redirecting());
    const std::string long_name(254, 'a');
    const std::vector<std::string_view> hosts = {
        "", ":80", "a@b", "user:pass@example.org", "example.org@evil.example", "a/b", "a\\b", "a?b", "a#b", "a b", "a\tb", "a,b",
        "a;b", "a'b", "a&b", "a=b", "a(b)", "a~b", "a%2Fb", "a%40evil.example", "a%0d%0aX-Evil: 1", "%00", "a%", "[::1", "::1",
        "[::1]x", "[::1%25eth0]", "[g::1]", "[]", "[::1]:x", "[v1.evil]", "a:b", "a:80:80", "a:65536", "a:-1", "a\"b", "<a>", "a`b",
        "b\xC3\xBC\x63her.example", "\xFF", ".", ".example.org", "a\x01", "a\x7F", long_name};
    for (const std::string_view host : hosts) {
        sim::Peer peer = engine.world.connect(kPort);
        const std::string bytes = engine.exchange(peer, request("/x", host));
        CHECK_MESSAGE(status_of(bytes) == 400, host);
        CHECK_MESSAGE(bytes.find("Location") == std::string::npos, host);
        CHECK_MESSAGE(bytes.find("evil") == std::string::npos, host);
        peer.close();
        engine.server.settle();
    }
    CHECK(sent_to(engine, "GET / HTTP/1.0\r\n\r\n") == "400");
    CHECK(sent_to(engine, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n") == "400");
    CHECK(sent_to(engine, request("/", std::string(253, 'a'))) == "308 https://" + std::string(253, 'a') + "/");
    engine.server.check_nothing_left();
}

TEST_CASE("https: the longest target there may be is sent on whole") {
    Engine engine(redirecting());
    const std::string target = "/" + std::string(Config{}.target_limit_bytes - 1, 'x');
    CHECK(sent_to(engine, request(target, "example.org")) == "308 https://example.org" + target);
}

TEST_CASE("https: a redirect to a port that is not known yet is 500") {
    Router router;
    router.get("/", [](Request& request, Response& response) { send_https_redirect(request, response, {.port = 0}); });
    Engine engine(router);
    CHECK(sent_to(engine, request("/", "example.org")) == "500");
}

TEST_CASE("https: HSTS is never said without TLS") {
    Router router;
    const Result<Middleware> field = hsts();
    REQUIRE(field.ok());
    router.use(field.value());
    router.get("/", [](Request&, Response& response) { response.send("here"); });
    router.fallback([](Request&, Response& response) { response.status(404).send("nothing"); });
    Engine engine(router);
    for (const std::string_view target : {"/", "/none"}) {
        CHECK_FALSE(reply_of(engine.ask(request(target, "example.org"))).has_field("Strict-Transport-Security"));
    }
}

TEST_CASE("https: options that cannot be meant are told") {
    CHECK(error_of(HstsOptions{}).empty());
    CHECK(error_of(HstsOptions{.max_age_s = 0}).empty());
    CHECK(error_of({.include_subdomains = true, .preload = true}).empty());
    CHECK(error_of(HstsOptions{.preload = true}).find("set include_subdomains") != std::string::npos);
    CHECK(error_of({.max_age_s = 31'535'999, .include_subdomains = true, .preload = true}).find("31535999") != std::string::npos);
    CHECK(error_of(HttpsRedirectOptions{.port = 0}).find("port is 0") != std::string::npos);
    for (const unsigned status : {0u, 200u, 300u, 303u, 304u, 404u}) {
        CHECK(error_of(HttpsRedirectOptions{.status = status}).find("status is " + std::to_string(status)) != std::string::npos);
    }
    for (const unsigned status : {301u, 302u, 307u, 308u}) {
        CHECK(error_of(HttpsRedirectOptions{.status = status}).empty());
    }
}

}  // namespace penstock::test

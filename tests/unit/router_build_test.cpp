// What Router::build refuses, and how it says so.
#include "penstock/protocols/http/router.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "penstock/protocols/http/route_table.h"
#include "support/routing.h"

using namespace penstock;
using namespace penstock::routing_test;
using namespace std::string_view_literals;

namespace {

bool mentions(const std::string& message, std::string_view piece) {
    return message.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("patterns that are refused, each with what to do") {
    struct {
        std::string_view pattern;
        std::string_view told;
    } const cases[] = {
        {"", "begins with '/'"},
        {"users", "write \"/users\""},
        {"*", "begins with '/'"},
        {":id", "begins with '/'"},
        {"/:", "no name"},
        {"/a/:/b", "no name"},
        {"/*", "no name"},
        {"/:id/x/:id", "two parameters are named \"id\""},
        {"/:id/*id", "two parameters are named \"id\""},
        {"/*rest/a", "not the last segment"},
        {"/*rest/", "not the last segment"},
        {"/:id.json", "rename \"id.json\""},
        {"/::id", "rename \":id\""},
        {"/a b/:x y", "rename \"x y\""},
        {"/a%20b", "percent escape"},
        {"/a?b", "read the query"},
        {"/a#b", "begins with '#'"},
        {"/a\nb", "control characters"},
        {"/a\x7F", "control characters"},
        {"/a/../b", "\"..\""},
        {"/./a", "\".\""},
        {"/:a/:b/:c/:d/:e/:f/:g/:h/:i/:j/:k/:l/:m/:n/:o/:p/:q", "17 parameters"},
    };
    for (const auto& test : cases) {
        CAPTURE(test.pattern);
        Router router;
        router.patch(test.pattern, nothing);
        const std::string message = mistake_of(router);
        CAPTURE(message);
        CHECK(mentions(message, test.told));
        CHECK(mentions(message, "PATCH \"/") == test.pattern.starts_with('/'));
    }
    Router router;
    router.any("/a\0b"sv, nothing);
    CHECK(mentions(mistake_of(router), "any \"/a\\x00b\": a pattern has no control characters"));
    Router deep;
    std::string pattern;
    for (int i = 0; i < 65; ++i) {
        pattern += "/a";
    }
    deep.get(pattern, nothing);
    CHECK(mentions(mistake_of(deep), "65 segments"));
}

TEST_CASE("the same route twice names both") {
    struct {
        std::string_view first;
        std::string_view second;
    } const cases[] = {
        {"/a", "/a"}, {"/a/:x", "/a/:x"}, {"/a/:x", "/a/:y"}, {"/a/*x", "/a/*y"}, {"/:a/b/:c", "/:x/b/:y"},
    };
    for (const auto& test : cases) {
        Router router;
        router.put(test.first, nothing).put(test.second, nothing);
        const std::string message = mistake_of(router);
        CAPTURE(message);
        CHECK(mentions(message, "PUT \"" + std::string(test.first) + "\" and PUT \"" +
                                    std::string(test.second) + "\" are the same route"));
        CHECK(mentions(message, "remove one of them"));
        CHECK(mentions(message, "names of parameters") == (test.first != test.second));
    }
    Router any;
    any.any("/a", nothing).get("/a", nothing).any("/a", nothing);
    CHECK(mentions(mistake_of(any), "any \"/a\" and any \"/a\""));
    Router grouped;
    grouped.group("/g").get("/:x", nothing);
    grouped.get("/g/:y", nothing);
    CHECK(mentions(mistake_of(grouped), "GET \"/g/:y\" and GET \"/g/:x\""));
    Router fine;
    fine.get("/a/:x", nothing).get("/a/*x", nothing).get("/a/x", nothing).get("/a/:x/", nothing);
    CHECK(mistake_of(fine).empty());
}

TEST_CASE("handlers and methods that are refused") {
    Router empty;
    empty.get("/a", Handler()).post("/b", PlainHandler()).put("/c", TaskHandler());
    const std::string message = mistake_of(empty);
    CHECK(mentions(message, "GET \"/a\": the handler is empty"));
    CHECK(mentions(message, "POST \"/b\": the handler is empty"));
    CHECK(mentions(message, "PUT \"/c\": the handler is empty"));
    Router methods;
    methods.route(Method::connect, "/a", nothing).route(Method::other, "/b", nothing);
    methods.route(Method::trace, "/c", nothing).route(Method::patch, "/d", nothing);
    CHECK(mentions(mistake_of(methods), "CONNECT at \"/a\""));
    CHECK(mentions(mistake_of(methods), "Method::other at \"/b\""));
    CHECK(mentions(mistake_of(methods), "TRACE at \"/c\""));
    CHECK_FALSE(mentions(mistake_of(methods), "/d"));
}

TEST_CASE("limits of a route that no server could keep are refused") {
    Router router;
    router.get("/a", nothing, {.request_timeout_ms = 2'500'000'000u}).get("/b", nothing, {.body_timeout_ms = 1u << 28});
    router.get("/c", nothing, {.head_limit_bytes = 16'385});
    const std::string message = mistake_of(router);
    CHECK(mentions(message, "GET \"/a\": request_timeout_ms is 2500000000: set it to 268435455 or less"));
    CHECK(mentions(message, "GET \"/b\": body_timeout_ms is 268435456"));
    CHECK(mentions(message, "GET \"/c\": head_limit_bytes is 16385: set it to 16384 or less"));
    Router fine;
    fine.get("/a", nothing, {.body_timeout_ms = (1u << 28) - 1, .request_timeout_ms = RouteOptions::kNoTimeout});
    CHECK(mistake_of(fine).empty());
}

TEST_CASE("groups that are refused") {
    struct {
        std::string_view prefix;
        std::string_view told;
    } const cases[] = {
        {"api", "write \"/api\""},  {"/", "write \"\""},        {"/api/", "write \"/api\""},
        {"/a/*rest", "wildcard"},   {"/a?b", "read the query"}, {"/:", "no name"},
        {"/%41", "percent escape"}, {"/a/..", "\"..\""},
    };
    for (const auto& test : cases) {
        CAPTURE(test.prefix);
        Router router;
        router.group(test.prefix).get("/x", nothing);
        const std::string message = mistake_of(router);
        CAPTURE(message);
        CHECK(mentions(message, "the group \"" + std::string(test.prefix) + "\""));
        CHECK(mentions(message, test.told));
    }
    Router joined;
    joined.group("/:id").get("/x/:id", nothing);
    CHECK(mentions(mistake_of(joined), "GET \"/:id/x/:id\": two parameters"));
    Router slashless;
    slashless.group("/api").get("users", nothing).get("", nothing);
    CHECK(mentions(mistake_of(slashless), "\"users\" in the group \"/api\""));
    CHECK(mentions(mistake_of(slashless), "add \"/api\" to the router around the group"));
}

TEST_CASE("the fallback") {
    Router router;
    router.get("/a", nothing).fallback(TaggedHandler{9});
    const auto table = built(router);
    REQUIRE(table->fallback() != nullptr);
    CHECK(table->fallback()->handler.plain.target<TaggedHandler>()->tag == 9);
    CHECK(outcome(*table, Method::get, "/b") == "404");

    Router twice;
    twice.fallback(nothing).fallback(nothing);
    CHECK(mentions(mistake_of(twice), "set twice"));
    Router empty;
    empty.fallback(Handler());
    CHECK(mentions(mistake_of(empty), "the fallback's handler is empty"));
    Router grouped;
    grouped.group("/api").group("/v1").fallback(nothing);
    CHECK(mentions(mistake_of(grouped),
                   "the group \"/api/v1\" has a fallback; set it on the outermost router"));
}

TEST_CASE("all mistakes are told at once, up to a limit") {
    Router router;
    router.get("a", nothing).get("/:", nothing).group("/g").fallback(nothing);
    const std::string message = mistake_of(router);
    CHECK(std::count(message.begin(), message.end(), '\n') == 2);
    for (int i = 0; i < 20; ++i) {
        router.get("b", nothing);
    }
    CHECK(mentions(mistake_of(router), "\nand 13 more"));
}

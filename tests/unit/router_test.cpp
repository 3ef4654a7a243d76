#include "penstock/protocols/http/router.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "penstock/protocols/http/route_table.h"
#include "support/routing.h"

using namespace penstock;
using namespace penstock::routing_test;
using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

// A hook that can be told from others without being called.
struct TaggedHook {
    int tag;
    void operator()(Request&, Response&) const {}
};

Middleware hook(int tag) {
    Middleware middleware;
    middleware.before = TaggedHook{tag};
    return middleware;
}

int tag_of(const RouteTable& table, Method method, std::string_view path) {
    const RouteMatch match = table.match(method, path);
    const TaggedHandler* tagged =
        match.route == nullptr ? nullptr : match.route->handler.plain.target<TaggedHandler>();
    return tagged == nullptr ? -1 : tagged->tag;
}

std::vector<int> hooks_of(const Route* route) {
    std::vector<int> tags;
    for (const Middleware* middleware : route->middleware) {
        tags.push_back(middleware->before.target<TaggedHook>()->tag);
    }
    return tags;
}

std::vector<int> hooks_at(const RouteTable& table, std::string_view path) {
    const RouteMatch match = table.match(Method::get, path);
    REQUIRE(match.route != nullptr);
    return hooks_of(match.route);
}

}  // namespace

TEST_CASE("exact patterns match their path alone") {
    Router router;
    router.get("/", nothing)
        .get("/a", nothing)
        .get("/a/", nothing)
        .get("/a/b", nothing)
        .get("/caf\xC3\xA9", nothing);
    router.get("/a//b", nothing).get("/v1/items:batch", nothing).get("/x*", nothing);
    const auto table = built(router);
    for (const std::string_view path :
         {"/", "/a", "/a/", "/a/b", "/caf\xC3\xA9", "/a//b", "/v1/items:batch", "/x*"}) {
        CAPTURE(path);
        CHECK(outcome(*table, Method::get, path) == path);
    }
    for (const std::string_view path :
         {"", "*", "a", "//", "/b", "/A", "/a/b/", "/a/bc", "/aa", "/a/b/c", "/xy"}) {
        CAPTURE(path);
        CHECK(outcome(*table, Method::get, path) == "404");
    }
    CHECK(outcome(*table, Method::get, "/a\0b"sv) == "404");
}

TEST_CASE("parameters take one segment that is not empty") {
    Router router;
    router.get("/users/:id", nothing).get("/users/:id/posts/:post", nothing).get("/:any/", nothing);
    const auto table = built(router);
    CHECK(outcome(*table, Method::get, "/users/7") == "/users/:id id=7");
    CHECK(outcome(*table, Method::get, "/users/a b") == "/users/:id id=a b");
    CHECK(outcome(*table, Method::get, "/users/7/posts/9") == "/users/:id/posts/:post id=7 post=9");
    CHECK(outcome(*table, Method::get, "/users/") == "/:any/ any=users");
    CHECK(outcome(*table, Method::get, "/users/7/") == "404");
    CHECK(outcome(*table, Method::get, "/users//posts/9") == "404");
    CHECK(outcome(*table, Method::get, "/users/7/posts/") == "404");
    CHECK(outcome(*table, Method::get, "/users") == "404");
    CHECK(outcome(*table, Method::get, "//") == "404");
    // An encoded slash is part of the value.
    CHECK(outcome(*table, Method::get, "/users/a\0b"sv) == "/users/:id id=a\0b"s);
}

TEST_CASE("values are views of the path, names live in the table") {
    std::string path = "/files/one/two/three";
    const auto table = [] {
        Router router;
        std::string pattern = "/files/:first/*rest";
        router.get(pattern, nothing);
        pattern.assign(pattern.size(), '?');
        return built(router);
    }();
    const RouteMatch match = table->match(Method::get, path);
    REQUIRE(match.route != nullptr);
    REQUIRE(match.parameter_count() == 2);
    CHECK(match.parameter(0).name == "first");
    CHECK(match.parameter(0).value.data() == path.data() + 7);
    CHECK(match.parameter(0).value == "one");
    CHECK(match.parameter(1).name == "rest");
    CHECK(match.parameter(1).value.data() == path.data() + 11);
    CHECK(match.parameter(1).value == "two/three");
}

TEST_CASE("wildcards take the rest, also an empty one, but not a missing slash") {
    Router router;
    router.get("/files/*path", nothing).get("/:a/x/*rest", nothing);
    const auto table = built(router);
    CHECK(outcome(*table, Method::get, "/files/a") == "/files/*path path=a");
    CHECK(outcome(*table, Method::get, "/files/a/b//c/") == "/files/*path path=a/b//c/");
    CHECK(outcome(*table, Method::get, "/files/") == "/files/*path path=");
    CHECK(outcome(*table, Method::get, "/files//") == "/files/*path path=/");
    CHECK(outcome(*table, Method::get, "/files") == "404");
    CHECK(outcome(*table, Method::get, "/q/x/") == "/:a/x/*rest a=q rest=");
    CHECK(outcome(*table, Method::get, "/files/x/y") == "/files/*path path=x/y");

    Router all;
    all.get("/*all", nothing);
    CHECK(outcome(*built(all), Method::get, "/") == "/*all all=");
    CHECK(outcome(*built(all), Method::get, "/a") == "/*all all=a");
    CHECK(outcome(*built(all), Method::get, "") == "404");
}

TEST_CASE("exact before parameter before wildcard, segment by segment, with a way back") {
    Router router;
    router.get("/a/b", nothing).get("/a/:x", nothing).get("/a/*rest", nothing).get("/:x/b/c", nothing);
    router.get("/a/b/:y/d", nothing).get("/a/:x/c/:z", nothing).get("/*all", nothing);
    const auto table = built(router);
    CHECK(outcome(*table, Method::get, "/a/b") == "/a/b");
    CHECK(outcome(*table, Method::get, "/a/c") == "/a/:x x=c");
    CHECK(outcome(*table, Method::get, "/a/") == "/a/*rest rest=");
    CHECK(outcome(*table, Method::get, "/a/b/c/d") == "/a/b/:y/d y=c");
    CHECK(outcome(*table, Method::get, "/a/b/c/e") == "/a/:x/c/:z x=b z=e");
    // "/a/*rest" wins over "/:x/b/c", as its first segment is exact.
    CHECK(outcome(*table, Method::get, "/a/b/c") == "/a/*rest rest=b/c");
    CHECK(outcome(*table, Method::get, "/q/b/c") == "/:x/b/c x=q");
    CHECK(outcome(*table, Method::get, "/q/b/d") == "/*all all=q/b/d");
    CHECK(outcome(*table, Method::get, "/a") == "/*all all=a");
}

TEST_CASE("HEAD finds GET's route unless it has its own") {
    Router router;
    router.get("/a", TaggedHandler{1})
        .get("/b", TaggedHandler{2})
        .head("/b", TaggedHandler{3})
        .get("/:x/y", TaggedHandler{4});
    router.any("/a", TaggedHandler{5}).post("/c", TaggedHandler{6});
    const auto table = built(router);
    CHECK(tag_of(*table, Method::head, "/a") == 1);
    CHECK(tag_of(*table, Method::head, "/b") == 3);
    CHECK(tag_of(*table, Method::get, "/b") == 2);
    CHECK(tag_of(*table, Method::head, "/q/y") == 4);
    CHECK(outcome(*table, Method::head, "/c") == "405 POST, OPTIONS");
}

TEST_CASE("any takes every method without a route of its own, but those that no route can have") {
    Router router;
    router.any("/a", TaggedHandler{1}).post("/a", TaggedHandler{2}).any("/:x/b", TaggedHandler{3});
    const auto table = built(router);
    CHECK(tag_of(*table, Method::post, "/a") == 2);
    for (const Method method : {Method::get, Method::head, Method::put, Method::del, Method::patch,
                                Method::options}) {
        CHECK(tag_of(*table, method, "/a") == 1);
        CHECK(tag_of(*table, method, "/q/b") == 3);
    }
    for (const Method method : {Method::connect, Method::trace, Method::other}) {
        CHECK(outcome(*table, method, "/a") == "405 GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS");
    }
    CHECK(table->all_methods() == "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS");
}

TEST_CASE("each method has its route") {
    Router router;
    router.get("/a", TaggedHandler{0})
        .head("/a", TaggedHandler{1})
        .post("/a", TaggedHandler{2})
        .put("/a", TaggedHandler{3});
    router.del("/a", TaggedHandler{4}).patch("/a", TaggedHandler{5}).options("/a", TaggedHandler{6});
    const auto table = built(router);
    for (int method = 0; method < static_cast<int>(kRoutableMethods); ++method) {
        CHECK(tag_of(*table, static_cast<Method>(method), "/a") == method);
    }
    CHECK(outcome(*table, Method::trace, "/a") == "405 GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS");
}

TEST_CASE("405 names the methods of every pattern that fits") {
    Router router;
    router.get("/a/b", nothing).put("/a/:x", nothing).del("/*all", nothing).post("/c", nothing);
    router.options("/o", nothing);
    const auto table = built(router);
    CHECK(outcome(*table, Method::post, "/a/b") == "405 GET, HEAD, PUT, DELETE, OPTIONS");
    CHECK(outcome(*table, Method::post, "/a/c") == "405 PUT, DELETE, OPTIONS");
    CHECK(outcome(*table, Method::get, "/q") == "405 DELETE, OPTIONS");
    CHECK(outcome(*table, Method::other, "/c") == "405 POST, DELETE, OPTIONS");
    CHECK(outcome(*table, Method::options, "/c") == "405 POST, DELETE, OPTIONS");
    CHECK(outcome(*table, Method::options, "/o") == "/o");
    CHECK(outcome(*table, Method::get, "/o") == "405 DELETE, OPTIONS");
}

TEST_CASE("a less specific pattern answers a method that the more specific one lacks") {
    Router router;
    router.post("/a/b", nothing).put("/a/:x", nothing).get("/*all", nothing).del("/a/:x/c", nothing);
    const auto table = built(router);
    CHECK(outcome(*table, Method::post, "/a/b") == "/a/b");
    CHECK(outcome(*table, Method::put, "/a/b") == "/a/:x x=b");
    CHECK(outcome(*table, Method::get, "/a/b") == "/*all all=a/b");
    CHECK(outcome(*table, Method::head, "/a/b") == "/*all all=a/b");
    CHECK(outcome(*table, Method::get, "/a/b/c") == "/*all all=a/b/c");
    CHECK(outcome(*table, Method::patch, "/a/b") == "405 GET, HEAD, POST, PUT, OPTIONS");
}

TEST_CASE("parameter names are the route's own") {
    Router router;
    router.get("/a/:x", nothing).post("/a/:y", nothing).get("/a/:z/b", nothing);
    const auto table = built(router);
    CHECK(outcome(*table, Method::get, "/a/1") == "/a/:x x=1");
    CHECK(outcome(*table, Method::post, "/a/1") == "/a/:y y=1");
    CHECK(outcome(*table, Method::get, "/a/1/b") == "/a/:z/b z=1");
}

TEST_CASE("an empty router, and what OPTIONS * may say") {
    const Router empty;
    CHECK(outcome(*built(empty), Method::get, "/") == "404");
    CHECK(built(empty)->all_methods() == "OPTIONS");
    CHECK(built(empty)->fallback() == nullptr);
    CHECK(outcome(RouteTable(), Method::get, "/") == "404");
    Router some;
    some.get("/a", nothing).put("/b/:x", nothing);
    CHECK(built(some)->all_methods() == "GET, HEAD, PUT, OPTIONS");
}

TEST_CASE("groups join prefixes") {
    Router router;
    Router& api = router.group("/api");
    api.get("/users", nothing).get("/", nothing);
    api.group("/:tenant").group("/v1").get("/:id", nothing).get("/files/*path", nothing);
    router.group("").get("/plain", nothing);
    const auto table = built(router);
    CHECK(outcome(*table, Method::get, "/api/users") == "/api/users");
    CHECK(outcome(*table, Method::get, "/api/") == "/api/");
    CHECK(outcome(*table, Method::get, "/api") == "404");
    CHECK(outcome(*table, Method::get, "/api/t/v1/7") == "/api/:tenant/v1/:id tenant=t id=7");
    CHECK(outcome(*table, Method::get, "/api/t/v1/files/a/b") ==
          "/api/:tenant/v1/files/*path tenant=t path=a/b");
    CHECK(outcome(*table, Method::get, "/plain") == "/plain");
}

TEST_CASE("middleware runs outer first, also around routes that were there before") {
    Router router;
    router.get("/before", nothing);
    Router& api = router.group("/api");
    api.get("/x", nothing);
    Router& inner = api.group("/in");
    inner.get("/y", nothing);
    inner.use(hook(5));
    api.use(hook(3)).use(hook(4));
    router.use(hook(1)).use(hook(2)).get("/after", nothing);
    router.group("/other").get("/z", nothing);
    router.fallback(nothing);
    const auto table = built(router);
    CHECK(hooks_at(*table, "/before") == std::vector{1, 2});
    CHECK(hooks_at(*table, "/after") == std::vector{1, 2});
    CHECK(hooks_at(*table, "/api/x") == std::vector{1, 2, 3, 4});
    CHECK(hooks_at(*table, "/api/in/y") == std::vector{1, 2, 3, 4, 5});
    CHECK(hooks_at(*table, "/other/z") == std::vector{1, 2});
    REQUIRE(table->fallback() != nullptr);
    CHECK(hooks_of(table->fallback()) == std::vector{1, 2});
}

TEST_CASE("a table outlives its router, and a router that is moved keeps its groups") {
    std::shared_ptr<const RouteTable> table;
    {
        Router first;
        Router& group = first.group("/g");
        Router router = std::move(first);
        group.get("/a", TaggedHandler{7}).use(hook(1));
        table = built(router);
        CHECK(built(router) != table);
    }
    CHECK(tag_of(*table, Method::get, "/g/a") == 7);
    CHECK(hooks_at(*table, "/g/a") == std::vector{1});
}

TEST_CASE("handlers are plain or coroutines") {
    Router router;
    router.get("/plain", nothing);
    router.get("/task", [](Request&, Response&) -> Task<void> { co_return; });
    const auto table = built(router);
    const RouteMatch match = table->match(Method::get, "/plain");
    CHECK(match.route->handler.plain);
    CHECK_FALSE(match.route->handler.task);
    const RouteMatch other = table->match(Method::get, "/task");
    CHECK(other.route->handler.task);
    CHECK_FALSE(other.route->handler.plain);
}

TEST_CASE("the longest patterns that are taken") {
    Router router;
    router.get("/:a/:b/:c/:d/:e/:f/:g/:h/:i/:j/:k/:l/:m/:n/:o/*p", nothing);
    std::string deep;
    for (int i = 0; i < 63; ++i) {
        deep += "/s";
    }
    router.get(deep + "/:x", nothing);
    const auto table = built(router);
    const RouteMatch match = table->match(Method::get, "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17");
    REQUIRE(match.route != nullptr);
    REQUIRE(match.parameter_count() == kMaxRouteParameters);
    CHECK(match.parameter(14).value == "15");
    CHECK(match.parameter(15).name == "p");
    CHECK(match.parameter(15).value == "16/17");
    CHECK(outcome(*table, Method::post, deep + "/y") == "405 GET, HEAD, OPTIONS");
}

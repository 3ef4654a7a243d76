// Public.
// Which handler answers a request. A Router is filled by one thread before the server starts; starting builds
// from it an immutable RouteTable that all reactors read. Handlers and middleware are called by every reactor,
// at the same time: what they share, they must guard.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "penstock/engine/task.h"
#include "penstock/platform/error.h"
#include "penstock/protocols/http/middleware.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

class Request;
class Response;
class RouteTable;

// Called when the whole body has arrived, or right after the head with RouteOptions::stream_body. When it returns it must
// have answered or set a status, unless it has asked for a callback or called `response.defer()`. Request and Response
// outlive every callback.
using PlainHandler = std::function<void(Request&, Response&)>;
// A coroutine, started right after the head: it reads the body with `co_await request.read()` or `read_all()`. May suspend.
// Request and Response outlive it.
using TaskHandler = std::function<Task<void>(Request&, Response&)>;

// What one route sets apart from the server's Config: the same names there. 0: as there.
struct RouteOptions {
    std::uint64_t body_limit_bytes = 0;
    std::uint32_t body_timeout_ms = 0;
    std::uint32_t body_rate_min_bytes_per_s = 0;
    std::uint32_t request_timeout_ms = 0;  // kNoTimeout: none, although the server has one
    static constexpr std::uint32_t kNoTimeout = ~std::uint32_t{0};
    // Judged when the head is complete and has named its route, so they can be less than the server's, not more.
    std::uint32_t head_limit_bytes = 0;
    std::uint32_t header_count_limit = 0;
    // A request that may have a body (POST, PUT, PATCH, or one that is chunked) must say its length, or gets 411: for
    // handlers that must know it before they begin.
    bool length_required = false;
    // A plain handler is called right after the head and asks for the body itself, by `request.read(function)`. A coroutine
    // always does.
    bool stream_body = false;
    // A body that is sent as gzip, deflate, br or zstd is decoded before the handler sees any of it, in whatever way it takes
    // it; the body's limit then holds for what is sent and for what comes of it. Other codings, and several at once, get 415.
    // The fields stay as they came, Content-Length and Content-Encoding among them. Off, the body arrives as it was sent.
    bool decode_body = false;
};

// Either of the two.
struct Handler {
    PlainHandler plain;
    TaskHandler task;
    RouteOptions options;

    Handler() = default;
    template <class Function>
        requires std::is_invocable_v<Function&, Request&, Response&>
    Handler(Function function) {
        using Result = std::invoke_result_t<Function&, Request&, Response&>;
        static_assert(std::is_void_v<Result> || std::is_same_v<Result, Task<void>>,
                      "a handler returns void, or is a coroutine that returns Task<void>");
        if constexpr (std::is_void_v<Result>) {
            plain = std::move(function);
        } else {
            task = std::move(function);
        }
    }
};

class Router {
public:
    Router();
    ~Router();
    Router(Router&&) noexcept;
    Router& operator=(Router&&) noexcept;

    // Patterns begin with '/'. A segment ":name" takes one segment, a last segment "*name" the rest, which
    // may be empty, behind its slash: "/files/*path" is not "/files". Exact segments win over parameters, parameters over wildcards, segment by segment. Mistakes
    // (conflicts, duplicates, bad patterns) are collected and told by `build`.
    Router& get(std::string_view pattern, Handler handler, RouteOptions options = {});  // HEAD as well, unless it has a route
    Router& head(std::string_view pattern, Handler handler, RouteOptions options = {});
    Router& post(std::string_view pattern, Handler handler, RouteOptions options = {});
    Router& put(std::string_view pattern, Handler handler, RouteOptions options = {});
    Router& del(std::string_view pattern, Handler handler, RouteOptions options = {});
    Router& patch(std::string_view pattern, Handler handler, RouteOptions options = {});
    Router& options(std::string_view pattern, Handler handler, RouteOptions options = {});
    Router& any(std::string_view pattern, Handler handler, RouteOptions options = {});  // every method that has no route of its own, but TRACE
    Router& route(Method method, std::string_view pattern, Handler handler, RouteOptions options = {});

    // Routes added through the group get the prefix, and the middleware of this router and of the group, outer
    // first. The reference lives as long as this router.
    Router& group(std::string_view prefix);

    // For every route of this router or group, also those added before. In the order of the calls.
    Router& use(Middleware middleware);

    // Answers what no route matches, instead of the built-in 404. Only on the outermost router.
    Router& fallback(Handler handler);

    // Checks everything and makes the table; the error names the patterns at fault, both of a conflict.
    [[nodiscard]] Result<std::shared_ptr<const RouteTable>> build() const;

private:
    struct Node;  // this router or group: its prefix, routes, middleware and groups
    std::unique_ptr<Node> node_;
};

}  // namespace penstock

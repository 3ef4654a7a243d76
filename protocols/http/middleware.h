// Public.
// What wraps handlers: up to three hooks, flattened into one list per route when the router is built, so that a
// request walks an array and no chain of closures. Called by every reactor, at the same time.
#pragma once

#include <functional>

namespace penstock {

class Request;
class Response;

struct Middleware {
    // Before the handler, in order. Answering here (`response.send`, …) ends the request's way: neither later
    // middleware nor the handler runs.
    std::function<void(Request&, Response&)> before = {};
    // When the response head is about to be written, in reverse order: may change status and fields.
    std::function<void(const Request&, Response&)> head = {};
    // When the exchange ends, in reverse order, also when the peer has left: for counting and logging. Middleware runs
    // around routes and the fallback: what is refused before a route is found (400, 404, 405, …) does not pass here.
    std::function<void(const Request&, const Response&)> done = {};
};

}  // namespace penstock

// Public.
// Names a response that its handler has promised for later (`response.defer()`): what a callback of a database client, a
// timer or another thread holds instead of a reference that may be dead by then. A small value that may be copied.
//
//     router.get("/slow", [&client](Request&, Response& response) {
//         client.ask("…", [later = response.defer()](std::string answer) {  // on whatever thread
//             later.post([answer](Response& answered) { answered.send(answer); });
//         });
//     });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace penstock {

class Exchange;
class Http1;
class Response;
struct ReactorLink;

class DeferredResponse {
public:
    // Names none.
    DeferredResponse() = default;

    // The response, or nullptr when its exchange is over: answered, the client has left, the Server destroyed or started again. The pointer is
    // good until the function that asked returns; the Request is there for as long. On its reactor's thread: in handlers, in
    // their callbacks, in Timers started there. On another thread it throws std::logic_error.
    [[nodiscard]] Response* get() const;
    // Runs the function at once, with that response, as a callback of its handler: what it throws becomes 500. False, with nothing
    // run, when the exchange is over. On its reactor's thread, and not from within the handler or its callbacks.
    bool run(const std::function<void(Response&)>& function) const;
    // Runs the function there in a later turn, unless the exchange is over by then. What it throws becomes 500. False, with
    // nothing run, when the reactor has ended, or its mailbox is full: the client then waits until a time limit ends it, so
    // try again, or shed load earlier. Any thread, at any time.
    [[nodiscard]] bool post(std::function<void(Response&)> function) const;

private:
    friend class Exchange;
    DeferredResponse(Http1& http, std::uint32_t index, std::uint32_t generation, std::uint32_t message);
    [[nodiscard]] Exchange* find() const;

    std::shared_ptr<ReactorLink> link_;
    Http1* http_ = nullptr;         // lives as long as the reactor
    std::uint32_t index_ = 0;       // of the connection
    std::uint32_t generation_ = 0;
    std::uint32_t message_ = 0;     // on it
};

}  // namespace penstock

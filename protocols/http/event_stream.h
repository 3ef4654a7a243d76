// Public.
// Server-sent events (HTML Standard §9.2) as the body of a response, from a coroutine handler. It holds the text of the
// event that is being written and nothing else: no history, no list of subscribers, no timer. A local of the handler,
// which owns it, it must outlive the writes that it returns; the thread of the handler's reactor.
//
//     Task<void> ticks(Request& request, Response& response) {
//         EventStream events(response);
//         for (int i = 0; i < 60; ++i) {
//             co_await events.send({.event = "tick", .data = std::to_string(i)});
//             co_await sleep_ms(1'000);
//         }
//     }
//
// A client that leaves ends the handler at its co_await, but is noticed only by what is written when it went without a
// word: send `heartbeat` when there has been no event for a while (the standard recommends 15 seconds). After the
// handler's end a browser connects again; a status of 204 instead of a stream stops it (§9.2.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/protocols/http/response.h"

namespace penstock {

class EventStream {
public:
    struct Event {
        // The name under which the client listens; "message" when empty.
        std::string_view event{};
        // Text in UTF-8 of any number of lines. CR, LF and CRLF each end a line, and all arrive as LF (§9.2.6).
        std::string_view data{};
        // What the client sends as Last-Event-ID when it connects again; as before when empty.
        std::string_view id{};
        // How long it waits before that.
        std::optional<std::uint32_t> retry_ms{};
    };

    // Sets Content-Type and Cache-Control, and nothing leaves yet: the first write sends the head. `response` must not
    // be answered.
    explicit EventStream(Response& response);
    EventStream(const EventStream&) = delete;
    EventStream& operator=(const EventStream&) = delete;

    // `co_await events.send(…)` writes one event, with empty data as well, and waits while the client does not take what
    // was written before. What `event` points at need live only until `send` returns. Await each write before the next
    // call: they share one buffer.
    //
    // CR, LF and NUL are left out of the name and the id. They cannot be written there: a line break would let whoever
    // supplies the text forge a field or an event, and a client ignores an id with NUL. They are dropped rather than
    // refused because the stream is under way: no status can tell of it any more, and cutting the stream would only
    // have the client come back to the same event.
    [[nodiscard]] ResponseWrite send(const Event& event);
    // Text that clients pass over; one comment for each of its lines.
    [[nodiscard]] ResponseWrite comment(std::string_view text);
    // The shortest comment. Keeps the connection from looking idle to what is between, and finds out that a client went.
    // At the start of a stream it sends the head, so that the client knows that it is connected.
    [[nodiscard]] ResponseWrite heartbeat() { return response_.write(":\n\n"); }

private:
    void start_text();
    void append_lines(std::string_view start, std::string_view text);
    void append_field(std::string_view start, std::string_view value);

    Response& response_;
    std::string text_;  // what the write under way refers to; its memory is used again
};

}  // namespace penstock

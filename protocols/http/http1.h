// Internal.
// HTTP/1.0 and HTTP/1.1 on connections of one reactor and listener (RFC 9112). One exchange at a time per connection;
// pipelined requests are taken up in a loop, one after the other, until the output is full.
//
// Owned by a Reactor, used by its thread. Shares only the immutable RouteTable.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "penstock/engine/connection.h"
#include "penstock/engine/overloaded.h"
#include "penstock/engine/protocol.h"
#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/codec.h"
#include "penstock/protocols/http/exchange.h"
#include "penstock/protocols/http/response_head.h"
#include "penstock/protocols/http/target.h"

namespace penstock {

class RouteTable;
struct ResponseFraming;

class Http1 final : public Protocol, public Codec {
public:
    Http1(Reactor& reactor, std::shared_ptr<const RouteTable> routes);

    void on_input(Connection& connection) override;
    void on_drained(Connection& connection) override;
    void on_deadline(Connection& connection) override;
    void on_close(Connection& connection) override;
    [[nodiscard]] std::uint64_t oldest_arrival() const override;
    void end_oldest_arrival() override;
    void on_drain(Connection& connection) override;

    // The same as send_response of the most usual answer: a body of a few bytes on a connection that goes on. False,
    // with nothing done, for any other, and where there is no room for it.
    [[nodiscard]] bool try_send_at_once(Exchange& exchange, std::string_view body);

    void send_response(Exchange& exchange, const ResponseBody& body) override;
    bool begin_response(Exchange& exchange, std::uint64_t length) override;
    std::size_t write_piece(Exchange& exchange, std::string_view bytes) override;
    void write_last_piece(Exchange& exchange, std::string_view bytes) override;
    void end_response(Exchange& exchange) override;

    // ---- For its exchanges ----

    [[nodiscard]] const RouteTable& routes() const { return *routes_; }
    [[nodiscard]] HostMemo& hosts() { return hosts_; }
    // A handler has run on: it may have answered, and it may be done.
    void handler_advanced(Exchange& exchange);
    // Of what `guard` caught.
    void answer_for_thrown(Exchange& exchange, unsigned status);
    // The one with the `message`-th message of that connection, or nullptr when it is over.
    [[nodiscard]] Exchange* find_exchange(ConnectionToken token, std::uint32_t message);
    // Ends other requests that are still arriving and hold body memory, the oldest first, until so much of it is
    // free, and takes it. False, with none ended, when that would not be enough.
    [[nodiscard]] bool make_body_memory(Exchange& wanting, std::uint64_t bytes);
    // A handler waits for more of its request's body.
    void body_wanted(Exchange& exchange);
    // So many bytes were decoded, or worth as much: what is left of the turn may go to others.
    void count_coding(std::size_t decoded_bytes) { coded_bytes_ += decoded_bytes; }
    // Nothing of the request is waited for any longer.
    void stop_arriving(Exchange& exchange) {
        if (exchange.in_arriving_list) {
            leave_arriving(exchange);
        }
    }
    [[nodiscard]] bool output_is_full(Connection& connection) const;
    void end_for_time(Exchange& exchange);
    void log_about(Exchange& exchange, std::string_view text) const;
    void count_overloaded() const;
    // Runs a user's function; what it throws goes no further. 0, or the status that answers for what it threw: 503 for
    // Overloaded, which is counted only, since logging it would add to the load; 500 for all else, which is logged.
    template <class Function>
    [[gnu::always_inline]] unsigned guard(Exchange& exchange, Function function) const {
        try {
            function();
            return 0;
        } catch (const Overloaded&) {
            count_overloaded();
            return 503;
        } catch (const std::exception& exception) {
            log_about(exchange, std::string("it threw: ") + exception.what());
        } catch (...) {
            log_about(exchange, "it threw something that is no std::exception");
        }
        return 500;
    }
    // The same for the handler and its callbacks: what was thrown is answered for.
    template <class Function>
    void call(Exchange& exchange, Function function) {
        exchange.set_in_callback(true);
        const unsigned thrown = guard(exchange, function);
        exchange.set_in_callback(false);
        if (thrown != 0) {
            exchange.drop_handler();
            answer_for_thrown(exchange, thrown);
        }
    }

private:
    [[nodiscard]] static Exchange* exchange_of(Connection& connection) {
        return static_cast<Exchange*>(connection.session());
    }
    void take_up_requests(Connection& connection);
    [[nodiscard]] bool may_take_up(Connection& connection, int requests);
    [[nodiscard]] Exchange* begin_exchange(Connection& connection);
    [[nodiscard]] bool go_on(Exchange& exchange);
    [[nodiscard]] bool advance(Exchange& exchange);
    [[nodiscard]] bool wait_for_more(Exchange& exchange);
    [[nodiscard]] bool dispatch(Exchange& exchange);
    void call_handler(Exchange& exchange);
    void answer_without_route(Exchange& exchange);
    void finish_answer(Exchange& exchange);
    void pause_for_handler(Exchange& exchange);
    void end_unwanted_handler(Exchange& exchange);
    void end_early(Exchange& exchange, unsigned status);
    void answer_with_text(Exchange& exchange, unsigned status);
    void send_continue(Exchange& exchange);
    [[nodiscard]] bool keeps_connection(Exchange& exchange) const;
    // What it finds, try_send_at_once takes for granted: each new reason for another framing is one to refuse there,
    // too.
    [[nodiscard]] ResponseFraming decide_framing(Exchange& exchange);
    void append_piece(Exchange& exchange, std::string_view piece);
    [[nodiscard]] bool append_chunk(Connection& connection, std::string_view piece);
    void feed_body(Exchange& exchange);
    [[nodiscard]] bool feed_writer(Exchange& exchange);
    void end_exchange(Exchange& exchange);
    void end_specially(Exchange& exchange);
    void end_with_connection(Exchange& exchange);
    static void let_go(Exchange& exchange);
    void close_for_memory(Connection& connection);
    [[nodiscard]] Linger linger_for(Exchange& exchange) const;

    void refuse_unread(Connection& connection);
    [[nodiscard]] Exchange* oldest_arriving() const;
    void start_arriving(Exchange& exchange);
    void leave_arriving(Exchange& exchange);
    void rearm(Connection& connection);
    [[nodiscard]] std::uint32_t time_left_ms(const Exchange& exchange) const;
    const std::shared_ptr<const RouteTable> routes_;
    HostMemo hosts_;
    const Connection* in_input_ = nullptr;  // whose on_input runs
    bool in_flush_ = false;                 // a writer is fed from within a flush
    std::uint64_t coded_bytes_ = 0;         // by the requests that on_input has taken up
    Exchange* arriving_first_ = nullptr;
    Exchange* arriving_last_ = nullptr;
};

// Behind this response.
inline bool Http1::keeps_connection(Exchange& exchange) const {
    const std::uint32_t limit = reactor().config().requests_per_connection_limit;
    return !exchange.must_close && exchange.client_keeps_alive() && !exchange.response().wants_close() && !reactor().draining() &&
           (limit == 0 || exchange.connection()->message_count() < limit);
}

inline bool Http1::try_send_at_once(Exchange& exchange, std::string_view body) {
    const BlockPool& blocks = reactor().blocks();
    const unsigned status = exchange.response().status();
    const bool is_usual = exchange.is_connected() && exchange.message_complete && body.size() <= kCopyBodyLimitBytes &&
                          exchange.request().minor_version() == 1 && exchange.request().method() != Method::head &&
                          (status == 200 || may_have_body(status)) && keeps_connection(exchange);
    if (!is_usual || blocks.limit() - blocks.leased() < 2) [[unlikely]] {
        return false;  // 2: as many as it can take
    }
    return try_write_small_response(*exchange.connection(), exchange.response(), body);
}

// These two here, where Http1 is known.
inline void Exchange::destroy_empty() {
    BlockPool& pages = http_.reactor().pages();
    this->~Exchange();
    pages.release(reinterpret_cast<std::byte*>(this));
}

inline void Exchange::answer(const ResponseBody& body) {
    if (is_connected()) [[likely]] {
        http_.send_response(*this, body);
    } else {
        body.drop();
    }
}

}  // namespace penstock

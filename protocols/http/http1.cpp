#include "penstock/protocols/http/http1.h"

#include <algorithm>
#include <exception>
#include <string>

#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/content_coding.h"
#include "penstock/protocols/http/response_head.h"
#include "penstock/protocols/http/route_table.h"

namespace penstock {

Http1::Http1(Reactor& reactor, std::shared_ptr<const RouteTable> routes)
    : Protocol(reactor), routes_(std::move(routes)) {}

void Http1::on_input(Connection& connection) {
    in_input_ = &connection;
    coded_bytes_ = 0;
    take_up_requests(connection);
    in_input_ = nullptr;
    if (connection.is_open()) {
        if (exchange_of(connection) == nullptr && connection.input().empty() && connection.input_ended()) {
            connection.finish(Linger::no);  // all that it asked for is answered
        } else {
            rearm(connection);
        }
    }
}

void Http1::take_up_requests(Connection& connection) {
    for (int requests = 0; connection.is_open(); ++requests) {
        Exchange* exchange = exchange_of(connection);
        if (exchange == nullptr) [[likely]] {
            exchange = may_take_up(connection, requests) ? begin_exchange(connection) : nullptr;
            if (exchange == nullptr) {
                break;
            }
        } else if (exchange->attention() == Exchange::Attention::end) {
            end_unwanted_handler(*exchange);
            continue;
        } else if (!go_on(*exchange)) {
            break;
        }
        if (!advance(*exchange)) {
            break;
        }
    }
}

// Another request, behind so many in this turn.
inline bool Http1::may_take_up(Connection& connection, int requests) {
    if (connection.input().empty()) {
        return false;
    }
    if (!connection.output().empty() && output_is_full(connection)) [[unlikely]] {
        connection.pause_reading();  // on_drained goes on
        connection.want_room();
        return false;
    }
    if (requests == kRequestsPerTurn || coded_bytes_ >= kDecodedBytesPerTurn) [[unlikely]] {
        connection.resume_reading();  // by the ready list: others have waited for long enough
        return false;
    }
    return true;
}

inline Exchange* Http1::begin_exchange(Connection& connection) {
    Exchange* exchange = Exchange::try_create(*this, connection);
    if (exchange == nullptr && reactor().end_oldest_arrival()) [[unlikely]] {
        exchange = Exchange::try_create(*this, connection);  // in the page that came back
    }
    if (exchange == nullptr) [[unlikely]] {
        close_for_memory(connection);
        return nullptr;
    }
    connection.set_session(exchange);
    connection.count_message();
    return exchange;
}

// Sees to the handler of an exchange that is there already. True when it is more of its request that is to be parsed.
bool Http1::go_on(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    if (exchange.attention() == Exchange::Attention::callbacks) {
        handler_advanced(exchange);
        if (exchange_of(connection) == nullptr || exchange.attention() != Exchange::Attention::none || !connection.is_open()) {
            return false;
        }
    }
    if (exchange.waits_for_body()) {
        feed_body(exchange);
        return false;
    }
    return exchange.arriving();
}

// True when the exchange is over and the next request may be looked at.
inline bool Http1::advance(Exchange& exchange) {
    switch (exchange.parse()) {
        case Http1Parser::Outcome::need_more: return wait_for_more(exchange);
        case Http1Parser::Outcome::failed: end_early(exchange, exchange.parser().error_status()); return true;
        case Http1Parser::Outcome::head:
        case Http1Parser::Outcome::complete: break;
    }
    if (exchange.decodes_body()) [[unlikely]] {
        if (const unsigned status = exchange.finish_decoding(); status != 0) {
            end_early(exchange, status);
            return true;
        }
    }
    stop_arriving(exchange);
    exchange.change_state(ExchangeState::handling);
    return dispatch(exchange);
}

bool Http1::wait_for_more(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    if (connection.input_ended()) {
        end_early(exchange, 0);  // half a request, and no more will come
        return true;
    }
    if (exchange.parser().head_complete()) {
        if (exchange.state() == ExchangeState::head) {
            exchange.change_state(ExchangeState::body);
            stop_arriving(exchange);
            exchange.begin_body_wait();
        }
        if (exchange.route() == nullptr) {
            stop_arriving(exchange);
            exchange.change_state(ExchangeState::handling);
            exchange.must_close = true;  // its body is not waited for
            return dispatch(exchange);
        }
        if (std::exchange(exchange.expects_continue, false)) {
            send_continue(exchange);
        }
    }
    if (const unsigned status = exchange.make_room(); status != 0) {
        end_early(exchange, status);
        return true;
    }
    if (!exchange.in_arriving_list) {
        start_arriving(exchange);
    } else if (time_left_ms(exchange) == 0) {
        reactor().count().timeouts.add();
        end_early(exchange, 408);  // bytes now and then do not put it off
        return true;
    }
    return false;
}

// True when the exchange is over, false while its task runs on.
inline bool Http1::dispatch(Exchange& exchange) {
    if (exchange.route() == nullptr) [[unlikely]] {
        answer_without_route(exchange);
        end_exchange(exchange);
        return true;
    }
    call_handler(exchange);
    if (!exchange.answered_plainly()) {
        if (!exchange.handler_done()) {
            pause_for_handler(exchange);
            return false;
        }
        finish_answer(exchange);
    }
    end_exchange(exchange);
    return true;
}

inline void Http1::call_handler(Exchange& exchange) {
    call(exchange, [this, &exchange] {
        if (exchange.has_hooks()) {
            exchange.run_before_hooks();
            if (exchange.response().answered() || !exchange.connection()->is_open()) {
                return;
            }
        }
        const Handler& handler = exchange.route()->handler;
        if (handler.plain) [[likely]] {
            handler.plain(exchange.request(), exchange.response());
            return;
        }
        exchange.start_task();
        if (!exchange.has_task()) {
            answer_with_text(exchange, 503);  // no memory for its frame
        }
    });
    if (exchange.has_callbacks()) {
        exchange.run_callbacks();
    }
}

// The handler has returned: what it left undone is done, or told.
void Http1::finish_answer(Exchange& exchange) {
    if (exchange.has_task() && exchange.task_exception()) {
        answer_for_thrown(exchange, guard(exchange, [&exchange] { std::rethrow_exception(exchange.task_exception()); }));
    }
    if (exchange.response().streaming()) {
        exchange.response().finish_stream();
    }
    if (exchange.response().answered() || !exchange.connection()->is_open()) {
        return;
    }
    if (exchange.response().status_set()) {
        exchange.response().send_empty();
    } else {
        log_about(exchange, "the handler returned without an answer; call response.send or set a status");
        answer_with_text(exchange, 500);
    }
}

void Http1::handler_advanced(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    exchange.run_callbacks();
    if (!connection.is_open()) {
        return;  // on_close comes for it
    }
    if (exchange.handler_done()) {
        finish_answer(exchange);
        end_exchange(exchange);
        connection.resume_reading();  // what was pipelined behind it
    } else {
        pause_for_handler(exchange);
        rearm(connection);
    }
    if (in_flush_) {
        connection.come_back();  // one step a turn: others have theirs meanwhile
        return;
    }
    connection.flush_later();
}

// While its handler runs nothing is read, unless the handler wants it or has something to be looked at.
void Http1::pause_for_handler(Exchange& exchange) {
    if (!exchange.waits_for_body() && exchange.attention() == Exchange::Attention::none) {
        exchange.connection()->pause_reading();
    }
}

void Http1::answer_without_route(Exchange& exchange) {
    if (exchange.allow.empty()) {
        answer_with_text(exchange, 404);
        return;
    }
    exchange.response().header("Allow", exchange.allow);
    if (exchange.request().method() == Method::options) {
        exchange.response().status(204).send_empty();
    } else {
        answer_with_text(exchange, 405);
    }
}

// The request is not served to its end: it is malformed, too large or too slow, or others need its memory. What follows it on
// the connection cannot be trusted to be a request; what was answered before it still leaves. 0: there is nobody to tell.
void Http1::end_early(Exchange& exchange, unsigned status) {
    reactor().count().request_errors.add(status != 0 ? 1 : 0);
    if (exchange.arriving()) {
        exchange.change_state(ExchangeState::handling);
    }
    exchange.must_close = true;
    exchange.drop_handler();
    if (!exchange.pinned()) {
        exchange.release_body();
    }
    if (exchange.response().answered()) {
        exchange.response().cut();
    } else if (status != 0) {
        exchange.response().clear();
        answer_with_text(exchange, status);
    }
    end_exchange(exchange);
}

void Http1::answer_with_text(Exchange& exchange, unsigned status) {
    Response& response = exchange.response();
    const std::string_view phrase = status_phrase(status);
    response.status(status);
    if (status == 503) {
        response.header("Retry-After", "1");
    }
    if (status == 415) {
        response.header("Accept-Encoding", accepted_codings());  // RFC 9110 §15.5.16
    }
    response.send_static(phrase);
}

void Http1::answer_for_thrown(Exchange& exchange, unsigned status) {
    if (exchange.response().answered()) {
        exchange.response().cut();
        exchange.must_close = true;
    } else {
        exchange.response().clear();
        answer_with_text(exchange, status);
    }
}

void Http1::log_about(Exchange& exchange, std::string_view text) const {
    if (reactor().logs()) {
        std::string line(method_name(exchange.request().method()));
        line.append(" ").append(exchange.route_name()).append(": ").append(text.substr(0, kLogTextLimitBytes));
        // What a handler has from its client must not look like a line of its own.
        std::replace_if(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
        reactor().log(LogLevel::error, line);
    }
}

void Http1::count_overloaded() const { reactor().count().overloaded.add(); }

void Http1::send_continue(Exchange& exchange) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    Connection& connection = *exchange.connection();
    reactor().make_output_room(1, connection);
    if (!connection.output().try_append_copy(reactor().blocks(), kContinue)) {
        close_for_memory(connection);
    }
}

// Half an answer would be worse than none.
void Http1::close_for_memory(Connection& connection) {
    reactor().count().output_refused.add();
    connection.close();
}

void Http1::end_exchange(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    stop_arriving(exchange);
    exchange.change_state(ExchangeState::done);
    reactor().count().requests.add(exchange.response().answered() ? 1 : 0);
    if (exchange.holds_more() || exchange.has_hooks() || exchange.must_close || !exchange.message_complete ||
        !connection.is_open()) [[unlikely]] {
        end_specially(exchange);
        return;
    }
    exchange.consume_message();
    connection.set_session(nullptr);
    exchange.destroy_empty();
}

void Http1::end_specially(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    // A function that was offloaded may refer to the request: its bytes stay, and nothing is read behind them.
    const bool is_used = exchange.pinned() && exchange.task_runs();
    exchange.must_close |= is_used;
    exchange.run_abort_callback();
    exchange.run_done_hooks();
    if (connection.is_open()) {
        if (!exchange.message_complete && !exchange.must_close) {
            exchange.skip_arrived_body();  // of a body that was to be read while the response was written
        }
        exchange.must_close |= !exchange.message_complete;
        if (exchange.message_complete && !is_used) {
            exchange.consume_message();
        }
    }
    if (exchange.must_close) {
        end_with_connection(exchange);
    } else {
        let_go(exchange);
    }
}

void Http1::let_go(Exchange& exchange) {
    exchange.connection()->set_session(nullptr);
    if (exchange.pinned()) {
        exchange.park();
    } else {
        exchange.destroy();
    }
}

void Http1::end_with_connection(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    const Linger linger = linger_for(exchange);
    let_go(exchange);
    connection.finish(linger);
}

// A client that asked for the end and has sent nothing further can be closed at once: no reset can come of it. Where the
// end is our idea, or bytes are unread, something may be on its way.
Linger Http1::linger_for(Exchange& exchange) const {
    Connection& connection = *exchange.connection();
    if (exchange.response().is_cut() && exchange.response().ends_with_connection()) {
        return Linger::reset;  // a clean end would be that of the body
    }
    const bool client_asked = exchange.message_complete && !exchange.client_keeps_alive();
    return client_asked && connection.input().empty() && !connection.may_receive_more() ? Linger::no : Linger::yes;
}

void Http1::send_response(Exchange& exchange, const ResponseBody& body) {
    Connection& connection = *exchange.connection();
    if (!exchange.message_complete) [[unlikely]] {
        if (exchange.streams_body() && !exchange.must_close) {
            exchange.skip_arrived_body();
        }
        exchange.must_close |= !exchange.message_complete;  // an unknown part of the request's body is on its way
    }
    ResponseFraming framing = decide_framing(exchange);
    framing.has_body = body.kind != ResponseBody::Kind::none;
    framing.length = body.size();
    BlockPool& blocks = reactor().blocks();
    const std::size_t copied = body.kind == ResponseBody::Kind::copied ? body.bytes.size() : 0;
    const std::size_t wanted_blocks = copied / OutputQueue::kMaxReserveBytes + 2;
    if (blocks.limit() - blocks.leased() < wanted_blocks) [[unlikely]] {
        reactor().make_output_room(wanted_blocks, connection);
    }
    if (!write_response(connection.output(), blocks, exchange.response(), framing, body)) [[unlikely]] {
        close_for_memory(connection);
    }
}

ResponseFraming Http1::decide_framing(Exchange& exchange) {
    const bool keep = keeps_connection(exchange);
    exchange.must_close = !keep;
    return {
        .keep_alive = keep,
        .say_keep_alive = keep && exchange.request().minor_version() == 0,
        .head_only = exchange.request().method() == Method::head,
        .date_field = reactor().date_field(),
    };
}

Exchange* Http1::find_exchange(ConnectionToken token, std::uint32_t message) {
    Connection* const connection = reactor().connections().find(token);
    if (connection == nullptr || !connection->is_open() || &connection->protocol() != this ||
        connection->message_count() != message) {
        return nullptr;
    }
    Exchange* const exchange = exchange_of(*connection);
    return exchange != nullptr && !exchange->response().complete() ? exchange : nullptr;
}

}  // namespace penstock

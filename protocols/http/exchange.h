// Internal.
// One request and its response on one connection: parser state, Request, Response, the handler's Task, and the arena
// they use. It lies at the head of its arena's first page, so taking up a request is taking a page.
//
// Owned by the Http1 that made it, through its connection's session; when the connection dies while an offloaded
// function still refers into the Task, it is parked until that is back. Its reactor's thread only.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "penstock/engine/arena.h"
#include "penstock/engine/connection.h"
#include "penstock/engine/ensure.h"
#include "penstock/engine/task.h"
#include "penstock/protocols/http/codec.h"
#include "penstock/protocols/http/http1_parser.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"
#include "penstock/protocols/http/route_table.h"

namespace penstock {

class DeferredResponse;
class Http1;
class ResponseWrite;
class RouteMatch;
struct Alarm;
struct BodyDecoding;
struct Callbacks;

//   head ──head complete, more to come──► body ──message complete, refused──► handling ──handler returned──► done
//     └──────────────────────message complete, refused─────────────────────────►┘
//
// In head and body bytes are still arriving; an exchange that has to wait for them is in Http1's list of arriving ones.
enum class ExchangeState : std::uint8_t { head, body, handling, done };

class Exchange final : public TaskOwner {
public:
    // In a page leased from the reactor; nullptr when there is none.
    [[nodiscard]] static Exchange* try_create(Http1& http, Connection& connection);
    // Gives everything back, its own memory included.
    void destroy();
    // The same of one that holds nothing beside its arena, as most do. Inline, defined in http1.h.
    void destroy_empty();
    [[nodiscard]] bool holds_more() const {
        return are_any_set(callbacks_, decoding_, request_alarm_, head_block_, parked_block_, heap_body_,
                           response_.encoding_) ||
               task_ || pins_ != 0;
    }

    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    [[nodiscard]] Request& request() { return request_; }
    [[nodiscard]] Response& response() { return response_; }
    [[nodiscard]] Http1Parser& parser() { return parser_; }
    [[nodiscard]] Arena& arena() { return arena_; }
    [[nodiscard]] Http1& http() const { return http_; }
    // nullptr once the connection has gone.
    [[nodiscard]] Connection* connection() const { return connection_; }
    [[nodiscard]] const Route* route() const { return route_; }
    // Its pattern, for logs; "" before a route is found.
    [[nodiscard]] std::string_view route_name() const;

    [[nodiscard]] ExchangeState state() const { return state_; }
    // Of the reactor's clock: when its first byte was there.
    [[nodiscard]] std::uint32_t begin_ms() const { return begin_ms_; }
    void change_state(ExchangeState to) {
        const bool forward = to > state_;
        const bool handled_first = to != ExchangeState::done || state_ == ExchangeState::handling;
        ensure(forward && handled_first, "exchange: no such step from its state");
        state_ = to;
    }
    [[nodiscard]] bool arriving() const { return state_ <= ExchangeState::body; }

    // Parses what the connection's input holds.
    [[nodiscard]] Http1Parser::Outcome parse();
    // Makes room for more input when the block is full. 0, or the status to refuse with: 431, 413, 503.
    [[nodiscard]] unsigned make_room();
    // Takes the message's bytes out of the input.
    void consume_message() { connection_->input().consume(std::exchange(parsed_bytes_, 0)); }
    void release_body();
    [[nodiscard]] std::uint64_t body_memory_bytes() const;

    // The parser's reports. Each returns 0 or the status to refuse with.
    [[nodiscard]] unsigned head_arrived(const RequestLine& line);
    // The same head once more, now that its route is known, whose own limits hold from here on.
    [[nodiscard]] unsigned apply_route_limits(std::size_t head_bytes);
    [[nodiscard]] unsigned body_arrived(const char* data, std::size_t size);
    // Of Content-Length, 0 without one. Known when the head has arrived.
    [[nodiscard]] std::uint64_t content_length() const { return content_length_; }
    // The client's wish, by version and Connection field. Known when the head has arrived.
    [[nodiscard]] bool client_keeps_alive() const { return client_keeps_alive_; }

    // What the route allows a body.
    [[nodiscard]] std::uint64_t body_limit_bytes() const;
    [[nodiscard]] std::uint32_t body_timeout_ms() const;
    [[nodiscard]] std::uint32_t body_rate_min_bytes_per_s() const;

    // ---- A body that its handler reads piece by piece ----

    // The handler is a coroutine: it starts when the head is complete and asks for the body itself.
    [[nodiscard]] bool streams_body() const;
    enum class BodyStep : std::uint8_t { piece, end, wait };
    // Lets go of the piece before and makes the next one, `request().body()`, of what has arrived.
    [[nodiscard]] BodyStep next_piece();
    // Not because nothing has arrived, but because others have waited for long enough: it goes on in the next turn.
    [[nodiscard]] bool waits_for_turn() const;
    // No piece can be had now: `reader` is resumed when there is one, or the body ends.
    void wait_for_body(std::coroutine_handle<> reader);
    // The coroutine that waits is destroyed, and its handler may go on without it.
    void forget_body_reader();
    [[nodiscard]] bool waits_for_body() const;
    void resume_body_reader();
    // From here on the peer's time for the body runs, unless it is not the peer that is waited for.
    void begin_body_wait();
    // It is the peer again.
    void go_on_with_body_wait();
    void end_body_wait();
    // The body cannot be had: the status to refuse with, or 0.
    [[nodiscard]] unsigned body_error() const { return body_error_; }
    void set_body_error(unsigned status) { body_error_ = static_cast<std::uint16_t>(status); }
    // Keeps a piece, behind those kept before, beyond the next one. 0, or 503.
    [[nodiscard]] unsigned keep_piece(std::string_view piece);
    // All pieces that were kept become the body.
    void show_kept_body() { request_.body_ = {heap_body_, kept_bytes_}; }
    // What the handler gets is not what arrives.
    [[nodiscard]] bool decodes_body() const { return decoding_ != nullptr; }
    // All of a body that is taken whole has arrived. 0, or 400 when its coding has not come to its end.
    [[nodiscard]] unsigned finish_decoding();
    // Reads over what has arrived, so that the connection can go on when that was all.
    void skip_arrived_body();
    // The time that the peer still has for its next bytes: a fixed one, and more for each byte that came.
    [[nodiscard]] std::uint32_t body_time_left_ms() const;

    // ---- A response that its handler writes piece by piece ----

    // `writer` is resumed when the output has room again.
    void wait_for_room(ResponseWrite* writer);
    [[nodiscard]] ResponseWrite* writer() const { return writer_; }
    [[nodiscard]] bool output_is_full() const;
    [[nodiscard]] bool is_connected() const { return connection_ != nullptr && connection_->is_open(); }
    // Nobody takes what the handler writes: it ends where it is.
    void end_handler_later();
    // To the codec, unless the connection has gone.
    [[nodiscard]] bool begin_response(std::uint64_t length);
    [[nodiscard]] std::size_t write_piece(std::string_view bytes);
    void write_last_piece(std::string_view bytes);
    void end_response();

    // ---- A plain handler that goes on after it has returned ----

    [[nodiscard]] DeferredResponse defer();
    void call_with_piece(std::function<void(std::string_view)> function);
    void call_when_written(std::string_view bytes, std::function<void()> function);
    void call_when_written(std::string&& bytes, std::function<void()> function);
    // A write waits for room, with bytes that have not found any.
    [[nodiscard]] bool has_unwritten_bytes() const;
    void call_on_abort(std::function<void()> function);
    // A callback was asked for, or an answer given, perhaps from outside of the handler.
    void notice_change() {
        if (has_callbacks()) {
            come_back_for_callbacks();
        }
    }
    [[nodiscard]] bool has_callbacks() const { return callbacks_ != nullptr; }
    // What Http1 is to do when the connection has its turn by the ready list.
    enum class Attention : std::uint8_t { none, callbacks, end };
    [[nodiscard]] Attention attention() const { return attention_; }
    // Runs the callbacks whose time has come.
    void run_callbacks();
    // A posted function has the answer.
    void run_deferred(const std::function<void(Response&)>& function);
    // The room that the handler waits for is there.
    void continue_writer(std::coroutine_handle<> writer);
    // Tells the handler that its answer did not get through, where it asked for that.
    void run_abort_callback();
    // Marks a time in which it is the handler that runs.
    void set_in_callback(bool value) { in_callback_ = value; }

    // The handler does nothing more: it has returned, its coroutine has ended, and no callback is to come.
    [[nodiscard]] bool handler_done() const;
    // The same of most: a plain handler that has answered with a whole body, and asked for nothing else.
    [[nodiscard]] bool answered_plainly() const {
        return response_.answered() && !response_.streaming() && !has_callbacks() && !has_task();
    }
    // It ends here, wherever it waits.
    void drop_handler();

    // Starts and continues the handler's coroutine.
    void start_task();
    [[nodiscard]] bool has_task() const { return static_cast<bool>(task_); }
    // Its coroutine is suspended, and not at its end.
    [[nodiscard]] bool task_runs() const { return task_ && !task_.done(); }
    [[nodiscard]] std::exception_ptr task_exception() const { return task_.exception(); }
    void resume(std::coroutine_handle<> handle) override;
    void pin() override { ++pins_; }
    [[nodiscard]] bool pinned() const { return pins_ != 0; }
    // It is over, but a function that was offloaded and not awaited still runs: destroyed when that is back.
    void park();
    void resume_pinned(std::coroutine_handle<> handle) override;
    // The connection has gone. Destroys the exchange, or parks it until the last pin is resumed.
    void abandon();

    // Of its route. Without any those below do nothing.
    [[nodiscard]] bool has_hooks() const { return route_ != nullptr && !route_->middleware.empty(); }
    void run_before_hooks();
    void run_head_hooks();
    void run_done_hooks();

    // The handler's answer, from Response. Inline, defined in http1.h.
    void answer(const ResponseBody& body);
    void abort();

    // Links of Http1's list of arriving exchanges, oldest first; only while it is in the list.
    Exchange* arriving_next;
    Exchange* arriving_previous;
    std::uint64_t arrival;  // Reactor::number_arrival
    // What the path's other methods are, where no route was found.
    std::string_view allow;
    bool in_arriving_list = false;
    bool expects_continue = false;
    // The whole request has arrived.
    bool message_complete = false;
    // The connection ends with this exchange.
    bool must_close = false;

private:
    Exchange(Http1& http, Connection& connection, std::byte* page);
    ~Exchange() = default;

    template <class... Pointers>
    [[nodiscard]] static bool are_any_set(Pointers... pointers) {
        return ((reinterpret_cast<std::uintptr_t>(pointers) | ...)) != 0;
    }
    void release_more();
    void come_back_for_callbacks();
    [[nodiscard]] unsigned judge_route_limits(std::size_t head_bytes);
    [[nodiscard]] unsigned check_fields();
    [[nodiscard]] unsigned check_framing();
    [[nodiscard]] bool read_connection_field() const;
    [[nodiscard]] bool chunked_comes_last() const;
    [[nodiscard]] unsigned find_route(const RequestLine& line);
    [[nodiscard]] unsigned take_target(std::string_view text, bool* has_encoded_slash);
    [[nodiscard]] unsigned keep_parameters(const RouteMatch& match, bool has_encoded_slash);
    [[nodiscard]] unsigned restore_slashes();
    [[nodiscard]] const RouteOptions& route_options() const;
    [[nodiscard]] bool may_lack_length() const;
    [[nodiscard]] unsigned start_request_time(std::uint32_t limit_ms);
    void stop_request_time();
    void let_go_of_piece();
    [[nodiscard]] BodyStep next_sent_piece();
    [[nodiscard]] BodyStep next_decoded_piece();
    [[nodiscard]] unsigned prepare_decoding();
    [[nodiscard]] bool decodes_as_it_comes() const;
    [[nodiscard]] unsigned decode_arrived(std::string_view bytes);
    [[nodiscard]] unsigned decode_piece();
    [[nodiscard]] bool may_decode_now();
    [[nodiscard]] bool make_decoder();
    [[nodiscard]] bool charge_decoder(std::size_t more_bytes);
    void stop_decoding();
    void release_decoder();
    void release_decoding();
    [[nodiscard]] unsigned move_body_to_heap(std::size_t capacity);
    [[nodiscard]] unsigned grow_body(std::size_t wanted);
    Callbacks& make_callbacks();
    Callbacks& start_write(std::function<void()> function);
    void destroy_callbacks();
    [[nodiscard]] bool read_for_callback();
    [[nodiscard]] bool write_for_callback();
    void give_piece(std::string_view piece);
    void finish_write();

    Arena arena_;
    Http1& http_;
    Connection* connection_;
    Http1Parser parser_;
    // What begins as nothing stands together, so that a few wide stores begin it.
    const Route* route_ = nullptr;
    Task<void> task_;
    Callbacks* callbacks_ = nullptr;     // in the arena
    BodyDecoding* decoding_ = nullptr;   // in the arena; none where the body is taken as it was sent
    Alarm* request_alarm_ = nullptr;     // in the arena; rings when all the time for request and answer is over
    std::byte* head_block_ = nullptr;    // the block of the head, once the body has moved to the heap
    std::byte* parked_block_ = nullptr;  // the input's block, once the connection has gone from a parked exchange
    char* heap_body_ = nullptr;          // counted against the reactor's body memory
    std::uint64_t heap_capacity_ = 0;
    std::uint64_t kept_bytes_ = 0;
    std::uint64_t content_length_ = 0;
    std::uint64_t received_body_bytes_ = 0;
    std::coroutine_handle<> body_reader_;
    ResponseWrite* writer_ = nullptr;
    std::uint32_t body_wait_begin_ms_ = 0;
    std::uint32_t body_waited_ms_ = 0;
    std::uint32_t pins_ = 0;
    std::uint32_t parsed_bytes_ = 0;  // of the input, from its data()
    std::uint16_t body_error_ = 0;
    bool body_time_runs_ = false;
    bool in_callback_ = false;
    bool done_hooks_run_ = false;
    bool client_keeps_alive_ = false;
    Attention attention_ = Attention::none;
    ExchangeState state_ = ExchangeState::head;
    std::uint32_t begin_ms_;
    Response response_;
    Request request_;  // last: its field table is the part that stays untouched
};

}  // namespace penstock

// The part of Http1 that serves handlers which read and write bodies piece by piece.
#include <algorithm>
#include <charconv>

#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/http1.h"
#include "penstock/protocols/http/response_head.h"

namespace penstock {

// ---- Reading -------------------------------------------------------------------------------------------

void Http1::body_wanted(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    // Not within a response: there the client would take it for a part of that.
    if (std::exchange(exchange.expects_continue, false) && exchange.body_error() == 0 && !exchange.response().answered()) {
        send_continue(exchange);
        connection.flush_later();
    }
    start_arriving(exchange);
    if (in_input_ == &connection && exchange.body_error() == 0 && !exchange.waits_for_turn()) {
        connection.keep_reading();  // all that has arrived is used up
    } else {
        connection.resume_reading();  // later: its handler is still suspending
    }
}

// Something came for a handler that waits for it: bytes, the end of the connection, or a fault in them.
void Http1::feed_body(Exchange& exchange) {
    if (exchange.body_time_left_ms() == 0) {
        reactor().count().timeouts.add();
        end_early(exchange, 408);  // bytes now and then do not put it off
    } else if (exchange.body_error() == 0 && exchange.next_piece() != Exchange::BodyStep::wait) {
        stop_arriving(exchange);
        exchange.resume_body_reader();
    } else if (exchange.body_error() != 0) {
        end_early(exchange, exchange.body_error());
    } else if (exchange.waits_for_turn()) {
        exchange.connection()->resume_reading();
    } else if (exchange.connection()->input_ended()) {
        end_early(exchange, 0);  // half a body, and no more will come
    } else {
        exchange.go_on_with_body_wait();
    }
}

// ---- Writing -------------------------------------------------------------------------------------------

bool Http1::begin_response(Exchange& exchange, std::uint64_t length) {
    Connection& connection = *exchange.connection();
    const bool modern = exchange.request().minor_version() == 1;
    ResponseFraming framing = decide_framing(exchange);
    framing.has_length = length != kNoLength;
    framing.length = length;
    framing.chunked = modern && !framing.has_length;
    if (!modern && !framing.has_length && may_have_body(exchange.response().status())) {
        framing.keep_alive = framing.say_keep_alive = false;  // the end of the connection ends the body
        exchange.must_close = true;
    }
    reactor().make_output_room(1, connection);
    if (!write_head(connection.output(), reactor().blocks(), exchange.response(), framing)) {
        close_for_memory(connection);
    }
    return framing.chunked;
}

std::size_t Http1::write_piece(Exchange& exchange, std::string_view bytes) {
    Connection& connection = *exchange.connection();
    const OutputQueue& output = connection.output();
    const BlockPool& blocks = reactor().blocks();
    // When more than half of the blocks are in use a stream makes do with one: many slow readers share what there is
    // before any of them has to give way.
    const bool scarce = blocks.leased() > blocks.limit() / 2;
    const std::uint64_t high_water =
        scarce ? OutputQueue::kMaxReserveBytes / 2 : reactor().config().output_high_water_bytes;
    if (bytes.empty() || output.memory_bytes() >= high_water) {
        return 0;
    }
    // At least a page, so that chunks near the mark do not get tiny.
    const auto room = std::max<std::uint64_t>(high_water - output.memory_bytes(), kPageBytes);
    const std::string_view piece = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size())));
    const std::size_t blocks_needed = piece.size() / OutputQueue::kMaxReserveBytes + 2;
    if (blocks.limit() - blocks.leased() < blocks_needed && !output.empty()) {
        return 0;  // goes on when some of this connection's own output has left
    }
    append_piece(exchange, piece);
    return connection.is_open() ? piece.size() : bytes.size();
}

void Http1::write_last_piece(Exchange& exchange, std::string_view bytes) { append_piece(exchange, bytes); }

void Http1::append_piece(Exchange& exchange, std::string_view piece) {
    Connection& connection = *exchange.connection();
    reactor().make_output_room(piece.size() / OutputQueue::kMaxReserveBytes + 2, connection);
    const bool appended = exchange.response().chunked() ? append_chunk(connection, piece)
                                                        : connection.output().try_append_copy(reactor().blocks(), piece);
    if (!appended) {
        close_for_memory(connection);
    }
}

bool Http1::append_chunk(Connection& connection, std::string_view piece) {
    char line[18];
    char* const end = std::to_chars(line, line + 16, piece.size(), 16).ptr;
    end[0] = '\r';
    end[1] = '\n';
    OutputQueue& output = connection.output();
    BlockPool& blocks = reactor().blocks();
    return output.try_append_copy(blocks, {line, static_cast<std::size_t>(end + 2 - line)}) &&
           output.try_append_copy(blocks, piece) && output.try_append_copy(blocks, "\r\n");
}

void Http1::end_response(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    reactor().make_output_room(1, connection);
    if (!write_last_chunk(connection.output(), reactor().blocks(), exchange.response())) {
        close_for_memory(connection);
    }
}

// The answer is as long as it will get; what the handler would still write is for nobody.
void Http1::end_unwanted_handler(Exchange& exchange) {
    if (exchange.response().streaming()) {
        exchange.response().finish_stream();
    }
    exchange.drop_handler();
    end_exchange(exchange);
}

// The output has room again: the rest of the piece that waits goes into it, and then its writer goes on. False while
// it still waits.
bool Http1::feed_writer(Exchange& exchange) {
    Connection& connection = *exchange.connection();
    ResponseWrite& writer = *exchange.writer();
    writer.rest_ = writer.response_.write_some(writer.rest_);
    if (connection.waits_for_disk()) {
        return false;  // on_drained comes when it has answered
    }
    connection.come_back();  // what was written now leaves in the next turn: others have theirs meanwhile
    if (!writer.rest_.empty() ||
        connection.output().memory_bytes() > reactor().config().output_high_water_bytes / 2) {
        connection.want_room();
        return false;
    }
    exchange.wait_for_room(nullptr);
    in_flush_ = true;
    exchange.continue_writer(writer.writer_);
    in_flush_ = false;
    return true;
}

}  // namespace penstock

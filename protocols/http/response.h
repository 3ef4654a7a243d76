// Public.
// The response that a handler makes: status and fields first, then one of the `send` calls, which hands it over.
// Belongs to the reactor's thread that calls the handler. What is wrong in it (a field with a line break, a second
// answer) never leaves: it is logged with the route, and the client gets 500 if nothing else was sent.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "penstock/protocols/http/tables.h"

namespace penstock {

class Arena;
class DeferredResponse;
class Exchange;
class PreparedField;
class ResponseEncoding;
class ResponseWrite;
struct ResponseBody;

// Some text, and behind it a part of a file: of a body that is made of several.
struct FilePart {
    std::string_view text{};
    std::uint64_t offset = 0;
    std::uint64_t size = 0;  // bytes of the file; 0: the text alone
};

class Response {
public:
    Response(const Response&) = delete;
    Response& operator=(const Response&) = delete;

    // 200 when never called. 200 to 599.
    Response& status(unsigned code);
    [[nodiscard]] unsigned status() const { return status_; }

    // Sets a field, replacing those of that name. Copies. Content-Length, Transfer-Encoding and Date are the
    // server's own; "Connection: close" is honoured.
    Response& header(std::string_view name, std::string_view value);
    // The same without a look at the name. `unknown` is a mistake.
    Response& header(HeaderName name, std::string_view value);
    // The same of a field that has been checked already.
    Response& header(const PreparedField& field);
    // Not even copied: it must live as long as the server.
    Response& header_static(const PreparedField& field);
    Response& header_static(const PreparedField&& field) = delete;
    // Adds one more of that name (Set-Cookie, Vary, …).
    Response& add_header(std::string_view name, std::string_view value);
    Response& add_header(const PreparedField& field);
    // The value set so far, or a null view.
    [[nodiscard]] std::string_view header(std::string_view name) const;
    [[nodiscard]] std::string_view header(HeaderName name) const;

    // Answers with a body. Unless a Content-Type is set it is text/plain; charset=utf-8.
    void send(std::string_view body);  // copies
    void send(const char* body) { send(body != nullptr ? std::string_view(body) : std::string_view()); }
    void send(std::string&& body);     // takes over: no copy when it is large
    void send_static(std::string_view body);  // not copied: must live as long as the server
    // Not copied either: they must live until `release(owner)` is called, once, on this thread: when they have left,
    // or do not leave. It must not touch the response.
    void send_kept(std::string_view body, void* owner, void (*release)(void*));
    // The same with Content-Type application/json; the text must be JSON already.
    void json(std::string_view body);
    void json(const char* body) { json(body != nullptr ? std::string_view(body) : std::string_view()); }
    void json(std::string&& body);
    // A part of an open file, by sendfile. Takes over the descriptor. Set the Content-Type.
    void send_file(int fd, std::uint64_t offset, std::uint64_t size);
    // The same, of a descriptor that stays open until `release(owner)` is called, once, on this thread.
    void send_kept_file(int fd, std::uint64_t offset, std::uint64_t size, void* owner, void (*release)(void*));
    // Several parts of one open file, each behind a text of its own, as multipart/byteranges has them. Takes over the
    // descriptor; copies the texts.
    void send_file_parts(int fd, std::span<const FilePart> parts);
    // Answers without a body: for 204, 304, redirects.
    void send_empty();
    // Ends the connection without an answer, behind those to earlier requests.
    void abort();

    // ---- In a plain handler: an answer that comes later ----

    // The answer may be given after the handler has returned, by whoever holds what this gives. Until then nothing
    // more is read from the client, and what the request holds stays leased: for ever, if it never comes, unless
    // request_timeout_ms bounds it.
    [[nodiscard]] DeferredResponse defer();
    // Called once when the exchange ends although the response is not complete: a limit was reached, the server ends,
    // the handler threw, or the client has left, which is seen when it resets the connection or does not take what is
    // written. One that has only finished sending is still answered. The request may still be looked at; the response
    // is dead. Replaces the former one. Coroutines need none: they are destroyed.
    void on_abort(std::function<void()> function);

    // ---- A body written piece by piece ----

    // What all calls of `write` will bring together. Without it the length is not announced: the body is chunked for
    // HTTP/1.1 and ends with the connection for HTTP/1.0.
    Response& content_length(std::uint64_t bytes);
    // In a coroutine: `co_await response.write(bytes)` sends the head with its first call. Copies `bytes` into the
    // output as there is room for them, which must live until it returns; waits while the client does not take what
    // was written before. When the client leaves, or takes no body (HEAD, 204, 304), the coroutine is destroyed where
    // it waits.
    [[nodiscard]] ResponseWrite write(std::string_view bytes);
    // The same in a plain handler: calls the function once when all of `bytes` is in the output and there is room for
    // more, never from within this call. What there is room for is copied now; `bytes` must live until the call of
    // `on_written`, which may be empty. One write at a time: another throws std::logic_error. It is dropped when the
    // client leaves or takes no body. A body that nobody goes on to write, and that is not deferred, is ended.
    void write(std::string_view bytes, std::function<void()> on_written);
    void write(const char* bytes, std::function<void()> on_written) {
        write(std::string_view(bytes), std::move(on_written));
    }
    void write(std::string&& bytes, std::function<void()> on_written);  // keeps what there is no room for yet
    // A field behind a chunked body (RFC 9110 §6.5), in the order of the calls; dropped where the body is not chunked.
    Response& trailer(std::string_view name, std::string_view value);
    // Ends a body written piece by piece; the end of the handler does it as well. Less than `content_length`, or a
    // write that still waits, is a mistake: the connection is closed, so that the client learns that something is
    // missing.
    void end();

    // Whether one of the calls above has been made.
    [[nodiscard]] bool answered() const { return answered_; }
    // All of it has been handed over.
    [[nodiscard]] bool complete() const { return answered_ && stream_ != Stream::open; }
    // Whether a status was set.
    [[nodiscard]] bool status_set() const { return status_set_; }
    // Only of a body that is written piece by piece.
    [[nodiscard]] bool chunked() const { return chunked_; }
    // A body is being written piece by piece.
    [[nodiscard]] bool streaming() const { return stream_ == Stream::open; }
    // The handler wants the connection to end with this response.
    [[nodiscard]] bool wants_close() const { return close_; }
    // Bytes of the body handed over, as they leave; 0 before.
    [[nodiscard]] std::uint64_t body_bytes() const { return body_bytes_; }

private:
    friend class Exchange;
    friend class Http1;
    friend class ResponseEncoding;
    friend class ResponseHeadWriter;
    friend struct ResponseTest;

    // As it leaves: "Name: value\r\n", in the arena behind this or where a PreparedField has it.
    struct Field {
        Field* next;
        const char* line;
        std::uint16_t line_size;
        std::uint16_t name_size;
        HeaderName known;

        [[nodiscard]] std::string_view name() const { return {line, name_size}; }
        [[nodiscard]] std::string_view value() const { return {line + name_size + 2, line_size - name_size - 4u}; }
    };

    explicit Response(Exchange& exchange) : end_(&first_), exchange_(exchange) {}
    // Puts a field in place of others of its name, or behind them.
    Response& put_field(HeaderName known, std::string_view name, std::string_view value, bool replaces);
    Response& put_field(const PreparedField& field, bool replaces, bool copies);
    // One that is wrong, or not for a program to set.
    void take_special_field(HeaderName known, std::string_view name, std::string_view value);
    enum class Stream : std::uint8_t { none, open, ended, cut };

    friend class ResponseWrite;
    [[nodiscard]] bool try_send_at_once(std::string_view body);
    void deliver_copied(std::string_view body);
    void deliver_fixed(std::string_view body);
    void deliver(const ResponseBody& body);
    void refuse_second_answer(const ResponseBody& body);
    void deliver_specially(const ResponseBody& body);
    void hand_over(const ResponseBody& body);
    void hand_over_error(const ResponseBody& body);
    [[nodiscard]] bool begin_stream();
    void open_stream();
    // As `end`, also for a whole body that leaves piece by piece.
    void finish_stream();
    void refuse_second_body() const;
    // Gives back what encoding the body holds.
    void release_encoding();
    void destroy_encoding();
    [[nodiscard]] bool takes_more() const;
    // Copies what the output has room for and returns the rest.
    [[nodiscard]] std::string_view write_some(std::string_view bytes);
    // For a field that takes `line_bytes` of the head, with so many `own_bytes` behind it. Where there is none the
    // response has failed.
    [[nodiscard]] void* field_memory(std::string_view name, std::size_t line_bytes, std::size_t own_bytes);
    void fail_for_memory(std::string_view name, std::size_t bytes);
    // In memory that has room for a copy of the line behind it.
    [[nodiscard]] static Field* make_field(void* memory, HeaderName known, std::string_view name,
                                           std::string_view value);
    [[nodiscard]] static Field* make_field(void* memory, const PreparedField& field, bool copies);
    [[nodiscard]] Field* make_trailer(HeaderName known, std::string_view name, std::string_view value);
    void append(Field* field);
    void remove(std::string_view name);
    void remove(HeaderName known, std::string_view name);
    void remove_all(HeaderName known, std::string_view name);
    [[nodiscard]] bool has_content_type() const { return (names_set_ & bit_of(HeaderName::content_type)) != 0; }
    void fail(const char* reason, std::string_view about);
    // Back to an empty 200, for the server's own answer in place of the handler's.
    void clear();
    void start_error();
    // The rest of a body that is written piece by piece does not come.
    void cut() { stream_ = stream_ == Stream::open ? Stream::cut : Stream::ended; }
    [[nodiscard]] bool is_cut() const { return stream_ == Stream::cut; }
    // Of a body that is written piece by piece: neither chunks nor a length say where it ends.
    [[nodiscard]] bool ends_with_connection() const { return !chunked_ && !has_length_ && !body_dropped_; }

    // What begins as nothing stands together, so that a few wide stores begin it.
    Field* first_ = nullptr;
    Field* first_trailer_ = nullptr;
    ResponseEncoding* encoding_ = nullptr;  // in the arena; none where no middleware wants one
    std::uint64_t body_bytes_ = 0;
    std::uint64_t names_set_ = 0;    // bits of HeaderName; that of `unknown` also when all such were removed again
    std::uint32_t field_bytes_ = 0;  // of all lines, those of trailers included
    bool status_set_ = false;
    bool answered_ = false;
    bool failed_ = false;
    bool close_ = false;
    bool has_length_ = false;
    bool chunked_ = false;
    bool body_dropped_ = false;  // HEAD, 204, 304
    Stream stream_ = Stream::none;
    std::uint16_t status_ = 200;
    Field** end_;  // where the next field is linked
    Exchange& exchange_;
    std::uint64_t length_;   // while has_length_
    Field* last_trailer_;    // while there is a first
};

// What `Response::write` gives to co_await.
class ResponseWrite {
public:
    ResponseWrite(Response& response, std::string_view bytes) : response_(response), rest_(bytes) {}
    // Only before it is awaited.
    ResponseWrite(ResponseWrite&& other) noexcept : response_(other.response_), rest_(other.rest_) {}
    ResponseWrite& operator=(ResponseWrite&&) = delete;
    ~ResponseWrite();

    bool await_ready();
    void await_suspend(std::coroutine_handle<> writer);
    void await_resume() const {}

private:
    friend class Exchange;
    friend class Http1;
    Response& response_;
    std::string_view rest_;
    std::coroutine_handle<> writer_;
};

}  // namespace penstock

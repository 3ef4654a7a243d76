// Public.
// A request as a handler sees it: views into the bytes that arrived. They stay valid until the exchange ends,
// suspensions of a Task included. Belongs to the reactor's thread that calls the handler.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>

#include "penstock/engine/task.h"
#include "penstock/platform/address.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

class Arena;
class BodyRead;
class Exchange;
class Http1Parser;
class PlainHead;
struct TlsInfo;

struct HeaderField {
    std::string_view name;
    std::string_view value;
};

class Request {
public:
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    [[nodiscard]] Method method() const { return method_; }
    // As sent: "GET /a%20b?c HTTP/1.1" has the target "/a%20b?c".
    [[nodiscard]] std::string_view target() const { return target_; }
    // Decoded once, dot segments resolved: "/a b". Compare and open this one, never decode it again. A slash that was
    // sent encoded, and so is data, stands in it as NUL.
    [[nodiscard]] std::string_view path() const { return path_; }
    // After '?', as sent.
    [[nodiscard]] std::string_view query() const { return query_; }
    // The first value of a query parameter, decoded ('+' is a space); a null view (data() == nullptr) when there is none
    // or its escapes are broken.
    [[nodiscard]] std::string_view query_parameter(std::string_view name) const;
    // What ":name" or "*name" of the route's pattern took, decoded; a null view when the pattern has no such name. An encoded
    // slash is a slash here; a "." or ".." between slashes never is.
    [[nodiscard]] std::string_view parameter(std::string_view name) const;
    // 0 or 1: HTTP/1.0 or HTTP/1.1.
    [[nodiscard]] unsigned minor_version() const { return minor_version_; }
    // The host that the client means: of the target in absolute form, else of the Host field (RFC 9112 §3.2.2).
    [[nodiscard]] std::string_view host() const { return host_; }

    // The first value of a field, without white space around it; a null view when the field is absent.
    [[nodiscard]] std::string_view header(HeaderName name) const {
        return has(name) ? value_at(first_known_[static_cast<std::size_t>(name)]) : std::string_view{};
    }
    [[nodiscard]] std::string_view header(std::string_view name) const;
    // More than one field of that name has come.
    [[nodiscard]] bool repeated(HeaderName name) const {
        return (repeated_known_ & bit_of(name)) != 0;
    }
    // All fields, in the order in which they came.
    [[nodiscard]] std::size_t header_count() const { return field_count_; }
    [[nodiscard]] HeaderField header_at(std::size_t index) const;

    // For a plain handler the whole body. For a coroutine the piece that `read` gave last, or all after `read_all`.
    [[nodiscard]] std::string_view body() const { return body_; }
    // In a coroutine: `co_await request.read()` gives the next bytes of the body, valid until the next read, or an empty view
    // at its end. Nothing more is received until they are asked for: that is how a slow handler slows its client. When the
    // client leaves, breaks the framing or exceeds a limit, the coroutine is destroyed where it waits.
    [[nodiscard]] BodyRead read();
    // The same in a plain handler with RouteOptions::stream_body: calls the function once, when there is a piece, which is valid
    // until it returns; never from within this call. For the next piece it asks again. Without stream_body the whole
    // body is one piece. One read at a time: another throws std::logic_error. When the client leaves it is dropped (see
    // Response::on_abort).
    void read(std::function<void(std::string_view)> on_piece);
    // In a coroutine: the whole body, valid until the exchange ends. Counts against body_memory_limit_bytes.
    [[nodiscard]] Task<std::string_view> read_all();

    // Fields that came behind a chunked body (RFC 9110 §6.5), in their order; valid until the exchange ends. Known when the
    // body is complete: in a plain handler at once, in a coroutine when `read` has given its empty view; none before. They
    // are no headers and never become any. What only a head can say is left out: Content-Length, Transfer-Encoding,
    // Trailer, Host, Connection, Keep-Alive, TE, Upgrade, Expect.
    // The first value of a field, without white space around it; a null view when there is none of that name.
    [[nodiscard]] std::string_view trailer(std::string_view name) const;
    [[nodiscard]] std::size_t trailer_count() const { return trailer_count_; }
    [[nodiscard]] HeaderField trailer_at(std::size_t index) const { return trailers_[index]; }

    [[nodiscard]] const PeerAddress& peer() const { return peer_; }
    // What protects the connection; nullptr when nothing does, or it is over. Goes with the connection: a coroutine asks again after
    // it has waited, and an offloaded function not at all.
    [[nodiscard]] const TlsInfo* tls() const;

private:
    friend class Exchange;
    friend class Http1Parser;
    friend class PlainHead;

    // A head fits a block of 16 KiB, so offsets from its start fit 16 bits.
    struct Field {
        std::uint16_t name_offset;
        std::uint16_t name_size;
        std::uint16_t value_offset;
        std::uint16_t value_size;
        HeaderName known;
    };
    static constexpr std::size_t kInlineFields = 24;

    Request(Arena& arena, Exchange& exchange) : arena_(arena), exchange_(exchange) {}
    // The head's first byte for now.
    void set_base(const char* base) { base_ = base; }
    void forget_fields() {
        field_count_ = 0;
        seen_known_ = repeated_known_ = 0;
    }
    // Both lie in the head. False when the arena has no room.
    [[nodiscard]] bool add_field(std::string_view name, std::string_view value, HeaderName known) {
        const auto offset = [this](const char* place) { return static_cast<std::uint16_t>(place - base_); };
        if (field_count_ == field_capacity_ && !grow_fields()) {
            return false;
        }
        if (known != HeaderName::unknown) {
            const std::uint64_t bit = bit_of(known);
            if ((seen_known_ & bit) == 0) {
                first_known_[static_cast<std::size_t>(known)] = field_count_;
            }
            repeated_known_ |= seen_known_ & bit;
            seen_known_ |= bit;
        }
        fields_[field_count_++] = {offset(name.data()), static_cast<std::uint16_t>(name.size()), offset(value.data()),
                                   static_cast<std::uint16_t>(value.size()), known};
        return true;
    }
    [[nodiscard]] bool grow_fields();
    // `lines`: so many checked lines, each with its CRLF, then an empty one; they live in the arena. False likewise.
    [[nodiscard]] bool set_trailers(std::string_view lines, std::size_t count);
    static_assert(kKnownHeaders <= 64);
    [[nodiscard]] bool has(HeaderName name) const { return (seen_known_ & bit_of(name)) != 0; }
    [[nodiscard]] bool has_any(std::initializer_list<HeaderName> names) const {
        std::uint64_t bits = 0;
        for (const HeaderName name : names) {
            bits |= bit_of(name);
        }
        return (seen_known_ & bits) != 0;
    }
    [[nodiscard]] std::string_view value_at(std::size_t index) const {
        return text(fields_[index].value_offset, fields_[index].value_size);
    }
    [[nodiscard]] std::string_view text(std::uint16_t offset, std::uint16_t size) const {
        return {base_ + offset, size};
    }

    Arena& arena_;
    Exchange& exchange_;
    const char* base_ = nullptr;  // the head's first byte
    std::array<Field, kInlineFields> inline_fields_;  // left as they are until used
    Field* fields_ = inline_fields_.data();
    std::uint16_t field_count_ = 0;
    std::uint16_t field_capacity_ = kInlineFields;
    std::uint16_t trailer_count_ = 0;
    Method method_ = Method::other;
    std::uint8_t minor_version_ = 1;
    std::array<std::uint16_t, kKnownHeaders> first_known_;  // place of the first such field, if it was seen
    std::uint64_t seen_known_ = 0;      // a bit for each HeaderName, but none for `unknown`
    std::uint64_t repeated_known_ = 0;  // likewise
    std::string_view target_;
    std::string_view path_;
    std::string_view query_;
    std::string_view host_;
    std::string_view body_;
    PeerAddress peer_;
    HeaderField* parameters_ = nullptr;
    std::size_t parameter_count_ = 0;
    HeaderField* trailers_ = nullptr;
};

// What `Request::read` gives to co_await.
class BodyRead {
public:
    explicit BodyRead(Exchange& exchange) : exchange_(exchange) {}
    // Only before it is awaited.
    BodyRead(BodyRead&& other) noexcept : exchange_(other.exchange_) {}
    BodyRead& operator=(BodyRead&&) = delete;
    ~BodyRead();

    bool await_ready();
    void await_suspend(std::coroutine_handle<> reader);
    std::string_view await_resume();

private:
    Exchange& exchange_;
    bool waits_ = false;
};

}  // namespace penstock

#include "penstock/protocols/http/response_head.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "penstock/engine/config.h"
#include "penstock/engine/connection.h"
#include "penstock/engine/http_date.h"
#include "penstock/engine/reactor.h"
#include "penstock/platform/net.h"
#include "penstock/protocols/http/copy_text.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

// Knows the fields of a Response; writes heads and trailers.
class ResponseHeadWriter {
public:
    ResponseHeadWriter(const Response& response, const ResponseFraming& framing)
        : response_(response), framing_(framing) {}

    // Of what is no field of the program's: the longest status line, Date, the longest Content-Length, Content-Type and
    // Connection fields, and the empty line.
    static constexpr std::size_t kFixedBytes = 192;

    // No less than `write` needs.
    [[nodiscard]] std::size_t size_bound() const {
        return kFixedBytes + response_.field_bytes_;
    }
    [[nodiscard]] char* write(char* out) const;
    // The same of a status that may have a body.
    [[nodiscard]] char* write_with_body(char* out) const;
    [[nodiscard]] static bool write_last_chunk(OutputQueue& output, BlockPool& blocks, const Response& response);

private:
    [[nodiscard]] static char* put_fields(char* out, const Response::Field* field);
    [[nodiscard]] static char* put_status(char* out, unsigned status);
    [[nodiscard]] char* put_beginning(char* out) const;
    [[nodiscard]] char* put_body_fields(char* out) const;
    [[nodiscard]] char* put_end(char* out) const;
    const Response& response_;
    const ResponseFraming& framing_;
};

namespace {

constexpr char kTextType[] = "Content-Type: text/plain; charset=utf-8\r\n";
constexpr char kLengthName[] = "Content-Length: ";
constexpr char kChunked[] = "Transfer-Encoding: chunked\r\n";
constexpr char kClose[] = "Connection: close\r\n";
constexpr char kKeepAlive[] = "Connection: keep-alive\r\n";
constexpr char kLineEnd[] = "\r\n";
constexpr std::size_t kDateFieldBytes = sizeof("Date: \r\n") - 1 + kHttpDateBytes;
constexpr std::size_t bytes_of(std::string_view literal) { return literal.size(); }
constexpr std::size_t kNumberBytes = std::numeric_limits<std::uint64_t>::digits10 + 1;

}  // namespace

static_assert(ResponseHeadWriter::kFixedBytes >=
                  kLongestStatusLineBytes + kDateFieldBytes + bytes_of(kTextType) +
                      std::max(bytes_of(kLengthName) + kNumberBytes + bytes_of(kLineEnd), bytes_of(kChunked)) +
                      std::max(bytes_of(kClose), bytes_of(kKeepAlive)) + bytes_of(kLineEnd),
              "a head's own lines are longer than kFixedBytes");
static_assert(kResponseFieldsLimitBytes + 512 <= OutputQueue::kMaxReserveBytes, "a response's head fits one reserve");

namespace {

constexpr std::string_view kRefusal =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "Connection: close\r\n"
    "Retry-After: 1\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 46\r\n"
    "\r\n"
    "The server is full at the moment; try again.\r\n";
static_assert(kRefusal.size() - kRefusal.find("\r\n\r\n") - 4 == 46);

constexpr std::string_view kPlainTextRefusal =
    "HTTP/1.1 400 Bad Request\r\n"
    "Connection: close\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 55\r\n"
    "\r\n"
    "This port speaks TLS: use https:// in place of http://\n";
static_assert(kPlainTextRefusal.size() - kPlainTextRefusal.find("\r\n\r\n") - 4 == 55);

// Each part has a descriptor of its own, since the output closes them one by one.
[[nodiscard]] bool append_parts(OutputQueue& output, BlockPool& blocks, const ResponseBody& body) {
    bool appended = true;
    for (const FilePart& part : body.parts) {
        appended = appended && output.try_append_copy(blocks, part.text);
        if (appended && part.size > 0) {
            const IoResult own = platform::duplicate_descriptor(body.file.fd);
            const FileRange range{static_cast<int>(own.count), part.offset, part.size};
            appended = own.ok() && output.try_append_file(blocks, range);
            if (own.ok() && !appended) {
                platform::close_descriptor(range.fd);
            }
        }
    }
    body.drop();
    return appended;
}

[[nodiscard]] bool append_body(OutputQueue& output, BlockPool& blocks, const ResponseBody& body) {
    switch (body.kind) {
        case ResponseBody::Kind::none: return true;
        case ResponseBody::Kind::copied: return output.try_append_copy(blocks, body.bytes);
        case ResponseBody::Kind::fixed: return output.try_append_external(blocks, body.bytes, nullptr, nullptr);
        case ResponseBody::Kind::owned: return output.try_append_string(blocks, std::move(*body.owned));
        case ResponseBody::Kind::parts: return append_parts(output, blocks, body);
        case ResponseBody::Kind::kept:
        case ResponseBody::Kind::file: break;
    }
    const bool appended = body.kind == ResponseBody::Kind::file
                              ? output.try_append_file(blocks, body.file)
                              : output.try_append_external(blocks, body.bytes, body.owner, body.release);
    if (!appended) {
        body.drop();
    }
    return appended;
}

}  // namespace

std::uint64_t ResponseBody::file_bytes() const {
    if (kind == Kind::file) {
        return file.size;
    }
    std::uint64_t size = 0;
    for (const FilePart& part : parts) {
        size += part.text.size() + part.size;
    }
    return size;
}

void ResponseBody::drop() const {
    switch (kind) {
        case Kind::kept: release(owner); break;
        case Kind::file:
        case Kind::parts: file.drop(); break;
        default: break;
    }
}

std::string_view refusal_text() { return kRefusal; }

std::string_view plain_text_refusal() { return kPlainTextRefusal; }

bool write_head(OutputQueue& output, BlockPool& blocks, const Response& response, const ResponseFraming& framing) {
    const ResponseHeadWriter writer(response, framing);
    const std::span<char> room = output.try_reserve(blocks, writer.size_bound());
    if (room.empty()) {
        return false;
    }
    output.commit(static_cast<std::size_t>(writer.write(room.data()) - room.data()));
    return true;
}

bool write_response(OutputQueue& output, BlockPool& blocks, const Response& response,
                    const ResponseFraming& framing, const ResponseBody& body) {
    const ResponseHeadWriter writer(response, framing);
    const bool in_memory = body.is_in_memory();
    const std::string_view bytes = in_memory ? body.in_memory() : std::string_view();
    const bool with_body = !framing.head_only && (!in_memory || !bytes.empty()) && may_have_body(response.status());
    const std::size_t head_bound = writer.size_bound();
    const bool behind_head = with_body && in_memory && bytes.size() <= kCopyBodyLimitBytes &&
                             head_bound + bytes.size() <= OutputQueue::kMaxReserveBytes;
    const std::span<char> room = output.try_reserve(blocks, head_bound + (behind_head ? bytes.size() : 0));
    if (room.empty()) [[unlikely]] {
        body.drop();
        return false;
    }
    char* end = writer.write(room.data());
    if (behind_head) {
        end = copy_text(end, bytes);
    }
    output.commit(static_cast<std::size_t>(end - room.data()));
    if (with_body && !behind_head) {
        return append_body(output, blocks, body);
    }
    if (body.kind >= ResponseBody::Kind::kept) {
        body.drop();
    }
    return true;
}

bool try_write_small_response(Connection& connection, const Response& response, std::string_view body) {
    Reactor& reactor = connection.reactor();
    OutputQueue& output = connection.output();
    const ResponseFraming framing{.date_field = reactor.date_field(), .length = body.size()};
    const ResponseHeadWriter writer(response, framing);
    const std::size_t bound = writer.size_bound() + body.size();
    if (bound > OutputQueue::kMaxReserveBytes) [[unlikely]] {
        return false;
    }
    const std::span<char> room = output.try_reserve(reactor.blocks(), bound);
    if (room.empty()) [[unlikely]] {
        return false;
    }
    char* const end = copy_text(writer.write_with_body(room.data()), body);
    output.commit(static_cast<std::size_t>(end - room.data()));
    return true;
}

bool write_last_chunk(OutputQueue& output, BlockPool& blocks, const Response& response) {
    return ResponseHeadWriter::write_last_chunk(output, blocks, response);
}

bool ResponseHeadWriter::write_last_chunk(OutputQueue& output, BlockPool& blocks, const Response& response) {
    constexpr std::size_t kFrameBytes = 5;  // "0\r\n\r\n"
    const std::span<char> room = output.try_reserve(blocks, kFrameBytes + response.field_bytes_);
    if (room.empty()) {
        return false;
    }
    char* end = put_fields(copy_literal(room.data(), "0\r\n"), response.first_trailer_);
    end = copy_literal(end, "\r\n");
    output.commit(static_cast<std::size_t>(end - room.data()));
    return true;
}

// Those of these that are forced are called at two places, in the general writing of a head and in that of small
// responses, and a compiler would rather keep them apart: that costs each answer fifty instructions of a hundred.
[[gnu::always_inline]] inline char* ResponseHeadWriter::put_fields(char* out, const Response::Field* field) {
    for (; field != nullptr; field = field->next) {
        out = copy_text(out, {field->line, field->line_size});
    }
    return out;
}

[[gnu::always_inline]] inline char* ResponseHeadWriter::put_status(char* out, unsigned status) {
    return status == 200 ? copy_literal(out, "HTTP/1.1 200 OK\r\n") : copy_text(out, status_line(status));
}

namespace {

// Of a size that is known when this is compiled, as the reactor has it.
[[nodiscard]] inline char* put_date(char* out, std::string_view field) {
    if (field.size() != kDateFieldBytes) [[unlikely]] {
        return copy_text(out, field);
    }
    std::memcpy(out, field.data(), kDateFieldBytes);
    return out + kDateFieldBytes;
}

// Most lengths have few digits.
[[nodiscard]] inline char* put_number(char* out, std::uint64_t number) {
    if (number < 10) {
        *out = static_cast<char>('0' + number);
        return out + 1;
    }
    if (number < 100) {
        out[0] = static_cast<char>('0' + number / 10);
        out[1] = static_cast<char>('0' + number % 10);
        return out + 2;
    }
    return std::to_chars(out, out + kNumberBytes, number).ptr;
}

}  // namespace

// Up to what says where the body ends.
[[gnu::always_inline]] inline char* ResponseHeadWriter::put_beginning(char* out) const {
    out = put_date(put_status(out, response_.status_), framing_.date_field);
    return put_fields(out, response_.first_);
}

[[gnu::always_inline]] inline char* ResponseHeadWriter::put_body_fields(char* out) const {
    if (!response_.has_content_type() && framing_.has_body) {
        out = copy_literal(out, kTextType);
    }
    if (framing_.chunked) {
        out = copy_literal(out, kChunked);
    } else if (framing_.has_length) {
        out = copy_literal(put_number(copy_literal(out, kLengthName), framing_.length), kLineEnd);
    }
    return out;
}

inline char* ResponseHeadWriter::put_end(char* out) const {
    if (!framing_.keep_alive) [[unlikely]] {
        out = copy_literal(out, kClose);
    } else if (framing_.say_keep_alive) [[unlikely]] {
        out = copy_literal(out, kKeepAlive);
    }
    return copy_literal(out, kLineEnd);
}

char* ResponseHeadWriter::write(char* out) const {
    return may_have_body(response_.status_) ? write_with_body(out) : put_end(put_beginning(out));
}

[[gnu::always_inline]] inline char* ResponseHeadWriter::write_with_body(char* out) const {
    return put_end(put_body_fields(put_beginning(out)));
}

}  // namespace penstock

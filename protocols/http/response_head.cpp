#include "penstock/protocols/http/response_head.h"

#include <charconv>
#include <cstring>

#include "penstock/engine/config.h"
#include "penstock/platform/net.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

// Knows the fields of a Response; writes heads and trailers.
class ResponseHeadWriter {
public:
    ResponseHeadWriter(const Response& response, const ResponseFraming& framing)
        : response_(response), framing_(framing) {}

    // No less than `write` needs.
    [[nodiscard]] std::size_t size_bound() const {
        return kFixedBytes + status_line(response_.status_).size() + response_.field_bytes_;
    }
    [[nodiscard]] char* write(char* out) const;
    [[nodiscard]] static bool write_last_chunk(OutputQueue& output, BlockPool& blocks, const Response& response);

private:
    [[nodiscard]] static char* put_fields(char* out, const Response::Field* field);
    // Date, the longest Content-Length, Content-Type and Connection fields, and the empty line.
    static constexpr std::size_t kFixedBytes = 192;

    const Response& response_;
    const ResponseFraming& framing_;
};

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

[[nodiscard]] char* put(char* out, std::string_view text) {
    std::memcpy(out, text.data(), text.size());
    return out + text.size();
}

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

std::uint64_t ResponseBody::size() const {
    if (kind != Kind::parts) {
        return kind == Kind::file ? file.size : in_memory().size();
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
// 1xx, 204 and 304 have no body and no length that would announce one (RFC 9110 §6.4.1, §8.6).
bool may_have_body(unsigned status) { return status >= 200 && status != 204 && status != 304; }

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
    const bool with_body = may_have_body(response.status()) && !framing.head_only && body.size() > 0;
    const std::string_view bytes = body.in_memory();
    const std::size_t head_bound = writer.size_bound();
    const bool behind_head = with_body && body.is_in_memory() && bytes.size() <= kCopyBodyLimitBytes &&
                             head_bound + bytes.size() <= OutputQueue::kMaxReserveBytes;
    const std::size_t reserve = head_bound + (behind_head ? bytes.size() : 0);
    const std::span<char> room = output.try_reserve(blocks, reserve);
    if (room.empty()) {
        body.drop();
        return false;
    }
    char* end = writer.write(room.data());
    if (behind_head) {
        end = put(end, bytes);
    }
    output.commit(static_cast<std::size_t>(end - room.data()));
    if (!with_body || behind_head) {
        body.drop();
        return true;
    }
    return append_body(output, blocks, body);
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
    char* end = put_fields(put(room.data(), "0\r\n"), response.first_trailer_);
    end = put(end, "\r\n");
    output.commit(static_cast<std::size_t>(end - room.data()));
    return true;
}

char* ResponseHeadWriter::put_fields(char* out, const Response::Field* field) {
    for (; field != nullptr; field = field->next) {
        out = put(out, field->name);
        out = put(out, ": ");
        out = put(out, field->value);
        out = put(out, "\r\n");
    }
    return out;
}

char* ResponseHeadWriter::write(char* out) const {
    out = put(out, status_line(response_.status_));
    out = put(out, framing_.date_field);
    out = put_fields(out, response_.first_);
    if (may_have_body(response_.status_)) {
        if (!response_.has_content_type_ && framing_.has_body) {
            out = put(out, "Content-Type: text/plain; charset=utf-8\r\n");
        }
        if (framing_.chunked) {
            out = put(out, "Transfer-Encoding: chunked\r\n");
        } else if (framing_.has_length) {
            out = put(out, "Content-Length: ");
            out = std::to_chars(out, out + 20, framing_.length).ptr;
            out = put(out, "\r\n");
        }
    }
    if (!framing_.keep_alive) {
        out = put(out, "Connection: close\r\n");
    } else if (framing_.say_keep_alive) {
        out = put(out, "Connection: keep-alive\r\n");
    }
    return put(out, "\r\n");
}

}  // namespace penstock

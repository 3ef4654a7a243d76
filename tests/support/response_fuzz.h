// Internal.
// The half of http1_codec_fuzz that is about responses: fields, body and framing of a fuzzer's choice through Response
// and the writers of response_head.h. What leaves is one response, as a strict reader sees it, with exactly what was
// asked for; or it was refused at the call. Its thread alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/engine/config.h"
#include "penstock/engine/output_queue.h"
#include "penstock/engine/reactor.h"
#include "penstock/protocols/http/codec.h"
#include "penstock/protocols/http/response.h"
#include "penstock/protocols/http/response_head.h"
#include "support/strict_response.h"

namespace penstock::fuzz {

// How many lines the library has logged: one for each mistake in a response.
inline std::uint64_t g_log_lines = 0;

inline void require(bool condition, const char* what, std::string_view about = "", std::string_view more = "") {
    if (!condition) {
        about = about.substr(0, 4'000);
        more = more.substr(0, 4'000);
        std::fprintf(stderr, "http1_codec_fuzz: %s\n%.*s\n----\n%.*s\n", what, static_cast<int>(about.size()), about.data(),
                     static_cast<int>(more.size()), more.data());
        std::abort();
    }
}

// Takes an input apart; of what it lacks everything is 0.
class Bytes {
public:
    explicit Bytes(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
    [[nodiscard]] bool empty() const { return rest_.empty(); }
    std::uint8_t byte() {
        const std::uint8_t value = rest_.empty() ? 0 : rest_[0];
        rest_ = rest_.subspan(rest_.empty() ? 0 : 1);
        return value;
    }
    std::string text(std::size_t size) {
        const auto part = rest_.first(std::min(size, rest_.size()));
        rest_ = rest_.subspan(part.size());
        return {part.begin(), part.end()};
    }

private:
    std::span<const std::uint8_t> rest_;
};

// What a handler asks for, and what must come of it.
struct Wish {
    unsigned status = 200;
    std::vector<strict::Field> fields;
    std::size_t field_bytes = 0;
    bool close = false;
    bool has_type = false;

    // The rule for names and values, as response.h states it. `*written`: false for what the server writes itself.
    [[nodiscard]] bool allows(const strict::Field& field, bool* written) {
        const std::string name = strict::lowered(field.name);
        *written = name != "connection";
        if (!strict::is_token(name) || !strict::is_field_text(field.value) || name == "content-length" ||
            name == "transfer-encoding" || name == "date" || (!*written && strict::lowered(field.value) != "close")) {
            return false;
        }
        close = close || !*written;
        has_type = has_type || name == "content-type";
        return true;
    }
    // What means nothing behind a body (tables.h) may not be a trailer.
    [[nodiscard]] static bool allows_trailer(const strict::Field& field) {
        const std::string name = strict::lowered(field.name);
        for (const char* for_heads_only : {"content-length", "transfer-encoding", "trailer", "host", "connection",
                                           "keep-alive", "te", "upgrade", "expect"}) {
            if (name == for_heads_only) {
                return false;
            }
        }
        return strict::is_token(name) && strict::is_field_text(field.value);
    }
    void remove(std::string_view name) {
        std::erase_if(fields, [&](const strict::Field& field) {
            const bool same = strict::lowered(field.name) == strict::lowered(name);
            field_bytes -= same ? size_of(field) : 0;
            return same;
        });
    }
    [[nodiscard]] static std::size_t size_of(const strict::Field& field) {
        return field.name.size() + field.value.size() + 4;
    }
};

// One call of header, add_header or trailer. It is refused, and logged, exactly when it must be. False when it was.
inline bool set_field(std::uint8_t kind, const strict::Field& field, Response& response, Wish* wish) {
    const std::uint64_t logged = g_log_lines;
    const bool replaces = kind % 4 == 0;
    const bool trails = kind % 4 == 3;
    if (trails) {
        response.trailer(field.name, field.value);
    } else if (replaces) {
        response.header(field.name, field.value);
    } else {
        response.add_header(field.name, field.value);
    }
    bool written = true;
    bool good = trails ? Wish::allows_trailer(field) : wish->allows(field, &written);
    if (good && written) {
        if (replaces) {
            wish->remove(field.name);
        }
        good = wish->field_bytes + Wish::size_of(field) <= kResponseFieldsLimitBytes;
        wish->field_bytes += good ? Wish::size_of(field) : 0;
        if (good && !trails) {
            wish->fields.push_back(field);
        }
    }
    require(g_log_lines == logged + (good ? 0 : 1), good ? "a good field is refused" : "a bad field is taken", field.name,
            field.value);
    return good;
}

inline std::string drain(OutputQueue& output, BlockPool& blocks) {
    std::string bytes;
    while (!output.empty()) {
        platform::SendPiece pieces[platform::kMaxSendPieces];
        bool file_follows = false;
        const std::size_t count = output.gather(pieces, &file_follows);
        require(count > 0 && !file_follows, "the output holds what nobody put there");
        std::size_t size = 0;
        for (std::size_t i = 0; i < count; ++i) {
            bytes.append(static_cast<const char*>(pieces[i].data), pieces[i].size);
            size += pieces[i].size;
        }
        output.consume(blocks, size);
    }
    return bytes;
}

// The fields that must stand in the head, in their order.
inline std::vector<strict::Field> expected_fields(const Wish& wish, const ResponseFraming& framing) {
    std::vector<strict::Field> fields{{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}};
    for (const strict::Field& field : wish.fields) {
        fields.push_back({field.name, std::string(strict::trimmed(field.value))});
    }
    if (wish.status != 204 && wish.status != 304) {
        if (!wish.has_type && framing.has_body) {
            fields.push_back({"Content-Type", "text/plain; charset=utf-8"});
        }
        if (framing.chunked) {
            fields.push_back({"Transfer-Encoding", "chunked"});
        } else if (framing.has_length) {
            fields.push_back({"Content-Length", std::to_string(framing.length)});
        }
    }
    if (!framing.keep_alive) {
        fields.push_back({"Connection", "close"});
    } else if (framing.say_keep_alive) {
        fields.push_back({"Connection", "keep-alive"});
    }
    return fields;
}

inline void check_bytes(const Wish& wish, const ResponseFraming& framing, std::string_view body, std::string_view bytes) {
    const std::optional<strict::ResponseMessage> message = strict::read_response(bytes);
    require(message.has_value(), "what leaves is no response", bytes);
    require(message->status == wish.status, "another status leaves", bytes);
    require(message->fields == expected_fields(wish, framing), "other fields leave", bytes);
    const bool with_body = wish.status != 204 && wish.status != 304 && !framing.head_only;
    require(message->body == (with_body ? body : ""), "another body leaves", bytes, body);
}

//     byte 0, 1   status
//     byte 2      framing: bits for keep_alive, say_keep_alive, head_only, in parts, chunked, has_length
//     byte 3      kind of body; byte 4 its size; byte 5 how often it is repeated
//     ...         the body
//     then fields: which call, size of the name, size of the value, name, value
inline void run_response(std::span<const std::uint8_t> data, Response& response, Reactor& reactor) {
    Bytes input(data);
    const unsigned high = input.byte();
    Wish wish;
    wish.status = high * 256 + input.byte();
    const std::uint8_t bits = input.byte();
    const std::uint8_t kind = input.byte();
    const std::uint8_t size = input.byte();
    const std::uint8_t times = input.byte();
    const std::string unit = input.text(size);
    std::string body;
    for (unsigned i = 0; i <= times; ++i) {
        body += unit;
    }
    const std::uint64_t logged = g_log_lines;
    response.status(wish.status);
    bool good = wish.status >= 200 && wish.status <= 599;
    require(g_log_lines == logged + (good ? 0 : 1), "only a final status is taken", std::to_string(wish.status));
    while (!input.empty()) {
        const std::uint8_t call = input.byte();
        const std::size_t name_size = input.byte();
        const std::size_t value_size = input.byte();
        const std::string name = input.text(name_size);
        good = set_field(call, {name, input.text(value_size)}, response, &wish) && good;
    }
    require(response.wants_close() == wish.close, "Connection: close is not heard");
    if (!good) {
        return;  // a 500 leaves in its place
    }
    const bool in_parts = (bits & 8) != 0;
    const ResponseFraming framing{
        .keep_alive = (bits & 1) != 0 && !wish.close,
        .say_keep_alive = (bits & 2) != 0,
        .head_only = (bits & 4) != 0,
        .date_field = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        .has_body = in_parts || kind % 4 != 0,
        .chunked = in_parts && (bits & 16) != 0,
        .has_length = !in_parts || (bits & 32) != 0,
        .length = in_parts ? ~std::uint64_t{0} - size : kind % 4 != 0 ? body.size() : 0,
    };
    OutputQueue output;
    std::string copy = body;  // an owned one is taken away
    ResponseBody given{.kind = static_cast<ResponseBody::Kind>(kind % 4), .bytes = body, .owned = &copy};
    given.bytes = given.kind == ResponseBody::Kind::none ? std::string_view() : given.bytes;
    const bool written = in_parts ? write_head(output, reactor.blocks(), response, framing)
                                  : write_response(output, reactor.blocks(), response, framing, given);
    require(written, "there is no block");
    const std::string bytes = drain(output, reactor.blocks());
    require(reactor.blocks().leased() == 0, "a block of the output is left");
    check_bytes(wish, framing, in_parts || kind % 4 == 0 ? "" : body, bytes);
}

}  // namespace penstock::fuzz

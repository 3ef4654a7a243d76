// Public.
// Forms with files: multipart/form-data (RFC 7578, RFC 2046 §5.1) taken apart as it arrives. MultipartParser is fed with
// pieces of any size and gives events; MultipartReader does that for a coroutine handler over `request.read()`. Both
// hold one part's head and nothing of its data, whatever the size of the form. They do not decode names, percent
// escapes or character sets. Nothing is stored unless MultipartReader::save is asked for it. Each belongs to the
// handler that made it and its reactor's thread.
//
//     const auto boundary = multipart_boundary(request.header(HeaderName::content_type));
//     ...
//     MultipartReader reader(request, boundary.value());
//     while (const MultipartPart* part = co_await reader.next()) {
//         for (std::string_view piece = co_await reader.read(); !piece.empty(); piece = co_await reader.read()) {
//             ...
//         }
//     }
//     if (reader.failed()) {  // what was read so far is not the whole form
//         response.status(reader.error_status()).send(reader.error());
//     }
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/engine/task.h"
#include "penstock/platform/error.h"
#include "penstock/protocols/http/uploaded_file.h"

namespace penstock {

class Request;

// The boundary of a Content-Type "multipart/form-data; boundary=…": 1 to 70 characters (RFC 2046 §5.1.1). Anything else is
// an Error: answer 415 or 400.
[[nodiscard]] Result<std::string> multipart_boundary(std::string_view content_type);

// What is above a limit is an error with the status 413.
struct MultipartLimits {
    std::uint32_t part_limit = 1'000;
    std::uint32_t field_limit = 16;           // lines in the head of one part; browsers send two
    std::uint32_t head_limit_bytes = 4'096;   // of one part, line ends included; allocated at once
    // Of the data of one part. The body as a whole is bounded by its route.
    std::uint64_t part_limit_bytes = std::numeric_limits<std::uint64_t>::max();
    // In front of the first delimiter, behind the last, and white space behind each: for nobody to read.
    std::uint64_t outside_limit_bytes = 1'024;
};

// The head of a part. Names are bytes as the client chose them, mostly UTF-8, without controls; a quoted string is
// unescaped, "%22" and the like are not (RFC 7578 §4.2: browsers write so what they cannot send). An absent filename or
// content type is a null view (data() == nullptr). Never use a filename as a path: it may be "../../etc/passwd" or
// "C:\a.txt", and reducing it to its last component, or better making up a name, is up to the caller.
struct MultipartPart {
    std::string_view name;
    std::string_view filename;
    std::string_view content_type;  // as sent; absent means text/plain

    [[nodiscard]] bool has_filename() const { return filename.data() != nullptr; }
};

class MultipartParser {
public:
    enum class Event : std::uint8_t {
        need_input,  // all that was fed is used up
        part_begin,  // `part` tells which
        data,        // `data` is the next piece of it, never empty
        part_end,
        form_end,    // from `finish` alone, and for ever after
        failed,      // `error` tells why; for ever after
    };

    // `boundary` as from multipart_boundary: 1 to 70 characters without CR. Allocates head_limit_bytes, and throws
    // std::bad_alloc without them; nothing is allocated afterwards.
    explicit MultipartParser(std::string_view boundary, const MultipartLimits& limits = {});
    MultipartParser(const MultipartParser&) = delete;
    MultipartParser& operator=(const MultipartParser&) = delete;

    // Bytes of the form, in order. They must stay until `next` says need_input, and only then may come the next ones.
    void feed(std::string_view bytes);
    [[nodiscard]] Event next();
    // There are no more bytes: form_end, or failed if the form is not complete.
    [[nodiscard]] Event finish();

    // Valid until the event after part_end.
    [[nodiscard]] const MultipartPart& part() const { return part_; }
    // Valid until the next call. Mostly a view of what was fed.
    [[nodiscard]] std::string_view data() const { return data_; }
    [[nodiscard]] bool failed() const { return state_ == State::failed; }
    // A sentence that lives for ever, and 400 or 413; "" and 0 unless failed.
    [[nodiscard]] const char* error() const { return error_; }
    [[nodiscard]] unsigned error_status() const { return error_status_; }

private:
    //  preamble ──▶ delimited ──▶ padding ──▶ line_end ──▶ head ──▶ data
    //                │   ▲                                             │
    //                │   └──────────────── delimiter ──────────────────┘
    //                └▶ dash ──▶ closed ──▶ closed_line_end ──▶ epilogue ──▶ done
    //
    // `padding` may be passed over, `closed` leads to `done` as well, and all but `done` to `failed`.
    enum class State : std::uint8_t {
        preamble,
        delimited,
        padding,
        line_end,
        head,
        data,
        dash,
        closed,
        closed_line_end,
        epilogue,
        done,
        failed,
    };
    static constexpr std::size_t kBoundaryLimit = 70;  // RFC 2046 §5.1.1
    static constexpr std::size_t kDelimiterExtra = 4;  // CR LF "--"

    Event step();
    Event scan();
    [[nodiscard]] std::size_t plain_bytes() const;
    Event give(std::string_view piece);
    Event take_delimiter_line();
    Event end_delimiter(State next_state);
    Event begin_head();
    Event skip_outside(std::size_t bytes);
    Event take_head();
    Event take_line(char* begin, char* end);
    Event take_disposition(char* begin, char* end);
    Event fail(unsigned status, const char* sentence);
    [[nodiscard]] std::string_view delimiter() const { return {delimiter_.data(), delimiter_size_}; }

    const MultipartLimits limits_;
    std::array<char, kBoundaryLimit + kDelimiterExtra> delimiter_{};
    std::size_t delimiter_size_ = 0;
    std::string_view rest_;  // of what was fed
    State state_ = State::preamble;
    bool in_part_ = false;
    // So much of the delimiter has come; these bytes are held back, and need no copy since they are the delimiter's. The
    // first `implied_` of them never came: a delimiter may stand at the very beginning, or right behind a head.
    std::size_t matched_ = 2;
    std::size_t implied_ = 2;
    std::uint64_t outside_bytes_ = 0;
    std::uint64_t part_bytes_ = 0;
    std::uint32_t parts_ = 0;
    std::uint32_t fields_ = 0;
    std::unique_ptr<char[]> head_;
    std::size_t head_size_ = 0;
    std::size_t line_begin_ = 0;
    bool has_disposition_ = false;
    MultipartPart part_;
    std::string_view data_;
    const char* error_ = "";
    unsigned error_status_ = 0;
};

// In a coroutine that must not call `request.read` itself meanwhile. When the client leaves or breaks the framing of the
// body, the coroutine is destroyed where it waits.
class MultipartReader {
public:
    MultipartReader(Request& request, std::string_view boundary, const MultipartLimits& limits = {})
        : request_(request), parser_(boundary, limits) {}
    MultipartReader(const MultipartReader&) = delete;
    MultipartReader& operator=(const MultipartReader&) = delete;

    // The next part, valid until the next call, or null at the end of the form and when it is broken: ask `failed`. Skips
    // what is left of the part before.
    [[nodiscard]] Task<const MultipartPart*> next();
    // The next bytes of the part's data, valid until the next call; an empty view at its end, and when the form is broken.
    [[nodiscard]] Task<std::string_view> read();
    // The rest of the part's data is not wanted.
    [[nodiscard]] Task<void> skip();
    // Puts the rest of the part's data into a temporary file in `directory`, working on threads of the offload pool. An
    // Error when the form is broken (`failed` tells, and answer as it says), or else when the file cannot be made or
    // written, with the errno in `code`: 507 suits ENOSPC and EDQUOT, 503 suits EMFILE, 500 the rest. Throws Overloaded
    // when the pool is full. Nothing is left of the file then, nor when the client leaves meanwhile. Await it at once.
    [[nodiscard]] Task<Result<UploadedFile>> save(std::string directory);
    // Hands the rest of the part's data to `write`, piece by piece on a thread of the offload pool, where it may block:
    // how a part becomes anything but a file. `write` takes all of a piece and returns 0, or an errno, which ends it. How many
    // bytes there were; an Error when `write` failed or the form is broken (`failed` tells which): then remove what was
    // written. Throws what `write` throws, and Overloaded when the pool is full. Await it at once, as with `offload`.
    [[nodiscard]] Task<Result<std::uint64_t>> spool(std::function<int(std::string_view)> write);

    [[nodiscard]] bool failed() const { return parser_.failed(); }
    // A sentence for the client and 400 or 413; "" and 0 unless failed.
    [[nodiscard]] const char* error() const { return parser_.error(); }
    [[nodiscard]] unsigned error_status() const { return parser_.error_status(); }

private:
    Task<MultipartParser::Event> advance();

    Request& request_;
    MultipartParser parser_;
    bool in_part_ = false;
};

}  // namespace penstock

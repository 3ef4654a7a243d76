// Internal.
// A file as an answer: the fields that describe it, what the request's conditions and ranges make of it (RFC 9110 §13, §14),
// and how its bytes leave. Does not open files. On the thread of the response's reactor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/platform/file.h"
#include "penstock/protocols/http/prepared_field.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

class FileReference;
class Request;
class Response;

// What the fields of every answer with one state of a file say, by its own name. Responses copy them: their hooks may look at
// them when this has gone.
struct FileDescription {
    // An empty `cache_control` is none.
    FileDescription(std::string_view type, std::string_view cache_control, const platform::FileInfo& info);

    PreparedField content_type;
    std::optional<PreparedField> cache_control;
    // Strong: a file that is written again has another time, to the nanosecond, and one that takes its place has another number
    // (RFC 9110 §8.8.3).
    PreparedField entity_tag;
    std::optional<std::int64_t> modified_seconds;  // none: from before 1970, a clock that was never set
    std::optional<PreparedField> last_modified;
};

struct FileToSend {
    const FileReference& file;
    const FileDescription& description;  // its own: the validators
    const FileDescription& named;        // of what it stands for, the file itself as a rule: type and Cache-Control
    std::string_view content_encoding{};  // empty: none
    bool varies = false;  // with Accept-Encoding
};

// The value of a field that may come several times, as one list (RFC 9110 §5.3); a null view when there is none. `memory` holds
// it where it had to be joined.
[[nodiscard]] std::string_view joined_field(const Request& request, HeaderName name, std::string* memory);

// Answers with 200, 206, 304, 412 or 416. A file that is sent from its descriptor may shrink meanwhile: then nothing is made
// up, and the connection ends.
void send_file_response(const FileToSend& file, const Request& request, Response& response);
// The whole of it, with the status that is set, whatever the request says: a page in place of what was asked for, so
// without the validators of that.
void send_error_page(const FileToSend& file, const Request& request, Response& response);

// For what cannot be opened or read: 403, 404, 500 or 503, by errno. EAGAIN stands for a file that is being rewritten.
[[nodiscard]] unsigned status_of_file_error(int error);
// Answers with the status's phrase.
void refuse_file(Response& response, unsigned status);

}  // namespace penstock

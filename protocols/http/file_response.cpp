#include "penstock/protocols/http/file_response.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/engine/http_date.h"
#include "penstock/engine/reactor.h"
#include "penstock/platform/net.h"
#include "penstock/protocols/http/byte_ranges.h"
#include "penstock/protocols/http/conditions.h"
#include "penstock/protocols/http/file_cache.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"

namespace penstock {

namespace {

// One answer with one file, while it is made.
class FileAnswer {
public:
    FileAnswer(const FileToSend& sent, const Request& request, Response& response)
        : sent_(sent), file_(*sent.file), request_(request), response_(response), now_(Reactor::current()->date_seconds()),
          validators_{sent.description.entity_tag.value(), modified_seconds()} {}

    void send();
    void send_whole() { send_range({0, size()}); }

private:
    [[nodiscard]] std::uint64_t size() const { return file_.info().size; }
    [[nodiscard]] std::optional<std::int64_t> modified_seconds() const;
    [[nodiscard]] ConditionOutcome judge() const;
    void send_partly();
    void send_range(ByteRange range);
    void send_ranges(std::span<const ByteRange> ranges);
    void describe(bool with_content_type);

    const FileToSend& sent_;
    const FileSnapshot& file_;
    const Request& request_;
    Response& response_;
    const std::int64_t now_;  // as the response's Date has it
    const Validators validators_;
};

[[nodiscard]] std::string make_tag(const platform::FileInfo& info);

}  // namespace

FileDescription::FileDescription(std::string_view type, std::string_view cache, const platform::FileInfo& info)
    : content_type("Content-Type", type), entity_tag("ETag", make_tag(info)) {
    if (!cache.empty()) {
        cache_control.emplace("Cache-Control", cache);
    }
    if (info.modified_ns >= 0) {
        modified_seconds = info.modified_ns / 1'000'000'000;  // nanoseconds end in 2262, so its year has four digits
        std::array<char, kHttpDateBytes> date;
        write_http_date(*modified_seconds, date.data());
        last_modified.emplace("Last-Modified", std::string_view(date.data(), date.size()));
    }
}

namespace {

std::string make_tag(const platform::FileInfo& info) {
    std::array<char, 3 * 16 + 4> tag;  // three numbers of 16 digits, quotes and hyphens
    char* out = tag.data();
    char before = '"';
    for (const std::uint64_t number :
         {info.size, static_cast<std::uint64_t>(info.modified_ns), std::uint64_t{info.inode}}) {
        *out++ = before;
        out = std::to_chars(out, tag.data() + tag.size(), number, 16).ptr;
        before = '-';
    }
    *out++ = '"';
    return {tag.data(), out};
}

}  // namespace

void send_file_response(const FileToSend& file, const Request& request, Response& response) {
    FileAnswer(file, request, response).send();
}

void send_error_page(const FileToSend& file, const Request& request, Response& response) {
    FileAnswer(file, request, response).send_whole();
}

std::string_view joined_field(const Request& request, HeaderName name, std::string* memory) {
    if (!request.repeated(name)) {
        return request.header(name);
    }
    for (std::size_t i = 0; i < request.header_count(); ++i) {
        const HeaderField field = request.header_at(i);
        if (find_header_name(field.name) == name) {
            memory->append(memory->empty() ? "" : ",").append(field.value);
        }
    }
    return *memory;
}

unsigned status_of_file_error(int error) {
    switch (error) {
        // Below a directory that is there to be served, what may not be read is nearly always a slip of its
        // owner, who would look in vain for the reason of a 404. What must stay unknown does not belong
        // there.
        case EACCES:
        case EPERM: return 403;
        case ENOENT:
        case ENOTDIR:
        case ENAMETOOLONG:
        case ELOOP:
        case EXDEV:   // outside the directory
        case EINVAL:  // names that this file system cannot have
        case EILSEQ:
        case ENXIO:  // a Unix socket, or a device that is not there
        case ENODEV: return 404;
        case EAGAIN: return 503;  // it is being changed; the next try finds it settled
        default: return is_exhaustion(error) ? 503 : 500;
    }
}

void refuse_file(Response& response, unsigned status) {
    if (status == 503) {
        response.header("Retry-After", "1");
    }
    response.status(status).send_static(status_phrase(status));
}

namespace {

std::optional<std::int64_t> FileAnswer::modified_seconds() const {
    const auto& modified = sent_.description.modified_seconds;
    // Never later than the response's own Date (RFC 9110 §8.8.2.1), which follows a clock that is set a little later.
    return modified ? std::optional(std::min(*modified, now_)) : std::nullopt;
}

void FileAnswer::send() {
    switch (judge()) {
        case ConditionOutcome::not_modified:
            describe(false);
            response_.status(304).send_empty();
            return;
        case ConditionOutcome::precondition_failed: refuse_file(response_, 412); return;
        case ConditionOutcome::proceed: break;
    }
    // Ranges are defined for GET alone (RFC 9110 §14.2).
    const bool takes_ranges = request_.header(HeaderName::range).data() != nullptr && request_.method() == Method::get;
    if (takes_ranges && if_range_holds(request_.header(HeaderName::if_range), validators_, now_)) {
        send_partly();
    } else {
        send_whole();
    }
}

ConditionOutcome FileAnswer::judge() const {
    std::string match;
    std::string none_match;
    const ConditionFields fields{
        .if_match = joined_field(request_, HeaderName::if_match, &match),
        .if_none_match = joined_field(request_, HeaderName::if_none_match, &none_match),
        .if_modified_since = request_.header(HeaderName::if_modified_since),
        .if_unmodified_since = request_.header(HeaderName::if_unmodified_since),
    };
    return evaluate_conditions(request_.method(), fields, validators_, now_);
}

void FileAnswer::send_partly() {
    const ByteRanges ranges = parse_byte_ranges(request_.header(HeaderName::range), size());
    std::array<char, kContentRangeBytes> text;
    if (ranges.kind() == ByteRanges::Kind::unsatisfiable) {
        response_.header("Content-Range", write_unsatisfied_range(size(), text));
        refuse_file(response_, 416);
    } else if (ranges.kind() == ByteRanges::Kind::none || ranges.is_whole()) {
        send_whole();
    } else if (ranges.ranges().size() > 1) {
        send_ranges(ranges.ranges());
    } else {
        send_range(ranges.ranges().front());
    }
}

void FileAnswer::send_range(ByteRange range) {
    describe(true);
    if (range.size != size()) {
        std::array<char, kContentRangeBytes> text;
        response_.status(206).header("Content-Range", write_content_range(range, size(), text));
    }
    FileReference file = sent_.file;
    if (file_.fd() < 0) {
        const std::string_view content = file_.content();
        response_.send_kept(content.substr(static_cast<std::size_t>(range.offset), static_cast<std::size_t>(range.size)),
                            file.hand_over(), &FileReference::release);
    } else {
        response_.send_kept_file(file_.fd(), range.offset, range.size, file.hand_over(), &FileReference::release);
    }
}

std::string new_boundary();

// multipart/byteranges (RFC 9110 §14.6).
void FileAnswer::send_ranges(std::span<const ByteRange> ranges) {
    const std::string boundary = new_boundary();
    std::vector<std::string> texts;
    texts.reserve(ranges.size() + 1);
    std::vector<FilePart> parts;
    parts.reserve(ranges.size() + 1);
    for (const ByteRange& range : ranges) {
        std::array<char, kContentRangeBytes> value;
        std::string& text = texts.emplace_back(texts.empty() ? "--" : "\r\n--");
        text.append(boundary).append("\r\nContent-Type: ").append(sent_.named.content_type.value());
        text.append("\r\nContent-Range: ").append(write_content_range(range, size(), value)).append("\r\n\r\n");
        parts.push_back({text, range.offset, range.size});
    }
    parts.push_back({texts.emplace_back("\r\n--" + boundary + "--\r\n")});
    const auto begin_answer = [&] {
        describe(false);
        response_.status(206).header("Content-Type", "multipart/byteranges; boundary=" + boundary);
    };
    if (file_.fd() >= 0) {
        const IoResult own = platform::duplicate_descriptor(file_.fd());
        if (!own.ok()) {
            refuse_file(response_, status_of_file_error(own.error));
            return;
        }
        begin_answer();
        response_.send_file_parts(static_cast<int>(own.count), parts);
        return;
    }
    // Ranges are merged, so this is hardly more than the file.
    std::string body;
    for (const FilePart& part : parts) {
        body.append(part.text);
        body.append(file_.content().substr(static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.size)));
    }
    begin_answer();
    response_.send(std::move(body));
}

// One that whoever wrote the file could not foresee.
std::string new_boundary() {
    thread_local std::mt19937_64 t_random{std::random_device{}()};
    std::array<char, 16> digits;
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), t_random(), 16).ptr;
    return "penstock-" + std::string(digits.data(), end);
}

void FileAnswer::describe(bool with_content_type) {
    static const PreparedField kNoSniffing("X-Content-Type-Options", "nosniff");
    static const PreparedField kVaries("Vary", "Accept-Encoding");
    static const PreparedField kTakesRanges("Accept-Ranges", "bytes");
    if (with_content_type) {
        response_.header(sent_.named.content_type).header_static(kNoSniffing);
    }
    if (sent_.named.cache_control) {
        response_.header(*sent_.named.cache_control);
    }
    if (!sent_.content_encoding.empty()) {
        response_.header(HeaderName::content_encoding, sent_.content_encoding);
    }
    if (sent_.varies) {
        response_.add_header(kVaries);
    }
    if (response_.status() != 200) {
        return;  // a page in place of what was asked for: its validators are not those of that
    }
    response_.header(sent_.description.entity_tag).header_static(kTakesRanges);
    if (!validators_.modified_seconds) {
        return;
    }
    if (validators_.modified_seconds == sent_.description.modified_seconds) {
        response_.header(*sent_.description.last_modified);
    } else {
        std::array<char, kHttpDateBytes> date;
        write_http_date(*validators_.modified_seconds, date.data());
        response_.header("Last-Modified", {date.data(), date.size()});
    }
}

}  // namespace

}  // namespace penstock

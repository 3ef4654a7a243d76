#include "penstock/protocols/http/static_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "penstock/engine/http_date.h"
#include "penstock/platform/clock.h"
#include "penstock/platform/file.h"
#include "penstock/platform/net.h"
#include "penstock/protocols/http/mime_types.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"

namespace penstock {

namespace {

// What fits a block of output is read and leaves with its head in one send. Above it sendfile spares the
// copies.
constexpr std::size_t kReadLimitBytes = 16 << 10;
// A path of more bytes, its NUL included, no system call takes (man 7 path_resolution, PATH_MAX).
constexpr std::size_t kPathLimitBytes = 4'096;
constexpr std::string_view kIndexFile = "index.html";

using PathBuffer = std::array<char, kPathLimitBytes>;

// Owns a descriptor.
class OpenFile {
public:
    explicit OpenFile(int fd) : fd_(fd) {}
    ~OpenFile() {
        if (fd_ >= 0) {
            platform::close_descriptor(fd_);
        }
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] int hand_over() { return std::exchange(fd_, -1); }

private:
    int fd_;
};

// Shared by the copies of one handler; constant, so any thread.
class StaticFiles {
public:
    StaticFiles(int root_fd, StaticFileOptions options) : root_(root_fd), options_(std::move(options)) {}

    void serve(const Request& request, Response& response) const;

private:
    OpenFile root_;
    StaticFileOptions options_;
};

Error opening_failed(const std::string& directory, int code);
bool is_servable(std::string_view name, bool hidden_files);
bool write_path(std::string_view name, PathBuffer* path);
void redirect_to_directory(const Request& request, Response& response);
void send_file(OpenFile& file, const platform::FileInfo& info, std::string_view name, const Request& request,
               Response& response);
unsigned status_for(int error);
void refuse(Response& response, unsigned status);

}  // namespace

Result<PlainHandler> static_files(const std::string& directory, StaticFileOptions options) {
    const Result<int> root = platform::open_directory(directory);
    if (!root.ok()) {
        return opening_failed(directory, root.error().code);
    }
    auto files = std::make_shared<const StaticFiles>(root.value(), std::move(options));
    // A kernel or a sandbox that cannot confine paths would otherwise answer every request with 500.
    const IoResult probe = platform::open_beneath(root.value(), ".");
    if (!probe.ok()) {
        return opening_failed(directory, probe.error);
    }
    platform::close_descriptor(static_cast<int>(probe.count));
    return PlainHandler([files = std::move(files)](Request& request, Response& response) {
        files->serve(request, response);
    });
}

namespace {

Error opening_failed(const std::string& directory, int code) {
    const char* advice = "";
    switch (code) {
        case ENOENT: advice = "; create it or name another one"; break;
        case ENOTDIR: advice = "; name the directory that holds the files"; break;
        case EACCES: advice = "; let this user read and search it, or name another one"; break;
        case ENOSYS:
        case EPERM:
            advice = "; Linux 5.6 or later is needed, and a sandbox around it must allow openat2";
            break;
        default: advice = is_exhaustion(code) ? "; raise the limit of open files, or free memory" : ""; break;
    }
    Error error = system_error("cannot serve files from the directory \"" + directory + "\"", code);
    error.message += advice;
    return error;
}

void StaticFiles::serve(const Request& request, Response& response) const {
    const std::string_view name = request.parameter(options_.parameter);
    PathBuffer path;  // left as it is until written
    // NUL is an encoded slash: part of a name to the client, while the kernel would take it for a separator.
    if (request.path().find('\0') != std::string_view::npos || !is_servable(name, options_.hidden_files) ||
        !write_path(name, &path)) {
        return refuse(response, 404);
    }
    const IoResult opened = platform::open_beneath(root_.fd(), path.data());
    if (!opened.ok()) {
        return refuse(response, status_for(opened.error));
    }
    OpenFile file(static_cast<int>(opened.count));
    platform::FileInfo info;
    if (const int error = platform::file_info(file.fd(), &info); error != 0) {
        return refuse(response, status_for(error));
    }
    const bool wants_index = name.empty() || name.ends_with('/');
    if (info.kind == platform::FileKind::directory && !wants_index) {
        return redirect_to_directory(request, response);
    }
    if (info.kind != platform::FileKind::regular) {
        return refuse(response, 404);
    }
    send_file(file, info, path.data(), request, response);
}

// Whether every segment is a name that may be served. The last one may be empty: that asks for the index.
bool is_servable(std::string_view name, bool hidden_files) {
    while (!name.empty()) {
        const std::size_t end = std::min(name.find('/'), name.size());
        if (end == 0 || (name.front() == '.' && !hidden_files)) {
            return false;
        }
        name.remove_prefix(std::min(end + 1, name.size()));
    }
    return true;
}

// What to open, with a NUL at its end. False when no file can have so long a path.
bool write_path(std::string_view name, PathBuffer* path) {
    const std::string_view index = name.empty() || name.ends_with('/') ? kIndexFile : std::string_view();
    if (name.size() + index.size() >= path->size()) {
        return false;
    }
    char* end = std::copy(name.begin(), name.end(), path->data());
    end = std::copy(index.begin(), index.end(), end);
    *end = '\0';
    return true;
}

std::string encode_path(std::string_view path);

void redirect_to_directory(const Request& request, Response& response) {
    // Two slashes in front would name another host (RFC 3986 §4.2).
    std::string_view path = request.path();
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    std::string location = "/" + encode_path(path) + "/";
    if (!request.query().empty()) {
        location.append("?").append(request.query());
    }
    response.status(301).header("Location", location).send_empty();
}

// Escapes what RFC 3986 §3.3 does not allow in a path. A backslash is such a byte, and browsers would take it
// for a slash.
std::string encode_path(std::string_view path) {
    static constexpr std::string_view kPlain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
        "-._~!$&'()*+,;=:@/";
    static constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string encoded;
    encoded.reserve(path.size());
    for (const char letter : path) {
        if (kPlain.find(letter) != std::string_view::npos) {
            encoded.push_back(letter);
        } else {
            const auto byte = static_cast<unsigned char>(letter);
            encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
        }
    }
    return encoded;
}

int read_whole(int fd, std::span<std::byte> buffer);
void describe(const platform::FileInfo& info, std::string_view name, Response& response);

void send_file(OpenFile& file, const platform::FileInfo& info, std::string_view name, const Request& request,
               Response& response) {
    // Of a file that is handed over only the size is looked at for HEAD.
    if (info.size > kReadLimitBytes || request.method() == Method::head) {
        describe(info, name, response);
        response.send_file(file.hand_over(), 0, info.size);
        return;
    }
    std::array<std::byte, kReadLimitBytes> buffer;  // left as it is until read into
    const auto bytes = std::span(buffer).first(static_cast<std::size_t>(info.size));
    if (const int error = read_whole(file.fd(), bytes); error != 0) {
        return refuse(response, status_for(error));
    }
    describe(info, name, response);
    response.send(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// 0, or errno: EAGAIN when the file has become shorter, being rewritten, so that its size and its tag are not
// true.
int read_whole(int fd, std::span<std::byte> buffer) {
    for (std::uint64_t offset = 0; !buffer.empty();) {
        const IoResult result = platform::read_file(fd, offset, buffer);
        if (!result.ok()) {
            return result.error;
        }
        if (result.count == 0) {
            return EAGAIN;
        }
        offset += static_cast<std::uint64_t>(result.count);
        buffer = buffer.subspan(static_cast<std::size_t>(result.count));
    }
    return 0;
}

void add_entity_tag(const platform::FileInfo& info, Response& response);
void add_last_modified(std::int64_t modified_ns, Response& response);

void describe(const platform::FileInfo& info, std::string_view name, Response& response) {
    response.header("Content-Type", mime_type(name));
    response.header("X-Content-Type-Options", "nosniff");
    add_entity_tag(info, response);
    add_last_modified(info.modified_ns, response);
}

// Strong: a file that is written again has another time, to the nanosecond, and one that takes its place has
// another number (RFC 9110 §8.8.3).
void add_entity_tag(const platform::FileInfo& info, Response& response) {
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
    response.header("ETag", {tag.data(), static_cast<std::size_t>(out - tag.data())});
}

void add_last_modified(std::int64_t modified_ns, Response& response) {
    if (modified_ns < 0) {
        return;  // before 1970: a clock that was never set
    }
    // Never later than the response's own Date (RFC 9110 §8.8.2.1).
    const std::int64_t seconds = std::min(modified_ns / 1'000'000'000, platform::wall_seconds());
    std::array<char, kHttpDateBytes> date;
    write_http_date(seconds, date.data());
    response.header("Last-Modified", {date.data(), date.size()});
}

unsigned status_for(int error) {
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

void refuse(Response& response, unsigned status) {
    if (status == 503) {
        response.header("Retry-After", "1");
    }
    response.status(status).send_static(status_phrase(status));
}

}  // namespace

}  // namespace penstock

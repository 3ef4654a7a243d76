#include "penstock/protocols/http/static_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/engine/config.h"
#include "penstock/platform/file.h"
#include "penstock/platform/net.h"
#include "penstock/protocols/http/accept_encoding.h"
#include "penstock/protocols/http/directory_listing.h"
#include "penstock/protocols/http/file_response.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"
#include "penstock/protocols/http/static_file_rules.h"
#include "penstock/protocols/http/target.h"

namespace penstock {

namespace {

// A path of more bytes, its NUL included, no system call takes (man 7 path_resolution, PATH_MAX).
constexpr std::size_t kPathLimitBytes = 4'096;

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
    OpenFile(OpenFile&& other) noexcept : fd_(other.hand_over()) {}
    OpenFile& operator=(OpenFile&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] int hand_over() { return std::exchange(fd_, -1); }

private:
    int fd_;
};

// What a path leads to, unless `error`.
struct Found {
    OpenFile file{-1};
    platform::FileInfo info{};
    int error = 0;

    [[nodiscard]] bool is_file() const { return error == 0 && info.kind == platform::FileKind::regular; }
    [[nodiscard]] bool is_directory() const { return error == 0 && info.kind == platform::FileKind::directory; }
};

// Shared by the copies of one handler; constant, so any thread.
class StaticFiles {
public:
    StaticFiles(int root_fd, StaticFileOptions options) : root_(root_fd), options_(std::move(options)) {}

    // What `static_files` finds out before the first request.
    [[nodiscard]] Result<void> check_page(std::string_view option, const std::string& path) const;
    void serve(const Request& request, Response& response) const;

private:
    [[nodiscard]] Found find(const char* path) const;
    void serve_directory(std::string_view name, const Request& request, Response& response) const;
    void send_listing(int fd, std::string_view name, const Request& request, Response& response) const;
    // Gives a link in the directory `name` the information of what it leads to and returns 0, or errno.
    [[nodiscard]] int look_behind_link(std::string_view name, platform::DirectoryEntry* entry) const;
    [[nodiscard]] ContentCoding take_precompressed(std::string_view path, const Request& request, Found* found) const;
    void send(Found& found, std::string_view path, const Request& request, Response& response) const;
    // `error` is why there is no file of that name; 0 when it is not to be served.
    void answer_missing(int error, std::string_view name, const Request& request, Response& response) const;
    void answer_not_found(const Request& request, Response& response) const;

    OpenFile root_;
    StaticFileOptions options_;
};

std::string_view suffix_of(ContentCoding coding);
Error opening_failed(const std::string& directory, int code);
bool is_servable(std::string_view name, bool hidden_files);
bool write_path(std::string_view name, std::string_view more, PathBuffer* path);
void redirect_to_directory(const Request& request, Response& response);

}  // namespace

Result<PlainHandler> static_files(const std::string& directory, StaticFileOptions options) {
    if (const Result<void> checked = check_static_file_options(options); !checked.ok()) {
        return checked.error();
    }
    const Result<int> root = platform::open_directory(directory);
    if (!root.ok()) {
        return opening_failed(directory, root.error().code);
    }
    const std::string not_found_page = options.not_found_page;
    const std::string spa_fallback = options.spa_fallback;
    auto files = std::make_shared<const StaticFiles>(root.value(), std::move(options));
    // A kernel or a sandbox that cannot confine paths would otherwise answer every request with 500.
    const IoResult probe = platform::open_beneath(root.value(), ".");
    if (!probe.ok()) {
        return opening_failed(directory, probe.error);
    }
    platform::close_descriptor(static_cast<int>(probe.count));
    if (const Result<void> checked = files->check_page("not_found_page", not_found_page); !checked.ok()) {
        return checked.error();
    }
    if (const Result<void> checked = files->check_page("spa_fallback", spa_fallback); !checked.ok()) {
        return checked.error();
    }
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

Result<void> StaticFiles::check_page(std::string_view option, const std::string& path) const {
    if (path.empty()) {
        return {};
    }
    const Found found = find(path.c_str());
    if (found.is_file()) {
        return {};
    }
    const std::string what = "cannot serve files: StaticFileOptions::" + std::string(option) + ": \"" + path + "\"";
    if (found.error == 0) {
        return Error{what + " is no regular file; name one", 0};
    }
    Error error = system_error(what, found.error);
    error.message += "; name a file below the directory that may be read";
    return error;
}

void StaticFiles::serve(const Request& request, Response& response) const {
    const std::string_view name = request.parameter(options_.parameter);
    // NUL is an encoded slash: part of a name to the client, while the kernel would take it for a separator.
    if (request.path().find('\0') != std::string_view::npos || !is_servable(name, options_.hidden_files)) {
        return answer_not_found(request, response);
    }
    if (name.empty() || name.ends_with('/')) {
        return serve_directory(name, request, response);
    }
    PathBuffer path;  // left as it is until written
    if (!write_path(name, {}, &path)) {
        return answer_not_found(request, response);
    }
    Found found = find(path.data());
    if (found.is_directory()) {
        return redirect_to_directory(request, response);
    }
    if (!found.is_file()) {
        return answer_missing(found.error, name, request, response);
    }
    send(found, path.data(), request, response);
}

Found StaticFiles::find(const char* path) const {
    const auto links = options_.follow_symlinks == FollowSymlinks::never ? platform::LinkPolicy::never
                                                                          : platform::LinkPolicy::inside;
    const IoResult opened = platform::open_beneath(root_.fd(), path, links);
    if (!opened.ok()) {
        return {.error = opened.error};
    }
    Found found{.file = OpenFile(static_cast<int>(opened.count))};
    found.error = platform::file_info(found.file.fd(), &found.info);
    return found;
}

void StaticFiles::serve_directory(std::string_view name, const Request& request, Response& response) const {
    PathBuffer path;  // left as it is until written
    int error = ENOENT;
    for (const std::string& index : options_.index_files) {
        if (!write_path(name, index, &path)) {
            return answer_not_found(request, response);
        }
        Found found = find(path.data());
        if (found.is_file()) {
            return send(found, path.data(), request, response);
        }
        error = found.error;
        // What is there and cannot be sent is not passed over: another index would hide why.
        if (error != 0 && status_of_file_error(error) != 404) {
            return refuse_file(response, status_of_file_error(error));
        }
    }
    if (options_.directory_listing) {
        if (!write_path(name, ".", &path)) {
            return answer_not_found(request, response);
        }
        const Found found = find(path.data());
        if (found.is_directory()) {
            return send_listing(found.file.fd(), name, request, response);
        }
        error = found.error;
    }
    answer_missing(error, name, request, response);
}

void StaticFiles::send_listing(int fd, std::string_view name, const Request& request, Response& response) const {
    std::vector<platform::DirectoryEntry> entries;
    ListingPage page{.path = request.path(), .has_parent = !name.empty()};
    if (const int error = platform::list_directory(fd, kListingLimit, &entries, &page.complete); error != 0) {
        return refuse_file(response, status_of_file_error(error));
    }
    std::erase_if(entries, [&](const auto& entry) { return !is_servable(entry.name, options_.hidden_files); });
    for (platform::DirectoryEntry& entry : entries) {
        const int error = entry.is_link ? look_behind_link(name, &entry) : 0;
        // For want of a descriptor nothing may be left out as if it were not there.
        if (is_exhaustion(error)) {
            return refuse_file(response, status_of_file_error(error));
        }
    }
    std::erase_if(entries, [](const auto& entry) { return entry.info.kind == platform::FileKind::other; });
    response.header("Content-Type", "text/html; charset=utf-8");
    response.header("X-Content-Type-Options", "nosniff");
    response.header("Content-Security-Policy", kListingPolicy);
    response.send(make_listing(page, entries));
}

int StaticFiles::look_behind_link(std::string_view name, platform::DirectoryEntry* entry) const {
    PathBuffer path;  // left as it is until written
    if (options_.follow_symlinks == FollowSymlinks::never || !write_path(name, entry->name, &path)) {
        return ELOOP;
    }
    const Found found = find(path.data());
    if (found.error == 0) {
        entry->info = found.info;
    }
    return found.error;
}

void StaticFiles::send(Found& found, std::string_view path, const Request& request, Response& response) const {
    std::string room;
    FileToSend file{.content_type = content_type_of(options_, path, &room),
                    .cache_control = cache_control_of(options_, path),
                    .varies = options_.precompressed};
    if (options_.precompressed) {
        const ContentCoding coding = take_precompressed(path, request, &found);
        file.content_encoding = coding != ContentCoding::identity ? content_coding_name(coding) : std::string_view();
    }
    file.info = found.info;
    file.fd = found.file.hand_over();
    if (response.status() == 200) {
        send_file_response(file, request, response);
    } else {
        send_error_page(file, request, response);
    }
}

// Puts the best file beside `found` that the client accepts in its place; the coding of what is there then.
ContentCoding StaticFiles::take_precompressed(std::string_view path, const Request& request, Found* found) const {
    std::vector<ContentCoding> offered{ContentCoding::brotli, ContentCoding::zstd, ContentCoding::gzip};
    std::string memory;
    const std::string_view accepted = joined_field(request, HeaderName::accept_encoding, &memory);
    while (!offered.empty()) {
        const ContentCoding coding = choose_content_coding(accepted, offered).value_or(ContentCoding::identity);
        PathBuffer sibling;  // left as it is until written
        if (coding == ContentCoding::identity || !write_path(path, suffix_of(coding), &sibling)) {
            break;
        }
        Found encoded = find(sibling.data());
        if (encoded.is_file() && encoded.info.modified_ns >= found->info.modified_ns) {
            *found = std::move(encoded);
            return coding;
        }
        std::erase(offered, coding);
    }
    return ContentCoding::identity;
}

void StaticFiles::answer_missing(int error, std::string_view name, const Request& request, Response& response) const {
    if (error != 0 && status_of_file_error(error) != 404) {
        return refuse_file(response, status_of_file_error(error));
    }
    const bool takes_page = request.method() == Method::get || request.method() == Method::head;
    // Behind any other error there is something that must not be served.
    const bool is_absent = error == ENOENT || error == ENOTDIR;
    if (!options_.spa_fallback.empty() && is_absent && takes_page && wants_spa_fallback(name)) {
        Found page = find(options_.spa_fallback.c_str());
        if (page.is_file()) {
            return send(page, options_.spa_fallback, request, response);
        }
    }
    answer_not_found(request, response);
}

void StaticFiles::answer_not_found(const Request& request, Response& response) const {
    if (!options_.not_found_page.empty()) {
        Found page = find(options_.not_found_page.c_str());
        if (page.is_file()) {
            response.status(404);
            return send(page, options_.not_found_page, request, response);
        }
    }
    refuse_file(response, 404);
}

std::string_view suffix_of(ContentCoding coding) {
    return coding == ContentCoding::brotli ? ".br" : coding == ContentCoding::zstd ? ".zst" : ".gz";
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

// What to open: one behind the other, with a NUL at the end. False when no file can have so long a path.
bool write_path(std::string_view name, std::string_view more, PathBuffer* path) {
    if (name.size() + more.size() >= path->size()) {
        return false;
    }
    char* end = std::copy(name.begin(), name.end(), path->data());
    end = std::copy(more.begin(), more.end(), end);
    *end = '\0';
    return true;
}

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

}  // namespace

}  // namespace penstock

#include "penstock/protocols/http/static_files.h"

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "penstock/engine/config.h"
#include "penstock/platform/file.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"
#include "penstock/protocols/http/static_file_rules.h"
#include "penstock/protocols/http/static_site.h"

namespace penstock {

namespace {

Error opening_failed(const std::string& directory, int code);
Result<void> check_named_files(const FileRoot& root, const StaticFileOptions& options);

}  // namespace

Result<PlainHandler> static_files(const std::string& directory, StaticFileOptions options) {
    if (const Result<void> checked = check_static_file_options(options); !checked.ok()) {
        return checked.error();
    }
    const Result<int> opened = platform::open_directory(directory);
    if (!opened.ok()) {
        return opening_failed(directory, opened.error().code);
    }
    auto root = std::make_shared<FileRoot>();
    root->directory = platform::Descriptor(opened.value());
    root->links = options.follow_symlinks == FollowSymlinks::never ? platform::LinkPolicy::never : platform::LinkPolicy::inside;
    // A kernel or a sandbox that cannot confine paths would otherwise answer every request with 500.
    const IoResult probe = platform::open_beneath(root->directory.fd(), ".");
    if (!probe.ok()) {
        return opening_failed(directory, probe.error);
    }
    platform::close_descriptor(static_cast<int>(probe.count));
    if (const Result<void> checked = check_named_files(*root, options); !checked.ok()) {
        return checked.error();
    }
    auto site = std::make_shared<const StaticSite>(std::move(root), std::move(options));
    return PlainHandler([site = std::move(site)](Request& request, Response& response) {
        SiteRequest(*site, request, response, {}).serve();
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

// Reads it, so that it is in memory when the first request comes.
Result<void> check_file(const FileRoot& root, std::string_view option, const std::string& path) {
    const LoadedFile found = load_file(root, path.c_str(), nullptr, kCachedFileLimitBytes, platform::DiskWait::allowed);
    if (found.error == 0 && found.info.kind == platform::FileKind::regular) {
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

Result<void> check_named_files(const FileRoot& root, const StaticFileOptions& options) {
    Result<void> checked;
    if (!options.not_found_page.empty()) {
        checked = check_file(root, "not_found_page", options.not_found_page);
    }
    if (checked.ok() && !options.spa_fallback.empty()) {
        checked = check_file(root, "spa_fallback", options.spa_fallback);
    }
    for (const std::string& path : options.prewarm) {
        if (!checked.ok()) {
            break;
        }
        checked = check_file(root, "prewarm", path);
    }
    return checked;
}

}  // namespace

}  // namespace penstock

// Public.
// The files below a directory as a handler:
//
//     auto files = penstock::static_files("site");
//     router.get("/*path", files.value());
//
// The handler holds the directory open as long as a copy of it lives; all reactors call it at the same time.
// Nothing outside the directory is ever opened, whatever the path or the symbolic links below it say. What is not in memory is
// opened and read on the offload pool, so a slow disk delays only those who ask for what lies on it (with offload_limit = 0
// there is no pool, and it delays all).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/platform/error.h"
#include "penstock/protocols/http/router.h"

namespace penstock {

// What becomes of symbolic links below the directory.
enum class FollowSymlinks : std::uint8_t {
    inside,  // followed, as long as they stay below the directory at every step
    never,   // whatever lies behind one is not there: 404
};

struct CacheControlRule {
    // Compared with the whole path of the file below the directory, the index of a directory by its own name: "*.css",
    // "assets/*". '*' stands for any characters, '/' among them, '?' for one.
    std::string pattern;
    // Of the field Cache-Control: "max-age=31536000, immutable".
    std::string value;
};

struct ExtraMimeType {
    std::string extension;  // with its dot, in any letter case: ".glsl"
    std::string type;       // "text/plain"; `charset` is added to text/* without parameters
};

// What each reactor keeps of the files that it serves, so that it need not open them for each request.
struct FileCacheOptions {
    // Paths that it knows, those that lead to nothing among them. 0: nothing is kept, and every request opens its file.
    std::uint32_t entries = 4'096;
    // Memory for small files and all that is known, what is still being sent included.
    std::uint64_t bytes = 32ull << 20;
    // Files too large for that, which are kept open. They count against the process's limit of open files.
    std::uint32_t descriptors = 256;
    // For how long a file is sent as it was found before it is looked at again; what is new, replaced or removed shows after that.
    std::uint32_t time_to_live_ms = 1'000;
};

struct StaticFileOptions {
    // The parameter of the route that says which file: "path" for the pattern "/*path".
    std::string parameter = "path";
    // Whether names that begin with '.' are served and listed. Off, since ".git" and ".env" lie in more sites than their
    // owners know.
    bool hidden_files = false;
    // Names of the file that stands for its directory; the first one that is there is sent.
    std::vector<std::string> index_files = {"index.html"};
    // Whether a directory without any of them is listed, kListingLimit entries of it at most (engine/config.h). Off: names
    // tell more than their owners know.
    bool directory_listing = false;
    // The first rule that fits gives the Cache-Control of a file; without one it is sent without that field.
    std::vector<CacheControlRule> cache_control{};
    // A file below the directory that is sent with each 404, "404.html". Empty: two plain words.
    std::string not_found_page{};
    // A file below the directory that is sent, with 200, for GET and HEAD of paths that have no file and whose last name
    // has no dot: the page of a program that takes its paths apart itself. Empty: none.
    std::string spa_fallback{};
    FollowSymlinks follow_symlinks = FollowSymlinks::inside;
    // A file "a.css.br", "a.css.zst" or "a.css.gz" beside "a.css", and not older than it, is sent in its place to clients that
    // accept its coding (RFC 9110 §12.5.3), and every answer says that it varies with that. Costs an attempt to open each
    // that a client accepts.
    bool precompressed = false;
    FileCacheOptions cache{};
    // Files below the directory that are read when the handler is made, and looked at again by each reactor at its first request,
    // so that nobody has to wait for them later. Kept within the limits of the cache like any others.
    std::vector<std::string> prewarm{};
    // Of text/*. Empty: the type is sent without one.
    std::string charset = "utf-8";
    // Looked at in their order, before mime_types.h.
    std::vector<ExtraMimeType> mime_types{};
};

// Answers with regular files, for a directory with its index or a list of what is in it; a directory without a slash
// at its end is redirected to the path with one, its query included. 404 for what is not there, lies outside, is
// hidden, or is neither file nor directory; 403 for what may not be read. Fails, with a sentence, when the directory
// cannot be served, an option cannot be meant, or a page that the options name is not there.
[[nodiscard]] Result<PlainHandler> static_files(const std::string& directory, StaticFileOptions options = {});

}  // namespace penstock

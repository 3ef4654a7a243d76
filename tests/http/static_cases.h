// Internal.
// Cases of files below a directory. As with http_cases.h, `run_static_cases` exists twice: on the simulated disk, and on a
// real one behind real sockets. A site belongs to its test; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "http/http_cases.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock::test {

struct DiskEntry {
    enum class Kind : std::uint8_t {
        file,
        directory,
        link,              // `content` is where it leads; "{disk}" in it is the directory that holds everything
        pipe,              // that nobody writes to
        closed_file,       // what the server's user may not read
        closed_directory,  // nor enter
    };

    Kind kind = Kind::file;
    std::string path;  // below the disk; directories above it are made
    std::string content = "";
};

// What lies outside of the site, and must never leave: no answer may have it in it.
inline constexpr std::string_view kSecret = "s3cr3t-0uts1de";

// Every file was changed at this time, a day before the simulated clock begins.
inline constexpr std::int64_t kFileSeconds = 784'025'377;
inline constexpr std::string_view kFileDate = "Sat, 05 Nov 1994 08:49:37 GMT";

// "site" of the disk is served, with /letters beside it.
struct Disk {
    std::vector<DiskEntry> entries;
    StaticFileOptions options{};
    std::string pattern = "/*path";
};

// In requests and in what answers contain, "{tag}" is the ETag of /f.txt without a condition; without such a file it stands
// for nothing.
void run_static_cases(const Disk& disk, std::span<const Case> cases);

// ---- What both of them use -----------------------------------------------------------------------------

inline Router static_router(const std::string& site, const Disk& disk) {
    auto files = static_files(site, disk.options);
    REQUIRE_MESSAGE(files.ok(), files.error().message);
    Router router;
    router.any(disk.pattern, files.value());
    router.get("/letters", [](Request&, Response& response) { response.send_static(kLetters); });
    return router;
}

inline Case with_tag(Case given, std::string_view tag) {
    given.request = replaced(std::move(given.request), "{tag}", tag);
    given.contains = replaced(std::move(given.contains), "{tag}", tag);
    given.lacks = given.lacks.empty() ? std::string(kSecret) : std::move(given.lacks);
    return given;
}

inline std::string tag_in(std::string_view answer) {
    const std::vector<Reply> replies = replies_in(answer);
    return replies.empty() ? "" : replies.front().field("ETag");
}

}  // namespace penstock::test

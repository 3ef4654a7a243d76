// Internal.
// What `static_files` makes: a directory with its options, and what becomes of one request for something below it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/platform/error.h"
#include "penstock/protocols/http/content_coding.h"
#include "penstock/protocols/http/file_cache.h"
#include "penstock/protocols/http/static_files.h"

namespace penstock {

class Reactor;

// Shared by the copies of one handler; constant, so any thread.
class StaticSite : public std::enable_shared_from_this<StaticSite> {
public:
    StaticSite(std::shared_ptr<const FileRoot> root, StaticFileOptions options)
        : root_(std::move(root)), options_(std::move(options)) {}

    [[nodiscard]] const StaticFileOptions& options() const { return options_; }
    [[nodiscard]] const std::shared_ptr<const FileRoot>& root() const { return root_; }
    // What it keeps on the reactor on whose thread it is called; made, and prewarmed, at its first call there.
    struct Local;
    [[nodiscard]] Local& local(Reactor& reactor) const;

private:
    [[nodiscard]] FileCacheLimits cache_limits(const Reactor& reactor) const;

    const std::shared_ptr<const FileRoot> root_;
    const StaticFileOptions options_;
};

struct StaticSite::Local {
    Local(std::shared_ptr<const StaticSite> owner, Reactor& reactor, const FileCacheLimits& limits)
        : site(std::move(owner)), cache(reactor, site->root(), limits) {}
    bool close_spare_files() { return cache.close_spare_files(); }

    const std::shared_ptr<const StaticSite> site;  // so that no other has its address
    FileCache cache;
    std::uint32_t listings = 0;  // that are being made
};

// One request. What it needs to know it asks the cache for; where that has to wait for the disk the run ends, and another begins
// from the start when the answer is there. So a run never goes on after a null reference. Lives for one run, on the
// reactor's thread.
class SiteRequest {
public:
    // `known`: what earlier runs have waited for, since the cache may not have kept it.
    SiteRequest(const StaticSite& site, const Request& request, Response& response, std::vector<FileReference> known);

    void serve();

private:
    struct Waiting;

    // Null: it is waited for.
    [[nodiscard]] FileReference find(const char* path);
    void wait_for(const char* path);
    void serve_directory(std::string_view name);
    void list(std::string_view name);
    void send(FileReference file, unsigned status = 200);
    // Kept with it, so that only the first answer has to make it.
    [[nodiscard]] const FileDescription& description_of(FileSnapshot& file) const;
    // Puts the best file beside it that the client accepts in its place; false when that has to be waited for.
    [[nodiscard]] bool take_precompressed(FileReference* file, ContentCoding* coding);
    // `error` is why there is no file of that name; 0 when it is not to be served.
    void answer_missing(int error, std::string_view name);
    void answer_not_found();

    const StaticSite& site_;
    const StaticFileOptions& options_;
    Reactor& reactor_;
    StaticSite::Local& local_;
    const Request& request_;
    Response& response_;
    std::vector<FileReference> known_;
};

}  // namespace penstock

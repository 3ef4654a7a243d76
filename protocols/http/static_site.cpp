#include "penstock/protocols/http/static_site.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "penstock/engine/ensure.h"
#include "penstock/engine/reactor.h"
#include "penstock/platform/net.h"
#include "penstock/platform/thread.h"
#include "penstock/protocols/http/accept_encoding.h"
#include "penstock/protocols/http/deferred_response.h"
#include "penstock/protocols/http/file_response.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"
#include "penstock/protocols/http/site_listing.h"
#include "penstock/protocols/http/static_file_rules.h"
#include "penstock/protocols/http/target.h"

namespace penstock {

namespace {

// A path of more bytes, its NUL included, no system call takes (man 7 path_resolution, PATH_MAX).
constexpr std::size_t kPathLimitBytes = 4'096;

using PathBuffer = std::array<char, kPathLimitBytes>;

std::string_view suffix_of(ContentCoding coding);
bool write_path(std::string_view name, std::string_view more, PathBuffer* path);
void redirect_to_directory(const Request& request, Response& response);
Reactor& reactor_of_this_thread();

}  // namespace

// ---- StaticSite

StaticSite::Local& StaticSite::local(Reactor& reactor) const {
    bool is_new = false;
    Local& local = reactor.local<Local>(this, [&] {
        is_new = true;
        return std::make_shared<Local>(shared_from_this(), reactor, cache_limits(reactor));
    });
    for (std::size_t i = 0; is_new && i < options_.prewarm.size(); ++i) {
        const char* const path = options_.prewarm[i].c_str();
        // static_files has read it, but not every system can tell, and some time may have passed.
        if (!local.cache.find(path)) {
            (void)local.cache.load(path, [](const FileReference&) {});
        }
    }
    return local;
}

FileCacheLimits StaticSite::cache_limits(const Reactor& reactor) const {
    const FileCacheOptions& wanted = options_.cache;
    // One reactor cannot close what another keeps open when it has no descriptor left for its clients.
    const unsigned reactors = reactor.config().reactors != 0 ? reactor.config().reactors : platform::usable_core_count();
    const std::uint64_t share = platform::descriptor_limit() / 4 / reactors;
    return {.entries = wanted.entries,
            .descriptors = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted.descriptors, share)),
            .bytes = wanted.bytes,
            .content_bytes = std::min<std::uint64_t>(kCachedFileLimitBytes, wanted.bytes / 4),
            .time_to_live_ms = wanted.time_to_live_ms};
}

// ---- SiteRequest

SiteRequest::SiteRequest(const StaticSite& site, const Request& request, Response& response, std::vector<FileReference> known)
    : site_(site), options_(site.options()), reactor_(reactor_of_this_thread()), local_(site.local(reactor_)), request_(request),
      response_(response), known_(std::move(known)) {}

void SiteRequest::serve() {
    const std::string_view name = request_.parameter(options_.parameter);
    if (name.data() == nullptr) {
        throw std::logic_error("static_files: the route's pattern has no \"" + options_.parameter +
                               "\", which StaticFileOptions::parameter names; write it like \"/*" + options_.parameter + "\"");
    }
    // NUL is an encoded slash: part of a name to the client, while the kernel would take it for a separator.
    if (request_.path().find('\0') != std::string_view::npos || !is_servable(name, options_.hidden_files)) {
        return answer_not_found();
    }
    if (name.empty() || name.ends_with('/')) {
        return serve_directory(name);
    }
    PathBuffer path;  // left as it is until written
    if (!write_path(name, {}, &path)) {
        return answer_not_found();
    }
    FileReference found = find(path.data());
    if (!found) {
        return;
    }
    if (found->is_directory()) {
        return redirect_to_directory(request_, response_);
    }
    if (!found->is_file()) {
        return answer_missing(found->error(), name);
    }
    send(std::move(found));
}

FileReference SiteRequest::find(const char* path) {
    for (const FileReference& known : known_) {
        if (known->path() == path) {
            return known;
        }
    }
    FileReference found = local_.cache.find(path);
    if (!found) {
        wait_for(path);
    }
    return found;
}

// What waits for a path that is looked at.
struct SiteRequest::Waiting {
    std::shared_ptr<const StaticSite> site;
    const Request* request;
    DeferredResponse later;
    std::vector<FileReference> known;

    // Captures no more than a std::function holds without asking for memory, for whose refusal nobody would answer.
    void operator()(const FileReference& found) {
        later.run([this, &found](Response& response) { go_on(found, response); });
    }
    void go_on(const FileReference& found, Response& response) {
        if (!found) {
            return refuse_file(response, 503);
        }
        known.push_back(found);
        SiteRequest(*site, *request, response, std::move(known)).serve();
    }
};

void SiteRequest::wait_for(const char* path) {
    if (!local_.cache.load(path, Waiting{site_.shared_from_this(), &request_, response_.defer(), std::move(known_)})) {
        refuse_file(response_, 503);
    }
}

void SiteRequest::serve_directory(std::string_view name) {
    PathBuffer path;  // left as it is until written
    int error = ENOENT;
    for (const std::string& index : options_.index_files) {
        if (!write_path(name, index, &path)) {
            return answer_not_found();
        }
        FileReference found = find(path.data());
        if (!found) {
            return;
        }
        if (found->is_file()) {
            return send(std::move(found));
        }
        error = found->error();
        // What is there and cannot be sent is not passed over: another index would hide why.
        if (error != 0 && status_of_file_error(error) != 404) {
            return refuse_file(response_, status_of_file_error(error));
        }
    }
    if (options_.directory_listing) {
        if (!write_path(name, ".", &path)) {
            return answer_not_found();
        }
        const FileReference found = find(path.data());
        if (!found) {
            return;
        }
        if (found->is_directory()) {
            return list(name);
        }
        error = found->error();
    }
    answer_missing(error, name);
}

// On the offload pool, where there is one: each entry of a directory is a call of its own, and any may wait.
void SiteRequest::list(std::string_view name) {
    ListingRequest listing{std::string(request_.path()), std::string(name), options_.hidden_files};
    if (reactor_.config().offload_limit == 0) {
        return send_listing(list_directory(*site_.root(), listing), response_);
    }
    struct Job {
        std::shared_ptr<const StaticSite> site;
        ListingRequest listing;
        DeferredResponse later;
        ListingResult result;
    };
    const auto job = std::make_shared<Job>(Job{site_.shared_from_this(), std::move(listing), response_.defer(), {}});
    const auto run = [job] { job->result = list_directory(*job->site->root(), job->listing); };
    const auto answer = [job, local = &local_] {
        --local->listings;
        job->later.run([&](Response& response) { send_listing(std::move(job->result), response); });
    };
    if (local_.listings == kListingsAtOnce || !reactor_.try_offload(Message(run), Message(answer))) {
        return refuse_file(response_, 503);
    }
    ++local_.listings;
}

void SiteRequest::send(FileReference file, unsigned status) {
    ContentCoding coding = ContentCoding::identity;
    const FileReference original = file;
    if (options_.precompressed && !take_precompressed(&file, &coding)) {
        return;
    }
    const FileToSend sent{.file = file,
                          .description = description_of(*file),
                          .named = description_of(*original),
                          .content_encoding = coding != ContentCoding::identity ? content_coding_name(coding) : std::string_view(),
                          .varies = options_.precompressed};
    if (status != 200) {
        response_.status(status);  // not before: a run that had to wait would leave it to the next one
    }
    if (response_.status() == 200) {
        send_file_response(sent, request_, response_);
    } else {
        send_error_page(sent, request_, response_);
    }
}

const FileDescription& SiteRequest::description_of(FileSnapshot& file) const {
    auto& description = file.description();
    if (description == nullptr) {
        std::string room;
        description = std::make_unique<const FileDescription>(
            content_type_of(options_, file.path(), &room), cache_control_of(options_, file.path()), file.info());
    }
    return *description;
}

bool SiteRequest::take_precompressed(FileReference* file, ContentCoding* coding) {
    constexpr std::array kSiblings{ContentCoding::brotli, ContentCoding::zstd, ContentCoding::gzip};
    std::string memory;
    const std::string_view accepted = joined_field(request_, HeaderName::accept_encoding, &memory);
    bool waits = false;
    const auto try_sibling = [&](ContentCoding chosen) {
        PathBuffer path;  // left as it is until written
        if (!write_path((*file)->path(), suffix_of(chosen), &path)) {
            return false;
        }
        FileReference encoded = find(path.data());
        waits = !encoded;
        if (waits) {
            return true;
        }
        if (!encoded->is_file() || encoded->info().modified_ns < (*file)->info().modified_ns) {
            return false;
        }
        *file = std::move(encoded);
        *coding = chosen;
        return true;
    };
    (void)use_best_coding(accepted, kSiblings, try_sibling);
    return !waits;
}

void SiteRequest::answer_missing(int error, std::string_view name) {
    if (error != 0 && status_of_file_error(error) != 404) {
        return refuse_file(response_, status_of_file_error(error));
    }
    const bool takes_page = request_.method() == Method::get || request_.method() == Method::head;
    // Behind any other error there is something that must not be served.
    const bool is_absent = error == ENOENT || error == ENOTDIR;
    if (!options_.spa_fallback.empty() && is_absent && takes_page && wants_spa_fallback(name)) {
        FileReference page = find(options_.spa_fallback.c_str());
        if (!page) {
            return;
        }
        if (page->is_file()) {
            return send(std::move(page));
        }
    }
    answer_not_found();
}

void SiteRequest::answer_not_found() {
    if (!options_.not_found_page.empty()) {
        FileReference page = find(options_.not_found_page.c_str());
        if (!page) {
            return;
        }
        if (page->is_file()) {
            return send(std::move(page), 404);
        }
    }
    refuse_file(response_, 404);
}

namespace {

std::string_view suffix_of(ContentCoding coding) {
    return coding == ContentCoding::brotli ? ".br" : coding == ContentCoding::zstd ? ".zst" : ".gz";
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

Reactor& reactor_of_this_thread() {
    Reactor* const reactor = Reactor::current();
    ensure(reactor != nullptr, "static files are asked for off a reactor's thread");
    return *reactor;
}

}  // namespace

}  // namespace penstock

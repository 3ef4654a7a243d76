#include "penstock/protocols/http/site_listing.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "penstock/engine/config.h"
#include "penstock/protocols/http/directory_listing.h"
#include "penstock/protocols/http/file_response.h"
#include "penstock/protocols/http/response.h"
#include "penstock/protocols/http/static_file_rules.h"

namespace penstock {

namespace {

using platform::DirectoryEntry;
using platform::FileKind;

// Gives a link in the directory the information of what it leads to and returns 0, or errno.
int look_behind_link(const FileRoot& root, const ListingRequest& listing, DirectoryEntry* entry) {
    if (root.links == platform::LinkPolicy::never) {
        return ELOOP;
    }
    const std::string path = listing.name + entry->name;
    const LoadedFile behind = load_file(root, path.c_str(), nullptr, 0, platform::DiskWait::allowed);
    if (behind.error == 0) {
        entry->info = behind.info;
    }
    return behind.error;
}

ListingResult read_listing(const FileRoot& root, const ListingRequest& listing) {
    const std::string path = listing.name + ".";
    const IoResult opened = platform::open_beneath(root.directory.fd(), path.c_str(), root.links);
    if (!opened.ok()) {
        return {opened.error, {}};
    }
    const platform::Descriptor directory(static_cast<int>(opened.count));
    std::vector<DirectoryEntry> entries;
    ListingPage page{.path = listing.path, .has_parent = !listing.name.empty()};
    if (const int error = platform::list_directory(directory.fd(), kListingLimit, &entries, &page.complete); error != 0) {
        return {error, {}};
    }
    std::erase_if(entries, [&](const auto& entry) { return !is_servable(entry.name, listing.hidden_files); });
    for (DirectoryEntry& entry : entries) {
        const int error = entry.is_link ? look_behind_link(root, listing, &entry) : 0;
        // For want of a descriptor nothing may be left out as if it were not there.
        if (is_exhaustion(error)) {
            return {error, {}};
        }
    }
    std::erase_if(entries, [](const auto& entry) { return entry.info.kind == FileKind::other; });
    return {0, make_listing(page, entries)};
}

}  // namespace

ListingResult list_directory(const FileRoot& root, const ListingRequest& listing) noexcept {
    try {
        return read_listing(root, listing);
    } catch (const std::bad_alloc&) {
        return {ENOMEM, {}};
    }
}

void send_listing(ListingResult&& result, Response& response) {
    if (result.error != 0) {
        return refuse_file(response, status_of_file_error(result.error));
    }
    response.header("Content-Type", "text/html; charset=utf-8");
    response.header("X-Content-Type-Options", "nosniff");
    response.header("Content-Security-Policy", kListingPolicy);
    response.send(std::move(result.page));
}

}  // namespace penstock

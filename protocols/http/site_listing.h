// Internal.
// Reads a directory below a root, follows what it links to, and answers with the page that lists it.
#pragma once

#include <string>

#include "penstock/protocols/http/file_loading.h"

namespace penstock {

class Response;

struct ListingRequest {
    std::string path;  // of the request, decoded, for the heading
    std::string name;  // below the root: empty, or with a slash at its end
    bool hidden_files = false;
};

// The page, or why there is none: errno.
struct ListingResult {
    int error = 0;
    std::string page;
};

// Waits for the disk: for a thread that may. Allocates, and does not throw: without memory the error is ENOMEM.
[[nodiscard]] ListingResult list_directory(const FileRoot& root, const ListingRequest& listing) noexcept;

// On the thread of the response's reactor.
void send_listing(ListingResult&& result, Response& response);

}  // namespace penstock

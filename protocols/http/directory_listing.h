// Internal.
// The page that lists a directory: HTML that loads nothing and runs nothing. Makes text only; what may be listed is chosen by
// its caller. Any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "penstock/platform/file.h"

namespace penstock {

// What the page is sent with: should a name ever get past the escaping, nothing in it runs or loads.
inline constexpr std::string_view kListingPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

struct ListingPage {
    std::string_view path;      // of the request, decoded, for the heading
    bool has_parent = false;    // a link to the directory above
    bool complete = true;       // false: there are more entries than kListingLimit
};

// Regular files and directories; sorts them, directories first, then by the bytes of their names.
[[nodiscard]] std::string make_listing(const ListingPage& page, std::span<platform::DirectoryEntry> entries);

}  // namespace penstock

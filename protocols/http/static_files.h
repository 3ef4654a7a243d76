// Public.
// The files below a directory as a handler:
//
//     auto files = penstock::static_files("site");
//     router.get("/*path", files.value());
//
// The handler holds the directory open as long as a copy of it lives; all reactors call it at the same time.
// Nothing outside the directory is ever opened, whatever the path or the symbolic links below it say. Opening
// and reading run on the reactor's thread, so the files should lie on a disk that answers quickly.
#pragma once

#include <string>

#include "penstock/platform/error.h"
#include "penstock/protocols/http/router.h"

namespace penstock {

struct StaticFileOptions {
    // The parameter of the route that says which file: "path" for the pattern "/*path".
    std::string parameter = "path";
    // Whether names that begin with '.' are served. Off, since ".git" and ".env" lie in more sites than their
    // owners know.
    bool hidden_files = false;
};

// Answers with regular files, for a directory with the index.html in it; a directory without a slash at its
// end is redirected to the path with one. 404 for what is not there, lies outside or is hidden; 403 for what
// may not be read.
[[nodiscard]] Result<PlainHandler> static_files(const std::string& directory, StaticFileOptions options = {});

}  // namespace penstock

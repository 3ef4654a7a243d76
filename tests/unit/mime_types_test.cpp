#include "penstock/protocols/http/mime_types.h"

#include <doctest/doctest.h>

using penstock::mime_type;

namespace {

constexpr const char* kUnknown = "application/octet-stream";

}  // namespace

TEST_CASE("a file's type follows its last extension") {
    CHECK(mime_type("index.html") == "text/html; charset=utf-8");
    CHECK(mime_type("deep/er/style.css") == "text/css; charset=utf-8");
    CHECK(mime_type("/app.min.js") == "text/javascript; charset=utf-8");
    CHECK(mime_type("a.json") == "application/json");
    CHECK(mime_type("picture.svg") == "image/svg+xml");
    CHECK(mime_type("archive.tar.gz") == "application/gzip");
    CHECK(mime_type("font.woff2") == "font/woff2");
    CHECK(mime_type("site.webmanifest") == "application/manifest+json");
    CHECK(mime_type("first.7z") == "application/x-7z-compressed");
    CHECK(mime_type("last.zst") == "application/zstd");
}

TEST_CASE("the letter case of an extension does not matter") {
    CHECK(mime_type("PHOTO.JPG") == "image/jpeg");
    CHECK(mime_type("a.HtMl") == "text/html; charset=utf-8");
}

TEST_CASE("a name without an extension that is known has the unknown type") {
    for (const char* const path :
         {"", "/", ".", "..", "README", ".html", "a/.css", "a.", "html", "site.html/file", "a.htmlx", "a.ht",
          "a.html ", "a.webmanifestx", "a.an-extension-longer-than-any", "a.\xE9"}) {
        CAPTURE(path);
        CHECK(mime_type(path) == kUnknown);
    }
}

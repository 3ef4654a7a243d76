// What options say about files by their names, and the page that lists a directory: both are text alone.
#include "penstock/protocols/http/static_file_rules.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "penstock/engine/config.h"
#include "penstock/protocols/http/directory_listing.h"

using namespace penstock;
using platform::DirectoryEntry;
using platform::FileKind;

namespace {

DirectoryEntry entry(const std::string& name, FileKind kind, std::uint64_t size = 0, std::int64_t modified_ns = 0) {
    return {.name = name, .info = {.size = size, .modified_ns = modified_ns, .kind = kind}};
}

std::string listing_of(std::vector<DirectoryEntry> entries, const ListingPage& page = {.path = "/"}) {
    return make_listing(page, entries);
}

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

std::string mistake_in(const StaticFileOptions& options) {
    const Result<void> checked = check_static_file_options(options);
    return checked.ok() ? "" : checked.error().message;
}

}  // namespace

TEST_CASE("a pattern fits the whole path, its stars whatever is between") {
    struct Case {
        const char* pattern;
        const char* text;
        bool fits;
    };
    for (const Case& each : {Case{"*.css", "style.css", true},
                             {"*.css", "deep/er/style.css", true},
                             {"*.css", ".css", true},
                             {"*.css", "style.css.map", false},
                             {"*.css", "style.CSS", false},
                             {"assets/*", "assets/a/b.js", true},
                             {"assets/*", "assets/", true},
                             {"assets/*", "assets", false},
                             {"assets/*", "more/assets/a", false},
                             {"*", "", true},
                             {"*", "anything/at.all", true},
                             {"**", "a", true},
                             {"", "", true},
                             {"", "a", false},
                             {"a", "", false},
                             {"?", "", false},
                             {"?.js", "a.js", true},
                             {"?.js", "ab.js", false},
                             {"*a*b", "xaxbxb", true},
                             {"*a*b", "xaxbxc", false},
                             {"a*b*c", "abbbc", true},
                             {"a*b*c", "acb", false},
                             {"*.min.*", "app.min.min.js", true},
                             {"[a].js", "a.js", false},
                             {"[a].js", "[a].js", true}}) {
        CAPTURE(each.pattern);
        CAPTURE(each.text);
        CHECK(matches_glob(each.pattern, each.text) == each.fits);
    }
    // As many stars as would keep a search that tries each of them again busy for ever.
    std::string stars;
    for (int i = 0; i < 200; ++i) {
        stars += "*a";
    }
    CHECK_FALSE(matches_glob(stars + "b", std::string(4'000, 'a')));
}

TEST_CASE("the first rule that fits gives the Cache-Control") {
    const StaticFileOptions options{.cache_control = {{"*.css", "one"}, {"assets/*", "two"}, {"*", "three"}}};
    CHECK(cache_control_of(options, "assets/a.css") == "one");
    CHECK(cache_control_of(options, "assets/a.js") == "two");
    CHECK(cache_control_of(options, "index.html") == "three");
    CHECK(cache_control_of({}, "index.html").empty());
    CHECK(cache_control_of({.cache_control = {{"*.css", "one"}}}, "a.js").empty());
}

TEST_CASE("types of one's own come before those that are built in, and text has the charset") {
    std::string room;
    const StaticFileOptions plain;
    CHECK(content_type_of(plain, "a.html", &room) == "text/html; charset=utf-8");
    CHECK(content_type_of(plain, "a.png", &room) == "image/png");
    const StaticFileOptions own{.mime_types = {{".glsl", "text/x-glsl"},
                                               {".tar.GZ", "application/x-tgz"},
                                               {".html", "text/html; charset=koi8-r"},
                                               {".css", "application/octet-stream"},
                                               {".css", "text/css"}}};
    CHECK(content_type_of(own, "sub/a.GLSL", &room) == "text/x-glsl; charset=utf-8");
    CHECK(content_type_of(own, "a.tar.gz", &room) == "application/x-tgz");
    CHECK(content_type_of(own, "a.gz", &room) == "application/gzip");
    CHECK(content_type_of(own, "a.html", &room) == "text/html; charset=koi8-r");
    CHECK(content_type_of(own, "a.css", &room) == "application/octet-stream");
    CHECK(content_type_of(own, "sub.glsl/.glsl", &room) == "application/octet-stream");
    const StaticFileOptions latin{.charset = "iso-8859-1", .mime_types = {{".x", "text/x"}}};
    CHECK(content_type_of(latin, "a.txt", &room) == "text/plain; charset=iso-8859-1");
    CHECK(content_type_of(latin, "a.x", &room) == "text/x; charset=iso-8859-1");
    CHECK(content_type_of(latin, "a.json", &room) == "application/json");
    const StaticFileOptions none{.charset = ""};
    CHECK(content_type_of(none, "a.txt", &room) == "text/plain");
}

TEST_CASE("only paths whose last name has no dot are taken by the fallback") {
    for (const char* const path : {"", "a", "a/b", "a/b/", "v1.2/settings", "a//"}) {
        CAPTURE(path);
        CHECK(wants_spa_fallback(path));
    }
    for (const char* const path : {"a.js", "a/b.css", "a.b/", "v1.", ".a"}) {
        CAPTURE(path);
        CHECK_FALSE(wants_spa_fallback(path));
    }
}

TEST_CASE("options that cannot be meant are named, with what to write instead") {
    CHECK(mistake_in({}).empty());
    CHECK(mistake_in({.index_files = {}, .charset = ""}).empty());
    for (const char* const name : {"", "a/index.html", "/index.html", ".", ".."}) {
        CAPTURE(name);
        const std::string mistake = mistake_in({.index_files = {"index.html", name}});
        CHECK(has(mistake, "index_files: \"" + std::string(name) + "\""));
        CHECK(has(mistake, "write one without '/'"));
    }
    CHECK(has(mistake_in({.cache_control = {{"", "no-cache"}}}), "write \"*\""));
    CHECK(has(mistake_in({.cache_control = {{"/assets/*", "no-cache"}}}), "leave it out"));
    for (const char* const value : {"", "a\r\nb: c", "caf\xC3\xA9", "a\x7F"}) {
        CAPTURE(value);
        CHECK(has(mistake_in({.cache_control = {{"*", value}}}), "write one like \"max-age=3600\""));
    }
    for (const char* const extension : {"", ".", "glsl", ".a/b"}) {
        CAPTURE(extension);
        CHECK(has(mistake_in({.mime_types = {{extension, "text/plain"}}}), "write one like \".glsl\""));
    }
    for (const char* const type : {"", "text", "/plain", "text/", "text /plain", "text/plain\r\n", "te\"xt/plain"}) {
        CAPTURE(type);
        CHECK(has(mistake_in({.mime_types = {{".x", type}}}), "write one like \"text/plain\""));
    }
    CHECK(has(mistake_in({.charset = "utf-8; x"}), "\"utf-8\", or \"\""));
    CHECK(has(mistake_in({.not_found_page = "/404.html"}), "not_found_page: \"/404.html\""));
    CHECK(has(mistake_in({.spa_fallback = std::string("a\0b", 3)}), "spa_fallback"));
}

TEST_CASE("a listing has directories first, then files, each by name") {
    const std::string html = listing_of({entry("b", FileKind::regular), entry("Z", FileKind::regular),
                                         entry("y", FileKind::directory), entry("a", FileKind::regular),
                                         entry("x", FileKind::directory)});
    std::size_t last = 0;
    for (const char* const link : {"\"./x/\">x/<", "\"./y/\">y/<", "\"./Z\">Z<", "\"./a\">a<", "\"./b\">b<"}) {
        CAPTURE(link);
        const std::size_t at = html.find(link);
        REQUIRE(at != std::string::npos);
        CHECK(at > last);
        last = at;
    }
}

TEST_CASE("whatever a name holds, a listing holds it as text") {
    const std::string html = listing_of({entry("<script>alert(1)</script>", FileKind::regular),
                                         entry("\"onclick='x'&amp;", FileKind::regular),
                                         entry("javascript:alert(1)", FileKind::regular),
                                         entry("a b?c#d%e\\f", FileKind::directory)},
                                        {.path = "/<b>/", .has_parent = true});
    CHECK_FALSE(has(html, "<script"));
    CHECK_FALSE(has(html, "<b>"));
    CHECK(has(html, "<title>/&lt;b&gt;/</title>"));
    CHECK(has(html, "<h1>/&lt;b&gt;/</h1>"));
    CHECK(has(html, "href=\"./%3Cscript%3Ealert(1)%3C/script%3E\">&lt;script&gt;alert(1)&lt;/script&gt;</a>"));
    CHECK(has(html, "href=\"./%22onclick=&#39;x&#39;&amp;amp;\">&quot;onclick=&#39;x&#39;&amp;amp;</a>"));
    CHECK(has(html, "href=\"./javascript:alert(1)\""));
    CHECK(has(html, "href=\"./a%20b%3Fc%23d%25e%5Cf/\">a b?c#d%e\\f/</a>"));
    CHECK(has(html, "href=\"../\""));
}

TEST_CASE("a listing tells sizes and dates, and when it is not all") {
    struct Case {
        std::uint64_t size;
        const char* text;
    };
    for (const Case& each : {Case{0, ">0 B<"}, {999, ">999 B<"}, {1'000, ">1.0 kB<"}, {1'099, ">1.0 kB<"},
                             {999'999, ">999.9 kB<"}, {12'345'678, ">12.3 MB<"}, {UINT64_MAX, ">18.4 EB<"}}) {
        CAPTURE(each.text);
        CHECK(has(listing_of({entry("a", FileKind::regular, each.size)}), each.text));
    }
    CHECK_FALSE(has(listing_of({entry("a", FileKind::directory, 4'096)}), "4.0 kB"));
    CHECK(has(listing_of({entry("a", FileKind::regular, 1, 784'111'777'000'000'000)}), ">1994-11-06 08:49<"));
    CHECK(has(listing_of({entry("a", FileKind::regular, 1, 0)}), ">1970-01-01 00:00<"));
    CHECK(has(listing_of({entry("a", FileKind::regular, 1, -1)}), "<td class=\"time\"></td>"));
    const std::string limit = "the " + std::to_string(kListingLimit) + " that were looked at";
    CHECK(has(listing_of({entry("a", FileKind::regular)}, {.path = "/", .complete = false}), limit));
    CHECK_FALSE(has(listing_of({entry("a", FileKind::regular)}), limit));
    const std::string empty = listing_of({});
    CHECK(has(empty, "Nothing here."));
    CHECK_FALSE(has(empty, "<table>"));
    CHECK_FALSE(has(empty, "../"));
}

TEST_CASE("a listing is for phones and dark rooms, and has nothing to load or to run") {
    const std::string html = listing_of({entry("a", FileKind::regular)});
    CHECK(html.starts_with("<!DOCTYPE html>"));
    CHECK(has(html, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"));
    CHECK(has(html, "color-scheme: light dark"));
    for (const char* const part : {"<script", "src=", "<link", "@import", "url("}) {
        CAPTURE(part);
        CHECK_FALSE(has(html, part));
    }
}

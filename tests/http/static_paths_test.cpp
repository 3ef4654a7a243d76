// No target leads out of the directory that is served, however it is written and whatever lies in its way; what lies outside
// never leaves. RFC 3986 §5.2.4, CWE-22, CWE-59.
#include "http/static_cases.h"

namespace penstock::test {
namespace {

using Kind = DiskEntry::Kind;

// A target and the one status that it has.
struct Row {
    std::string target;
    const char* status;
};

// Refused targets end their connection; whatever has been looked up leaves it open.
Case case_of(const Row& row) {
    const std::string_view status = row.status;
    return {.name = row.target,
            .request = get(row.target),
            .statuses = row.status,
            .ending = status == "400" || status == "414" ? Ending::closes : Ending::stays,
            .contains = status == "200" ? "\r\n\r\nfine" : ""};
}

void run_rows(const Disk& disk, std::span<const Row> rows) {
    std::vector<Case> cases;
    for (const Row& row : rows) {
        cases.push_back(case_of(row));
    }
    run_static_cases(disk, cases);
}

// Secrets lie beside the site, above it and in directories whose names begin like it.
std::vector<DiskEntry> outside() {
    std::vector<DiskEntry> entries;
    for (const char* const path : {"secret.txt", "site2/secret.txt", "sitesecret.txt", "site.bak/secret.txt", "other/secret.txt"}) {
        entries.push_back({Kind::file, path, std::string(kSecret)});
    }
    return entries;
}

Disk site(std::vector<DiskEntry> more = {}) {
    Disk disk{.entries = outside()};
    for (const char* const path : {"site/index.html", "site/f.txt", "site/sub/page.html", "site/sub/deep/f.txt"}) {
        disk.entries.push_back({Kind::file, path, "fine"});
    }
    disk.entries.insert(disk.entries.end(), more.begin(), more.end());
    return disk;
}

}  // namespace

TEST_CASE("dot segments stay below the root, in all places and however encoded") {
    const Row rows[] = {
        {"/.", "200"},
        {"/./f.txt", "200"},
        {"/%2e/f.txt", "200"},
        {"/%2E/sub/%2e/page.html", "200"},
        {"/sub/..", "200"},
        {"/sub/../", "200"},
        {"/sub/../f.txt", "200"},
        {"/sub/%2e%2e/f.txt", "200"},
        {"/sub/.%2E/f.txt", "200"},
        {"/sub/deep/../../f.txt", "200"},
        {"/none/../f.txt", "200"},
        {"/sub/.", "404"},
        {"/sub/deep/..", "404"},
        {"/f.txt/.", "404"},
        {"/f.txt/..", "200"},  // a text, not a walk: the root
        {"/f.txt/../secret.txt", "404"},
        {"/..", "400"},
        {"/../", "400"},
        {"/../secret.txt", "400"},
        {"/../../secret.txt", "400"},
        {"/../../../../../../../../../../etc/passwd", "400"},
        {"/../site/f.txt", "400"},
        {"/sub/../../secret.txt", "400"},
        {"/sub/../../site/f.txt", "400"},
        {"/sub/deep/../../../secret.txt", "400"},
        {"/./../secret.txt", "400"},
        {"/.././secret.txt", "400"},
        {"/f.txt/../../secret.txt", "400"},
        {"/%2e%2e/secret.txt", "400"},
        {"/%2E%2E/secret.txt", "400"},
        {"/%2e./secret.txt", "400"},
        {"/%2E./secret.txt", "400"},
        {"/.%2e/secret.txt", "400"},
        {"/%2e%2e", "400"},
        {"/sub/%2e%2e/%2e%2e/secret.txt", "400"},
        {"/sub/%2e%2e/../secret.txt", "400"},
        {"/...", "404"},
        {"/.../secret.txt", "404"},
        {"/..../secret.txt", "404"},
        {"/. /secret.txt", "400"},
        {"/.%20/secret.txt", "404"},
        {"/..%20/secret.txt", "404"},
        {"/%20../secret.txt", "404"},
        {"/..a/secret.txt", "404"},
        {"/a../secret.txt", "404"},
        {"/..\t/secret.txt", "400"},
        {"/..%09/secret.txt", "404"},
    };
    run_rows(site(), rows);
}

TEST_CASE("what is encoded is decoded once, and into nothing but names") {
    const Row rows[] = {
        // Twice.
        {"/%252e%252e/secret.txt", "404"},
        {"/%252e%252e%252fsecret.txt", "404"},
        {"/..%252fsecret.txt", "404"},
        {"/sub/..%252f..%252fsecret.txt", "404"},
        {"/%25252e%25252e/secret.txt", "404"},
        {"/%%32%65%%32%65/secret.txt", "400"},
        {"/f%252etxt", "404"},
        {"/f%2etxt", "200"},
        {"/%66.txt", "200"},
        // A slash that is part of a name.
        {"/sub%2fpage.html", "404"},
        {"/sub%2Fpage.html", "404"},
        {"/%2f", "404"},
        {"/%2fsecret.txt", "404"},
        {"/%2fetc%2fpasswd", "404"},
        {"/..%2fsecret.txt", "400"},
        {"/%2e%2e%2fsecret.txt", "400"},
        {"/sub/..%2f..%2fsecret.txt", "400"},
        {"/f.txt%2f", "404"},
        // The other slash.
        {"/..\\secret.txt", "404"},
        {"/..%5csecret.txt", "404"},
        {"/..%5C..%5Csecret.txt", "404"},
        {"/%2e%2e%5csecret.txt", "404"},
        {"/sub\\..\\..\\secret.txt", "404"},
        {"/sub\\page.html", "404"},
        {"/%5c", "404"},
        {"/%5c%5cserver%5cshare", "404"},
        {"\\..\\secret.txt", "400"},
        {"/c:/secret.txt", "404"},
        {"/c:%5csecret.txt", "404"},
    };
    run_rows(site(), rows);
}

TEST_CASE("no spelling of a dot, a slash or an end is taken for one") {
    const Row rows[] = {
        // '.' and '/' in more bytes than UTF-8 allows (RFC 3629 §3), in full width, and in UTF-7 and %u.
        {"/%c0%ae%c0%ae/secret.txt", "404"},
        {"/%c0%ae%c0%ae%c0%afsecret.txt", "404"},
        {"/..%c0%afsecret.txt", "404"},
        {"/..%c1%9csecret.txt", "404"},
        {"/%e0%80%ae%e0%80%ae/secret.txt", "404"},
        {"/..%e0%80%afsecret.txt", "404"},
        {"/%f0%80%80%ae%f0%80%80%ae/secret.txt", "404"},
        {"/%ef%bc%8e%ef%bc%8e%ef%bc%8fsecret.txt", "404"},
        {"/%c2%2e%c2%2e/secret.txt", "404"},
        {"/+AC4-+AC4-/secret.txt", "404"},
        {"/%u002e%u002e/secret.txt", "400"},
        {"/\xC0\xAE\xC0\xAE/secret.txt", "400"},
        // NUL, which would end a name too early.
        {"/f.txt%00", "400"},
        {"/f.txt%00.html", "400"},
        {"/%00", "400"},
        {"/%00/f.txt", "400"},
        {"/..%00/secret.txt", "400"},
        {"/sub/%2e%2e%00/%2e%2e/secret.txt", "400"},
        {std::string("/f.txt\0", 7), "400"},
        // No encoding at all.
        {"/%", "400"},
        {"/%2", "400"},
        {"/%2g", "400"},
        {"/%-1", "400"},
        {"/f.txt%", "400"},
        // Line ends.
        {"/f.txt%0d%0aX: y", "400"},
        {"/f.txt%0d%0aX:%20y", "404"},
    };
    run_rows(site(), rows);
}

TEST_CASE("empty segments, absolute paths, parameters and queries lead nowhere else") {
    const Row rows[] = {
        {"//", "404"},
        {"//secret.txt", "404"},
        {"///secret.txt", "404"},
        {"//f.txt", "404"},
        {"//etc/passwd", "404"},
        {"/sub//page.html", "404"},
        {"/sub//../page.html", "200"},  // the empty segment is what goes up
        {"/sub//../../f.txt", "200"},
        {"//../secret.txt", "404"},
        {"//../../secret.txt", "400"},
        {"/etc/passwd", "404"},
        {"etc/passwd", "400"},
        {"../secret.txt", "400"},
        {"http://t/f.txt", "200"},
        {"http://t/../secret.txt", "400"},
        {"http://t/%2e%2e/secret.txt", "400"},
        {"http://t//secret.txt", "404"},
        {"http://t/..%5csecret.txt", "404"},
        {"http://t/sub/../../secret.txt", "400"},
        {"http://t?/../secret.txt", "200"},
        {"http:///secret.txt", "400"},
        {"http:/../secret.txt", "400"},
        {"file:///secret.txt", "400"},
        {"file://t/secret.txt", "400"},
        {"/f.txt;x", "404"},
        {"/f.txt;/../secret.txt", "404"},
        {"/;/f.txt", "404"},
        {"/sub;a=b/page.html", "404"},
        {"/..;/secret.txt", "404"},
        {"/..;a=b/..;/secret.txt", "404"},
        {"/sub/..;/..;/secret.txt", "404"},
        {"/.;/f.txt", "404"},
        {"/f.txt?../../secret.txt", "200"},
        {"/f.txt?/../../secret.txt", "200"},
        {"/f.txt?file=..%2f..%2fsecret.txt", "200"},
        {"/?../secret.txt", "200"},
        {"/sub/page.html?%00", "200"},
        {"/f.txt%3f../secret.txt", "404"},
        {"/..?/f.txt", "400"},
        {"/f.txt#../secret.txt", "400"},
        {"/f.txt%23", "404"},
        {"/~root/secret.txt", "404"},
        {"/$HOME/secret.txt", "404"},
        {"/*", "404"},
        {"/f.*", "404"},
        {"*", "400"},
    };
    run_rows(site(), rows);
}

TEST_CASE("a name is that name and none that is like it") {
    const Row rows[] = {
        // Beside the directory, and beginning like it.
        {"/2/secret.txt", "404"},
        {"/secret.txt", "404"},
        {"/site2/secret.txt", "404"},
        {"/site.bak/secret.txt", "404"},
        {"/../site2/secret.txt", "400"},
        {"/..site2/secret.txt", "404"},
        // What other systems leave out.
        {"/f.txt.", "404"},
        {"/f.txt...", "404"},
        {"/f.txt%20", "404"},
        {"/f.txt%20%20", "404"},
        {"/%20f.txt", "404"},
        {"/f.txt::$DATA", "404"},
        {"/f.txt:x", "404"},
        {"/F.TXT", "404"},
        {"/f~1.txt", "404"},
        {"/sub./page.html", "404"},
        {"/sub%20/page.html", "404"},
        {"/CON", "404"},
        {"/f.txt/", "404"},
        {"/f.txt/x", "404"},
        {"/index.html/", "404"},
        {"/f.txt+", "404"},
        {"/f+txt", "404"},
        {"/f.txt%7f", "404"},
        {"/sub", "301"},
        {"/sub?x", "301"},
        {"/sub/", "404"},
    };
    run_rows(site(), rows);
}

TEST_CASE("names with odd letters are served by that name alone") {
    const std::string longest(251, 'n');
    std::vector<DiskEntry> entries;
    for (const std::string& name :
         {std::string("line\nbreak.txt"), std::string("quote\"'.txt"), std::string("100%.txt"), std::string("%2e%2e"),
          std::string("\xC3\xBC.txt"), std::string("\xFF.txt"), std::string("a b.txt"), std::string("dot."), std::string("space "),
          std::string("semi;colon.txt"), std::string("q?.txt"), std::string("hash#.txt"), std::string("back\\slash.txt"),
          std::string("<b>.txt"), std::string("tab\t.txt"), std::string("-rf"), std::string("~"), std::string("plus+.txt"),
          std::string("c:"), longest + ".txt"}) {
        entries.push_back({Kind::file, "site/" + name, "fine"});
    }
    const Row rows[] = {
        {"/line%0abreak.txt", "200"},
        {"/line%0Abreak.txt", "200"},
        {"/line%0dbreak.txt", "404"},
        {"/quote%22'.txt", "200"},
        {"/quote%22%27.txt", "200"},
        {"/100%25.txt", "200"},
        {"/100%.txt", "400"},
        {"/%252e%252e", "200"},
        {"/%c3%bc.txt", "200"},
        {"/u%cc%88.txt", "404"},  // the same letter in another form
        {"/%ff.txt", "200"},
        {"/a%20b.txt", "200"},
        {"/a+b.txt", "404"},
        {"/dot.", "200"},
        {"/dot", "404"},
        {"/space%20", "200"},
        {"/space", "404"},
        {"/semi;colon.txt", "200"},
        {"/semi", "404"},
        {"/q%3f.txt", "200"},
        {"/q?.txt", "404"},
        {"/hash%23.txt", "200"},
        {"/back%5cslash.txt", "200"},
        {"/back\\slash.txt", "200"},
        {"/back/slash.txt", "404"},
        {"/%3cb%3e.txt", "200"},
        {"/tab%09.txt", "200"},
        {"/-rf", "200"},
        {"/~", "200"},
        {"/%7e", "200"},
        {"/plus+.txt", "200"},
        {"/plus%2b.txt", "200"},
        {"/c:", "200"},
        // 255 bytes are the longest name there is (man 3 limits.h, NAME_MAX), 4,095 the longest path.
        {"/" + longest + ".txt", "200"},
        {"/n" + longest + ".txt", "404"},
        {"/" + std::string(4'094, 'x'), "404"},
        {"/" + std::string(4'095, 'x'), "404"},
        {"/" + std::string(4'096, 'x'), "404"},
        {"/" + std::string(4'097, 'x'), "404"},
        {"/" + replaced(std::string(3'000, 'd'), "d", "d/"), "404"},
        {"/" + replaced(std::string(900, 'd'), "d", "d/../") + "f.txt", "200"},
        {"/" + std::string(7'000, '/') + "f.txt", "404"},
        {"/" + std::string(7'999, 'x'), "404"},
        {"/" + std::string(8'000, 'x'), "414"},
    };
    run_rows(site(entries), rows);
}

TEST_CASE("hidden files are not there unless they are asked to be") {
    const std::vector<DiskEntry> entries{
        {Kind::file, "site/.env", "fine"},
        {Kind::file, "site/.git/config", "fine"},
        {Kind::file, "site/sub/.htpasswd", "fine"},
        {Kind::file, "site/..data", "fine"},
        {Kind::file, "site/.../f.txt", "fine"},
    };
    const char* const targets[] = {"/.env", "/%2eenv", "/.git/config", "/sub/.htpasswd", "/..data", "/%2e.data", "/.../f.txt", "/sub/../.env"};
    for (const bool hidden_files : {false, true}) {
        Disk disk = site(entries);
        disk.options.hidden_files = hidden_files;
        std::vector<Row> rows{{"/.git", hidden_files ? "301" : "404"}, {"/.none", "404"}, {"/..", "400"}, {"/../secret.txt", "400"}};
        for (const char* const target : targets) {
            rows.push_back({target, hidden_files ? "200" : "404"});
        }
        run_rows(disk, rows);
    }
}

TEST_CASE("symbolic links lead to what is inside, by ways that are inside") {
    const std::vector<DiskEntry> entries{
        {Kind::link, "site/within.txt", "sub/page.html"},
        {Kind::link, "site/sub/above.txt", "../f.txt"},
        {Kind::link, "site/folder", "sub"},
        {Kind::link, "site/chained", "folder/above.txt"},
        {Kind::link, "site/self", "."},
        {Kind::link, "site/out.txt", "../secret.txt"},
        {Kind::link, "site/sub/out.txt", "../../secret.txt"},
        {Kind::link, "site/up", ".."},
        {Kind::link, "site/beside", "../other"},
        {Kind::link, "site/like", "../site2"},
        {Kind::link, "site/first", "second"},
        {Kind::link, "site/second", "sub/third"},
        {Kind::link, "site/sub/third", "../../secret.txt"},
        {Kind::link, "site/by-folder", "folder/../../secret.txt"},
        {Kind::link, "site/out-and-in", "../site/f.txt"},
        {Kind::link, "site/absolute-out", "{disk}/secret.txt"},
        {Kind::link, "site/absolute-in", "{disk}/site/f.txt"},
        {Kind::link, "site/whole", "/"},
        {Kind::link, "site/passwd", "/etc/passwd"},
        {Kind::link, "site/process", "/proc/self"},
        {Kind::link, "site/environment", "/proc/self/environ"},
        {Kind::link, "site/descriptor", "/proc/self/fd/0"},
        {Kind::link, "site/zero", "/dev/zero"},
        {Kind::link, "site/gone", "nowhere"},
        {Kind::link, "site/loop", "loop"},
        {Kind::link, "site/ring1", "ring2"},
        {Kind::link, "site/ring2", "ring1"},
        {Kind::link, "site/linked/index.html", "../../secret.txt"},
        {Kind::file, "site/packed.css", "fine"},
        {Kind::link, "site/packed.css.gz", "../secret.txt"},
    };
    const char* const inside[] = {"/within.txt", "/sub/above.txt", "/folder/page.html", "/chained", "/self/f.txt", "/self/self/sub/above.txt", "/self/"};
    const char* const never[] = {
        "/out.txt", "/sub/out.txt", "/folder/out.txt", "/up", "/up/", "/up/secret.txt", "/up/site/f.txt", "/up/up/etc/passwd", "/beside", "/beside/",
        "/beside/secret.txt", "/like/secret.txt", "/first", "/second", "/sub/third", "/by-folder", "/out-and-in", "/absolute-out", "/absolute-in",
        "/whole", "/whole/", "/whole/etc/passwd", "/passwd", "/process", "/process/", "/process/environ", "/process/cwd/f.txt", "/process/root",
        "/environment", "/descriptor", "/zero", "/gone", "/gone/", "/loop", "/loop/", "/loop/f.txt", "/ring1", "/linked/index.html",
        "/packed.css.gz", "/self/out.txt", "/self/up/secret.txt"};
    for (const FollowSymlinks follow : {FollowSymlinks::inside, FollowSymlinks::never}) {
        Disk disk = site(entries);
        disk.options = {.directory_listing = true, .follow_symlinks = follow, .precompressed = true};
        std::vector<Row> rows{{"/f.txt", "200"}, {"/packed.css", "200"}, {"/folder", follow == FollowSymlinks::inside ? "301" : "404"}};
        for (const char* const target : inside) {
            rows.push_back({target, follow == FollowSymlinks::inside ? "200" : "404"});
        }
        for (const char* const target : never) {
            rows.push_back({target, "404"});
        }
        run_rows(disk, rows);
        const Case list[] = {{"a list leaves out what leads outside", get("/linked/"), "200", Ending::stays, "<h1>/linked/</h1>", "index.html"}};
        run_static_cases(disk, list);
    }
}

TEST_CASE("what is no file is not there, and what is closed is not told") {
    const std::vector<DiskEntry> entries{
        {Kind::pipe, "site/pipe"},
        {Kind::pipe, "site/sub/index.html"},
        {Kind::link, "site/to-pipe", "pipe"},
        {Kind::closed_file, "site/closed.txt", std::string(kSecret)},
        {Kind::closed_file, "site/closed/index.html", std::string(kSecret)},
        {Kind::file, "site/locked/f.txt", std::string(kSecret)},
        {Kind::closed_directory, "site/locked"},
        {Kind::link, "site/to-closed", "closed.txt"},
    };
    const Row rows[] = {
        {"/pipe", "404"},        {"/pipe/", "404"},         {"/pipe/x", "404"},      {"/sub/", "404"},
        {"/to-pipe", "404"},     {"/closed.txt", "403"},    {"/closed/", "403"},     {"/closed.txt/", "404"},
        {"/to-closed", "403"},   {"/locked", "403"},        {"/locked/", "403"},     {"/locked/f.txt", "403"},
        {"/locked/none", "403"}, {"/locked/../f.txt", "200"},
    };
    run_rows(site(entries), rows);
    Disk listing = site(entries);
    listing.options.directory_listing = true;
    const Row in_lists[] = {{"/pipe/", "404"}, {"/locked/", "403"}, {"/closed/", "403"}};
    run_rows(listing, in_lists);
}

TEST_CASE("below a prefix only what has that prefix and a slash") {
    Disk disk = site();
    disk.pattern = "/pub/*path";
    const Row rows[] = {
        {"/pub/f.txt", "200"},        {"/pub/", "200"},           {"/pub/sub/../f.txt", "200"},   {"/pub/%2e/f.txt", "200"},
        {"/other/../pub/f.txt", "200"}, {"/pub%2ff.txt", "404"},  {"/public", "404"},             {"/public/f.txt", "404"},
        {"/publicf.txt", "404"},      {"/pub.bak/secret.txt", "404"}, {"/pub/../f.txt", "404"},   {"/pub/../secret.txt", "404"},
        {"/pub/../../secret.txt", "400"}, {"/pub/%2e%2e/secret.txt", "404"}, {"/pub/..%2fsecret.txt", "400"}, {"/PUB/f.txt", "404"},
        {"//pub/f.txt", "404"},       {"/pub//f.txt", "404"},     {"/pub;x/f.txt", "404"},        {"/f.txt", "404"},
        {"/pub/..pub/secret.txt", "404"},
    };
    run_rows(disk, rows);
}

}  // namespace penstock::test

#include "penstock/protocols/http/directory_listing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "penstock/engine/config.h"
#include "penstock/protocols/http/target.h"

namespace penstock {

namespace {

using platform::DirectoryEntry;
using platform::FileKind;

// Fonts of the system, and colours that follow its light or dark mode by themselves. Long names break, so that the page is
// never wider than a phone.
constexpr std::string_view kHead = R"(<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 50rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.25rem; overflow-wrap: anywhere; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .4rem .5rem; text-align: left; vertical-align: top; border-bottom: 1px solid #8886; }
td:first-child { overflow-wrap: anywhere; }
a { display: block; }
.size { text-align: right; white-space: nowrap; }
.time { white-space: nowrap; font-variant-numeric: tabular-nums; }
@media (max-width: 30rem) { .time { display: none; } }
</style>
)";

// A row without its name, which is 255 bytes at most and mostly short.
constexpr std::size_t kRowBytes = 160;

void append_escaped(std::string_view text, std::string* html);
void append_row(const DirectoryEntry& entry, std::string* html);
void append_size(std::uint64_t bytes, std::string* html);
void append_time(std::int64_t nanoseconds, std::string* html);

}  // namespace

std::string make_listing(const ListingPage& page, std::span<DirectoryEntry> entries) {
    std::sort(entries.begin(), entries.end(), [](const DirectoryEntry& left, const DirectoryEntry& right) {
        const bool is_first = left.info.kind == FileKind::directory;
        return is_first != (right.info.kind == FileKind::directory) ? is_first : left.name < right.name;
    });
    std::string html;
    html.reserve(2 * kHead.size() + entries.size() * kRowBytes);
    html.append("<!DOCTYPE html>\n<html lang=\"en\">\n<title>");
    append_escaped(page.path, &html);
    html.append("</title>\n").append(kHead).append("<h1>");
    append_escaped(page.path, &html);
    html.append("</h1>\n");
    if (page.has_parent) {
        html.append("<p><a href=\"../\">Parent directory</a></p>\n");
    }
    if (!page.complete) {
        html.append("<p>This directory has more entries than the ");
        html.append(std::to_string(kListingLimit)).append(" that were looked at, in no order; the others are not shown.</p>\n");
    }
    if (entries.empty()) {
        return html.append("<p>Nothing here.</p>\n");
    }
    html.append("<table>\n<thead><tr><th scope=\"col\">Name</th><th scope=\"col\" class=\"size\">Size</th>"
                "<th scope=\"col\" class=\"time\">Changed (UTC)</th></tr></thead>\n<tbody>\n");
    for (const DirectoryEntry& entry : entries) {
        append_row(entry, &html);
    }
    return html.append("</tbody>\n</table>\n");
}

namespace {

void append_escaped(std::string_view text, std::string* html) {
    for (const char letter : text) {
        switch (letter) {
            case '&': html->append("&amp;"); break;
            case '<': html->append("&lt;"); break;
            case '>': html->append("&gt;"); break;
            case '"': html->append("&quot;"); break;
            case '\'': html->append("&#39;"); break;
            default: html->push_back(letter); break;
        }
    }
}

void append_row(const DirectoryEntry& entry, std::string* html) {
    const bool is_directory = entry.info.kind == FileKind::directory;
    const std::string_view end = is_directory ? "/" : "";
    // Without the "./" a name with a colon would begin with a scheme: "javascript:" (RFC 3986 §4.2).
    html->append("<tr><td><a href=\"./");
    append_escaped(encode_path(entry.name), html);
    html->append(end).append("\">");
    append_escaped(entry.name, html);
    html->append(end).append("</a></td><td class=\"size\">");
    if (!is_directory) {
        append_size(entry.info.size, html);
    }
    html->append("</td><td class=\"time\">");
    append_time(entry.info.modified_ns, html);
    html->append("</td></tr>\n");
}

// "999 B", "1.0 kB", "12.3 MB": with one decimal, cut and not rounded.
void append_size(std::uint64_t bytes, std::string* html) {
    static constexpr std::array<std::string_view, 7> kUnits = {" B", " kB", " MB", " GB", " TB", " PB", " EB"};
    std::uint64_t tenths = 0;
    std::size_t unit = 0;
    while (bytes >= 1'000) {
        tenths = bytes % 1'000 / 100;
        bytes /= 1'000;
        ++unit;
    }
    html->append(std::to_string(bytes));
    if (unit > 0) {
        html->append(".").append(std::to_string(tenths));
    }
    html->append(kUnits[unit]);
}

void append_padded(unsigned number, std::size_t width, std::string* html) {
    const std::string digits = std::to_string(number);
    html->append(width - std::min(width, digits.size()), '0').append(digits);
}

// "2026-11-30 15:34"
void append_time(std::int64_t nanoseconds, std::string* html) {
    if (nanoseconds < 0) {
        return;  // before 1970: a clock that was never set
    }
    const auto minutes = std::chrono::minutes(nanoseconds / 1'000'000'000 / 60);
    const auto days = std::chrono::floor<std::chrono::days>(minutes);
    const std::chrono::year_month_day date{std::chrono::sys_days(days)};
    const auto minute = static_cast<unsigned>((minutes - days).count());
    append_padded(static_cast<unsigned>(static_cast<int>(date.year())), 4, html);
    html->push_back('-');
    append_padded(static_cast<unsigned>(date.month()), 2, html);
    html->push_back('-');
    append_padded(static_cast<unsigned>(date.day()), 2, html);
    html->push_back(' ');
    append_padded(minute / 60, 2, html);
    html->push_back(':');
    append_padded(minute % 60, 2, html);
}

}  // namespace

}  // namespace penstock

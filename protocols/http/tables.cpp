#include "penstock/protocols/http/tables.h"

#include <algorithm>
#include <array>
#include <utility>

#include "penstock/protocols/http/characters.h"
#include "penstock/protocols/http/known_names.h"

namespace penstock {

namespace {

// ---- Methods -----------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 10> kMethodNames = {
    "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "",
};
static_assert(kMethodNames.size() == static_cast<std::size_t>(Method::other) + 1);
static_assert(kMethodNames[kRoutableMethods - 1] == "OPTIONS");

// ---- Status codes ------------------------------------------------------------------------------------

struct Phrase {
    unsigned status;
    std::string_view text;
};

// The IANA registry, ascending. 306 and 418 are registered as unused.
constexpr Phrase kPhrases[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {102, "Processing"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {207, "Multi-Status"},
    {208, "Already Reported"},
    {226, "IM Used"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {305, "Use Proxy"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {424, "Failed Dependency"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {506, "Variant Also Negotiates"},
    {507, "Insufficient Storage"},
    {508, "Loop Detected"},
    {510, "Not Extended"},
    {511, "Network Authentication Required"},
};

constexpr unsigned kFirstStatus = 100;
constexpr unsigned kStatusCount = 500;
constexpr std::string_view kVersionAndSpace = "HTTP/1.1 ";
// Before the phrase: "HTTP/1.1 200 ". Behind it: CR LF.
constexpr std::size_t kPhraseOffset = kVersionAndSpace.size() + 4;
constexpr std::size_t kLineEndBytes = 2;

constexpr std::size_t kStatusLineBytes = [] {
    std::size_t bytes = kStatusCount * (kPhraseOffset + kLineEndBytes);
    for (const Phrase& phrase : kPhrases) {
        bytes += phrase.text.size();
    }
    return bytes;
}();

// All lines in one string, one behind the other: 9 KB, of which a server's usual codes touch a few lines.
struct StatusLines {
    std::array<char, kStatusLineBytes> text{};
    std::array<std::uint16_t, kStatusCount + 1> begin{};
};
static_assert(kStatusLineBytes <= 0xFFFF);

constexpr StatusLines kStatusLines = [] {
    StatusLines lines;
    std::size_t end = 0;
    const auto append = [&lines, &end](std::string_view piece) {
        for (const char letter : piece) {
            lines.text[end++] = letter;
        }
    };
    const Phrase* phrase = std::begin(kPhrases);
    for (unsigned index = 0; index < kStatusCount; ++index) {
        const unsigned status = kFirstStatus + index;
        lines.begin[index] = static_cast<std::uint16_t>(end);
        append(kVersionAndSpace);
        const char digits[] = {static_cast<char>('0' + status / 100),
                               static_cast<char>('0' + status / 10 % 10),
                               static_cast<char>('0' + status % 10), ' '};
        append({digits, sizeof(digits)});
        if (phrase != std::end(kPhrases) && phrase->status == status) {
            append(phrase->text);
            ++phrase;
        }
        append("\r\n");
    }
    lines.begin[kStatusCount] = static_cast<std::uint16_t>(end);
    return lines;
}();
static_assert([] {
    std::size_t longest = 0;
    for (unsigned index = 0; index < kStatusCount; ++index) {
        longest = std::max<std::size_t>(longest, kStatusLines.begin[index + 1] - kStatusLines.begin[index]);
    }
    return longest == kLongestStatusLineBytes;
}());
// Holds only if every phrase was placed, and so only if the registry above is ascending.
static_assert(kStatusLines.begin[kStatusCount] == kStatusLineBytes);

// ---- Lists -------------------------------------------------------------------------------------------

std::size_t element_end(std::string_view list);
std::string_view trimmed(std::string_view text);

}  // namespace

std::string_view method_name(Method method) {
    return kMethodNames[static_cast<std::size_t>(method)];
}

bool is_for_heads_only(HeaderName name) {
    switch (name) {
        case HeaderName::content_length:
        case HeaderName::transfer_encoding:
        case HeaderName::trailer:
        case HeaderName::host:
        case HeaderName::connection:
        case HeaderName::keep_alive:
        case HeaderName::te:
        case HeaderName::upgrade:
        case HeaderName::expect: return true;
        default: return false;
    }
}

HeaderName find_header_name(std::string_view name) { return find_known_name(name); }

std::string_view header_name(HeaderName name) {
    return kSpellings[static_cast<std::size_t>(name)].text;
}

std::string_view status_line(unsigned status) {
    const unsigned given = status - kFirstStatus;
    // A handler may ask for any number. What HTTP cannot say becomes 500, as nothing else would be a
    // response.
    const unsigned index = given < kStatusCount ? given : 500 - kFirstStatus;
    const std::size_t begin = kStatusLines.begin[index];
    return {kStatusLines.text.data() + begin, kStatusLines.begin[index + 1] - begin};
}

std::string_view status_phrase(unsigned status) {
    if (status - kFirstStatus >= kStatusCount) {
        return {};
    }
    const std::string_view line = status_line(status);
    return line.substr(kPhraseOffset, line.size() - kPhraseOffset - kLineEndBytes);
}

bool equal_ignoring_case(std::string_view left, std::string_view right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](char a, char b) { return lower_letter(a) == lower_letter(b); });
}

bool is_token(std::string_view text) { return characters::is_token(text); }

bool is_field_text(std::string_view text) { return characters::is_field_text(text); }

bool list_has_token(std::string_view list, std::string_view token) {
    while (!list.empty()) {
        const std::size_t end = element_end(list);
        if (equal_ignoring_case(trimmed(list.substr(0, end)), token)) {
            return !token.empty();
        }
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return false;
}

namespace {

// The first comma outside a quoted string (RFC 9110 §5.6.4), or the end.
std::size_t element_end(std::string_view list) {
    bool quoted = false;
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i] == '"') {
            quoted = !quoted;
        } else if (list[i] == '\\' && quoted) {
            ++i;
        } else if (list[i] == ',' && !quoted) {
            return i;
        }
    }
    return list.size();
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace
}  // namespace penstock

#include "penstock/protocols/http/cookies.h"

#include <algorithm>

#include "penstock/engine/http_date.h"
#include "penstock/protocols/http/tables.h"

namespace penstock {

namespace {

// The last second of 9999, after which a year no longer has four digits.
constexpr std::int64_t kLatestDate = 253'402'300'799;
// Of a name in a message: enough to recognise it.
constexpr std::size_t kLoggedNameBytes = 64;

std::string_view trimmed(std::string_view text);

bool is_cookie_value(std::string_view value);
bool is_cookie_path(std::string_view path);
bool is_cookie_domain(std::string_view domain);
bool has_prefix(std::string_view name, std::string_view prefix);

std::string_view same_site_attribute(SameSite value);
void append_date(std::string& text, std::int64_t seconds);

}  // namespace

bool CookieWalker::next(CookiePair* pair) {
    while (!rest_.empty() && parts_left_ > 0) {
        --parts_left_;
        const std::size_t end = std::min(rest_.find(';'), rest_.size());
        const std::string_view part = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos) {
            continue;
        }
        const std::string_view name = trimmed(part.substr(0, equals));
        if (!name.empty()) {
            *pair = {name, trimmed(part.substr(equals + 1))};
            return true;
        }
    }
    return false;
}

std::string_view find_cookie(std::string_view cookie_field, std::string_view name) {
    CookieWalker walker(cookie_field);
    for (CookiePair pair; walker.next(&pair);) {
        if (pair.name == name) {
            return pair.value;
        }
    }
    return {};
}

CookieBuilder& CookieBuilder::path(std::string_view path) {
    path_ = path;
    return *this;
}

CookieBuilder& CookieBuilder::domain(std::string_view domain) {
    domain_ = domain;
    return *this;
}

CookieBuilder& CookieBuilder::max_age_s(std::int64_t seconds) {
    max_age_s_ = seconds;
    return *this;
}

CookieBuilder& CookieBuilder::expires(std::int64_t seconds) {
    expires_ = seconds;
    return *this;
}

CookieBuilder& CookieBuilder::secure(bool on) {
    secure_ = on;
    return *this;
}

CookieBuilder& CookieBuilder::http_only(bool on) {
    http_only_ = on;
    return *this;
}

CookieBuilder& CookieBuilder::same_site(SameSite value) {
    same_site_ = value;
    return *this;
}

Result<std::string> CookieBuilder::build() const {
    if (const char* const fault = find_fault(); fault != nullptr) {
        return Error{"cookie \"" + name_for_log() + "\": " + fault};
    }
    std::string text = name_ + "=" + value_;
    if (!path_.empty()) {
        text.append("; Path=").append(path_);
    }
    if (!domain_.empty()) {
        text.append("; Domain=").append(domain_);
    }
    if (max_age_s_) {
        text.append("; Max-Age=").append(std::to_string(*max_age_s_));
    }
    if (expires_) {
        append_date(text.append("; Expires="), *expires_);
    }
    if (secure_) {
        text.append("; Secure");
    }
    if (http_only_) {
        text.append("; HttpOnly");
    }
    if (same_site_) {
        text.append(same_site_attribute(*same_site_));
    }
    return text;
}

const char* CookieBuilder::find_fault() const {
    if (!is_token(name_)) {
        return "the name is no token (RFC 6265 section 4.1.1), make it of letters, digits, '-', '_' and '.'";
    }
    if (!is_cookie_value(value_)) {
        return "the value holds a character that no cookie may (space, quote, comma, semicolon, backslash, control or "
               "non-ASCII, RFC 6265 section 4.1.1), encode it, as base64url for example";
    }
    if (name_.size() + value_.size() > kCookieLimitBytes) {
        return "name and value are larger together than 4096 bytes, which browsers drop, keep the data on the server "
               "and send a key to it";
    }
    if (!path_.empty() && !is_cookie_path(path_)) {
        return "the path must begin with '/' and hold at most 1024 characters of ASCII without controls and ';', "
               "percent-encode the rest";
    }
    if (!domain_.empty() && !is_cookie_domain(domain_)) {
        return "the domain must be a host name like example.org, give it without scheme, port and dots at its ends";
    }
    if (max_age_s_ && *max_age_s_ < 0) {
        return "max_age_s is negative, set 0 to remove the cookie";
    }
    if (expires_ && (*expires_ < 0 || *expires_ > kLatestDate)) {
        return "expires lies outside the years 1970 to 9999, set seconds, not milliseconds, since 1970";
    }
    if (same_site_ == SameSite::none && !secure_) {
        return "browsers drop SameSite=None without Secure, call secure() or choose SameSite::lax";
    }
    return find_prefix_fault();
}

const char* CookieBuilder::find_prefix_fault() const {
    if (has_prefix(name_, "__Secure-") && !secure_) {
        return "browsers drop a __Secure- cookie without Secure, call secure()";
    }
    if (has_prefix(name_, "__Host-") && (!secure_ || path_ != "/" || !domain_.empty())) {
        return "browsers drop a __Host- cookie that lacks Secure and Path=/ or has a Domain, call secure() and "
               "path(\"/\") and leave domain() out";
    }
    return nullptr;
}

// Without what would break a line of the log.
std::string CookieBuilder::name_for_log() const {
    std::string name = name_.substr(0, kLoggedNameBytes);
    std::replace_if(name.begin(), name.end(), [](char c) { return c < ' ' || c > '~' || c == '"'; }, '?');
    return name;
}

namespace {

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) {
        return text.substr(text.size());  // empty, but not null: the cookie is there
    }
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// cookie-value of RFC 6265 §4.1.1: cookie-octets, all of them quoted or none.
bool is_cookie_value(std::string_view value) {
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
        value = value.substr(1, value.size() - 2);
    }
    return std::all_of(value.begin(), value.end(),
                       [](char c) { return c > ' ' && c <= '~' && c != '"' && c != ',' && c != ';' && c != '\\'; });
}

// path-value of RFC 6265 §4.1.1. One that does not begin with '/' is replaced by the browser (§5.2.4).
bool is_cookie_path(std::string_view path) {
    return path.front() == '/' && path.size() <= kCookieAttributeLimitBytes &&
           std::all_of(path.begin(), path.end(), [](char c) { return c >= ' ' && c <= '~' && c != ';'; });
}

// Letters, digits and hyphens between dots (RFC 1034 §3.5). A dot in front is not allowed and would be ignored
// (RFC 6265 §4.1.2.3).
bool is_cookie_domain(std::string_view domain) {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    };
    return domain.front() != '.' && domain.back() != '.' && domain.find("..") == std::string_view::npos &&
           domain.size() <= kCookieAttributeLimitBytes && std::all_of(domain.begin(), domain.end(), is_letter);
}

// In any letter case, as browsers compare them (RFC 6265bis §4.1.3).
bool has_prefix(std::string_view name, std::string_view prefix) {
    return equal_ignoring_case(name.substr(0, prefix.size()), prefix);
}

std::string_view same_site_attribute(SameSite value) {
    switch (value) {
        case SameSite::strict: return "; SameSite=Strict";
        case SameSite::lax: return "; SameSite=Lax";
        case SameSite::none: return "; SameSite=None";
    }
    return {};
}

void append_date(std::string& text, std::int64_t seconds) {
    char date[kHttpDateBytes];
    write_http_date(seconds, date);
    text.append(date, sizeof date);
}

}  // namespace
}  // namespace penstock

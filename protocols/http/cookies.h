// Public.
// Cookies of both directions (RFC 6265): what a Cookie field holds, and the value of a Set-Cookie field. Nothing here
// decodes or signs a value. Reading allocates nothing, and its views point into the field that was given; a
// CookieBuilder owns its text. Any thread, one at a time for each object.
//
//     const std::string_view session = find_cookie(request.header(HeaderName::cookie), "__Host-session");
//     const auto cookie = CookieBuilder("__Host-session", token).path("/").secure().http_only().build();
//     if (cookie) {
//         response.add_header("Set-Cookie", cookie.value());
//     }
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/platform/error.h"

namespace penstock {

// Parts between semicolons that are looked at in one Cookie field; browsers keep fewer than 200 cookies a site. What
// stands behind them is not seen.
inline constexpr std::size_t kCookiePartLimit = 256;
// Name and value together. Browsers drop a larger cookie without a word (RFC 6265bis §5.6), and need not keep a larger
// one (RFC 6265 §6.1).
inline constexpr std::size_t kCookieLimitBytes = 4096;
// Of a path or a domain, likewise (RFC 6265bis §5.6).
inline constexpr std::size_t kCookieAttributeLimitBytes = 1024;

struct CookiePair {
    std::string_view name;
    std::string_view value;
};

// Walks over the pairs of a Cookie field (RFC 6265 §4.2.1) in the order in which they were sent. White space around names
// and values is dropped, quotes are part of the value (RFC 6265 §5.4), and a part without '=' or without a name is
// passed over.
class CookieWalker {
public:
    explicit CookieWalker(std::string_view cookie_field) : rest_(cookie_field) {}

    // False at the end, or after kCookiePartLimit parts; `pair` is left as it was then.
    [[nodiscard]] bool next(CookiePair* pair);

private:
    std::string_view rest_;
    std::size_t parts_left_ = kCookiePartLimit;
};

// The value of the first cookie of that name, in the same letter case; a null view (data() == nullptr) when there is none.
// The first is the one with the longest path (RFC 6265 §5.4), but a name says nothing about who set it, unless it begins
// with "__Host-".
[[nodiscard]] std::string_view find_cookie(std::string_view cookie_field, std::string_view name);

enum class SameSite : std::uint8_t { strict, lax, none };

// Makes the value of one Set-Cookie field. An attribute that is not set is not written, and the browser's default holds.
// It may be copied.
class CookieBuilder {
public:
    CookieBuilder(std::string_view name, std::string_view value) : name_(name), value_(value) {}

    CookieBuilder& path(std::string_view path);
    // The host with all below it. Without one the cookie is for this host alone.
    CookieBuilder& domain(std::string_view domain);
    // 0 removes the cookie, when name, path and domain are those it was set with. Goes before `expires`.
    CookieBuilder& max_age_s(std::int64_t seconds);
    // Since 1970-01-01 UTC.
    CookieBuilder& expires(std::int64_t seconds);
    CookieBuilder& secure(bool on = true);
    CookieBuilder& http_only(bool on = true);
    CookieBuilder& same_site(SameSite value);

    // The field's value; or, when a browser would drop the cookie or read another out of it, a sentence that names the
    // cookie, what is wrong and what to do. The sentence never holds the value, which may be a secret.
    [[nodiscard]] Result<std::string> build() const;

private:
    // What is wrong, or nullptr.
    [[nodiscard]] const char* find_fault() const;
    [[nodiscard]] const char* find_prefix_fault() const;
    [[nodiscard]] std::string name_for_log() const;

    std::string name_;
    std::string value_;
    std::string path_;
    std::string domain_;
    std::optional<std::int64_t> max_age_s_;
    std::optional<std::int64_t> expires_;
    std::optional<SameSite> same_site_;
    bool secure_ = false;
    bool http_only_ = false;
};

}  // namespace penstock

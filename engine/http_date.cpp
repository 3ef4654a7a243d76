#include "penstock/engine/http_date.h"

#include <chrono>
#include <cstring>

namespace penstock {

namespace {

constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::array<std::string_view, 7> kLongDays = {
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
};
constexpr std::size_t kShortNameBytes = 3;

void write_digits(char* out, unsigned value, int digits) {
    for (int i = digits - 1; i >= 0; --i) {
        out[i] = static_cast<char>('0' + value % 10);
        value /= 10;
    }
}

}  // namespace

void write_http_date(std::int64_t seconds, char* out) {
    const std::chrono::sys_seconds time{std::chrono::seconds{seconds}};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const unsigned of_day = static_cast<unsigned>((time - day).count());
    std::memcpy(out, "ddd, DD mmm YYYY hh:mm:ss GMT", kHttpDateBytes);
    std::memcpy(out, kDays.data() + kShortNameBytes * std::chrono::weekday{day}.c_encoding(), kShortNameBytes);
    write_digits(out + 5, static_cast<unsigned>(date.day()), 2);
    std::memcpy(out + 8, kMonths.data() + kShortNameBytes * (static_cast<unsigned>(date.month()) - 1), kShortNameBytes);
    write_digits(out + 12, static_cast<unsigned>(static_cast<int>(date.year())), 4);
    write_digits(out + 17, of_day / 3600, 2);
    write_digits(out + 20, of_day / 60 % 60, 2);
    write_digits(out + 23, of_day % 60, 2);
}

namespace {

struct DateParts {
    unsigned year = 0;  // of two digits in the form of RFC 850
    unsigned month = 0;
    unsigned day = 0;
    unsigned hour = 0;
    unsigned minute = 0;
    unsigned second = 0;
};

constexpr std::size_t kShortestDateBytes = std::string_view("Sun Nov  6 08:49:37 1994").size();

// The letters of strftime (man 3 strftime), here for the strict forms of HTTP; all else stands for itself.
bool matches(std::string_view text, std::string_view pattern, DateParts* parts);
std::optional<std::int64_t> moment(const DateParts& parts);
std::optional<std::int64_t> nearest_moment(DateParts parts, std::int64_t now);

}  // namespace

std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now) {
    if (text.size() < kShortestDateBytes) {
        return std::nullopt;  // mostly that of a field that was not sent
    }
    DateParts parts;
    if (matches(text, "%a, %d %b %Y %H:%M:%S GMT", &parts) || matches(text, "%a %b %e %H:%M:%S %Y", &parts)) {
        return moment(parts);
    }
    if (matches(text, "%A, %d-%b-%y %H:%M:%S GMT", &parts)) {
        return nearest_moment(parts, now);
    }
    return std::nullopt;
}

namespace {

bool take_part(std::string_view* text, char letter, DateParts* parts);

bool matches(std::string_view text, std::string_view pattern, DateParts* parts) {
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] == '%') {
            if (!take_part(&text, pattern[++i], parts)) {
                return false;
            }
        } else if (text.empty() || text.front() != pattern[i]) {
            return false;
        } else {
            text.remove_prefix(1);
        }
    }
    return text.empty();
}

bool take_number(std::string_view* text, std::size_t digits, unsigned* value);
bool take_padded_day(std::string_view* text, unsigned* day);
bool take_short_name(std::string_view* text, std::string_view names, unsigned* number);
bool take_long_day(std::string_view* text);

bool take_part(std::string_view* text, char letter, DateParts* parts) {
    unsigned day_of_week = 0;
    switch (letter) {
        case 'a': return take_short_name(text, kDays, &day_of_week);
        case 'A': return take_long_day(text);
        case 'b': return take_short_name(text, kMonths, &parts->month);
        case 'd': return take_number(text, 2, &parts->day);
        case 'e': return take_padded_day(text, &parts->day);
        case 'Y': return take_number(text, 4, &parts->year);
        case 'y': return take_number(text, 2, &parts->year);
        case 'H': return take_number(text, 2, &parts->hour);
        case 'M': return take_number(text, 2, &parts->minute);
        case 'S': return take_number(text, 2, &parts->second);
        default: return false;
    }
}

bool take_number(std::string_view* text, std::size_t digits, unsigned* value) {
    if (text->size() < digits) {
        return false;
    }
    *value = 0;
    for (const char digit : text->substr(0, digits)) {
        if (digit < '0' || digit > '9') {
            return false;
        }
        *value = *value * 10 + static_cast<unsigned>(digit - '0');
    }
    text->remove_prefix(digits);
    return true;
}

// Two digits, or a space and one.
bool take_padded_day(std::string_view* text, unsigned* day) {
    if (!text->starts_with(' ')) {
        return take_number(text, 2, day);
    }
    text->remove_prefix(1);
    return take_number(text, 1, day);
}

// Its place among `names`, from 1. Letter case counts (RFC 9110 §5.6.7).
bool take_short_name(std::string_view* text, std::string_view names, unsigned* number) {
    const std::string_view name = text->substr(0, kShortNameBytes);
    for (std::size_t at = 0; at < names.size(); at += kShortNameBytes) {
        if (names.substr(at, kShortNameBytes) == name) {
            *number = static_cast<unsigned>(at / kShortNameBytes + 1);
            text->remove_prefix(kShortNameBytes);
            return true;
        }
    }
    return false;
}

bool take_long_day(std::string_view* text) {
    for (const std::string_view day : kLongDays) {
        if (text->starts_with(day)) {
            text->remove_prefix(day.size());
            return true;
        }
    }
    return false;
}

std::optional<std::int64_t> moment(const DateParts& parts) {
    const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(parts.year)},
                                           std::chrono::month{parts.month}, std::chrono::day{parts.day}};
    // UTC puts leap seconds at the end of a day.
    const unsigned last_second = parts.hour == 23 && parts.minute == 59 ? 60 : 59;
    if (!date.ok() || parts.hour > 23 || parts.minute > 59 || parts.second > last_second) {
        return std::nullopt;
    }
    const std::chrono::sys_seconds day = std::chrono::sys_days{date};
    return day.time_since_epoch().count() + parts.hour * 3600 + parts.minute * 60 + parts.second;
}

// A year of two digits is the latest that is not more than 50 years ahead (RFC 9110 §5.6.7). The next century is tried
// first, since near the end of this one a year of the next is close.
std::optional<std::int64_t> nearest_moment(DateParts parts, std::int64_t now) {
    const std::chrono::sys_seconds time{std::chrono::seconds{now}};
    const auto today = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{today};
    // 29 February of a year that has none is 1 March.
    const std::chrono::sys_seconds ahead = std::chrono::sys_days{date + std::chrono::years{50}};
    const std::int64_t latest = (ahead + (time - today)).time_since_epoch().count();
    const int century = static_cast<int>(date.year()) / 100 * 100;
    const unsigned of_century = parts.year;
    for (const int years : {100, 0, -100}) {
        parts.year = static_cast<unsigned>(century + years) + of_century;
        if (const auto seconds = moment(parts); seconds && *seconds <= latest) {
            return seconds;
        }
    }
    return std::nullopt;
}

}  // namespace

}  // namespace penstock

#include "penstock/engine/http_date.h"

#include <chrono>
#include <cstring>

namespace penstock {

namespace {

void write_digits(char* out, unsigned value, int digits) {
    for (int i = digits - 1; i >= 0; --i) {
        out[i] = static_cast<char>('0' + value % 10);
        value /= 10;
    }
}

}  // namespace

void write_http_date(std::int64_t seconds, char* out) {
    static constexpr char kDays[] = "SunMonTueWedThuFriSat";
    static constexpr char kMonths[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const std::chrono::sys_seconds time{std::chrono::seconds{seconds}};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const unsigned of_day = static_cast<unsigned>((time - day).count());
    std::memcpy(out, "ddd, DD mmm YYYY hh:mm:ss GMT", kHttpDateBytes);
    std::memcpy(out, kDays + 3 * std::chrono::weekday{day}.c_encoding(), 3);
    write_digits(out + 5, static_cast<unsigned>(date.day()), 2);
    std::memcpy(out + 8, kMonths + 3 * (static_cast<unsigned>(date.month()) - 1), 3);
    write_digits(out + 12, static_cast<unsigned>(static_cast<int>(date.year())), 4);
    write_digits(out + 17, of_day / 3600, 2);
    write_digits(out + 20, of_day / 60 % 60, 2);
    write_digits(out + 23, of_day % 60, 2);
}

}  // namespace penstock

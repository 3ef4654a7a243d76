// What looks at targets and hosts many bytes at a time, against plain readers that take one after the other.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "penstock/engine/arena.h"
#include "penstock/engine/block_pool.h"
#include "penstock/protocols/http/target.h"
#include "support/seed.h"

using namespace penstock;

namespace {

constexpr std::size_t kLongest = 40;

struct Origin {
    std::string path;
    std::string query;

    bool operator==(const Origin&) const = default;
};

int hex_value(char letter) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const char low = letter >= 'A' && letter <= 'F' ? static_cast<char>(letter - 'A' + 'a') : letter;
    const std::size_t value = kDigits.find(low);
    return value == std::string_view::npos ? -1 : static_cast<int>(value);
}

// None when it is refused. An encoded slash is a NUL.
std::optional<std::string> decoded(std::string_view segment) {
    std::string text;
    for (std::size_t i = 0; i < segment.size(); ++i) {
        if (segment[i] != '%') {
            text += segment[i];
            continue;
        }
        if (i + 2 >= segment.size() || hex_value(segment[i + 1]) < 0 || hex_value(segment[i + 2]) < 0) {
            return std::nullopt;
        }
        const int value = hex_value(segment[i + 1]) * 16 + hex_value(segment[i + 2]);
        if (value == 0) {
            return std::nullopt;
        }
        text += value == '/' ? '\0' : static_cast<char>(value);
        i += 2;
    }
    return text;
}

// The origin form alone.
std::optional<Origin> read_origin(std::string_view target) {
    if (target.empty() || target[0] != '/') {
        return std::nullopt;
    }
    for (const char byte : target) {
        const auto value = static_cast<unsigned char>(byte);
        if (value <= 0x20 || value >= 0x7F || value == '#') {
            return std::nullopt;
        }
    }
    Origin origin;
    const std::size_t mark = target.find('?');
    if (mark != std::string_view::npos) {
        origin.query = target.substr(mark + 1);
        target = target.substr(0, mark);
    }
    std::vector<std::string> segments;
    std::size_t begin = 1;
    while (begin <= target.size()) {
        std::size_t end = begin;
        while (end < target.size() && target[end] != '/') {
            ++end;
        }
        const std::optional<std::string> segment = decoded(target.substr(begin, end - begin));
        if (!segment || (*segment == ".." && segments.empty())) {
            return std::nullopt;
        }
        if (*segment == "..") {
            segments.pop_back();
        } else if (*segment != ".") {
            segments.push_back(*segment);
        }
        if ((*segment == "." || *segment == "..") && end == target.size()) {
            segments.emplace_back();
        }
        begin = end + 1;
    }
    for (const std::string& segment : segments) {
        origin.path += "/" + segment;
    }
    return origin;
}

std::optional<Origin> parsed(std::string_view target, bool* has_encoded_slash) {
    BlockPool pages(4096, 2, 2);
    std::byte* const page = pages.try_acquire();
    std::optional<Origin> origin;
    {
        Arena arena(pages, page, 0);
        Target result;
        if (parse_target(target, false, false, arena, &result) == TargetError::none) {
            origin = Origin{std::string(result.path), std::string(result.query)};
            *has_encoded_slash = result.has_encoded_slash;
        }
    }
    pages.release(page);
    return origin;
}

void compare_targets(std::string_view text) {
    // Of its own, so that reading beyond it is found.
    const std::vector<char> bytes(text.begin(), text.end());
    const std::string_view target(bytes.data(), bytes.size());
    const std::optional<Origin> expected = read_origin(target);
    bool has_encoded_slash = false;
    const std::optional<Origin> given = parsed(target, &has_encoded_slash);
    const bool is_plain = expected && expected->path == target && target.find('?') == std::string_view::npos;
    if (given != expected || (given && has_encoded_slash != (given->path.find('\0') != std::string::npos))) {
        FAIL_CHECK("the target " << std::string(text) << " was taken apart otherwise");
    }
    // A segment that begins with a dot is looked at more closely, even if it stays as it is.
    if (is_plain_path(target) ? !is_plain : is_plain && target.find("/.") == std::string_view::npos) {
        FAIL_CHECK("the target " << std::string(text) << " was taken for what it is not");
    }
}

// Of a Host field without an address in brackets.
bool is_name_and_port(std::string_view value) {
    constexpr std::string_view kMarks = "-._~!$&'()*+,;=";
    std::size_t i = 0;
    for (; i < value.size() && value[i] != ':'; ++i) {
        const char letter = value[i];
        const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                              (letter >= '0' && letter <= '9') || kMarks.find(letter) != std::string_view::npos;
        if (is_plain) {
            continue;
        }
        if (letter != '%' || i + 2 >= value.size() || hex_value(value[i + 1]) < 0 || hex_value(value[i + 2]) < 0) {
            return false;
        }
        i += 2;
    }
    unsigned long port = 0;
    for (++i; i < value.size(); ++i) {
        if (value[i] < '0' || value[i] > '9') {
            return false;
        }
        port = std::min(port * 10 + static_cast<unsigned long>(value[i] - '0'), 100'000ul);
    }
    return port <= 65'535;
}

void compare_hosts(std::string_view text, HostMemo& memo) {
    const std::vector<char> bytes(text.begin(), text.end());
    const std::string_view host(bytes.data(), bytes.size());
    const bool expected = is_name_and_port(host);
    if (is_valid_host(host) != expected || memo.is_valid(host) != expected) {
        FAIL_CHECK("the host " << std::string(text) << " was judged otherwise");
    }
}

// Calls `compare` with every byte at every place of `text`.
template <class Compare>
void with_every_byte(const std::string& text, std::size_t first_place, Compare compare) {
    for (std::size_t place = first_place; place < text.size(); ++place) {
        for (int byte = 0; byte < 256; ++byte) {
            std::string changed = text;
            changed[place] = static_cast<char>(byte);
            compare(changed);
        }
    }
}

}  // namespace

TEST_CASE("targets with every byte at every place are taken apart as a plain reader does") {
    for (std::size_t length = 1; length <= kLongest; ++length) {
        with_every_byte("/" + std::string(length - 1, 'a'), 1, compare_targets);
    }
    const std::string dotted = "/./a/../b/.c/d./%2e/%2F/e.f?g=%/./h";
    for (std::size_t length = 1; length <= dotted.size(); ++length) {
        compare_targets(dotted.substr(0, length));
    }
    with_every_byte(dotted, 1, compare_targets);
}

TEST_CASE("random targets are taken apart as a plain reader does") {
    std::mt19937_64 random(test_seed());
    constexpr std::string_view kPieces[] = {"/", "/", "/", ".", ".", "..", "%2e", "%2F", "%41", "%", "?", "a", "index", "#", "%00"};
    constexpr std::size_t kUsual = 12;  // of the pieces: what comes behind them is refused nearly everywhere
    for (int round = 0; round < 50'000; ++round) {
        std::string target = "/";
        for (auto pieces = random() % 12; pieces > 0; --pieces) {
            target += kPieces[random() % (random() % 8 == 0 ? std::size(kPieces) : kUsual)];
        }
        compare_targets(target);
    }
}

TEST_CASE("hosts with every byte at every place are judged as by a plain reader, remembered or not") {
    HostMemo memo;
    const auto compare = [&memo](const std::string& text) {
        if (!text.starts_with('[')) {
            compare_hosts(text, memo);
        }
    };
    for (std::size_t length = 1; length <= kLongest; ++length) {
        with_every_byte(std::string(length, 'a'), 0, compare);
    }
    with_every_byte("127.0.0.1:65535", 0, compare);
    with_every_byte("caf%C3%A9.example.org:8080", 0, compare);
}

TEST_CASE("a host that is remembered lends nothing to those that resemble it") {
    for (const std::size_t length :
         {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{9}, std::size_t{16}, HostMemo::kLongestBytes - 1,
          HostMemo::kLongestBytes, HostMemo::kLongestBytes + 1, std::size_t{255}, std::size_t{256}, std::size_t{300}}) {
        CAPTURE(length);
        HostMemo memo;
        const std::string valid(length, 'a');
        CHECK(memo.is_valid(valid));
        CHECK(memo.is_valid(valid));
        for (std::size_t place = 0; place < length; ++place) {
            std::string other = valid;
            other[place] = ' ';
            CHECK_FALSE(memo.is_valid(other));
        }
        CHECK_FALSE(memo.is_valid(valid + "/"));
        CHECK_FALSE(memo.is_valid(valid + '\0'));
        CHECK_FALSE(memo.is_valid(valid.substr(1) + "@"));
        CHECK(memo.is_valid(valid.substr(1)));
        CHECK(memo.is_valid(valid));
        CHECK(memo.is_valid(""));
        CHECK_FALSE(memo.is_valid("["));
    }
    HostMemo fresh;
    CHECK(fresh.is_valid({}));
    CHECK_FALSE(fresh.is_valid(std::string(1, '\0')));
    CHECK_FALSE(fresh.is_valid(std::string(HostMemo::kLongestBytes, '\0')));
    CHECK_FALSE(fresh.is_valid(std::string(256, '\0')));
}

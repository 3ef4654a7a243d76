// PlainHead takes no head that llhttp would not take in the same way. The input is
//
//     byte 0   how many sizes of pieces follow, used over and over
//     ...      sizes of pieces
//     ...      the bytes of a request, perhaps with more behind it
//
// They are read whole, with the first byte alone in front (so that llhttp reads all), and in those pieces: outcome, request
// line, fields, framing and body must be the same. What PlainHead takes by itself must be what llhttp says of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/head_reading.h"

namespace penstock {
namespace {

// All of an input lies in one block.
constexpr std::size_t kInputLimit = 12'000;

void require(bool condition, const char* what, std::string_view about) {
    if (!condition) {
        std::fprintf(stderr, "plain_head_fuzz: %s\n%.*s\n", what, static_cast<int>(about.size()), about.data());
        std::abort();
    }
}

// Low, so that short inputs reach the limits, and so that more fields may come than lie in the request itself.
test::HeadBench& bench() {
    static test::HeadBench one([] {
        Config config;
        config.reactors = 1;
        config.head_limit_bytes = 1'500;
        config.target_limit_bytes = 100;
        config.header_count_limit = 30;
        config.log = [](LogLevel, std::string_view) {};
        return config;
    }());
    return one;
}

std::vector<std::string_view> cut(std::string_view bytes, std::span<const std::uint8_t> sizes) {
    std::vector<std::string_view> pieces;
    for (std::size_t i = 0; !bytes.empty(); ++i) {
        const std::size_t size = std::min<std::size_t>(bytes.size(), std::size_t{1} + (sizes.empty() ? 0 : sizes[i % sizes.size()]));
        pieces.push_back(bytes.substr(0, size));
        bytes.remove_prefix(size);
    }
    return pieces;
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace penstock;
    if (size < 2) {
        return 0;
    }
    const std::span<const std::uint8_t> rest(data + 1, size - 1);
    const auto sizes = rest.first(std::min<std::size_t>(data[0], rest.size() - 1));
    const auto head = rest.subspan(sizes.size());
    const std::string_view bytes(reinterpret_cast<const char*>(head.data()), std::min(head.size(), kInputLimit));
    require(bench().find_difference(bytes).empty(), "the readers differ", bench().find_difference(bytes));
    const test::ReadHead whole = bench().read_whole(bytes);
    const std::vector<std::string_view> pieces = cut(bytes, sizes);
    const test::ReadHead in_pieces = bench().read(pieces);
    require(whole.outcome == in_pieces.outcome && whole.status == in_pieces.status, "cut, it has another outcome", bytes);
    if (whole.request != in_pieces.request && whole.outcome == Http1Parser::Outcome::complete) {
        // Of what lies behind the message less may have come.
        const auto message = [](const test::ReadHead& read) { return read.request.substr(0, read.request.rfind("\nleft ")); };
        require(message(whole) == message(in_pieces), "cut, it is another request", whole.request + "\n----\n" + in_pieces.request);
    }
    return 0;
}

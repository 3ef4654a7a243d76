#include "penstock/protocols/http/head_scan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>

using namespace penstock;

namespace {

// In memory of just this size, so that reading beyond either end is noticed. The first sixteen bytes are in front.
template <HeadPart part>
void check_scan(const std::string& text) {
    const std::string padded = std::string(kScanBytes, '\0') + text;
    const auto copy = std::make_unique<char[]>(padded.size());
    std::copy(padded.begin(), padded.end(), copy.get());
    const char* const begin = copy.get() + kScanBytes;
    const char* const end = copy.get() + padded.size();
    const auto wanted = std::find_if(begin, end, [](char c) { return !may_stand_in(part, static_cast<unsigned char>(c)); });
    if (find_part_end<part>(begin, end) != wanted || find_part_end_bytewise<part>(begin, end) != wanted) {
        FAIL_CHECK("of " << text.size() << " bytes " << find_part_end<part>(begin, end) - begin << " and "
                         << find_part_end_bytewise<part>(begin, end) - begin << " instead of " << wanted - begin);
    }
}

template <HeadPart part>
void check_scans() {
    for (std::size_t size = 0; size < 50; ++size) {
        check_scan<part>(std::string(size, 'a'));
        for (std::size_t at = 0; at < size; ++at) {
            for (int value = 0; value < 256; ++value) {
                std::string text(size, 'a');
                text[at] = static_cast<char>(value);
                check_scan<part>(text);
            }
        }
    }
}

}  // namespace

TEST_CASE("a part of a head ends at its first strange byte, whatever that is and wherever it stands") {
    check_scans<HeadPart::name>();
    check_scans<HeadPart::value>();
    check_scans<HeadPart::target>();
}

TEST_CASE("what may stand in a part of a head") {
    for (int value = 0; value < 256; ++value) {
        const auto byte = static_cast<unsigned char>(value);
        const bool visible = byte > 0x20 && byte < 0x7f;
        CHECK(may_stand_in(HeadPart::value, byte) == (visible || byte == ' ' || byte == '\t' || byte >= 0x80));
        CHECK(may_stand_in(HeadPart::target, byte) == (visible && byte != '#'));
        CHECK((!may_stand_in(HeadPart::name, byte) || (visible && std::string_view(":\"(),/;<=>?@[\\]{}").find(static_cast<char>(byte)) == std::string_view::npos)));
    }
}

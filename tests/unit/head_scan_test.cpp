#include "penstock/protocols/http/head_scan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>

using namespace penstock;

namespace {

using characters::may_stand_in;

// In memory of just this size, so that reading beyond either end is noticed. The first sixteen bytes are in front.
class ExactCopy {
public:
    explicit ExactCopy(const std::string& text) : size_(kScanBytes + text.size()), bytes_(new char[size_]()) {
        std::copy(text.begin(), text.end(), bytes_.get() + kScanBytes);
    }
    [[nodiscard]] const char* begin() const { return bytes_.get() + kScanBytes; }
    [[nodiscard]] const char* end() const { return bytes_.get() + size_; }

private:
    std::size_t size_;
    std::unique_ptr<char[]> bytes_;
};

template <class Rule>
void check_scan(const std::string& text) {
    const ExactCopy copy(text);
    const auto wanted = std::find_if_not(copy.begin(), copy.end(), may_stand_in<Rule>);
    if (find_part_end<Rule>(copy.begin(), copy.end()) != wanted ||
        find_part_end<Rule, ArrayBytes>(copy.begin(), copy.end()) != wanted) {
        FAIL_CHECK("of " << text.size() << " bytes " << find_part_end<Rule>(copy.begin(), copy.end()) - copy.begin()
                         << " and " << find_part_end<Rule, ArrayBytes>(copy.begin(), copy.end()) - copy.begin()
                         << " instead of " << wanted - copy.begin());
    }
}

void check_target(const std::string& text) {
    const ExactCopy copy(text);
    const auto wanted = std::find_if_not(copy.begin(), copy.end(), may_stand_in<characters::Target>);
    const bool special = std::any_of(copy.begin(), wanted, [](char c) { return c == '.' || c == '%' || c == '?'; });
    bool given[2] = {!special, !special};
    if (find_target_end(copy.begin(), copy.end(), &given[0]) != wanted ||
        find_target_end<ArrayBytes>(copy.begin(), copy.end(), &given[1]) != wanted || given[0] != special ||
        given[1] != special) {
        FAIL_CHECK("of " << text.size() << " bytes, special: " << special << ", given " << given[0] << given[1]);
    }
}

// All that differ from a run of letters in one byte, and those that have another one behind it.
template <class Check>
void check_all(const Check& check) {
    for (std::size_t size = 0; size < 50; ++size) {
        check(std::string(size, 'a'));
        for (std::size_t at = 0; at < size; ++at) {
            for (int value = 0; value < 256; ++value) {
                std::string text(size, 'a');
                text[at] = static_cast<char>(value);
                check(text);
                text[size - 1] = '.';
                check(text);
            }
        }
    }
}

}  // namespace

TEST_CASE("a part of a head ends at its first strange byte, whatever that is and wherever it stands") {
    check_all(check_scan<characters::Name>);
    check_all(check_scan<characters::Text>);
    check_all(check_scan<characters::Target>);
    check_all(check_target);
}

TEST_CASE("what may stand in a part of a message") {
    const std::string_view delimiters = "\"(),/:;<=>?@[\\]{}";
    for (int value = 0; value < 256; ++value) {
        const auto byte = static_cast<unsigned char>(value);
        const auto letter = static_cast<char>(byte);
        const bool visible = byte > 0x20 && byte < 0x7f;
        const bool is_token = visible && delimiters.find(letter) == std::string_view::npos;
        CHECK(may_stand_in<characters::Text>(letter) == (visible || byte == ' ' || byte == '\t' || byte >= 0x80));
        CHECK(may_stand_in<characters::Target>(letter) == (visible && byte != '#'));
        CHECK(may_stand_in<characters::Token>(letter) == is_token);
        CHECK((!may_stand_in<characters::Name>(letter) || is_token));
    }
}

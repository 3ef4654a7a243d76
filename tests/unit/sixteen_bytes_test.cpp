// Sixteen bytes at a time by whatever the machine has, against the array that stands in for it elsewhere.
#include "penstock/protocols/http/sixteen_bytes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <string>

#include "penstock/protocols/http/characters.h"
#include "support/seed.h"

using namespace penstock;

namespace {

std::array<unsigned, 12> looks_of(auto bytes) {
    return {bytes.equal('\0').places(),
            bytes.equal('a').places(),
            bytes.equal('\x80').places(),
            bytes.equal('\xff').places(),
            bytes.template in_range<0, 0>().places(),
            bytes.template in_range<0, 0xfe>().places(),
            bytes.template in_range<1, 0xff>().places(),
            bytes.template in_range<0x7f, 0x80>().places(),
            bytes.template in_range<'a', 'z'>().places(),
            bytes.small().template in_range<'a', 'z'>().places(),
            (bytes.equal('a') | bytes.equal('b')).places(),
            bytes.template in_range<'a', 'z'>().without(bytes.equal('b')).places()};
}

std::string random_bytes(std::mt19937_64& random, std::size_t size) {
    std::string bytes(size, '\0');
    const bool is_text = random() % 2 == 0;
    for (char& byte : bytes) {
        byte = static_cast<char>(is_text ? 'a' + random() % 4 : random());
    }
    return bytes;
}

template <class Rule>
void check_judgement(const std::string& text) {
    const bool wanted = std::all_of(text.begin(), text.end(), characters::may_stand_in<Rule>);
    CHECK(characters::consists_of<Rule>(text) == wanted);
    CHECK(characters::consists_of<Rule, ArrayBytes>(text) == wanted);
}

}  // namespace

TEST_CASE("every byte is seen alike by both, wherever it stands") {
    for (int value = 0; value < 256; ++value) {
        for (std::size_t at = 0; at < SixteenBytes::kSize; ++at) {
            std::string bytes(SixteenBytes::kSize, 'b');
            bytes[at] = static_cast<char>(value);
            const auto looks = looks_of(SixteenBytes::load(bytes.data()));
            CHECK(looks == looks_of(ArrayBytes::load(bytes.data())));
            CHECK((looks[1] >> at & 1) == (value == 'a' ? 1u : 0u));
            CHECK((looks[8] >> at & 1) == (value >= 'a' && value <= 'z' ? 1u : 0u));
        }
    }
}

TEST_CASE("fewer than sixteen bytes are followed by zeros, and nothing beyond them is read") {
    std::mt19937_64 random(test_seed());
    for (int round = 0; round < 200; ++round) {
        for (std::size_t size = 0; size < SixteenBytes::kSize; ++size) {
            const std::string text = random_bytes(random, size);
            const auto exact = std::make_unique<char[]>(size);
            std::copy(text.begin(), text.end(), exact.get());
            const auto looks = looks_of(SixteenBytes::load_short(exact.get(), size));
            CHECK(looks == looks_of(ArrayBytes::load_short(exact.get(), size)));
            std::string padded = text;
            padded.resize(SixteenBytes::kSize);
            CHECK(looks == looks_of(SixteenBytes::load(padded.data())));
        }
    }
}

TEST_CASE("a text is judged as its bytes are, one by one") {
    for (std::size_t size = 0; size < 40; ++size) {
        check_judgement<characters::Token>(std::string(size, 'a'));
        for (std::size_t at = 0; at < size; ++at) {
            for (const char strange : {'\0', '\t', ' ', '"', '/', '@', '[', '}', '\x7f', '\x80', '\xff'}) {
                std::string text(size, 'a');
                text[at] = strange;
                check_judgement<characters::Token>(text);
                check_judgement<characters::Text>(text);
                check_judgement<characters::Target>(text);
            }
        }
    }
}

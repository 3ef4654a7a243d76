#include "penstock/protocols/http/route_index.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "penstock/protocols/http/short_text.h"
#include "support/seed.h"

using namespace penstock;

namespace {

// The most keys that share a place, were there two thousand places for a thousand of them.
std::size_t most_at_one_place(const std::vector<std::string>& keys) {
    std::vector<std::size_t> places(2048);
    for (const std::string& key : keys) {
        ++places[hash_short_text(0, key) >> 53];
    }
    return *std::max_element(places.begin(), places.end());
}

}  // namespace

TEST_CASE("texts of every length are compared to their last byte, and not beyond") {
    for (std::size_t length = 0; length <= 70; ++length) {
        CAPTURE(length);
        std::vector<char> left(length);
        for (std::size_t i = 0; i < length; ++i) {
            left[i] = static_cast<char>(i * 37);
        }
        std::vector<char> right = left;
        const std::string_view text(left.data(), length);
        CHECK(same_text(text, {right.data(), length}));
        CHECK(hash_short_text(3, text) == hash_short_text(3, {right.data(), length}));
        for (std::size_t place = 0; place < length; ++place) {
            right[place] = static_cast<char>(right[place] ^ 0x80);
            CHECK_FALSE(same_text(text, {right.data(), length}));
            CHECK(hash_short_text(3, text) != hash_short_text(3, {right.data(), length}));
            right[place] = left[place];
        }
        CHECK_FALSE(same_text(text, std::string(text) + "x"));
    }
}

TEST_CASE("keys that differ in a number spread over the table") {
    for (const std::string_view shape : {"#", "a#", "/api/v1/list#", "resource#", "/#/details", "/api/#/details/of/it"}) {
        CAPTURE(shape);
        std::vector<std::string> keys;
        for (int i = 0; i < 1000; ++i) {
            std::string key(shape);
            key.replace(key.find('#'), 1, std::to_string(i));
            keys.push_back(key);
        }
        CHECK(most_at_one_place(keys) <= 8);
    }
}

TEST_CASE("an index finds what a map finds, whatever it is asked") {
    std::mt19937_64 random(test_seed());
    RouteIndex index;
    CHECK(index.find(0, "") == RouteIndex::kNone);
    CHECK(index.find(0, "/a") == RouteIndex::kNone);
    for (std::size_t round = 0; round < 200; ++round) {
        std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> model;
        const auto draw = [&random] {
            // Few letters, so that texts share beginnings and come again under other parents.
            std::string text(random() % 4 == 0 ? random() % 80 : random() % 5, 'a');
            if (!text.empty()) {
                text[random() % text.size()] = static_cast<char>('a' + random() % 3);
            }
            return std::pair(static_cast<std::uint32_t>(random() % 3), text);
        };
        for (std::size_t i = 0; i < round; ++i) {
            model.try_emplace(draw(), static_cast<std::uint32_t>(i));
        }
        std::vector<RouteIndex::Item> items;
        for (const auto& [key, value] : model) {
            items.push_back({key.first, key.second, value});
        }
        index.assign(items);
        for (const auto& [key, value] : model) {
            CHECK(index.find(key.first, key.second) == value);
        }
        for (int i = 0; i < 100; ++i) {
            const auto key = draw();
            const auto known = model.find(key);
            CHECK(index.find(key.first, key.second) == (known == model.end() ? RouteIndex::kNone : known->second));
        }
    }
}

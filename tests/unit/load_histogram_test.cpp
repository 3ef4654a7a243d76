// The histogram of penstock_load, compared with the sorted numbers themselves.
#include "load/histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "support/seed.h"

namespace penstock::load {

namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

std::uint64_t quantile_of(const std::vector<std::uint64_t>& sorted, double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::max<std::size_t>(rank, 1) - 1];
}

void check_close(std::uint64_t measured, std::uint64_t exact) {
    CHECK(measured >= exact);
    CHECK(measured - exact <= exact / 32);
}

TEST_CASE("of nothing everything is nothing") {
    const Histogram histogram;
    CHECK(histogram.count() == 0);
    CHECK(histogram.largest() == 0);
    CHECK(histogram.mean() == 0);
    CHECK(histogram.quantile(0.5) == 0);
    CHECK(histogram.quantile(1) == 0);
}

TEST_CASE("one value is each quantile, to its bucket's width") {
    for (unsigned bits = 0; bits < 64; ++bits) {
        for (const std::uint64_t value : {(1ull << bits) - 1, 1ull << bits, (1ull << bits) + 1}) {
            Histogram histogram;
            histogram.record(value);
            for (const double share : {0.0, 0.5, 1.0}) {
                CHECK(histogram.quantile(share) == value);  // the largest bounds it
            }
            histogram.record(kLargest);
            check_close(histogram.quantile(0.5), value);
            CHECK(histogram.quantile(1) == kLargest);
        }
    }
}

TEST_CASE("small values are exact") {
    Histogram histogram;
    for (std::uint64_t value = 0; value < 32; ++value) {
        histogram.record(value);
    }
    for (std::uint64_t value = 0; value < 32; ++value) {
        CHECK(histogram.quantile(static_cast<double>(value + 1) / 32) == value);
    }
    CHECK(histogram.mean() == doctest::Approx(15.5));
}

TEST_CASE("quantiles are at most a 32nd above those of the sorted values") {
    std::mt19937_64 random(test_seed());
    for (int turn = 0; turn < 50; ++turn) {
        Histogram histogram;
        std::vector<std::uint64_t> values;
        const std::size_t count = 1 + random() % 5'000;
        double sum = 0;
        for (std::size_t i = 0; i < count; ++i) {
            values.push_back(random() >> random() % 64);
            histogram.record(values.back());
            sum += static_cast<double>(values.back());
        }
        std::ranges::sort(values);
        CHECK(histogram.count() == count);
        CHECK(histogram.largest() == values.back());
        CHECK(histogram.mean() == doctest::Approx(sum / static_cast<double>(count)));
        for (const double share : {0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0}) {
            check_close(histogram.quantile(share), quantile_of(values, share));
        }
    }
}

TEST_CASE("the filled buckets hold everything that was recorded, and tell it to their width") {
    CHECK(Histogram().filled().empty());
    Histogram histogram;
    for (const std::uint64_t value : {std::uint64_t{7}, std::uint64_t{7}, std::uint64_t{1'000}, kLargest}) {
        histogram.record(value);
    }
    const std::vector<Histogram::Bucket> buckets = histogram.filled();
    REQUIRE(buckets.size() == 3);
    CHECK(buckets[0].upper_end == 7);
    CHECK(buckets[0].count == 2);
    check_close(buckets[1].upper_end, 1'000);
    CHECK(buckets[1].count == 1);
    CHECK(buckets[2].upper_end == kLargest);
    CHECK(buckets[2].count == 1);
    CHECK(histogram.sum() == doctest::Approx(1'014 + static_cast<double>(kLargest)));
}

}  // namespace

}  // namespace penstock::load

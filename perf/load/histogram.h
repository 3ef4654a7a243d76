// Internal.
// Counts of times by their size, in buckets whose width grows with them: whatever is recorded is given back
// with an error of at most a 32nd. Each power of two from 2^5 on has 32 buckets, everything below has one of
// its own. Its size is fixed and it holds every number of 64 bits. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::load {

class Histogram {
public:
    void record(std::uint64_t value);

    std::uint64_t count() const { return count_; }
    std::uint64_t largest() const { return largest_; }  // exact
    double sum() const { return sum_; }
    double mean() const;                                // exact
    // The smallest value of which at least this share (0 to 1) is no larger, as the upper end of its bucket;
    // 0 of none.
    std::uint64_t quantile(double share) const;

    struct Bucket {
        std::uint64_t upper_end = 0;  // the largest value that belongs to it
        std::uint64_t count = 0;
    };
    // Those that hold anything, the smallest first. Counts of several histograms are added by `upper_end`.
    std::vector<Bucket> filled() const;

private:
    static constexpr unsigned kBits = 5;
    static constexpr std::uint64_t kBucketsPerPower = 1 << kBits;
    static constexpr std::size_t kBuckets = (64 - kBits + 1) << kBits;

    static std::size_t bucket_of(std::uint64_t value);
    static std::uint64_t upper_end(std::size_t bucket);

    std::array<std::uint64_t, kBuckets> buckets_{};
    std::uint64_t count_ = 0;
    std::uint64_t largest_ = 0;
    double sum_ = 0;
};

}  // namespace penstock::load

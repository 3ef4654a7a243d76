#include "load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace penstock::load {

void Histogram::record(std::uint64_t value) {
    ++buckets_[bucket_of(value)];
    ++count_;
    largest_ = std::max(largest_, value);
    sum_ += static_cast<double>(value);
}

double Histogram::mean() const {
    return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

std::uint64_t Histogram::quantile(double share) const {
    const double wanted = std::max(std::ceil(share * static_cast<double>(count_)), 1.0);
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
        seen += buckets_[bucket];
        if (static_cast<double>(seen) >= wanted) {
            return std::min(upper_end(bucket), largest_);
        }
    }
    return largest_;
}

std::vector<Histogram::Bucket> Histogram::filled() const {
    std::vector<Bucket> found;
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
        if (buckets_[bucket] > 0) {
            found.push_back({upper_end(bucket), buckets_[bucket]});
        }
    }
    return found;
}

// The five bits below the highest one choose the bucket within a power of two, which the number of bits
// chooses.
std::size_t Histogram::bucket_of(std::uint64_t value) {
    if (value < kBucketsPerPower) {
        return value;
    }
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - kBits - 1;
    return ((std::size_t{shift} + 1) << kBits) + ((value >> shift) - kBucketsPerPower);
}

std::uint64_t Histogram::upper_end(std::size_t bucket) {
    if (bucket < kBucketsPerPower) {
        return bucket;
    }
    const std::size_t shift = (bucket >> kBits) - 1;
    const std::uint64_t first = kBucketsPerPower + (bucket & (kBucketsPerPower - 1));
    return ((first + 1) << shift) - 1;  // of the last bucket, 2^64 - 1 by the rules of unsigned numbers
}

}  // namespace penstock::load

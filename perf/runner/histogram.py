"""Latencies as penstock_load keeps them: how many are in each bucket, the buckets by the largest value of each."""

import math
from dataclasses import dataclass

NS_PER_US = 1e3


@dataclass(frozen=True)
class Histogram:
    counts: dict  # upper end of the bucket, ns: how many
    sum_ns: float = 0.0
    largest_ns: int = 0

    @classmethod
    def from_data(cls, data):
        """Of {"sum", "largest", "buckets": [[upper end, count], ...]}; ValueError when it is something else."""
        counts = {}
        for end, count in data["buckets"]:
            if not (isinstance(end, int) and isinstance(count, int) and end >= 0 and count > 0):
                raise ValueError(f"{end}, {count} is no bucket")
            counts[end] = counts.get(end, 0) + count
        return cls(counts, float(data["sum"]), int(data["largest"]))

    def as_data(self):
        return {"sum": self.sum_ns, "largest": self.largest_ns,
                "buckets": [[end, self.counts[end]] for end in sorted(self.counts)]}

    @property
    def count(self):
        return sum(self.counts.values())

    @property
    def mean_us(self):
        return self.sum_ns / self.count / NS_PER_US if self.counts else math.nan

    @property
    def max_us(self):
        return self.largest_ns / NS_PER_US if self.counts else math.nan

    def quantiles_us(self, shares):
        """As penstock_load has them, so those of one program's histogram are the ones that it prints. `shares` rise."""
        ends = iter(sorted(self.counts))
        total = self.count
        seen, end, found = 0, 0, []
        for share in shares:
            while seen < max(math.ceil(share * total), 1) and total:
                end = next(ends)
                seen += self.counts[end]
            found.append(min(end, self.largest_ns) / NS_PER_US if total else math.nan)
        return found


def merged(histograms):
    """Exact: the buckets are the same in all of them."""
    counts = {}
    for one in histograms:
        for end, count in one.counts.items():
            counts[end] = counts.get(end, 0) + count
    return Histogram(counts, sum(one.sum_ns for one in histograms), max((one.largest_ns for one in histograms), default=0))

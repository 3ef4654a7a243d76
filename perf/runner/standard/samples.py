"""Summaries of the same figure in several runs."""

import math
import statistics
from dataclasses import dataclass

FENCE = 1.5  # interquartile ranges beyond the quartiles (Tukey)
SIGMAS = 3
FEWEST = 4  # of fewer runs none is beyond the fence, whatever it is
SPREAD_LIMIT = 0.10


@dataclass(frozen=True)
class Summary:
    values: tuple
    outliers: tuple  # their places in `values`: left out of everything below
    far: tuple       # more than three standard deviations from the mean of the others: named, not left out

    @property
    def kept(self):
        return [value for place, value in enumerate(self.values) if place not in self.outliers and value == value]

    @property
    def median(self):
        return statistics.median(self.kept) if self.kept else math.nan

    @property
    def spread(self):
        """From the lowest to the highest, as a share of the median."""
        if len(self.kept) < 2 or not self.median:
            return math.nan
        return (max(self.kept) - min(self.kept)) / self.median

    @property
    def is_stable(self):
        """None of a single run: nobody knows."""
        return None if math.isnan(self.spread) else self.spread < SPREAD_LIMIT


def summary_of(values):
    values = tuple(values)
    return Summary(values, tuple(beyond_fences(values)), tuple(far_from_others(values)))


def beyond_fences(values):
    known = [value for value in values if value == value]
    if len(known) < FEWEST:
        return []
    low, _, high = statistics.quantiles(known, n=4, method="inclusive")
    reach = FENCE * (high - low)
    return [place for place, value in enumerate(values) if not low - reach <= value <= high + reach and value == value]


def far_from_others(values):
    """The mean and the deviation are those of the other values: of n values none is further than (n - 1) / sqrt(n)
    deviations from the mean of all, which is less than three up to ten runs."""
    found = []
    for place, value in enumerate(values):
        others = [other for at, other in enumerate(values) if at != place and other == other]
        if value != value or len(others) < FEWEST - 1:
            continue
        if abs(value - statistics.fmean(others)) > SIGMAS * statistics.stdev(others):
            found.append(place)
    return found

"""Whether one program is slower than another, by pairs of rounds that were measured one behind the other.

Two ratios of a figure are looked at: the median of those within a pair, for which a slow moment is slow for both, and that
of the best rounds, to which others can only add. Something is worse when both say so; when only one does, that is noise.
So it is when they are not well beyond what the figure of the witness, a third program that has not changed, was off its
own median, and, of a figure by the clock, when most of the pairs were disturbed.
"""

import enum
import statistics
from dataclasses import dataclass

from . import report

SPREADS_TO_TELL = 3  # what is worse by no more than so many spreads of the witness may be chance
DISTURBED_SHARE = 0.5  # of the pairs; beyond it the clock tells of others


class Level(enum.IntEnum):
    PASSES = 0
    NOISE = 1  # only one of the ratios is worse, or the machine was not steady enough to tell
    WARNS = 2
    FAILS = 3


WORDS = {Level.PASSES: "passes", Level.NOISE: "noise", Level.WARNS: "warns", Level.FAILS: "FAILS"}


@dataclass(frozen=True)
class Metric:
    field: str  # of a Round
    title: str
    more_is_better: bool
    warns: float  # from this share on that it is worse
    fails: float
    shown: object
    is_by_the_clock: bool = True

    def worse(self, ratio):
        """By what share; below 0 it is better. Rounded, so that a limit is reached by what is exactly there."""
        return round(1 - ratio if self.more_is_better else ratio - 1, 9)

    def level(self, ratio):
        worse = self.worse(ratio)
        if not worse < self.fails:  # also when it is no number: nothing was answered
            return Level.FAILS
        return Level.WARNS if worse >= self.warns else Level.PASSES

    def best(self, rounds):
        known = [value for value in self.values(rounds) if value == value]
        return (max if self.more_is_better else min)(known, default=float("nan"))

    def values(self, rounds):
        return [getattr(one, self.field) for one in rounds]


METRICS = (
    Metric("per_second", "requests/s", True, 0.05, 0.10, report.number),
    Metric("p99_us", "P99", False, 0.10, 0.20, report.duration),
    Metric("cpu_us", "CPU µs/request", False, 0.10, 0.20, report.number, is_by_the_clock=False),
)


@dataclass(frozen=True)
class Verdict:
    metric: Metric
    base: float  # medians
    head: float
    ratio: float  # of head to base: the median of those within a pair
    best_ratio: float
    spread: float  # of the witness
    level: Level

    def as_data(self):
        figures = {"ratio": self.ratio, "best_ratio": self.best_ratio, "floor_spread": self.spread}
        return {name: report.known(value) for name, value in figures.items()} | {"verdict": WORDS[self.level]}


def judge(base, head, witness):
    """A verdict for each metric; the three have as many rounds."""
    is_loud = is_too_loud([any(one.is_disturbed for one in turn) for turn in zip(base, head, witness, strict=True)])
    return [verdict_of(metric, base, head, witness, is_loud) for metric in METRICS]


def is_too_loud(disturbed):
    """For figures by the clock. `disturbed`: of each pair, whether it was."""
    return sum(disturbed) > DISTURBED_SHARE * len(disturbed)


def verdict_of(metric, base, head, witness, is_loud):
    pairs = zip(metric.values(base), metric.values(head), strict=True)
    ratio = report.median_of(quotient(new, old) for old, new in pairs)
    best_ratio = quotient(metric.best(head), metric.best(base))
    spread = spread_of(metric.values(witness))
    level = level_of(metric, ratio, best_ratio, spread)
    if level > Level.NOISE and metric.is_by_the_clock and is_loud:
        level = Level.NOISE
    return Verdict(metric, report.median_of(metric.values(base)), report.median_of(metric.values(head)), ratio,
                   best_ratio, spread, level)


def level_of(metric, ratio, best_ratio, spread):
    milder, harder = sorted((metric.level(ratio), metric.level(best_ratio)))
    if harder == Level.PASSES:
        return Level.PASSES
    is_lost_in_noise = min(metric.worse(ratio), metric.worse(best_ratio)) <= SPREADS_TO_TELL * spread
    return Level.NOISE if milder == Level.PASSES or is_lost_in_noise else milder


def spread_of(values):
    """By what share the values are off their median, in the middle of them; 0 when there is nothing to tell from."""
    known = [value for value in values if value == value]
    middle = statistics.median(known) if known else 0
    return statistics.median(abs(value / middle - 1) for value in known) if middle else 0.0


def quotient(new, old):
    return new / old if old else float("nan")


def of_both(first, again):
    """What was looked at twice counts as the milder says: who is slower is so again."""
    return [min(one, other, key=lambda verdict: verdict.level) for one, other in zip(first, again, strict=True)]


def table_of(verdicts):
    lines = [(one.metric.title, one.metric.shown(one.base), one.metric.shown(one.head), change(one.ratio),
              change(one.best_ratio), f"{one.spread:.1%}", WORDS[one.level]) for one in verdicts]
    return report.table(("", "base", "head", "in pairs", "best rounds", "floor ±", "verdict"), lines, left=("", "verdict"))


def change(ratio):
    return f"{ratio - 1:+.1%}" if ratio == ratio else "–"

"""The figures that the standard requires, each judged by the median of its runs."""

import math
from dataclasses import dataclass

from .checks import ERROR_RATE_LIMIT, error_rate

REQUIRED_PER_SECOND = 10_000
RECOMMENDED_PER_SECOND = 15_000
LATENCY_MS = {"low": (1, 10), "medium": (10, 50), "high": (50, 200)}  # mean, P99
FILES_PER_SECOND = {"home": 20_000, "file-1kb": 15_000}
US_PER_MS = 1e3


@dataclass(frozen=True)
class Line:
    what: str
    wanted: str
    figure: str
    met: bool | None  # None: not measured
    note: str = ""

    @property
    def verdict(self):
        return {True: "met", False: "NOT MET", None: "not measured"}[self.met] + (f" ({self.note})" if self.note else "")


def judge(records, summaries):
    """`records`: by scenario, its runs. `summaries`: by scenario, the summary of each figure."""
    def figure(name, of):
        return summaries[name][of].median if name in summaries else math.nan

    def note(name):
        return "unstable" if name in summaries and summaries[name]["per_second"].is_stable is False else ""

    lines = []
    for name, (mean_ms, p99_ms) in LATENCY_MS.items():
        rate = figure(name, "per_second")
        lines.append(at_least(f"requests/s, {name}", REQUIRED_PER_SECOND, rate, note(name)))
        lines.append(at_least(f"requests/s, {name}, recommended", RECOMMENDED_PER_SECOND, rate, note(name)))
        lines.append(below_ms(f"mean latency, {name}", mean_ms, figure(name, "mean_us"), note(name)))
        lines.append(below_ms(f"P99, {name}", p99_ms, figure(name, "p99_us"), note(name)))
    for name, wanted in FILES_PER_SECOND.items():
        lines.append(at_least(f"requests/s, {name}", wanted, figure(name, "per_second"), note(name)))
    rate = error_rate([one for runs in records.values() for one in runs])
    lines.append(Line("errors, all scenarios", f"< {ERROR_RATE_LIMIT * 100:g} %", shown(rate, f"{rate * 100:.4f} %"),
                      verdict_of(rate, rate < ERROR_RATE_LIMIT)))
    return lines


def at_least(what, wanted, figure, note):
    return Line(what, f"≥ {wanted:,}", shown(figure, f"{figure:,.0f}"), verdict_of(figure, figure >= wanted), note)


def below_ms(what, wanted_ms, figure_us, note):
    figure = figure_us / US_PER_MS
    return Line(what, f"< {wanted_ms} ms", shown(figure, f"{figure:.3f} ms"), verdict_of(figure, figure < wanted_ms), note)


def verdict_of(figure, is_met):
    return None if math.isnan(figure) else is_met


def shown(figure, words):
    return "–" if math.isnan(figure) else words

"""All that a report is made of."""

import dataclasses
from dataclasses import dataclass, field

from ..histogram import merged
from . import thresholds
from .capacity import Point
from .samples import summary_of

FIGURES = ("per_second", "bytes_per_second", "mean_us", "p50_us", "p95_us", "p99_us", "p999_us", "max_us", "cpu_us",
           "user_us", "system_us", "client_cpu_us", "peak_rss_bytes", "end_rss_bytes", "voluntary_switches",
           "involuntary_switches", "page_faults", "calls", "busy", "client_busy")
# By which a run is called an outlier or far from the others.
JUDGED = {"per_second": "requests/s", "p99_us": "P99", "cpu_us": "CPU time"}


@dataclass
class Study:
    environment: dict
    seconds: float
    is_quick: bool = False
    checks: list = field(default_factory=list)      # of type Check
    records: dict = field(default_factory=dict)     # by scenario
    failures: dict = field(default_factory=dict)    # by scenario, why it has no figures
    rates: dict = field(default_factory=dict)       # by scenario, records
    peak: float = 0.0                               # requests a second, of which the rates are shares
    capacity: list = field(default_factory=list)    # of type (connections, records, records of the floor)
    allocators: dict = field(default_factory=dict)  # by scenario, (records, records of the other program)
    notes: list = field(default_factory=list)       # what was not measured, and why
    sources: dict = field(default_factory=dict)     # by command, of type Source: what others have written

    @property
    def peers(self):
        return self.figures_of("peers")

    @property
    def tls(self):
        return self.figures_of("tls")

    @property
    def counts(self):
        return self.figures_of("budget")

    @property
    def footprint(self):
        return self.figures_of("footprint")

    def figures_of(self, command):
        """As sources.py has them; None without that file."""
        return self.sources[command].figures if command in self.sources else None

    @property
    def summaries(self):
        return {name: summaries_of(records) for name, records in self.records.items()}

    @property
    def all_runs(self):
        """Of everything that was measured, by the names that checks have."""
        found = self.records | self.rates
        for connections, own, floor in self.capacity:
            found |= {f"capacity-{connections}": own, f"capacity-{connections}-floor": floor}
        for name, pair in self.allocators.items():
            found |= {allocator_name(name, records): records for records in pair}
        return found

    @property
    def points(self):
        """Medians of the runs at each number of connections."""
        found = []
        for connections, own, floor in self.capacity:
            ours, theirs = summaries_of(own), summaries_of(floor)
            found.append(Point(connections, ours["p99_us"].median, theirs["p99_us"].median,
                               ours["per_second"].median, theirs["per_second"].median))
        return found

    @property
    def allocator(self):
        """Of the program that was measured first."""
        return next((records[0].resources["allocator"] for records in self.records.values() if records), "unknown")

    @property
    def lines(self):
        return thresholds.judge(self.records, self.summaries)


def summaries_of(records):
    return {name: summary_of(one.figure(name) for one in records) for name in FIGURES}


def latency_of(records):
    """Of all runs that are no outliers by their requests a second, together."""
    outliers = summary_of(one.figure("per_second") for one in records).outliers
    return merged([one.latency for place, one in enumerate(records) if place not in outliers])


def marks_of(records):
    """For each run, in words, by what it is an outlier or far from the others."""
    marks = [[] for _ in records]
    for figure, words in JUDGED.items():
        summary = summary_of(one.figure(figure) for one in records)
        for place in summary.outliers:
            marks[place].append(f"outlier by {words}")
        for place in summary.far:
            marks[place].append(f"{words} beyond 3 σ")
    return [", ".join(words) for words in marks]


def allocator_name(name, records):
    return f"{name}, {records[0].resources['allocator']} allocator"


def at_rate(scenario, share, peak):
    return dataclasses.replace(scenario, name=f"rate-{share:.0%}".rstrip("%"), group="rates", rate=share * peak)

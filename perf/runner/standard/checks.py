"""What has to be true for figures to count, before and after. What is not is told in the report; nothing is left out."""

import math
import os
import pathlib
import re
import resource
import statistics
import time
from dataclasses import dataclass

from .. import machine
from ..report import percent
from ..rounds import FOREIGN_LIMIT
from .samples import FEWEST, SPREAD_LIMIT

LOOK_S = 0.5
OTHER_DESCRIPTORS = 100  # beside the connections
ERROR_RATE_LIMIT = 0.001
# The time of threads is exact, but it is read at other moments than the clock.
CPU_SLACK = 1.02
CPU_SLACK_S = 0.02
REST = "rest during"
KEPT_RATE = 0.98  # of a fixed rate


@dataclass(frozen=True)
class Check:
    kind: str
    of: str  # the scenario, or ""
    passed: bool | None  # None: it cannot be looked at here
    words: str

    @property
    def name(self):
        return f"{self.kind} {self.of}".strip()

    @property
    def verdict(self):
        return {True: "passed", False: "FAILED", None: "not known"}[self.passed]


# ---- Before


def before(program, connections):
    return [build_check(program), governor_check(), rest_check(), descriptor_check(connections)]


def build_setting(program, name):
    """Of the build whose program it is; None when that is not known."""
    for folder in program.resolve().parents[:3]:
        cache = folder / "CMakeCache.txt"
        if cache.is_file():
            found = re.search(rf"^{name}:\w+=(.*)$", cache.read_text(errors="replace"), re.M)
            return found.group(1) if found else None
    return None


def build_check(program):
    kind = build_setting(program, "CMAKE_BUILD_TYPE")
    if kind is None:
        return Check("release build", "", None, "no CMakeCache.txt is above the program")
    return Check("release build", "", kind == "Release", f"CMAKE_BUILD_TYPE is {kind or 'empty'}")


def governor_check(folder="/sys/devices/system/cpu"):
    governors = set()
    for file in pathlib.Path(folder).glob("cpu[0-9]*/cpufreq/scaling_governor"):
        governors.add(file.read_text().strip())
    speeds = [float(speed) for speed in re.findall(r"^cpu MHz\s*: ([\d.]+)", cpu_info(), re.M)]
    words = f"; {min(speeds):,.0f} to {max(speeds):,.0f} MHz just now" if speeds else ""
    if not governors:
        return Check("governor", "", None, f"the kernel shows none{words}")
    return Check("governor", "", governors == {"performance"}, f"{', '.join(sorted(governors))}{words}")


def cpu_info():
    try:
        return pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def rest_check():
    before_s = machine.busy_s()
    time.sleep(LOOK_S)
    after_s = machine.busy_s()
    busy = max(after_s[core] - before_s[core] for core in machine.cores()) / LOOK_S
    load = os.getloadavg()[0]
    return Check("machine at rest", "", busy <= FOREIGN_LIMIT,
                 f"the busiest core is {percent(busy)} in use before anything is started, the load is {load:.2f}")


def descriptor_check(connections):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    needed = connections + OTHER_DESCRIPTORS
    is_enough = hard == resource.RLIM_INFINITY or hard >= needed
    return Check("descriptors", "", is_enough, f"the hard limit is {hard:,}, {needed:,} are needed")


# ---- After


def after(name, records, per_second):
    """`per_second`: the summary of that figure of all records."""
    found = [error_check(name, records), cpu_check(name, records), rest_during_check(name, records)]
    if records and records[0].scenario["rate"]:
        found.append(rate_check(name, records))
    else:
        found.append(spread_check(name, per_second))
    return found


def error_rate(records):
    """Of the requests that were made or due. Answers that nobody asked for are errors too, so it is bounded."""
    asked = sum(one.results["asked"] for one in records)
    return min(1.0, sum(one.results["errors"] for one in records) / asked) if asked else math.nan


def error_check(name, records):
    rate = error_rate(records)
    kinds = {}
    for one in records:
        for kind, count in one.results["errors_by_kind"].items():
            kinds[kind] = kinds.get(kind, 0) + count
    words = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in kinds.items() if count)
    if math.isnan(rate):
        return Check("errors of", name, False, "nothing was asked")
    return Check("errors of", name, rate < ERROR_RATE_LIMIT, words or "none")


def spread_check(name, per_second):
    if per_second.is_stable is None:
        return Check("spread of", name, None, "a single run has none")
    words = f"{per_second.spread * 100:.1f} % of the median, in {len(per_second.kept)} runs"
    if len(per_second.values) < FEWEST:
        words += f"; fewer than {FEWEST} cannot have an outlier"
    if not per_second.is_stable:
        words += f": not under {percent(SPREAD_LIMIT)}, so the figure is unstable"
    return Check("spread of", name, per_second.is_stable, words)


def rate_check(name, records):
    got = statistics.median(one.figure("per_second") for one in records)
    wanted = records[0].scenario["rate"]
    return Check("rate of", name, got >= KEPT_RATE * wanted, f"{got:,.0f} of {wanted:,.0f} requests a second")


def cpu_check(name, records):
    times = [(one.resources["cpu_s"], one.resources["wall_s"] * one.resources["cores"]) for one in records]
    most = max((used_s / given_s for used_s, given_s in times), default=0)
    return Check("CPU time of", name, all(used_s <= CPU_SLACK * given_s + CPU_SLACK_S for used_s, given_s in times),
                 f"at most {most * 100:.1f} % of what the cores give")


def rest_during_check(name, records):
    """What others took, on all cores together: the figures of a run may be too low by as much."""
    foreign = statistics.median([one.resources["foreign_cores"] for one in records]) if records else math.nan
    return Check(REST, name, foreign <= FOREIGN_LIMIT, f"others used {foreign:.2f} cores")

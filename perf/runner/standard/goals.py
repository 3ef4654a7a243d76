"""The goals of speed, each with its figure: ratios of the best rounds beside the floor, counts, memory and latencies."""

import json
import math

from ..tools import Failure
from .study import best_of_peers, summaries_of
from .thresholds import Line, shown, verdict_of

OWN, LAYERS, FLOOR = "penstock", "layers", "floor"
RATIOS = {"c1": 1.00, "c10": 1.00, "c50": 1.00, "c200": 1.00, "c1000": 1.00, "json50": 1.00, "pipe16": 1.20, "1kb": 1.04,
          "100kb": 1.05, "churn": 0.90}
LAYERS_RATIO = 1.12
LAYERS_SCENARIOS = ("c1", "c10", "c50", "c200", "c1000")
TIE = 0.03  # a difference that rounds of the same program have too: at 1 and 50 connections and pipelined
LOOSE_TIE = 0.06  # elsewhere
TIGHT = ("c1", "c50", "pipe16")
REACTORS = (2, 4, 8)
REACTORS_SCENARIO = "c50"
REACTORS_RATIO = 1.05
INSTRUCTIONS = {"plaintext": 1_800, "pipelined": 1_300}
IDLE_BYTES = 128
HALF = "rate-50"
P999_US = 1e3
LONGEST_US = 50e3
US_PER_MS = 1e3
FAULTS = 0.01  # a response: those of its start are spread over all


def judge(study):
    return [*ratios(study.peers), *layers(study.peers), *reactors(study.peers), *instructions(study.counts),
            idle_bytes(study.footprint), page_faults(study), tail(study), longest(study)]


# ---- Beside the floor


def ratio_of(peers, scenario, server, other):
    times = best_of_peers(peers).get(scenario, {}) if peers else {}
    return times[server] / times[other] if server in times and other in times else math.nan


def ratios(peers):
    return [ratio_line(f"CPU time a request ÷ the floor's, {name}", goal, ratio_of(peers, name, OWN, FLOOR), name)
            for name, goal in RATIOS.items()]


def layers(peers):
    found = [ratio_of(peers, name, LAYERS, FLOOR) for name in LAYERS_SCENARIOS]
    worst = max((one for one in found if not math.isnan(one)), default=math.nan)
    return [ratio_line("the same with 1,000 routes and three middlewares, the worst of c1 to c1000", LAYERS_RATIO, worst)]


def reactors(peers):
    return [ratio_line(f"CPU time a request ÷ one reactor's, {count} reactors on the same core, {REACTORS_SCENARIO}",
                       REACTORS_RATIO, ratio_of(peers, REACTORS_SCENARIO, f"reactors-{count}", OWN)) for count in REACTORS]


def ratio_line(what, goal, ratio, scenario=""):
    """What is above by less than rounds of the same program differ is missed as well, and said to be a tie."""
    rounded = round(ratio, 2) if not math.isnan(ratio) else ratio
    tie = TIE if scenario in TIGHT else LOOSE_TIE
    note = "a tie" if goal < rounded <= goal + tie else ""
    return Line(what, f"≤ {goal:.2f}", shown(ratio, f"{ratio:.2f}"), verdict_of(ratio, rounded <= goal), note)


# ---- Counted


def instructions(counts):
    lines = []
    for name, goal in INSTRUCTIONS.items():
        count = counts[name]["served"] if counts and name in counts else math.nan
        lines.append(Line(f"user instructions a request, {name}", f"≤ {goal:,}", shown(count, f"{count:,.0f}"),
                          verdict_of(count, count <= goal)))
    return lines


def idle_bytes(footprint):
    figure = footprint.get(OWN, math.nan) if footprint else math.nan
    return Line("bytes of memory for an idle connection", f"≤ {IDLE_BYTES}", shown(figure, f"{figure:.0f}"),
                verdict_of(figure, round_of(figure) <= IDLE_BYTES))


def round_of(figure):
    return figure if math.isnan(figure) else round(figure)


# ---- Of the runs of this report


def figure_of(records, name):
    return summaries_of(records)[name].median if records else math.nan


def page_faults(study):
    faults = figure_of(study.records.get("body-100kb"), "page_faults")
    return Line("page faults a response of 100 KB", "none", shown(faults, f"{faults:.4f}"), verdict_of(faults, faults < FAULTS))


def tail(study):
    p999 = figure_of(study.rates.get(HALF), "p999_us")
    return Line("P99.9 at half of the peak, 50 connections", "< 1 ms", shown(p999, f"{p999 / US_PER_MS:.3f} ms"),
                verdict_of(p999, p999 < P999_US))


def longest(study):
    """The longest of all runs, and not a median."""
    longest_us = max((one.figure("max_us") for one in study.records.get("c1000", ())), default=math.nan)
    return Line("the longest request of 1,000 busy connections", "≤ 50 ms", shown(longest_us, f"{longest_us / US_PER_MS:.1f} ms"),
                verdict_of(longest_us, longest_us <= LONGEST_US))


# ---- What other commands have written


def read_counts(path):
    """`perf/run budget --json`: by scenario and kind."""
    def counts_of(data):
        return {name: {"served": math.nan if kinds["served"] is None else float(kinds["served"])}
                for name, kinds in data["counts"].items()}
    return read(path, "budget", counts_of)


def read_footprint(path):
    """`perf/run footprint --json`: bytes for each idle connection, by server."""
    return read(path, "footprint", lambda data: {one["name"]: float(one["bytes_per_connection"]) for one in data["idle"]})


def read(path, command, understood):
    try:
        return understood(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise Failure(f"{path} is nothing that perf/run {command} --json has written: {problem!r}") from problem

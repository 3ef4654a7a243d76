"""The goals of speed, each with its figure: ratios of the best rounds beside the floor, counts, memory and latencies.

A figure is judged as it is shown, so that none is shown to be at its goal and called missed. It is not measured unless all
that it is made of was.
"""

import math

from .. import tls_peers
from .checks import REST
from .sources import best_of_peers
from .study import summaries_of
from .thresholds import Line, shown, verdict_of

OWN, LAYERS, FLOOR = "penstock", "layers", "floor"
RATIOS = {"c1": 1.00, "c10": 1.00, "c50": 1.00, "c200": 1.00, "c1000": 1.00, "json50": 1.00, "pipe16": 1.20, "1kb": 1.04,
          "100kb": 1.05, "churn": 0.90}
LAYERS_RATIO = 1.12
LAYERS_SCENARIOS = ("c1", "c10", "c50", "c200", "c1000")
TIE = 0.03  # a difference that rounds of the same program have too, in the scenarios below
LOOSE_TIE = 0.06  # in others
TIGHT = ("c1", "c50", "pipe16")
REACTORS = (2, 4, 8)
REACTORS_SCENARIO = "c50"
REACTORS_RATIO = 1.05
INSTRUCTIONS = {"plaintext": 1_800, "pipelined": 1_300}
IDLE_BYTES = 128
HALF = "rate-50"
P999_MS = 1
LONGEST_MS = 50
US_PER_MS = 1e3
FAULTS = 0.01  # a response: those of its start are spread over all


def judge(study):
    return [*ratios(study.peers), *layers(study.peers), *reactors(study.peers), *tls_ratios(study.tls), *instructions(study.counts),
            idle_bytes(study.footprint), page_faults(study), tail(study), longest(study)]


def line_of(what, wanted, figure, places, is_met, unit="", note=""):
    """`is_met` is asked about what is shown, as is `note`, when it is to be told."""
    rounded = figure if math.isnan(figure) else round(figure, places)
    return Line(what, wanted, shown(rounded, f"{rounded:,.{places}f}{unit}"), verdict_of(rounded, is_met(rounded)),
                note(rounded) if note else "")


def worst_of(values):
    """NaN when one of them is not known, or there is none."""
    return math.nan if not values or any(map(math.isnan, values)) else max(values)


# ---- Beside the floor


def ratio_of(peers, scenario, server, other):
    times = best_of_peers(peers).get(scenario, {}) if peers else {}
    return times[server] / times[other] if server in times and other in times else math.nan


def ratios(peers):
    return [ratio_line(f"CPU time a request ÷ the floor's, {name}", goal, ratio_of(peers, name, OWN, FLOOR), name)
            for name, goal in RATIOS.items()]


def tls_ratios(tls):
    return [ratio_line(f"CPU time ÷ {tls_peers.REFERENCE}'s over TLS, {name}", goal, ratio_of(tls, name, OWN, tls_peers.REFERENCE), name)
            for name, goal in tls_peers.GOALS]


def layers(peers):
    found = {name: ratio_of(peers, name, LAYERS, FLOOR) for name in LAYERS_SCENARIOS}
    worst = worst_of(found.values())
    return [ratio_line("the same with 1,000 routes and three middlewares, the worst of c1 to c1000", LAYERS_RATIO, worst,
                       next((name for name, ratio in found.items() if ratio == worst), ""))]


def reactors(peers):
    return [ratio_line(f"CPU time a request ÷ one reactor's, {count} reactors on the same core, {REACTORS_SCENARIO}",
                       REACTORS_RATIO, ratio_of(peers, REACTORS_SCENARIO, f"reactors-{count}", OWN), REACTORS_SCENARIO)
            for count in REACTORS]


def ratio_line(what, goal, ratio, scenario):
    """What is above by less than rounds of the same program differ is missed as well, and said to be a tie."""
    tie = TIE if scenario in TIGHT else LOOSE_TIE
    return line_of(what, f"≤ {goal:.2f}", ratio, 2, lambda figure: figure <= goal,
                   note=lambda figure: "a tie" if goal < figure <= round(goal + tie, 2) else "")


# ---- Counted


def instructions(counts):
    return [line_of(f"user instructions a request, {name}", f"≤ {goal:,}", (counts or {}).get(name, math.nan), 0,
                    lambda figure, goal=goal: figure <= goal) for name, goal in INSTRUCTIONS.items()]


def idle_bytes(footprint):
    return line_of("bytes of memory for an idle connection", f"≤ {IDLE_BYTES}", (footprint or {}).get(OWN, math.nan), 0,
                   lambda figure: figure <= IDLE_BYTES)


# ---- Of the runs of this report


def figure_of(records, name):
    return summaries_of(records)[name].median if records else math.nan


def disturbed_if_missed(study, name, is_met):
    """Of a figure that misses its goal: others who used the cores may be why. One that meets it does so all the same."""
    is_disturbed = any(check.passed is False for check in study.checks if (check.kind, check.of) == (REST, name))
    return lambda figure: "disturbed" if is_disturbed and not math.isnan(figure) and not is_met(figure) else ""


def page_faults(study):
    def is_met(figure):
        return figure < FAULTS

    return line_of("page faults a response of 100 KB", f"< {FAULTS:g}",
                   figure_of(study.records.get("body-100kb"), "page_faults"), 4, is_met,
                   note=disturbed_if_missed(study, "body-100kb", is_met))


def tail(study):
    def is_met(figure):
        return figure < P999_MS

    return line_of("P99.9 at half of the peak, 50 connections", f"< {P999_MS} ms",
                   figure_of(study.rates.get(HALF), "p999_us") / US_PER_MS, 3, is_met, " ms",
                   disturbed_if_missed(study, HALF, is_met))


def longest(study):
    """The longest of all runs, and not a median."""
    def is_met(figure):
        return figure <= LONGEST_MS

    longest_us = worst_of([one.figure("max_us") for one in study.records.get("c1000", ())])
    return line_of("the longest request of 1,000 busy connections", f"≤ {LONGEST_MS} ms", longest_us / US_PER_MS, 2,
                   is_met, " ms", disturbed_if_missed(study, "c1000", is_met))

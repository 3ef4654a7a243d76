"""The report as Markdown. What a check has failed on stands at its top, and again where it belongs."""

from .. import tls_peers
from ..report import percent
from . import goals, tables
from .capacity import KNEE, advice
from .checks import ERROR_RATE_LIMIT
from .samples import FENCE, SPREAD_LIMIT
from .scenarios import BY_NAME, NOT_YET
from .sources import left_out_of_peers


def page(study, drawings, name):
    """`drawings`: of drawings_of; their files begin with `name`."""
    speed = goals.judge(study)
    sections = [
        heading(study),
        in_short(study, speed),
        section("What is required", tables.of_lines(study.lines), not_yet()),
        section("Goals of speed", GOALS, where_from(study.sources), tables.of_lines(speed)),
        section("Results", scenario_titles(study), tables.of_results(study.records), *pictures(
            drawings, name, "connections", "percentiles", "load-processes", "reactors")) if study.records else "",
        section("Resources of the server", RESOURCES, tables.of_resources(study.records)) if study.records else "",
        rates(study), capacity(study, drawings, name), allocators(study), peers(study, drawings, name), tls(study),
        section("Checks", tables.of_checks([check for check in study.checks if not check.of or check.passed is not True]),
                passed(study.checks)),
        section("Every run", RUNS, tables.of_runs(study.all_runs)) if study.all_runs else "",
    ]
    return "\n\n".join(part for part in sections if part) + "\n"


GOALS = (
    "With every limit, timeout and strict check on. A figure is judged as it is shown: ratios to two places, instructions "
    "and bytes whole. Ratios are those of the best rounds on one core, undisturbed where there are some; *a tie* is "
    f"above its goal by no more than rounds of the same program differ: {percent(goals.TIE)} for {', '.join(goals.TIGHT[:-1])} "
    f"and {goals.TIGHT[-1]}, {percent(goals.LOOSE_TIE)} for the others. Missed it is all the same."
)
RESOURCES = (
    "Medians of the runs. CPU time is that of the scheduler, its parts *user* and *system* by the kernel's ticks. *client's "
    "µs* is the CPU time of the load program for a request. System calls are counted by strace in a pass of their own, with "
    "as many connections; threads that are woken for several requests at once share a call. *busy* is how much "
    "of their cores server and load have used: where the load's is near 100 %, it is the load that limits the requests a second."
)
APART = "Each load process has a core of its own."
MEDIANS = (
    "Medians of the runs. Where load processes are more than the cores that they have, one waits while another runs, and its "
    "waiting is in the latencies: those of `rates` and `capacity` below are without it."
)
RUNS = (
    f"An outlier is more than {FENCE} interquartile ranges beyond the quartiles, and left out of the summary of that figure. "
    "*Beyond 3 σ* is further than three standard deviations of the other runs from their mean, and only named. *others' "
    "cores* is what processes beside server and load have used."
)


def section(title, *parts):
    return "\n\n".join([f"## {title}", *(part for part in parts if part)])


def heading(study):
    place = study.environment
    return (
        f"# Performance, {place['date']}, Penstock {place['version']}\n\n"
        f"Commit {place['commit']}; {place['machine']}. {place['placement']} Runs of {study.seconds:g} s. "
        f"Allocator of the program: {study.allocator}. How it is measured, and how to repeat it: "
        f"`docs/PERFORMANCE.md`, \"The standard\"."
    )


def where_from(sources):
    """Nothing without any: then their figures are called not measured."""
    return ("Of other commands: " + ", ".join(f"`perf/run {one.command}` at commit {tables.one_line(one.commit)}"
                                              for one in sources.values()) + ".") if sources else ""


def in_short(study, speed):
    """`speed`: of goals.judge."""
    failed = [check for check in study.checks if check.passed is False]
    unmet = [line for line in study.lines if line.met is False]
    parts = ["**A quick look, of single short runs: no figure of it is to be quoted.**"] if study.is_quick else []
    parts += ["No check has failed." if not failed else "Checks that have failed:\n\n" + by_kind(failed)]
    if all(line.met is None for line in study.lines):
        parts.append("No requirement was measured.")
    else:
        parts += [f"Every requirement that was measured is met; {not_measured(study.lines)}." if not unmet else
                  "Requirements that are not met:\n\n" + "\n".join(f"- **{line.what}**: {line.figure}, wanted {line.wanted}"
                                                                   for line in unmet)
                  + f"\n\nOf all requirements, {not_measured(study.lines)}."]
    parts += goals_in_short(speed)
    missing = [f"{name}: {words}" for name, words in study.failures.items()] + study.notes
    missing = [f"- {tables.one_line(words)}" for words in missing]
    parts += ["Not measured:\n\n" + "\n".join(missing)] if missing else []
    return section("In short", *parts)


def goals_in_short(lines):
    missed = [line for line in lines if line.met is False]
    if all(line.met is None for line in lines):
        return []
    words = "\n".join(f"- **{line.what}**: {line.figure}, wanted {line.wanted}" + f" ({line.note})" * bool(line.note)
                      for line in missed)
    return ([f"Goals of speed that are missed:\n\n{words}\n\nOf all goals, {not_measured(lines)}."] if missed else
            [f"Every goal of speed that was measured is met; {not_measured(lines)}."])


def not_measured(lines):
    """How many of the requirements were not: a selection can meet all that it looks at."""
    count = sum(line.met is None for line in lines)
    if count == 0:
        return f"all {len(lines)} were measured"
    return f"{count} of {len(lines)} {'was' if count == 1 else 'were'} not measured"


def by_kind(checks):
    """A line for each kind, so that what fails everywhere does not hide the rest."""
    kinds = {}
    for check in checks:
        kinds.setdefault(check.kind, []).append(tables.one_line(
            f"{check.of} ({check.words})" if check.of else check.words))
    return "\n".join(f"- **{kind}** {', '.join(words)}" for kind, words in kinds.items())


def passed(checks):
    """How many of each kind have passed, of those that there is one of for each scenario."""
    kinds = {}
    for check in checks:
        if check.of:
            kinds.setdefault(check.kind, []).append(check.passed)
    return "\n".join(f"- {kind} each scenario: {passed_of(all_)}" for kind, all_ in kinds.items())


def passed_of(verdicts):
    """What cannot be known has neither passed nor failed."""
    known = [one for one in verdicts if one is not None]
    if not known:
        return "not known"
    unknown = len(verdicts) - len(known)
    return (f"{sum(known)} of {len(known)} {'has' if len(known) == 1 else 'have'} passed"
            + f", {unknown} not known" * bool(unknown))


def not_yet():
    words = " and ".join(NOT_YET.values())
    return (f"Not there yet, and without rows for that reason: {words}. Errors have to be below "
            f"{ERROR_RATE_LIMIT * 100:g} % of the requests; a figure whose runs spread over {percent(SPREAD_LIMIT)} of their "
            "median or more is called unstable.")


def scenario_titles(study):
    return f"{MEDIANS}\n\n" + "\n".join(
        f"- `{name}`: {BY_NAME[name].title if name in BY_NAME else name}" for name in study.records)


def pictures(drawings, name, *wanted):
    return [f"![{drawings[one][0]}]({name}-{one}.svg)" for one in wanted if one in drawings]


def rates(study):
    if not study.rates:
        return ""
    return section(
        "Latency at fixed rates",
        f"Requests are due at fixed times, whatever has been answered, and their latency counts from when they were due. "
        f"{APART} The peak was {study.peak:,.0f} requests a second.", tables.of_rates(study))


def capacity(study, drawings, name):
    points = study.points
    if not points:
        return ""
    return section(
        "Capacity",
        f"Penstock and the floor (`penstock_floor`, which does next to nothing), a reactor each. {APART} The knee is where "
        f"the 99th percentile becomes more than {KNEE} times the floor's and stays there.",
        tables.of_capacity(points), *pictures(drawings, name, "capacity"),
        "\n".join(f"- {sentence}" for sentence in advice(points)), disturbed(study))


def disturbed(study):
    """What others used delays requests: these figures are then of the machine, and not of the server."""
    names = [check.of for check in study.checks
             if check.kind == "rest during" and check.of.startswith("capacity") and check.passed is False]
    return f"**Others used the cores meanwhile ({', '.join(names)}), so this is no advice to follow.**" if names else ""


def allocators(study):
    if not study.allocators:
        return ""
    ours, theirs = next(iter(study.allocators.values()))
    is_same = ours[0].resources["allocator"] == theirs[0].resources["allocator"]
    return section("Allocators", "The same program with another allocator, one after the other for each scenario.",
                   "**Both programs have the same allocator, so nothing is compared.**" if is_same else "",
                   tables.of_allocators(study))


def tls(study):
    if study.tls is None:
        return ""
    commit = tables.one_line(study.sources["tls"].commit)
    return section("Over TLS",
                   f"CPU time of the server for a handshake or a request, best rounds of `perf/run tls` at commit {commit}, server "
                   f"and client on one core; behind it the ratio to {tls_peers.REFERENCE}'s. Penstock has {study.tls['wolfssl']}.",
                   tables.of_peers(study.tls, tls_peers.REFERENCE), left_out(study.tls))


def left_out(rounds):
    return "\n".join(f"- {server}: {tables.one_line(words)}" for server, words in left_out_of_peers(rounds).items())


def peers(study, drawings, name):
    if study.peers is None:
        return ""
    return section("Beside other servers",
                   f"CPU time of the server for a request, best rounds of `perf/run peers` at commit "
                   f"{tables.one_line(study.sources['peers'].commit)}, server and client on one core; behind it the ratio to "
                   "the floor.", tables.of_peers(study.peers),
                   left_out(study.peers),
                   *pictures(drawings, name, "peers"))

"""`perf/run compare BASE [HEAD]`: whether one commit is slower than another, in turn on one core with the floor beside them.

BASE and HEAD are commits, which are built as the given build folder was, or programs that are there already (a path with a
slash). HEAD left out is the program of the build folder. Ends with 1 when something is slower beyond doubt; warnings pass.
"""

import argparse
import contextlib
import json
import pathlib
import sys
from dataclasses import asdict, dataclass

from . import http_peers, judgement, machine, report, same_core, tools
from .arguments import (BUILD, LONGEST_ROUND_S, MOST_ROUNDS, ROOT, add_json, add_nice, add_patience, bounded, check_nice,
                        check_programs, commit)
from .commits import Ended, built, settings_of, short_name
from .judgement import Level
from .own_load import OwnLoad
from .rounds import Bench, Patience, Setting
from .tools import Failure

BASE, HEAD, WITNESS = "base", "head", "floor"
SCENARIOS = "c1,c50,pipe16,1kb,100kb,churn"
PAIRS_AT_LEAST = 2  # one tells nothing
SHORTEST_ROUND_S = 0.05
REPEATS = 2  # of a disturbed turn


def add_command(commands):
    command = commands.add_parser("compare", help="whether a commit is slower than another",
                                  description=__doc__.replace("`", ""), formatter_class=argparse.RawTextHelpFormatter)
    command.add_argument("base", metavar="BASE")
    command.add_argument("head", metavar="HEAD", nargs="?")
    command.add_argument("--build", type=pathlib.Path, default=BUILD,
                         help="the folder of a release build (%(default)s)")
    command.add_argument("--scenarios", type=same_core.scenarios, default=same_core.scenarios(SCENARIOS),
                         help=f"of those of peers ({SCENARIOS})")
    command.add_argument("--pairs", type=bounded(PAIRS_AT_LEAST, MOST_ROUNDS), default=10,
                         help="of rounds, for each scenario (%(default)s)")
    command.add_argument("--seconds", type=bounded(SHORTEST_ROUND_S, LONGEST_ROUND_S, float), default=1.0,
                         help=f"of each round, at most {LONGEST_ROUND_S} (%(default)s)")
    add_nice(command, "servers and client alike")
    add_patience(command, 120)
    command.add_argument("--core", type=int, help="of servers and client (the first)")
    command.add_argument("--no-verdict", action="store_true", help="figures only; ends with 0 when they could be measured")
    add_json(command, "every round")
    command.set_defaults(run=run)


@dataclass(frozen=True)
class Program:
    """What is measured, and how it is called where figures are told."""

    name: str
    path: pathlib.Path


def run(options):
    setting = prepare(options)
    with contextlib.ExitStack() as builds:
        base = program_of(options.base, options, builds)
        head = program_of(options.head, options, builds)
        print(heading(options, setting, base, head), flush=True)
        peers = peers_of(base, head, options)
        machine.keep_off(setting.server_core)
        bench = Bench(setting, OwnLoad(options.build / "perf/penstock_load"))
        verdicts, data = {}, {}
        for scenario in options.scenarios:
            # A share for each scenario, so that a noisy beginning leaves some of it for the end.
            bench.patience = Patience(options.patience / len(options.scenarios))
            verdicts[scenario.name], data[scenario.name] = compare(bench, peers, scenario, options)
    if options.json:
        options.json.write_text(json.dumps({"base": base.name, "head": head.name, "setting": asdict(setting),
                                            "scenarios": data}, indent=1) + "\n")
    return 0 if options.no_verdict else conclude(verdicts, data)


def prepare(options):
    """Finds what is needed before anything is built or started."""
    check_nice(options.nice)
    check_programs(options.build / "perf/penstock_floor", options.build / "perf/penstock_load")
    options.is_this_tree = options.head is None
    if options.is_this_tree:
        check_programs(options.build / "bin/penstock")
        options.head = str(options.build.resolve() / "bin/penstock")
    for words in (options.base, options.head):
        if not is_program(words):
            check_commit(words)
            settings_of(options.build)
    cores = machine.cores()
    core = cores[0] if options.core is None else options.core
    if core not in cores:
        raise Failure(f"there are only the cores {', '.join(map(str, cores))}")
    return Setting(options.seconds, core, core, options.nice, is_batch=True)


def program_of(words, options, builds):
    if is_program(words):
        return Program(words, pathlib.Path(words).resolve())
    git = tools.find("git")["git"]
    name = short_name(words, git)
    print(f"building {name}", file=sys.stderr)
    build = builds.enter_context(built(words, options.build, ["penstock_program"], "tools/penstock", git))
    return Program(name, build / "bin/penstock")


def is_program(words):
    return "/" in words and pathlib.Path(words).is_file()  # a branch may have a slash too


def check_commit(words):
    """Or a path that leads to no program."""
    if pathlib.Path(words).is_dir() and "/" in words:
        raise Failure(f"{words} is a folder; give the program in it")
    if words.startswith(("/", "./", "../", "~")):
        raise Failure(f"{words} does not exist; give a program that does, or a commit")
    try:
        short_name(words, tools.find("git")["git"])
    except Failure as failure:
        if "/" in words and isinstance(failure.__cause__, Ended) and not failure.__cause__.is_of_ownership:
            raise Failure(f"{words} is neither a program that exists nor a commit") from failure
        raise


def peers_of(base, head, options):
    site = ROOT / "build/perf/bodies"
    http_peers.make_site(site)
    ours = [http_peers.HttpPeer(name, http_peers.penstock_command(program.path, site))
            for name, program in ((BASE, base), (HEAD, head))]
    return [*ours, http_peers.HttpPeer(WITNESS, http_peers.floor_command(options.build / "perf/penstock_floor"))]


def compare(bench, peers, scenario, options):
    """The verdicts, and every round. What fails is looked at once more, and has to fail again."""
    with contextlib.ExitStack() as running:
        servers = [same_core.start(peer, scenario, bench.setting, running) for peer in peers]
        series = [measure(bench, servers, scenario, options.pairs)]
        verdicts = judged(series[0])
        if not options.no_verdict and max(one.level for one in verdicts) == Level.FAILS:
            print(f"{scenario.name}: once more, since it would fail", file=sys.stderr)
            series.append(measure(bench, servers, scenario, options.pairs))
            verdicts = judgement.of_both(verdicts, judged(series[1]))
    disturbed = sum(any(one.is_disturbed for one in turn) for turns in series for turn in turns)
    print(f"\n### {same_core.title(scenario)}\n\n{judgement.table_of(verdicts)}\n\n"
          f"{disturbed} of {sum(map(len, series))} pairs disturbed" + ", looked at twice" * (len(series) > 1), flush=True)
    return verdicts, as_data(series, verdicts)


def measure(bench, servers, scenario, pairs):
    """For each pair, a round of each server, one behind the other."""
    turns = []
    for number in range(pairs):
        turns.append(turn_of(bench, servers, scenario))
        print(f"{scenario.name}, pair {number + 1}: " +
              ", ".join(f"{server.name} {report.number(one.cpu_us)} µs"
                        for server, one in zip(servers, turns[-1], strict=True)) +
              " (disturbed)" * any(one.is_disturbed for one in turns[-1]), file=sys.stderr)
    return turns


def turn_of(bench, servers, scenario):
    """All of them again when one was disturbed: what is compared has to be of one moment."""
    def all_of_them():
        return [bench.measure(server, scenario) for server in servers]

    def when_quiet():
        bench.wait_until_quiet()
        return all_of_them()

    best = all_of_them()
    for _ in range(REPEATS):
        if not any(one.is_disturbed for one in best) or bench.patience.left_s <= 0:
            break
        best = min(best, bench.patience.spend_on(when_quiet), key=disturbance)
    return best


def disturbance(turn):
    return sum(one.is_disturbed for one in turn), max(one.foreign for one in turn)


def judged(turns):
    return judgement.judge(*zip(*turns, strict=True))


def as_data(series, verdicts):
    return {
        "rounds": [[{name: one.as_data() for name, one in zip((BASE, HEAD, WITNESS), turn, strict=True)}
                    for turn in turns] for turns in series],
        "verdicts": {one.metric.field: one.as_data() for one in verdicts},
    }


def conclude(verdicts, data):
    """Says what is worse, and by the status whether something fails. An error of head's is a failure whatever it cost."""
    by_level = {level: [f"{scenario}: {one.metric.title} {judgement.change(one.ratio)}"
                        for scenario, all_ in verdicts.items() for one in all_ if one.level == level] for level in Level}
    wrong = with_errors(data, HEAD)
    for level in (Level.NOISE, Level.WARNS, Level.FAILS):
        if by_level[level]:
            print(f"\n{judgement.WORDS[level]}: {'; '.join(by_level[level])}")
    if others := with_errors(data, BASE):
        print(f"\nthere were errors of base in {', '.join(others)}")
    if wrong:
        print(f"\nFAILS: errors of head in {', '.join(wrong)}")
    if by_level[Level.FAILS] or wrong:
        return 1
    print("\nPASSES" + unjudged(data))
    return 0


def unjudged(data):
    """What the verdict leaves out: by the clock nothing is told while others use the core."""
    def was_too_loud(turns):
        return judgement.is_too_loud([any(one["disturbed"] for one in turn.values()) for turn in turns])

    names = [scenario for scenario, of_one in data.items() if any(map(was_too_loud, of_one["rounds"]))]
    if not names:
        return ""
    where = "" if len(names) == len(data) else f" in {', '.join(names)}"
    return (f" by CPU time only{where}: more than half of the pairs were disturbed, so requests/s and P99 were not "
            f"judged{' there' if where else ''}")


def with_errors(data, name):
    """The scenarios in which that server gave a wrong answer, or none."""
    return [scenario for scenario, of_one in data.items()
            if any(turn[name]["errors"] for turns in of_one["rounds"] for turn in turns)]


def heading(options, setting, base, head):
    shown_head = f"{head.name} ({commit()})" if options.is_this_tree else head.name
    return (
        f"## Base {base.name}, head {shown_head}\n\n{machine.description(ROOT)}; all on core {setting.server_core}, "
        f"SCHED_BATCH, niceness {setting.nice}. {options.pairs} pairs of {setting.seconds} s for each scenario. *In pairs* "
        f"is the median of the ratios within a pair, *best rounds* that of the best two, *floor ±* how far the floor was "
        f"off its own median."
    )

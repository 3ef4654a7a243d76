"""`perf/run standard`: the written performance standard, from its checks to its report."""

import dataclasses
import math
import os
import pathlib
import re
import subprocess
import sys
import time

from .. import machine, tools
from ..arguments import PROGRAM, ROOT, TOOLS, add_nice, bounded, check_nice, check_programs, commit, names
from ..report import counted
from ..tools import Failure
from . import answers, checks, goals, history, pages, sources
from .bench import Bench, Tools
from .drawings import drawings_of
from .scenarios import ALLOCATOR_SCENARIOS, BY_NAME, CAPACITY_CONNECTIONS, RATE_SHARES, RUNS, Scenario, selected
from .study import Study, allocator_name, at_rate, summaries_of

RAW = ROOT / "build/perf/standard"
DOCUMENTS = ROOT / "docs/performance"
HISTORY = "baseline-history.json"
OTHER = ROOT / "build/system-allocator"
HOW_TO_BUILD_OTHER = (
    "cmake --preset release -B build/system-allocator -DPENSTOCK_JEMALLOC=OFF -DPENSTOCK_TESTS=OFF -DPENSTOCK_PERF=OFF && "
    "cmake --build build/system-allocator --target penstock_program")
LONGEST_NAME = 60
LONGEST_RUN_S = 60  # of penstock_load
MOST_RUNS = 100
SOURCES = {"peers": sources.read_peers, "tls": sources.read_tls, "budget": sources.read_counts, "footprint": sources.read_footprint}
START_LIMIT_S = 10


def add_command(commands):
    command = commands.add_parser(
        "standard", help="the written performance standard, with a report", description=__doc__.replace("`", ""),
        epilog=f"--only takes scenarios, kinds ({', '.join(RUNS)}) and sections: rates, capacity, allocators. "
               f"Scenarios: {', '.join(name for name in BY_NAME if name not in RUNS)}.")
    command.add_argument("--program", type=pathlib.Path, default=PROGRAM, help="of a release build (%(default)s)")
    command.add_argument("--routes-program", type=pathlib.Path, default=TOOLS / "penstock_budget_served",
                         help="which has 1,000 routes (%(default)s)")
    command.add_argument("--system-allocator", type=pathlib.Path, metavar="PROGRAM",
                         help="of a build with -DPENSTOCK_JEMALLOC=OFF, to stand beside --program")
    command.add_argument("--floor", type=pathlib.Path, default=TOOLS / "penstock_floor", help="(%(default)s)")
    command.add_argument("--load", type=pathlib.Path, default=TOOLS / "penstock_load", help="(%(default)s)")
    command.add_argument("--only", type=names, metavar="NAMES", help="for example low,rates (all)")
    command.add_argument("--seconds", type=bounded(1, LONGEST_RUN_S), default=10,
                         help=f"of each run, at most {LONGEST_RUN_S} (%(default)s)")
    command.add_argument("--runs", type=bounded(1, MOST_RUNS), help="of each scenario (basic 5, extended 3, regression 10)")
    command.add_argument("--quick", action="store_true", help="one run of one second, below build/, without history")
    add_nice(command, "servers and clients alike")
    for other in SOURCES:
        command.add_argument(f"--{other}", type=pathlib.Path, metavar="FILE",
                             help=f"what perf/run {other} --json FILE has written, at the same commit")
    command.add_argument("--output", type=pathlib.Path, help=f"folder of the report ({DOCUMENTS.relative_to(ROOT)})")
    command.add_argument("--records", type=pathlib.Path, default=RAW / "runs", help="folder of the runs (%(default)s)")
    command.set_defaults(run=run)


def run(options):
    scenarios, sections = selected(options.only)
    bench, study = prepare(options, scenarios, sections)
    for scenario in scenarios:
        measure(bench, study, scenario, runs_of(options, scenario.kind))
    several = runs_of(options, "extended")
    if "rates" in sections:
        measure_rates(bench, study, several)
    if "capacity" in sections:
        measure_capacity(bench, study, several)
    if "allocators" in sections:
        measure_allocators(bench, study, options.system_allocator, several)
    study.notes += bench.problems
    write(study, options)
    broken = [check.name for check in study.checks if check.passed is False and check.kind in ("answers of", "errors of")]
    if broken:
        print(f"\nthere were errors: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def runs_of(options, kind):
    return options.runs or (1 if options.quick else RUNS[kind])


# ---- Before


def prepare(options, scenarios, sections):
    """Finds what is needed and looks at the machine, before anything is started."""
    if "allocators" in (options.only or ()) and options.system_allocator is None:
        raise Failure("allocators are compared with --system-allocator PROGRAM, of a build with -DPENSTOCK_JEMALLOC=OFF: "
                      f"{HOW_TO_BUILD_OTHER} makes {OTHER / 'bin/penstock'}")
    wanted = [options.program, options.load]
    wanted += [options.routes_program] * any(scenario.program == "routes" for scenario in scenarios)
    wanted += [options.floor] * ("capacity" in sections)
    check_programs(*wanted)
    if options.system_allocator:
        check_programs(options.system_allocator, how=HOW_TO_BUILD_OTHER, folder=OTHER)
    check_nice(options.nice)
    if options.quick:
        options.seconds = 1
    options.output = folder_of_report(options)
    given = {name: reader(path) for name, reader in SOURCES.items() if (path := getattr(options, name))}
    site = RAW / "site"
    answers.make_site(site)
    strace = tools.place_of("strace")
    environment = environment_of(options)
    study = Study(environment, options.seconds, options.quick, sources=given)
    largest = max([scenario.connections for scenario in scenarios], default=max(CAPACITY_CONNECTIONS))
    study.checks += checks.before(options.program, largest)
    study.checks += [sources.commit_check(source, environment["commit"]) for source in given.values()]
    if strace is None:
        study.notes.append("system calls: strace is not installed (Debian package strace)")
    study.notes += [f"what `perf/run {name}` measures: no --{name} FILE was given" for name in SOURCES if name not in given]
    programs = Tools(options.program, options.routes_program, options.floor, options.load, strace)
    return Bench(programs, site, environment, options), study


def folder_of_report(options):
    """Made, and its history read, before half an hour has gone into it."""
    folder = options.output or (RAW / "quick" if options.quick else DOCUMENTS)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        options.records.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Failure(f"there is no place for the report: {problem.filename}: {problem.strerror}; give --output or "
                      "--records") from problem
    for place in (folder, options.records):
        if not os.access(place, os.W_OK | os.X_OK):
            raise Failure(f"there is no place for the report: {place} may not be written; give --output or --records")
    history.read(folder / HISTORY)
    return folder


def environment_of(options):
    cores = machine.cores()
    shared = len(cores) == 1
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "version": version_of(options.program),
        "commit": commit(),
        "machine": machine.description(RAW),
        "cores": cores,
        "placement": "Server and load share the only core." if shared else
                     f"Server on a core for each reactor, of the first {max(1, len(cores) // 2)} of {len(cores)}, load on "
                     f"the others; where reactors are more than these cores they share them.",
        "build_type": checks.build_setting(options.program, "CMAKE_BUILD_TYPE"),
        "compiler": checks.build_setting(options.program, "CMAKE_CXX_COMPILER"),
    }


def version_of(program):
    try:
        done = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=START_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Failure(f"{program} --version: {problem}") from problem
    found = re.search(r"\b\d+\.\d+\.\d+[\w.+-]*", done.stdout)
    if done.returncode != 0 or found is None:
        raise Failure(f"{program} --version tells no version: {(done.stdout + done.stderr).strip()[:200]}")
    return found.group()


# ---- Measuring


def measure(bench, study, scenario, runs):
    if records := attempt(study, scenario.name, lambda: bench.measure(scenario, runs)):
        study.records[scenario.name] = records
        judge(study, scenario.name, records)


def judge(study, name, records):
    study.checks.append(checks.Check("answers of", name, True, "status, length and body are those expected"))
    study.checks += checks.after(name, records, summaries_of(records)["per_second"])


def attempt(study, name, work):
    """What `work` gives, or None when it has failed, which is then told."""
    try:
        return work()
    except Failure as failure:
        study.failures[name] = str(failure)
        study.checks.append(checks.Check("answers of", name, False, str(failure)))
        return None


def measure_rates(bench, study, runs):
    base = apart(BY_NAME["medium"], bench)
    records = attempt(study, "the peak", lambda: bench.measure(dataclasses.replace(base, name="peak"), 1))
    study.peak = records[0].figure("per_second") if records else math.nan
    if not study.peak > 0:
        return
    for share in RATE_SHARES:
        scenario = at_rate(base, share, study.peak)
        if records := attempt(study, scenario.name, lambda one=scenario: bench.measure(one, runs)):
            study.rates[scenario.name] = records
            judge(study, scenario.name, records)


def apart(scenario, bench):
    """With a core for each load process: one that waits for another has its waiting in the latency."""
    return dataclasses.replace(scenario, threads=min(scenario.threads, len(bench.client_cores())))


def measure_capacity(bench, study, runs):
    for connections in CAPACITY_CONNECTIONS:
        pair = [apart(Scenario(f"capacity-{connections}{of}", "extended", "capacity", connections, program=program), bench)
                for program, of in (("penstock", ""), ("floor", "-floor"))]
        found = [attempt(study, one.name, lambda one=one: bench.measure(one, runs)) for one in pair]
        if all(found):
            study.capacity.append((connections, *found))
            for one, records in zip(pair, found, strict=True):
                judge(study, one.name, records)


def measure_allocators(bench, study, other, runs):
    if other is None:
        study.notes.append("allocators: no --system-allocator PROGRAM was given, of a build with -DPENSTOCK_JEMALLOC=OFF")
        return
    for name in ALLOCATOR_SCENARIOS:
        pair = [attempt(study, f"{name}, allocators", lambda one=program: bench.measure(BY_NAME[name], runs, one))
                for program in (None, other)]
        if all(pair):
            study.allocators[name] = tuple(pair)
            for records in pair:
                judge(study, allocator_name(name, records), records)


# ---- Afterwards


def write(study, options):
    name = f"PERF-{study.environment['date']}-{study.environment['version']}-{name_of(options.only)}"
    folder = options.output
    drawings = drawings_of(study)
    for kind, (_, svg) in drawings.items():
        (folder / f"{name}-{kind}.svg").write_text(svg)
    text = pages.page(study, drawings, name)
    (folder / f"{name}.md").write_text(text)
    if not options.quick:
        history.append(folder / HISTORY, history.entry_of(f"{name}.md", study.environment, study.summaries))
    for words in failed_checks(study):
        print(words)
    print(f"{closing_of(study)}\nThe report is {folder / name}.md")


def failed_checks(study):
    """A line for each kind, with those that it has failed of."""
    kinds = {}
    for check in study.checks:
        if check.passed is False:
            kinds.setdefault(check.kind, []).append(check.of)
    return [f"failed: {kind} {', '.join(filter(None, of))}".rstrip() for kind, of in kinds.items()]


def closing_of(study):
    failed = sum(check.passed is False for check in study.checks)
    unmet = sum(line.met is False for line in study.lines)
    speed = goals.judge(study)
    missed = sum(line.met is False for line in speed)
    return (f"{counted(len(study.records), 'scenario')}; {failed} of {counted(len(study.checks), 'check')} failed, "
            f"{counted(unmet, 'requirement')} not met, {pages.not_measured(study.lines)}; {counted(missed, 'goal')} of speed "
            f"missed, {pages.not_measured(speed)}")


def name_of(only):
    text = "+".join(only or ["all"])
    return text if len(text) <= LONGEST_NAME else "selection"

"""What other commands have written by --json, and of which commit it is: figures of another are no figures of this one's."""

import json
import math
import re
from dataclasses import dataclass

from ..report import best_of_times, counted
from ..tools import Failure
from .checks import Check

UNKNOWN = "unknown"
FEWEST_ROUNDS = 3  # of a server: the best of fewer is chance
# By which a file of another command is known; the first that it has.
KEYS = {"wolfssl": "tls", "scenarios": "peers", "counts": "budget", "idle": "footprint"}
DIRTY = "-dirty"  # of git describe: more than the commit was measured, and nobody can tell what


@dataclass(frozen=True)
class Source:
    command: str
    commit: str
    figures: dict


def read_peers(path):
    """`perf/run peers --json`, whole."""
    return read_rounds(path, "peers")


def read_tls(path):
    """`perf/run tls --json`, whole."""
    return read_rounds(path, "tls")


def read_rounds(path, command):
    def checked(data):
        best_of_peers(data)
        left_out_of_peers(data)
        if command == "tls":
            words_of(data["wolfssl"])
        return data

    source = read(path, command, checked)
    if source.figures.get("is_quick", False):
        raise Failure(f"{path} is of single short rounds, which are not to be quoted; measure again, by perf/run {command} without "
                      "--quick")
    refuse_few_rounds(path, command, source.figures)
    return source


def refuse_few_rounds(path, command, data):
    for name, scenario in data["scenarios"].items():
        for server, rounds in scenario["rounds"].items():
            if len(rounds) < FEWEST_ROUNDS:
                raise Failure(f"{path} has {counted(len(rounds), 'round')} of {server} in {name}, and the best of so few is "
                              f"chance; measure again, by perf/run {command} with --rounds {FEWEST_ROUNDS} or more")


def read_counts(path):
    """`perf/run budget --json`: user instructions on real sockets, by scenario; without what cannot be counted so."""
    return read(path, "budget", lambda data: {name_of(name): measured(kinds["served"]) for name, kinds in data["counts"].items()
                                              if kinds["served"] is not None})


def read_footprint(path):
    """`perf/run footprint --json`: bytes for each idle connection, by server."""
    return read(path, "footprint", lambda data: {name_of(one["name"]): max(0.0, number_of(one["bytes_per_connection"]))
                                                 for one in data["idle"]})


def read(path, command, understood):
    data = json_of(path, command)
    try:
        if other_command(data) not in (None, command):
            raise ValueError("another's")
        return Source(command, name_of(data.get("commit", UNKNOWN)), understood(data))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        raise Failure(f"{path} is nothing that perf/run {command} --json has written: "
                      f"{why_not_understood(data, command, problem)}") from problem


def json_of(path, command):
    try:
        return json.loads(path.read_text())
    except FileNotFoundError as problem:
        raise Failure(f"{path} does not exist; make it by perf/run {command} --json FILE") from problem
    except OSError as problem:
        raise Failure(f"{path} cannot be read: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise Failure(f"{path} is nothing that perf/run {command} --json has written: it is no JSON") from problem


def why_not_understood(data, command, problem):
    """In words: what Python calls the problem says nothing to who gave the file."""
    if other_command(data) not in (None, command):
        return f"it is of perf/run {other_command(data)}"
    if isinstance(problem, KeyError):
        return f"it has no {problem.args[0]:.100}"
    if isinstance(problem, OverflowError):
        return "it has a number that is too large"
    return str(problem) if isinstance(problem, ValueError) else "it is built otherwise"


def other_command(data):
    """Whose it is; None where no key tells."""
    return next((command for key, command in KEYS.items() if key in data), None) if isinstance(data, dict) else None


def number_of(value):
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no figure")
    return number


def measured(value):
    """What takes no time and no instructions was not measured."""
    number = number_of(value)
    if number <= 0:
        raise ValueError(f"{number} is not above 0")
    return number


def name_of(value):
    """It goes into tables."""
    if not isinstance(value, str) or not re.fullmatch(r"[\w.+-]{1,100}", value):
        raise ValueError(f"{value!r:.100} is no name")
    return value


def words_of(value):
    """Likewise, with blanks."""
    if not isinstance(value, str) or not re.fullmatch(r"[\w.,+' -]{1,100}", value):
        raise ValueError(f"{value!r:.100} is no name")
    return value


def commit_check(source, commit):
    """Whether it is of the report's commit, which is the other."""
    kind = f"commit of {source.command}"
    if source.commit != commit:
        return Check(kind, "", False, f"{source.commit}, and the report's is {commit}: measure again by perf/run "
                                      f"{source.command}")
    if commit == UNKNOWN or commit.endswith(DIRTY):
        return Check(kind, "", None, f"{commit}, as is the report's")
    return Check(kind, "", True, commit)


# ---- Of peers


def best_of_peers(data):
    """For each scenario, for each server, the CPU time of its best round in µs."""
    found = {}
    for name, scenario in data["scenarios"].items():
        times = {name_of(server): [(measured(one["cpu_us"]), bool(one.get("disturbed"))) for one in rounds if one["cpu_us"] is not None]
                 for server, rounds in scenario["rounds"].items()}
        found[name_of(name)] = {server: best_of_times(of_one) for server, of_one in times.items() if of_one}
    return found


def left_out_of_peers(data):
    """Why a server has no figures, in words; where the reasons differ, the last one."""
    return {name_of(server): str(words) for scenario in data["scenarios"].values()
            for server, words in scenario.get("left_out", {}).items()}

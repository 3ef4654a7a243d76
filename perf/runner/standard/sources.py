"""What other commands have written by --json, and of which commit it is: figures of another are no figures of this one's."""

import json
from dataclasses import dataclass

from ..report import best_of_times
from ..tools import Failure
from .checks import Check

UNKNOWN = "unknown"
DIRTY = "-dirty"  # of git describe: more than the commit was measured, and nobody can tell what


@dataclass(frozen=True)
class Source:
    command: str
    commit: str
    figures: dict


def read_peers(path):
    """`perf/run peers --json`, whole."""
    def peers_of(data):
        best_of_peers(data)
        left_out_of_peers(data)
        return data

    source = read(path, "peers", peers_of)
    if source.figures.get("is_quick", False):
        raise Failure(f"{path} is of single short rounds, which are not to be quoted; measure again, by perf/run peers without "
                      "--quick")
    return source


def read_counts(path):
    """`perf/run budget --json`: user instructions on real sockets, by scenario; without what cannot be counted so."""
    return read(path, "budget", lambda data: {name: float(kinds["served"]) for name, kinds in data["counts"].items()
                                              if kinds["served"] is not None})


def read_footprint(path):
    """`perf/run footprint --json`: bytes for each idle connection, by server."""
    return read(path, "footprint", lambda data: {one["name"]: float(one["bytes_per_connection"]) for one in data["idle"]})


def read(path, command, understood):
    try:
        data = json.loads(path.read_text())
        return Source(command, str(data.get("commit", UNKNOWN)), understood(data))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise Failure(f"{path} is nothing that perf/run {command} --json has written: {problem!r}") from problem


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
        times = {server: [(float(one["cpu_us"]), bool(one.get("disturbed"))) for one in rounds if one["cpu_us"] is not None]
                 for server, rounds in scenario["rounds"].items()}
        found[name] = {server: best_of_times(of_one) for server, of_one in times.items() if of_one}
    return found


def left_out_of_peers(data):
    """Why a server has no figures, in words; where the reasons differ, the last one."""
    return {server: str(words) for scenario in data["scenarios"].values()
            for server, words in scenario.get("left_out", {}).items()}

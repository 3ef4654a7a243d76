"""What the sub-commands' command lines have in common."""

import argparse
import math
import os
import pathlib
import subprocess

from .tools import Failure

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
PROGRAM = BUILD / "bin/penstock"
TOOLS = BUILD / "perf"
LONGEST_ROUND_S = 10
LONGEST_PATIENCE_S = 3_600
MOST_ROUNDS = 1_000
NICE_LEAST, NICE_MOST = -20, 19
# Makes all that is measured here and with, and none of the tests. The first command does nothing when all is there: without
# a package that it needs a program is left out, and building again would not help.
HOW_TO_BUILD = "ci/install build && cmake --preset release && cmake --build --preset release --target perf"


def add_common(command, seconds):
    command.add_argument("given", nargs="*", metavar="NAME=COMMAND", help="further servers")
    command.add_argument("--program", type=pathlib.Path, default=PROGRAM,
                         help="the program of a release build (%(default)s)")
    command.add_argument("--only", type=names, help="for example penstock,nginx (all)")
    command.add_argument("--rounds", type=bounded(1, MOST_ROUNDS), default=5, help="of each server (%(default)s)")
    command.add_argument("--seconds", type=bounded(1, LONGEST_ROUND_S), default=seconds,
                         help=f"of each round, at most {LONGEST_ROUND_S} (%(default)s)")
    command.add_argument("--quick", action="store_true", help="one round of one second, no warming up, no repeats")
    add_nice(command, "servers and clients alike")
    add_patience(command, 60)
    add_json(command, "every round")


def add_patience(command, seconds):
    command.add_argument("--patience", type=bounded(0, LONGEST_PATIENCE_S, float), default=seconds,
                         help="seconds that may go into repeating disturbed rounds, in all (%(default)s)")


def add_nice(command, whose):
    command.add_argument("--nice", type=bounded(NICE_LEAST, NICE_MOST), default=0, help=f"of {whose}; below 0 for root only")


def add_json(command, what):
    command.add_argument("--json", type=file_to_write, metavar="FILE", help=f"write {what} there")


def check_programs(*programs, how=HOW_TO_BUILD, folder=BUILD):
    """`folder`: where programs are that `how` makes; of others nobody knows how they are made."""
    for program in programs:
        if not program.is_file():
            is_made = pathlib.Path(os.path.abspath(program)).is_relative_to(folder)
            raise Failure(f"{program} does not exist; {how if is_made else 'give another'}")


def check_nice(nice):
    if nice < 0 and os.geteuid() != 0:
        raise Failure(f"--nice {nice} is for root; leave it out, or give 0 or more")


def check_common(options, *programs):
    check_programs(*programs)
    check_nice(options.nice)
    if options.quick:
        options.rounds = options.seconds = 1


def bounded(low, high, kind=int):
    """What argparse calls a type: a number from `low` to `high`."""
    words = "not a whole number" if kind is int else "no number"

    def number(text):
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is {words} from {low:,} to {high:,}")
        return value
    return number


def file_to_write(text):
    """Looked at before minutes have gone into what is written there."""
    path = pathlib.Path(text)
    if os.path.isdir(path):
        raise argparse.ArgumentTypeError(f"{text} is a folder; give a file in it")
    if not os.path.isdir(path.parent):
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}; make it first")
    if not os.access(path if os.path.exists(path) else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} may not be written; give another place")
    return path


def names(text):
    return text.split(",")


def scenarios_of(every):
    """A type of argument: some of them by their names, in the order in which they are named."""
    known = {scenario.name: scenario for scenario in every}

    def scenarios(text):
        wanted = names(text)
        if unknown := [name for name in wanted if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]} is not one of {', '.join(known)}")
        return tuple(known[name] for name in wanted)

    return scenarios


def selected(peers, wanted, reference=None, further=""):
    """`reference`: one that has to be among them. `further`: which others there could be, in words."""
    known = [peer.name for peer in peers]
    if unknown := [name for name in wanted if name not in known]:
        raise Failure(f"there is no server {unknown[0]}, only {', '.join(known)}{further}")
    if reference is not None and reference not in wanted:
        raise Failure(f"{reference} cannot be left out: the ratios are to it")
    return [peer for peer in peers if peer.name in wanted]


def refuse_namesakes(peers):
    known = [peer.name for peer in peers]
    for name in known:
        if known.count(name) > 1:
            raise Failure(f"two servers are called {name}")


def commit():
    command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"

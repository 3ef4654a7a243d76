"""What the sub-commands' command lines have in common."""

import argparse
import os
import pathlib
import subprocess

from .tools import Failure

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/penstock"
LARGEST_ROUND_S = 10
NICE_LEAST, NICE_MOST = -20, 19
# Makes all that is measured here and with, and none of the tests.
HOW_TO_BUILD = "cmake --preset release && cmake --build --preset release --target perf"


def add_common(command, seconds):
    command.add_argument("given", nargs="*", metavar="NAME=COMMAND", help="further servers")
    command.add_argument("--program", type=pathlib.Path, default=PROGRAM,
                         help="the program of a release build (%(default)s)")
    command.add_argument("--only", type=names, help="for example penstock,nginx (all)")
    command.add_argument("--rounds", type=positive, default=5)
    command.add_argument("--seconds", type=positive, default=seconds, help="of each round (%(default)s)")
    command.add_argument("--quick", action="store_true", help="one round of one second, no warming up, no repeats")
    add_nice(command, "servers and clients alike")
    command.add_argument("--patience", type=float, default=60,
                         help="seconds that may go into repeating disturbed rounds, in all (%(default)s)")
    add_json(command, "every round")


def add_nice(command, whose):
    command.add_argument("--nice", type=niceness, default=0, help=f"of {whose}; below 0 for root only")


def add_json(command, what):
    command.add_argument("--json", type=file_to_write, metavar="FILE", help=f"write {what} there")


def check_programs(*programs, how=HOW_TO_BUILD):
    for program in programs:
        if not program.is_file():
            raise Failure(f"{program} does not exist; {how}")


def check_nice(nice):
    if nice < 0 and os.geteuid() != 0:
        raise Failure(f"--nice {nice} is for root; leave it out, or give 0 or more")


def check_common(options, *programs):
    check_programs(*programs)
    check_nice(options.nice)
    if options.quick:
        options.rounds = options.seconds = 1
    options.seconds = min(options.seconds, LARGEST_ROUND_S)


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is no number above 0")
    return int(text)


def niceness(text):
    try:
        nice = int(text)
    except ValueError:
        nice = NICE_MOST + 1
    if not NICE_LEAST <= nice <= NICE_MOST:
        raise argparse.ArgumentTypeError(f"{text} is not between {NICE_LEAST} and {NICE_MOST}")
    return nice


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


def selected(peers, wanted, reference):
    known = [peer.name for peer in peers]
    if unknown := [name for name in wanted if name not in known]:
        raise Failure(f"there is no server {unknown[0]}, only {', '.join(known)}")
    if reference not in wanted:
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

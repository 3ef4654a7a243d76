"""What the sub-commands' command lines have in common."""

import argparse
import os
import pathlib
import subprocess

from .tools import Failure

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/penstock"
LARGEST_ROUND_S = 10


def add_common(command, seconds):
    command.add_argument("given", nargs="*", metavar="NAME=COMMAND", help="further servers")
    command.add_argument("--program", type=pathlib.Path, default=PROGRAM,
                         help="the program of a release build (%(default)s)")
    command.add_argument("--only", type=names, help="for example penstock,nginx (all)")
    command.add_argument("--rounds", type=positive, default=5)
    command.add_argument("--seconds", type=positive, default=seconds, help="of each round (%(default)s)")
    command.add_argument("--quick", action="store_true", help="one round of one second, no warming up, no repeats")
    command.add_argument("--nice", type=int, default=0, help="of servers and clients alike; below 0 for root only")
    command.add_argument("--patience", type=float, default=60,
                         help="seconds that may go into repeating disturbed rounds, in all (%(default)s)")
    command.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every round there")


def check_programs(*programs):
    for program in programs:
        if not program.is_file():
            raise Failure(f"{program} does not exist; cmake --preset release && cmake --build --preset release")


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

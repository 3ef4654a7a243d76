"""The command line: one sub-command for each thing that is measured."""

import argparse
import errno
import os
import pathlib
import signal
import sys

from . import budget, cold_start, compare, footprint, same_core, soak, static, tls, train
from .arguments import ROOT
from .standard import command as standard
from .tools import Failure

SUBCOMMANDS = (budget, same_core, standard, static, tls, compare, soak, footprint, cold_start, train)
INTERRUPTED = 130  # what a shell gives a program that SIGINT ended
ABOUT = ("Measures Penstock beside other servers: instructions, CPU time, latency, memory; and one commit beside another. "
         "Each command tells by --help what it needs and takes.")
FURTHER = "docs/PERFORMANCE.md says how to read what is printed."
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main():
    parser = argparse.ArgumentParser(prog="perf/run", description=ABOUT, epilog=FURTHER)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in SUBCOMMANDS:
        module.add_command(commands)
    options = parser.parse_args()
    for number in ENDING:
        signal.signal(number, interrupt)
    try:
        return options.run(options)
    except Failure as failure:
        print(f"perf/run: {failure}", file=sys.stderr)
        return 1
    except OSError as problem:
        if not (words := words_of(problem)):
            raise
        print(f"perf/run: {words}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("perf/run: interrupted", file=sys.stderr)
        return INTERRUPTED


def words_of(problem):
    """A sentence on a file or a folder that cannot be made or written; empty when it is about something else."""
    if problem.errno == errno.ENOSPC and problem.filename is None:
        return "there is no space left where files are written (below build/perf, in the folder of temporary files, or " \
               "where you said)"
    if not isinstance(problem.filename, str | bytes | os.PathLike):
        return ""
    place = pathlib.Path(os.fsdecode(problem.filename))
    if not place.is_relative_to(ROOT / "build"):
        return f"{place}: {problem.strerror}"
    kept = ROOT / "build/perf"
    return (f"{place}: {problem.strerror}; files for measuring are kept below {kept}: make it yours (as root: chown -R), or "
            "remove it, and it is made again")


def interrupt(*_):
    """What has been started is ended on the way out, which a second signal must not cut short."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt

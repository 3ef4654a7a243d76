"""The command line: one sub-command for each thing that is measured."""

import argparse
import signal
import sys

from . import budget, cold_start, compare, footprint, same_core, soak, static, train
from .standard import command as standard
from .tools import Failure

SUBCOMMANDS = (budget, same_core, standard, static, compare, soak, footprint, cold_start, train)
INTERRUPTED = 130  # what a shell gives a program that SIGINT ended
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main():
    parser = argparse.ArgumentParser(prog="perf/run", description=__doc__)
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
    except KeyboardInterrupt:
        print("perf/run: interrupted", file=sys.stderr)
        return INTERRUPTED


def interrupt(*_):
    """What has been started is ended on the way out, which a second signal must not cut short."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt

"""The command line: one sub-command for each thing that is measured."""

import argparse
import signal
import sys

from . import static
from .tools import Failure

SUBCOMMANDS = (static,)
INTERRUPTED = 130  # what a shell gives a program that SIGINT ended


def main():
    parser = argparse.ArgumentParser(prog="perf/run", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in SUBCOMMANDS:
        module.add_command(commands)
    options = parser.parse_args()
    # As Ctrl-C: what has been started is ended on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return options.run(options)
    except Failure as failure:
        print(f"perf/run: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("perf/run: interrupted", file=sys.stderr)
        return INTERRUPTED

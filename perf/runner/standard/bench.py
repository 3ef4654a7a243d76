"""Runs one after the other: a server for each scenario, and its loads, each on cores of its own where there are two."""

import contextlib
import os
import sys
import time
from dataclasses import asdict, dataclass

from .. import calls, machine
from ..http_peers import HELLO
from ..peers import Peer
from ..report import duration, number
from ..servers import Refused, Server
from ..tools import Failure
from . import answers, loads
from .records import Record, resources_of, results_of
from .resources import Gauge, allocator_of

CALLS_S = 0.5
WARM_S = 1
DEFAULT_CONNECTION_LIMIT = 10_000  # of a reactor
SPARE_CONNECTIONS = 100


@dataclass(frozen=True)
class Tools:
    program: object  # that is measured
    routes: object   # serves 1,000 routes
    floor: object
    load: object
    strace: object = None  # None: system calls are not counted


class Bench:
    def __init__(self, tools, site, environment, options):
        """`options`: of the command line; seconds, runs, quick, nice and records are looked at."""
        self.tools = tools
        self.site = site
        self.environment = environment
        self.options = options
        self.problems = []  # what could not be measured beside the runs, in words
        self.first_id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}"  # two may begin in a second
        self.count = 0

    def measure(self, scenario, runs, program=None):
        """The records of so many runs. Failure when it does not answer as it should."""
        counted = self.count_calls(scenario, program) if self.tools.strace else None
        with self.running(scenario, program) as server:
            if not self.options.quick:
                self.load(server, scenario, WARM_S, contextlib.nullcontext())
            return [self.record(server, scenario, place, counted, program) for place in range(runs)]

    @contextlib.contextmanager
    def running(self, scenario, program):
        peer = Peer(scenario.name, lambda port, _: self.command(scenario, port, program or self.tools.program))
        try:
            with Server(peer, self.server_cores(scenario), self.options.nice) as server:
                answers.check_answer(server.port, scenario, answers.expected_body(scenario, self.site))
                yield server
        except Refused as refusal:
            raise Failure(f"the program refuses an option: {refusal}") from refusal

    def command(self, scenario, port, program):
        if scenario.program == "routes":
            return [self.tools.routes, "", str(port)]
        if scenario.program == "floor":
            return [self.tools.floor, "--port", str(port), "--body", str(len(HELLO))]
        # Each reactor may get them all: nothing but chance spreads connections over reactors.
        limit = max(DEFAULT_CONNECTION_LIMIT, scenario.connections + SPARE_CONNECTIONS)
        return [program, "serve", self.site, "--demo", "--reactors", str(scenario.reactors), "--address", "127.0.0.1",
                "--port", str(port), "--connection-limit", str(limit)]

    @staticmethod
    def server_cores(scenario):
        """One for each reactor, of the first half."""
        known = machine.cores()
        return set(known[: min(scenario.reactors, max(1, len(known) // 2))])

    def client_cores(self):
        """The other half, or the only one."""
        known = machine.cores()
        return set(known[max(1, len(known) // 2):] or known)

    def load(self, server, scenario, seconds, meter):
        size = len(answers.expected_body(scenario, self.site))
        cores, nice = self.client_cores(), self.options.nice
        return loads.run(self.tools.load, server, scenario, size, seconds,
                         lambda: machine.settle(cores, nice, False), meter)

    def count_calls(self, scenario, program):
        """In a pass and with a server of its own: strace slows down what it counts."""
        with self.running(scenario, program) as server:
            summary = server.folder / "calls"
            try:
                result = self.load(server, scenario, CALLS_S, calls.attached(self.tools.strace, server, summary))
                counted = calls.parse_summary(summary.read_text())
            except (Failure, OSError) as problem:
                self.problems.append(f"system calls of {scenario.name} are not known: {problem}")
                return None
        return {name: count / result.requests for name, count in counted.items()} if result.requests else None

    def record(self, server, scenario, place, counted, program):
        gauge = Gauge(server)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        result = self.load(server, scenario, self.options.seconds, gauge)
        cores = len(self.server_cores(scenario))
        self.count += 1
        record = Record(
            id=f"{self.first_id}-{self.count:03}-{scenario.name}-{place + 1}",
            time=moment,
            environment=self.environment,
            configuration={
                "command": [str(word) for word in self.command(scenario, server.port, program or self.tools.program)],
                "server_cores": sorted(self.server_cores(scenario)), "client_cores": sorted(self.client_cores()),
                "seconds": self.options.seconds, "nice": self.options.nice,
            },
            scenario=asdict(scenario),
            results=results_of(result),
            resources=resources_of(result, gauge, cores, len(self.client_cores()), counted, allocator_of(server.process.pid)),
        )
        record.write(self.options.records)
        print(f"{scenario.name}, run {place + 1}: {number(record.figure('per_second'))} requests/s, "
              f"P99 {duration(record.figure('p99_us'))}", file=sys.stderr)
        return record

"""Several penstock_load in step: each is one thread, and together they have the connections of a scenario."""

import contextlib
import json
import subprocess
import time
from dataclasses import dataclass

from ..own_load import READY, SLACK_S, STEP, WARM_S, expect, read_line
from ..tools import Failure
from .histogram import Histogram, merged

ERROR_KINDS = ("wrong_status", "wrong_length", "malformed", "closed", "refused", "unanswered")


@dataclass(frozen=True)
class Result:
    requests: int
    seconds: float
    bytes_read: int
    errors: dict  # by kind
    client_cpu_s: float
    latency: Histogram

    @property
    def error_count(self):
        return sum(self.errors.values())


def shares_of(connections, threads):
    """How many each process gets; no process gets none."""
    count = min(threads, connections)
    return [connections // count + (place < connections % count) for place in range(count)]


def command(program, server, scenario, size, seconds, connections):
    rate = scenario.rate * connections / scenario.connections
    return [program, "--in-step", "--histogram", "--port", str(server.port), "--path", scenario.path,
            "--method", scenario.method, "--connections", str(connections), "--depth", str(scenario.depth),
            "--length", str(size), "--warm", str(WARM_S), "--seconds", str(seconds),
            *["--close"] * scenario.closes, *["--rate", f"{rate:.3f}"] * (rate > 0),
            *["--json", "--body", str(scenario.sent_bytes)] * bool(scenario.sent_bytes)]


def run(program, server, scenario, size, seconds, settle, meter):
    """`meter` is entered when all connections of all processes have had an answer, and left after the last result."""
    with contextlib.ExitStack() as running:
        processes = []
        for connections in shares_of(scenario.connections, scenario.threads):
            processes.append(start(command(program, server, scenario, size, seconds, connections), settle))
            running.enter_context(processes[-1])
            running.callback(processes[-1].kill)
        deadline = time.monotonic() + seconds + SLACK_S
        for process in processes:
            expect(read_line(process, deadline) == READY, process, server)
        lines = []
        with meter:
            try:
                for process in processes:
                    process.stdin.write(STEP)
            except OSError as problem:
                raise Failure(f"penstock_load has ended too early: {problem}") from problem
            for process in processes:
                lines.append(read_line(process, deadline))
                expect(lines[-1].endswith(b"\n"), process, server)
        return added([parse(line) for line in lines])


def start(words, settle):
    try:
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                                preexec_fn=settle, start_new_session=True)
    except (OSError, subprocess.SubprocessError) as problem:
        raise Failure(f"{words[0]} cannot be started: {problem}") from problem


def parse(line):
    try:
        data = json.loads(line)
        result = Result(
            requests=data["requests"], seconds=data["seconds"], bytes_read=data["bytes"],
            errors={kind: data[kind] for kind in ERROR_KINDS}, client_cpu_s=data["cpu_s"],
            latency=Histogram.from_data(data["latency_ns"]),
        )
    except (ValueError, KeyError, TypeError) as problem:
        raise Failure(f"penstock_load printed something else than was expected: {line[:200]!r}") from problem
    if result.latency.count != result.requests:
        raise Failure(f"penstock_load tells {result.requests} requests and {result.latency.count} latencies")
    return result


def added(results):
    return Result(
        requests=sum(one.requests for one in results),
        seconds=max(one.seconds for one in results),  # they begin together
        bytes_read=sum(one.bytes_read for one in results),
        errors={kind: sum(one.errors[kind] for one in results) for kind in ERROR_KINDS},
        client_cpu_s=sum(one.client_cpu_s for one in results),
        latency=merged([one.latency for one in results]),
    )

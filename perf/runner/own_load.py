"""The load of penstock_load, in step with it: the measure is taken while all of its connections rest.

Each penstock_load is one thread. Several of them begin together, and their results are added.
"""

import contextlib
import json
import select
import subprocess
import time
from dataclasses import dataclass

from .histogram import Histogram, merged
from .load import Load
from .tools import Failure

SLACK_S = 100  # what it may take beyond its time: its ramp is bounded, and its patience in the end
END_SLACK_S = 0.5
WARM_S = 0.3
READY = b"READY\n"
STEP = b"."
ERROR_KINDS = ("wrong_status", "wrong_length", "malformed", "closed", "refused", "unanswered", "unended")


@dataclass(frozen=True)
class Result:
    requests: int  # that were answered, as expected or not
    asked: int     # that were made or due
    seconds: float
    bytes_read: int
    errors: dict  # by kind
    client_cpu_s: float
    latency: Histogram

    @property
    def error_count(self):
        return sum(self.errors.values())


@dataclass(frozen=True)
class OwnLoad:
    program: str

    def run(self, server, scenario, setting, seconds, meter):
        """`meter` is entered after the first answers, before the first request that counts, and left after the last."""
        words = command(self.program, server, scenario.path_at(server), scenario, scenario.size, seconds)
        result = drive([words], server, seconds, setting.settle_client, meter)
        p50_us, p99_us = result.latency.quantiles_us([0.50, 0.99])
        return Load(requests=result.requests, seconds=result.seconds, bytes_read=result.bytes_read, p50_us=p50_us,
                    p99_us=p99_us, errors=result.error_count, client_cpu_s=result.client_cpu_s)


def command(program, server, path, scenario, size, seconds):
    """`size`: of an answer. Connections, depth and whether each is closed are those of the scenario."""
    return [program, "--in-step", "--histogram", "--port", str(server.port), "--path", path, "--connections",
            str(scenario.connections), "--depth", str(scenario.depth), "--length", str(size), "--warm", str(WARM_S),
            "--seconds", str(seconds), *["--close"] * scenario.closes]


def drive(commands, server, seconds, settle, meter):
    """`meter` is entered when all connections of all processes have had an answer, and left after the last result."""
    with contextlib.ExitStack() as running:
        processes = []
        for words in commands:
            processes.append(start(words, settle))
            running.enter_context(processes[-1])
            running.callback(processes[-1].kill)
        deadline = time.monotonic() + seconds + SLACK_S
        for process in processes:
            expect(read_line(process, deadline) == READY, process, server, "it was ready")
        lines = []
        with meter:
            try:
                for process in processes:
                    process.stdin.write(STEP)
            except OSError as problem:
                raise Failure(f"penstock_load has ended too early: {problem}") from problem
            for process in processes:
                lines.append(read_line(process, deadline))
                expect(lines[-1].endswith(b"\n"), process, server, "its result")
        return added([parse(line) for line in lines])


def start(words, settle):
    try:
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                                preexec_fn=settle, start_new_session=True)
    except (OSError, subprocess.SubprocessError) as problem:
        raise Failure(f"{words[0]} cannot be started: {problem}") from problem


def read_line(process, deadline):
    """Up to its end, or to that of the output or of the time."""
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))
        piece = process.stdout.read(4096) if ready else b""
        if not piece:
            break
        line += piece
    return line


def expect(is_well, process, server, what):
    """`what`: that it has not come to, should it have ended by itself."""
    if not is_well:
        status = status_of(process)
        process.kill()
        words = process.stderr.read().decode(errors="replace").strip().removeprefix("penstock_load: ")
        otherwise = "it did not end in its time" if status is None else f"it ended with {status} before {what}"
        raise Failure(f"penstock_load against {server.name}: {words or otherwise}")


def status_of(process):
    """None of one that goes on. Its output ends a moment before it does."""
    try:
        return process.wait(END_SLACK_S)
    except subprocess.TimeoutExpired:
        return None


def parse(line):
    try:
        data = json.loads(line)
        result = Result(
            requests=data["requests"], asked=data["asked"], seconds=data["seconds"], bytes_read=data["bytes"],
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
        asked=sum(one.asked for one in results),
        seconds=max(one.seconds for one in results),  # they begin together
        bytes_read=sum(one.bytes_read for one in results),
        errors={kind: sum(one.errors[kind] for one in results) for kind in ERROR_KINDS},
        client_cpu_s=sum(one.client_cpu_s for one in results),
        latency=merged([one.latency for one in results]),
    )

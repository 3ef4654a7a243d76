"""The load of penstock_load, in step with it: the measure is taken while all of its connections rest."""

import json
import select
import subprocess
import time
from dataclasses import dataclass

from .load import Load
from .tools import Failure

SLACK_S = 100  # what it may take beyond its time: its ramp is bounded, and its patience in the end
WARM_S = 0.3
READY = b"READY\n"
STEP = b"."


@dataclass(frozen=True)
class OwnLoad:
    program: str

    def run(self, server, scenario, setting, seconds, meter):
        """`meter` is entered after the first answers, before the first request that counts, and left after the last."""
        with subprocess.Popen(self.command(server, scenario, seconds), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, bufsize=0, preexec_fn=setting.settle_client,
                              start_new_session=True) as process:
            try:
                deadline = time.monotonic() + seconds + SLACK_S
                expect(read_line(process, deadline) == READY, process, server)
                with meter:
                    process.stdin.write(STEP)
                    line = read_line(process, deadline)
                expect(line.endswith(b"\n"), process, server)
                return parse_result(line)
            finally:
                process.kill()

    def command(self, server, scenario, seconds):
        return [self.program, "--in-step", "--port", str(server.port), "--path", scenario.path_at(server),
                "--connections", str(scenario.connections), "--depth", str(scenario.depth), "--length",
                str(scenario.size), "--warm", str(WARM_S), "--seconds", str(seconds), *["--close"] * scenario.closes]


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


def expect(is_well, process, server):
    if not is_well:
        process.kill()
        words = process.stderr.read().decode(errors="replace").strip().removeprefix("penstock_load: ")
        raise Failure(f"penstock_load against {server.name}: {words or 'it did not end in its time'}")


def parse_result(line):
    try:
        result = json.loads(line)
        return Load(
            requests=result["requests"],
            seconds=result["seconds"],
            bytes_read=result["bytes"],
            p50_us=result["p50_us"],
            p99_us=result["p99_us"],
            errors=result["errors"],
            client_cpu_s=result["cpu_s"],
        )
    except (ValueError, KeyError) as problem:
        raise Failure(f"penstock_load printed something else than was expected: {line!r}") from problem

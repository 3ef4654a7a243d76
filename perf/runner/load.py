"""The load of wrk, and what it prints. What it makes of a round is a Load, as with penstock_load (own_load)."""

import re
import resource
import subprocess
from dataclasses import dataclass

from .tools import Failure

SLACK_S = 60  # what wrk may take beyond its time
ANSWER_LIMIT_S = 30  # 50 clients that share a core have to wait for 100 MB
TIMES_US = {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7, "h": 3.6e9}
BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Load:
    requests: int
    seconds: float
    bytes_read: float
    p50_us: float
    p99_us: float
    errors: int
    client_cpu_s: float = 0.0


@dataclass(frozen=True)
class Wrk:
    program: str
    connections: int

    def run(self, server, file, setting, seconds, meter):
        """`meter` is entered for as long as there is a load."""
        with meter:
            return run_wrk(self.program, server.url(file.name), self.connections, seconds, setting)


def run_wrk(wrk, url, connections, seconds, setting):
    command = [wrk, "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s",
               "--timeout", f"{ANSWER_LIMIT_S}s", "--latency", url]
    before_s = children_cpu_s()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, preexec_fn=setting.settle_client, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=seconds + SLACK_S)
        except subprocess.TimeoutExpired as expired:
            process.kill()
            raise Failure(f"wrk has not ended after {seconds + SLACK_S} s: {url}") from expired
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise Failure(f"wrk ended with {process.returncode}: {output.strip()}")
    return parse_wrk(output, children_cpu_s() - before_s)


def children_cpu_s():
    """wrk is the only child that ends between two calls of this."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def parse_wrk(text, client_cpu_s=0.0):
    total = re.search(r"^\s*(\d+) requests in (\S+), (\S+) read$", text, re.M)
    latencies = {share: found for share, found in re.findall(r"^\s+(\d+)%\s+(\S+) *$", text, re.M)}
    if total is None or not {"50", "99"} <= latencies.keys():
        raise Failure(f"wrk printed something else than was expected: {text.strip()}")
    errors = 0
    if found := re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text):
        errors += sum(map(int, found.groups()))
    if found := re.search(r"Non-2xx or 3xx responses: (\d+)", text):
        errors += int(found.group(1))
    return Load(
        requests=int(total.group(1)),
        seconds=parse_time_us(total.group(2)) / 1e6,
        bytes_read=parse_bytes(total.group(3)),
        p50_us=parse_time_us(latencies["50"]),
        p99_us=parse_time_us(latencies["99"]),
        errors=errors,
        client_cpu_s=client_cpu_s,
    )


def parse_time_us(text):
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m|h)", text)
    if found is None:
        raise Failure(f'"{text}" is no time of wrk\'s')
    return float(found.group(1)) * TIMES_US[found.group(2)]


def parse_bytes(text):
    found = re.fullmatch(r"([\d.]+)([KMGT]?)B", text)
    if found is None:
        raise Failure(f'"{text}" is no size of wrk\'s')
    return float(found.group(1)) * BYTES[found.group(2)]

"""`perf/run soak`: a server under mixed load for minutes or hours, and whether its memory and its descriptors stay level.

Requests one at a time and pipelined, a connection for each, files, bodies, slow readers, and clients that leave in the
middle: all bounded, so that the server has time left. Ends with 1 when something grows or goes wrong.
"""

import argparse
import json
import os
import pathlib
import resource
import tempfile
import time
from dataclasses import asdict, dataclass

from . import http_peers, machine, report
from .arguments import PROGRAM, ROOT, TOOLS, add_json, bounded, check_programs, commit
from .rounds import FOREIGN_LIMIT, Setting
from .servers import Refused, Server
from .soak_load import FILE_BYTES, FILE_NAME, OddClients, run_ways
from .tools import Failure

SHORTEST_MINUTES, LONGEST_MINUTES = 0.05, 7 * 24 * 60
SAMPLE_S = 10
SHORTEST_SAMPLE_S = 0.3
SAMPLES_AT_LEAST = 20  # a short soak has them closer to each other
SAMPLED_AT = 0.7  # of a sample's time: all connections are open by then and none has ended
# How much may be between the ends of a line through the second half of the samples: the larger of a share of the mean
# and of what comes and goes by chance.
GROWTH_SHARE = 0.02
MEMORY_SLACK_BYTES = 1 << 20
DESCRIPTORS_SLACK = 8
JUDGED_AT_LEAST = 3
END_LIMIT_S = 15  # until the last connection is gone; the server lingers for 2 s
POLL_S = 0.05
WORDS_SHOWN = 5


@dataclass(frozen=True)
class Sample:
    at_s: float
    resident_bytes: int
    descriptors: int
    connections: int
    requests: int
    errors: int
    p99_us: float  # of the requests one at a time, which are due at fixed times
    slow_served: int  # since the beginning, like the next
    left: int
    foreign: float = 0.0  # of the cores of server and clients, what others have used

    @property
    def is_disturbed(self):
        return self.foreign > FOREIGN_LIMIT


def add_command(commands):
    command = commands.add_parser("soak", help="mixed load for long; does anything grow?",
                                  description=__doc__.replace("`", ""), formatter_class=argparse.RawTextHelpFormatter)
    command.add_argument("--minutes", type=bounded(SHORTEST_MINUTES, LONGEST_MINUTES, float), required=True, metavar="N")
    command.add_argument("--program", type=pathlib.Path, default=PROGRAM,
                         help="the program of a release build (%(default)s)")
    command.add_argument("--load", type=pathlib.Path, default=TOOLS / "penstock_load", help="(%(default)s)")
    add_json(command, "every sample")
    command.set_defaults(run=run)


def run(options):
    check_programs(options.program, options.load)
    cores = machine.cores()
    setting = Setting(sample_seconds(options.minutes * 60), cores[0], cores[1 % len(cores)], 0)
    print(f"## Soak, commit {commit()}\n\n{machine.description(ROOT)}; {report.counted(options.minutes, 'minute')}, "
          f"a sample each {setting.seconds:g} s. P99 is told, and not judged.\n")
    samples, problems = [], []
    try:
        problems = soak(options, setting, samples)
    except Failure as failure:
        problems.append(str(failure))
    problems += complaints(samples)
    if options.json:
        options.json.write_text(json.dumps({"commit": commit(), "minutes": options.minutes, "problems": problems,
                                            "samples": [asdict(one) for one in samples]}, indent=1) + "\n")
    print("\n" + disturbance(samples) + verdict(samples, problems))
    return 1 if problems else 0


def sample_seconds(seconds):
    return max(SHORTEST_SAMPLE_S, min(SAMPLE_S, seconds / SAMPLES_AT_LEAST))


def soak(options, setting, samples):
    """Adds to `samples` as they come. What was wrong besides them."""
    with tempfile.TemporaryDirectory(prefix="penstock-soak-") as folder:
        site = pathlib.Path(folder)
        (site / FILE_NAME).write_bytes(b"x" * FILE_BYTES)
        peer = http_peers.HttpPeer("penstock", http_peers.penstock_command(options.program, site)).for_scenario(None)
        try:
            server = Server(peer, setting.server_core, 0)
        except Refused as refusal:
            raise Failure(f"it refuses an option: {refusal}") from refusal
        with server:
            at_rest = sockets_of(server)
            with OddClients(server.port) as odd:
                take_samples(options, setting, server, odd, at_rest, samples)
            problems = [f"a client met an error: {words}" for words in odd.words[:WORDS_SHOWN]]
            if (left := wait_until_rest(server, at_rest)) > 0:
                problems.append(f"{left} connections are open {END_LIMIT_S} s after the last client has gone")
            return problems + [f"the server says: {line}" for line in server.words().splitlines()
                               if line.startswith("error:")][:WORDS_SHOWN]


def take_samples(options, setting, server, odd, at_rest, samples):
    start = time.monotonic()
    odd_errors = 0
    cores = {setting.server_core, setting.client_core}
    while time.monotonic() - start < options.minutes * 60:
        seen = {}

        def look():
            time.sleep(SAMPLED_AT * setting.seconds)
            seen.update(at_s=round(time.monotonic() - start, 3), resident_bytes=resident_bytes(server.process.pid),
                        descriptors=len(descriptors_of(server)), connections=sockets_of(server) - at_rest)

        meter = ForeignMeter(server, cores)
        results = run_ways(options.load, server.port, setting.seconds, setting, look)
        samples.append(Sample(**seen, requests=sum(one["requests"] for one in results.values()),
                              errors=sum(one["errors"] for one in results.values()) + odd.errors - odd_errors,
                              p99_us=results["keep-alive"]["p99_us"], slow_served=odd.served, left=odd.left,
                              foreign=meter.foreign()))
        odd_errors = odd.errors
        print(line_of(samples[-1]), flush=True)


class ForeignMeter:
    """What others use of some cores from now on. This process is one of the clients, and may be on other cores as well: it
    is counted as if it were on these, so that others are never blamed for what it did."""

    def __init__(self, server, cores):
        self.server = server
        self.cores = cores
        self.start = self.used()

    def used(self):
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        own_s = time.process_time() + ended.ru_utime + ended.ru_stime
        busy = machine.busy_s()
        return time.monotonic(), sum(busy[core] for core in self.cores), self.server.cpu_time(), own_s

    def foreign(self):
        """In cores."""
        wall_s, busy_s, server, own_s = (after - before for after, before in zip(self.used(), self.start, strict=True))
        return max(0.0, busy_s - server.total_s - own_s) / wall_s


def resident_bytes(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError) as problem:
        raise Failure("the server has ended") from problem


def descriptors_of(server):
    """What each of its descriptors is."""
    found = []
    try:
        for entry in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir():
            try:
                found.append(os.readlink(entry))
            except FileNotFoundError:
                pass  # closed since
    except OSError as problem:
        raise Failure("the server has ended") from problem
    if not found:
        raise Failure("the server has ended")
    return found


def sockets_of(server):
    return sum(what.startswith("socket:") for what in descriptors_of(server))


def wait_until_rest(server, at_rest):
    """How many more sockets it has than at rest, when time is over."""
    deadline = time.monotonic() + END_LIMIT_S
    while (left := sockets_of(server) - at_rest) > 0 and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return left


# ---- What becomes of the samples


def complaints(samples):
    """Empty when all is well."""
    found = []
    if errors := sum(one.errors for one in samples):
        found.append(f"{errors} errors")
    half = samples[len(samples) // 2:]
    if len(half) < JUDGED_AT_LEAST:
        return found + [f"{len(samples)} samples are too few to tell what grows"]
    # Connections come and go. One that never goes is noticed when all clients have gone.
    for title, values, slack, shown in (
            ("memory", [one.resident_bytes for one in half], MEMORY_SLACK_BYTES, report.kibibytes),
            ("descriptors", [one.descriptors - one.connections for one in half], DESCRIPTORS_SLACK, report.number)):
        grown = growth([one.at_s for one in half], values)
        if grown > (bound := allowed(values, slack)):
            found.append(f"{title} grew by {shown(grown)} in the second half, of at most {shown(bound)}")
    return found


def growth(times, values):
    """Between the ends of the line of least squares."""
    mean_time, mean = sum(times) / len(times), sum(values) / len(values)
    square = sum((at - mean_time) ** 2 for at in times)
    slope = sum((at - mean_time) * (value - mean) for at, value in zip(times, values, strict=True)) / square
    return slope * (times[-1] - times[0])


def allowed(values, slack):
    return max(slack, GROWTH_SHARE * sum(values) / len(values))


def disturbance(samples):
    """A line of its own, or nothing."""
    disturbed = sum(one.is_disturbed for one in samples)
    return (f"{disturbed} of {report.counted(len(samples), 'sample')} disturbed by others on the cores: their P99 tells of "
            "those too\n\n" if disturbed else "")


def verdict(samples, problems):
    if problems:
        return "FAILS: " + "; ".join(problems)
    half = samples[len(samples) // 2:]
    times = [one.at_s for one in half]
    memory = growth(times, [one.resident_bytes for one in half])
    descriptors = growth(times, [one.descriptors - one.connections for one in half])
    return (f"PASSES: {sum(one.requests for one in samples):,} requests, {samples[-1].slow_served} slow readers and "
            f"{samples[-1].left} who left, no errors; in the second half memory {memory / 1024:+,.0f} KiB, descriptors "
            f"{descriptors:+.1f}")


def line_of(one):
    return (f"{one.at_s:8.1f} s  resident {report.kibibytes(one.resident_bytes)}  descriptors {one.descriptors}  connections "
            f"{one.connections}  requests {one.requests:,}  errors {one.errors}  P99 {report.duration(one.p99_us)}"
            + " (disturbed)" * one.is_disturbed)

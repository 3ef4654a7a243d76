"""Servers in turn, a round after the other, so that what changes on the machine meets all of them alike.

A round is disturbed when other processes used the cores or when the server's core was slower than before. It is then
repeated while there is patience left; of its tries the least disturbed counts, and the report says how many stayed so.
"""

import contextlib
import time
from dataclasses import asdict, dataclass

from . import machine, report
from .tools import Failure

FOREIGN_LIMIT = 0.10  # of a core; the tick of /proc/stat alone makes some hundredths of it
SLOWNESS_LIMIT = 1.25
TRIES = 3
QUIET_LOOK_S = 0.2
# Smaller answers are counted whole. Of larger ones so few fit into a round that those cut off at its end count.
COUNTED_BY_BYTES = 1 << 20
UNKNOWN = float("nan")


@dataclass(frozen=True)
class Setting:
    seconds: float
    server_core: int
    client_core: int
    nice: int
    is_batch: bool = False  # servers and clients: who is woken waits until the one who runs has nothing to do

    def settle_client(self):
        machine.settle(self.client_core, self.nice, self.is_batch)


@dataclass(frozen=True)
class Round:
    answers: float
    seconds: float
    cpu_us: float  # of the server, for each answer
    kernel_share: float
    client_cpu_us: float
    per_second: float
    bytes_per_second: float
    p50_us: float
    p99_us: float
    errors: int
    server_busy: float
    client_busy: float
    foreign: float
    slowness: float

    @property
    def is_disturbed(self):
        return self.foreign > FOREIGN_LIMIT or self.slowness > SLOWNESS_LIMIT

    def as_data(self):
        fields = {name: report.known(value) for name, value in asdict(self).items()}
        return fields | {"disturbed": self.is_disturbed}


class Patience:
    """How long we may still wait and repeat for the sake of quiet."""

    def __init__(self, seconds):
        self.left_s = seconds

    def spend_on(self, work):
        start = time.monotonic()
        try:
            return work()
        finally:
            self.left_s -= time.monotonic() - start


class Meter:
    """What was used between entering and leaving it."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.start = (self.server.cpu_time(), machine.busy_s(), time.monotonic())

    def __exit__(self, *_):
        cpu_before, busy_before, start = self.start
        self.wall_s = time.monotonic() - start
        self.cpu = self.server.cpu_time() - cpu_before
        busy_after = machine.busy_s()
        self.busy = {core: busy_after[core] - busy_before[core] for core in busy_before if core in busy_after}


class Bench:
    """`loader` makes the load; what of, `work`, is between it and the caller, apart from the size of an answer."""

    def __init__(self, setting, loader):
        self.setting = setting
        self.loader = loader
        self.patience = Patience(0)
        self.speed = machine.Speed(setting.server_core)
        self.speed.slowness()  # the first one finds cold caches
        self.speed.slowness()

    def run(self, servers, work, rounds, on_round, on_failure=None):
        """For each server's name, its rounds; without those that have failed when that is handled."""
        results = {server.name: [] for server in servers}
        for number in range(rounds):
            for server in servers:
                if server.name not in results:
                    continue
                try:
                    results[server.name].append(self.undisturbed(server, work))
                    on_round(number, server, results[server.name][-1])
                except Failure as failure:
                    if on_failure is None:
                        raise
                    on_failure(server, failure)
                    del results[server.name]
        return results

    def warm(self, server, work):
        self.loader.run(server, work, self.setting, 1, contextlib.nullcontext())

    def undisturbed(self, server, work):
        best = self.measure(server, work)
        for _ in range(TRIES - 1):
            if not best.is_disturbed or self.patience.left_s <= 0:
                break
            again = self.patience.spend_on(lambda: self.measure_when_quiet(server, work))
            best = min(best, again, key=lambda one: (one.is_disturbed, one.foreign))
        return best

    def measure_when_quiet(self, server, work):
        self.wait_until_quiet()
        return self.measure(server, work)

    def wait_until_quiet(self):
        """Or for a tenth of the patience that is left."""
        deadline = time.monotonic() + self.patience.left_s / 10
        while time.monotonic() < deadline and not self.is_quiet():
            pass

    def is_quiet(self):
        before = machine.busy_s()
        time.sleep(QUIET_LOOK_S)
        after = machine.busy_s()
        cores = {self.setting.server_core, self.setting.client_core}
        return max(after[core] - before[core] for core in cores) <= FOREIGN_LIMIT * QUIET_LOOK_S

    def measure(self, server, work):
        slowness = self.speed.slowness()
        meter = Meter(server)
        load = self.loader.run(server, work, self.setting, self.setting.seconds, meter)
        foreign = self.foreign(meter.busy, meter.cpu, load) / meter.wall_s
        return make_round(load, meter.cpu, work, meter.wall_s, foreign, slowness)

    def foreign(self, busy, cpu, load):
        """Seconds in which others used the server's core or the client's, whichever is more."""
        server, client = self.setting.server_core, self.setting.client_core
        if server == client:
            return max(0.0, busy[server] - cpu.total_s - load.client_cpu_s)
        return max(0.0, busy[server] - cpu.total_s, busy[client] - load.client_cpu_s)


def is_large(work):
    return work.size >= COUNTED_BY_BYTES


def answers_of(load, work):
    return load.bytes_read / work.size if is_large(work) else load.requests


def make_round(load, cpu, work, wall_s, foreign, slowness):
    answers = answers_of(load, work)

    def each_us(seconds):
        return seconds * 1e6 / answers if answers else UNKNOWN

    return Round(
        answers=answers,
        seconds=load.seconds,
        cpu_us=each_us(cpu.total_s),
        client_cpu_us=each_us(load.client_cpu_s),
        kernel_share=cpu.kernel_share,
        per_second=answers / load.seconds if load.seconds else UNKNOWN,
        bytes_per_second=load.bytes_read / load.seconds if load.seconds else UNKNOWN,
        p50_us=load.p50_us if load.requests else UNKNOWN,
        p99_us=load.p99_us if load.requests else UNKNOWN,
        errors=load.errors,
        server_busy=cpu.total_s / wall_s,
        client_busy=load.client_cpu_s / wall_s,
        foreign=foreign,
        slowness=slowness,
    )

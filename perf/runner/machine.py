"""The cores: which there are, who uses them, and how fast they are just now."""

import contextlib
import ctypes
import os
import pathlib
import platform
import re
import resource
import signal
import socket
import time

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROBE_TURNS = 2_500  # some milliseconds: long against a tick, short against a round
PROBE_PIECE = b"x" * 130
SET_PARENT_DEATH_SIGNAL = 1  # man 2 prctl
LIBC = ctypes.CDLL(None)  # opened here, and not in a process that has just been forked


def cores():
    """Those that this process may use, lowest first."""
    return sorted(os.sched_getaffinity(0))


def keep_off(core):
    """This process, from here on, where there is another core."""
    if others := set(cores()) - {core}:
        os.sched_setaffinity(0, others)


def settle(core, nice, is_batch):
    """In a process that is about to become a server or a client: where and how it runs, and no limit in its way. `core`: one,
    or a set of them."""
    end_with_parent()
    os.sched_setaffinity(0, {core} if isinstance(core, int) else core)
    if is_batch:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    if nice:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def end_with_parent():
    """Should this process's parent be killed and end nobody. SIGTERM, so that who has children ends them; where the kernel
    will not, it is as without."""
    with contextlib.suppress(AttributeError):
        LIBC.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def busy_s():
    """Seconds that each core has been used for anything since it was started, steal included. (man 5 proc_stat)"""
    busy = {}
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        found = re.match(r"cpu(\d+) (.*)", line)
        if found:
            times = [int(time) for time in found.group(2).split()[:8]]
            idle, waiting = times[3], times[4]
            busy[int(found.group(1))] = (sum(times) - idle - waiting) / TICKS_PER_S
    return busy


class Speed:
    """How slow a core is now against the best that was seen: a neighbour of a virtual machine shows nowhere else."""

    def __init__(self, core):
        self.core = core
        self.best_s = None

    def slowness(self):
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.core})
        try:
            needed_s = self.probe()
        finally:
            os.sched_setaffinity(0, before)
        self.best_s = min(needed_s, self.best_s or needed_s)
        return needed_s / self.best_s

    @staticmethod
    def probe():
        one, other = socket.socketpair()
        with one, other:
            start = time.thread_time()
            for _ in range(PROBE_TURNS):
                one.send(PROBE_PIECE)
                other.recv(256)
            return time.thread_time() - start


def description(folder):
    """One line: what a reader of the figures has to know of the machine."""
    return f"{processor()}, {os.cpu_count()} cores, Linux {platform.release()}, files on {file_system(folder)}"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def file_system(folder):
    """The type of the one that holds the folder."""
    best, kind = "", "an unknown file system"
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, place, its_kind, *_ = line.split()
        if pathlib.Path(folder).resolve().is_relative_to(place) and len(place) >= len(best):
            best, kind = place, its_kind
    return kind

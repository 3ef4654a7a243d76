"""Memory, page faults and context switches of a server, as /proc has them (man 5 proc_pid_status, proc_pid_stat)."""

import contextlib
import pathlib
import re

from ..rounds import Meter
from ..servers import stat_fields

RESET_PEAK = "5"  # man 5 proc_pid_clear_refs
BYTES_PER_KB = 1024
MINOR_FAULTS = 7  # its place in servers.stat_fields


class Gauge(Meter):
    """What a run has used: CPU time, switches between threads, page faults, and memory."""

    def __enter__(self):
        self.pids = self.server.processes()
        self.peak_is_of_run = all([reset_peak(pid) for pid in self.pids])
        self.switches_before = switches_of(self.pids)
        self.faults_before = faults_of(self.pids)
        super().__enter__()

    def __exit__(self, *of_exception):
        super().__exit__(*of_exception)
        after = switches_of(self.pids)
        self.switches = tuple(new - old for new, old in zip(after, self.switches_before, strict=True))
        self.page_faults = faults_of(self.pids) - self.faults_before
        self.peak_bytes = sum(memory_of(pid, "VmHWM") for pid in self.pids)
        self.end_bytes = sum(memory_of(pid, "VmRSS") for pid in self.pids)


def reset_peak(pid):
    """False when it cannot be: then the peak is that since the start of the process."""
    try:
        pathlib.Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK)
        return True
    except OSError:
        return False


def memory_of(pid, field):
    found = re.search(rf"^{field}:\s+(\d+) kB$", status_of(f"/proc/{pid}"), re.M)
    return int(found.group(1)) * BYTES_PER_KB if found else 0


def switches_of(pids):
    """Of all threads: those that a thread asked for by waiting, and those that it was made to take."""
    voluntary = involuntary = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
                text = status_of(thread)
                voluntary += number_in(text, "voluntary_ctxt_switches")
                involuntary += number_in(text, "nonvoluntary_ctxt_switches")
    return voluntary, involuntary


def faults_of(pids):
    """Pages that had to be mapped, without reading from a disk."""
    return sum(int(fields[MINOR_FAULTS]) for pid in pids if (fields := stat_fields(pid)))


def number_in(text, field):
    found = re.search(rf"^{field}:\s+(\d+)$", text, re.M)
    return int(found.group(1)) if found else 0


def status_of(folder):
    try:
        return pathlib.Path(folder, "status").read_text()
    except OSError:
        return ""  # it ends just now


def allocator_of(pid):
    """What is mapped into it."""
    try:
        return "jemalloc" if "jemalloc" in pathlib.Path(f"/proc/{pid}/maps").read_text() else "system"
    except OSError:
        return "unknown"

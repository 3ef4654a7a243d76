"""A server as a child process: started on a core, asked for its CPU time, ended by process id."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass

from . import machine
from .machine import TICKS_PER_S
from .tools import Failure

START_LIMIT_S = 15
END_LIMIT_S = 5
POLL_S = 0.01
EXACT_WITHIN = 1.05  # ticks and exact times differ by less while all threads stay
PORTS_TO_TRY = 3  # another process may take one between our asking for it and the server's
USAGE_STATUS = 2  # by which a program says that it does not know an option


class Refused(Exception):
    """The server does not know one of its options."""


@dataclass(frozen=True)
class CpuTime:
    exact_s: float  # of the threads that are there, as the scheduler has it
    user_s: float  # this and the next in ticks, with threads that have ended
    kernel_s: float

    def __sub__(self, earlier):
        return CpuTime(self.exact_s - earlier.exact_s, self.user_s - earlier.user_s, self.kernel_s - earlier.kernel_s)

    @property
    def total_s(self):
        """The exact time, unless threads have taken a part of it with them or the kernel does not count it."""
        ticks_s = self.user_s + self.kernel_s
        return ticks_s if ticks_s > EXACT_WITHIN * self.exact_s + 2 / TICKS_PER_S else self.exact_s

    @property
    def kernel_share(self):
        ticks_s = self.user_s + self.kernel_s
        return self.kernel_s / ticks_s if ticks_s else 0.0


class Server:
    """A running server. Leaving the `with` ends it and every process that it has started."""

    def __init__(self, peer, core, nice, is_batch=False):
        self.name = peer.name
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-perf-"))
        self.process = None
        try:
            self.start(peer, lambda: machine.settle(core, nice, is_batch))
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def start(self, peer, settle):
        for _ in range(PORTS_TO_TRY):
            self.port = free_port()
            self.launch(peer.command(self.port, self.folder), settle)
            if self.wait_until_it_listens():
                return
            status = self.process.returncode
            if status == USAGE_STATUS:
                raise Refused(self.words() or "it says nothing")
        raise Failure(f"{self.name} ended with {status} before it listened{self.what_it_said()}")

    def launch(self, command, settle):
        with (self.folder / "words").open("wb") as words:
            # In a session of its own: Ctrl-C is for us, and we end it.
            try:
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=words, stderr=words,
                                                preexec_fn=settle, start_new_session=True)
            except OSError as error:
                raise Failure(f"{self.name}: {command[0]} cannot be started: {error.strerror}") from error

    def wait_until_it_listens(self):
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return False
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                time.sleep(POLL_S)
        raise Failure(f"{self.name} does not listen on port {self.port} after {START_LIMIT_S} s{self.what_it_said()}")

    def words(self):
        return (self.folder / "words").read_text(errors="replace").strip()

    def what_it_said(self):
        """To stand behind a sentence on it."""
        return f": {words}" if (words := self.words()) else " and said nothing"

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    def processes(self):
        """All of its session: its own, and what it has started; of nginx the worker, and the master does nothing meanwhile."""
        own = self.process.pid
        running = (int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())
        return [own, *sorted(pid for pid in running if pid != own and is_running(pid, own))]

    def cpu_time(self):
        exact = user_ticks = kernel_ticks = 0
        for pid in self.processes():
            if fields := stat_fields(pid):
                user_ticks += int(fields[11])
                kernel_ticks += int(fields[12])
            exact += exact_s(pid)
        return CpuTime(exact, user_ticks / TICKS_PER_S, kernel_ticks / TICKS_PER_S)

    def end(self):
        try:
            if self.process is not None:
                rest = self.processes()[1:]  # also when the first has ended by itself
                self.process.terminate()
                try:
                    self.process.wait(END_LIMIT_S)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait(END_LIMIT_S)
                end_orphans(rest, self.process.pid)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def end_orphans(pids, session):
    """Ends what is left of a server whose first process is gone. Its session tells it from a stranger with that id."""
    deadline = time.monotonic() + END_LIMIT_S
    for pid in pids:
        while is_running(pid, session) and time.monotonic() < deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_S)


def is_running(pid, session):
    """Whether it runs and is of that session. Who has ended may stay until the one who adopted it looks."""
    fields = stat_fields(pid)
    return bool(fields) and fields[0] not in "ZX" and int(fields[3]) == session


def stat_fields(pid):
    """The fields behind the name, from the state on (man 5 proc_pid_stat); none when it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def exact_s(pid):
    """CPU time of its threads as the scheduler has it, in nanoseconds where /proc/PID/stat has ticks."""
    total_ns = 0
    try:
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            total_ns += int((thread / "schedstat").read_text().split()[0])
    except OSError:
        pass  # it ends just now, or the kernel does not count
    return total_ns / 1e9


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

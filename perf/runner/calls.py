"""System calls per answer, as strace counts them of a server that is already running and under load."""

import contextlib
import re
import select
import subprocess
import time

from .load import run_wrk
from .rounds import answers_of, is_large
from .tools import Failure

ATTACH_LIMIT_S = 10
END_LIMIT_S = 10
# A few connections for large files: the start of an answer that never ends would count as much as a whole one.
CONNECTIONS_OF_LARGE_FILES = 4


def count_calls(strace, wrk, setting, server, file, seconds):
    """For each system call, how often it was made for an answer."""
    connections = min(wrk.connections, CONNECTIONS_OF_LARGE_FILES) if is_large(file) else wrk.connections
    summary = server.folder / "calls"
    with attached(strace, server, summary):
        load = run_wrk(wrk.program, server.url(file.name), connections, seconds, setting)
    answers = answers_of(load, file)
    if not answers:
        raise Failure(f"{server.name} answered nothing under strace")
    return {name: count / answers for name, count in parse_summary(summary.read_text()).items()}


@contextlib.contextmanager
def attached(strace, server, summary):
    pids = server.processes()
    command = [strace, "-f", "-c", "-o", summary, *(word for pid in pids for word in ("-p", str(pid)))]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               start_new_session=True)
    try:
        wait_until_attached(process, len(pids))
        yield
        process.terminate()  # on which it lets go and writes its summary
        process.wait(END_LIMIT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(END_LIMIT_S)
        process.stderr.close()


def wait_until_attached(process, wanted):
    deadline = time.monotonic() + ATTACH_LIMIT_S
    text = b""
    while text.count(b"attached") < wanted:
        ready, _, _ = select.select([process.stderr], [], [], max(0, deadline - time.monotonic()))
        piece = process.stderr.read1() if ready else b""
        if not piece:
            raise Failure(f"strace does not attach to the server: {text.decode(errors='replace').strip()}")
        text += piece


def parse_summary(text):
    calls = {}
    for line in text.splitlines():
        #   42.1    0.053    5     10001   [3]  recvfrom
        found = re.fullmatch(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)", line)
        if found and found.group(2) != "total":
            calls[found.group(2)] = int(found.group(1))
    return calls

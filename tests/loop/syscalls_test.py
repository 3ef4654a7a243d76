#!/usr/bin/env python3
"""How many system calls a request costs the server program, as strace counts them.

PENSTOCK_PROGRAM is the program. What it calls to start and to end is counted too, and is small beside the requests.
"""

import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ.get("PENSTOCK_PROGRAM", "")
LIMIT_S = 60  # far beyond what anything here needs
REQUESTS = 10_000
CLIENTS = 50  # that wait at once
PIPELINED = 100


class CountedProgram:
    """The program under strace, serving on one reactor. `end` tells how often it has made each call."""

    def __init__(self, folder):
        self.summary = folder / "summary"
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            # By -D the program, not strace, is the child that gets signals and is waited for.
            ["strace", "-D", "-f", "-c", "-o", self.summary, PROGRAM]
            + ["serve", folder, "--demo", "--address", "127.0.0.1", "--port", "0", "--reactors", "1"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors,
        )
        try:
            line = self.read_line()
            self.port = int(re.search(r"http://\S+:(\d+)", line).group(1))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT_S)
        self.process.stdout.close()
        self.errors.close()

    def read_line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.errors.seek(0)
            raise AssertionError(f"the program did not start: {self.errors.read().decode()}")
        return line.decode()

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port), LIMIT_S)
        return contextlib.closing(client)

    @contextlib.contextmanager
    def stopped(self):
        """Meanwhile the kernel takes connections and bytes, and the program finds them all at once."""
        self.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: states_of(self.process.pid) <= {"T", "t"}, "the program does not stop")
        yield
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.process.terminate()
        status = self.process.wait(LIMIT_S)
        if status != 0:
            raise AssertionError(f"the program ended with {status}")
        # strace writes it a moment after the program has ended.
        wait_for(lambda: "total" in self.read_summary(), "strace writes no summary")
        calls = {}
        for line in self.read_summary().splitlines():
            #   42.1    0.053    5     10001   [3]  recvfrom
            found = re.fullmatch(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)", line)
            if found and found.group(2) != "total":
                calls[found.group(2)] = int(found.group(1))
        return calls

    def read_summary(self):
        return self.summary.read_text() if self.summary.exists() else ""


def states_of(process):
    """The letters by which man 5 proc calls the states of its threads."""
    threads = pathlib.Path(f"/proc/{process}/task").iterdir()
    return {(thread / "stat").read_text().rsplit(")", 1)[1].split()[0] for thread in threads}


def wait_for(is_true, complaint):
    deadline = time.monotonic() + LIMIT_S
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(complaint)
        time.sleep(0.001)


def request(fields=""):
    return f"GET /plaintext HTTP/1.1\r\nHost: count\r\n{fields}\r\n".encode()


def receive_answers(client, count):
    """They are all alike, and the body ends them."""
    answers = b""
    while answers.count(b"Hello, World!") < count:
        piece = client.recv(1 << 16)
        if not piece:
            raise AssertionError(f"the connection ended after {answers!r}")
        answers += piece
    if answers.count(b"HTTP/1.1 200 ") != count or not answers.endswith(b"Hello, World!"):
        raise AssertionError(f"not {count} answers: {answers!r}")


class SystemCalls(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def count(self, use):
        with CountedProgram(self.folder) as program:
            use(program)
            calls = program.end()
        total = sum(calls.values())
        waits = calls.get("epoll_wait", 0) + calls.get("epoll_pwait", 0)
        print(f"\n{self.id().rsplit('.')[-1]}: {total / REQUESTS:.3f} calls a request,",
              f"{(total - waits) / REQUESTS:.3f} without epoll_wait")
        return calls, total, waits

    def test_a_request_on_an_open_connection_is_one_receive_and_one_send(self):
        def use(program):
            with program.connect() as client:
                for _ in range(REQUESTS):
                    client.sendall(request())
                    receive_answers(client, 1)

        calls, total, waits = self.count(use)
        self.assertLessEqual(total - waits, 2.03 * REQUESTS, calls)
        self.assertLessEqual(waits, 1.01 * REQUESTS, calls)
        self.assertLessEqual(calls["recvfrom"], REQUESTS + 5, calls)
        self.assertLessEqual(calls["sendto"], REQUESTS + 5, calls)

    def test_pipelined_requests_share_their_calls(self):
        def use(program):
            with program.connect() as client:
                for _ in range(REQUESTS // PIPELINED):
                    client.sendall(request() * PIPELINED)
                    receive_answers(client, PIPELINED)

        calls, total, _ = self.count(use)
        self.assertLessEqual(calls["sendto"] + calls.get("sendmsg", 0), REQUESTS / PIPELINED * 2.5, calls)
        self.assertLessEqual(total, 0.15 * REQUESTS, calls)

    def test_a_connection_for_one_request_is_four_calls(self):
        def use(program):
            for _ in range(REQUESTS // CLIENTS):
                with contextlib.ExitStack() as clients, contextlib.ExitStack() as pause:
                    pause.enter_context(program.stopped())
                    waiting = [clients.enter_context(program.connect()) for _ in range(CLIENTS)]
                    for client in waiting:
                        client.sendall(request("Connection: close\r\n"))
                    pause.close()
                    for client in waiting:
                        receive_answers(client, 1)
                        self.assertEqual(client.recv(1), b"")

        calls, total, _ = self.count(use)
        self.assertLessEqual(total, 4.2 * REQUESTS, calls)  # 4, and 3 more for each batch of CLIENTS that share them
        for name in ("recvfrom", "sendto", "close"):
            self.assertLessEqual(calls[name], 1.03 * REQUESTS, calls)
        self.assertLessEqual(calls["accept4"], (1 + 2.5 / CLIENTS) * REQUESTS, calls)
        self.assertLessEqual(calls["epoll_ctl"], 0.05 * REQUESTS, calls)  # nothing that ends at once is registered


def reason_to_skip():
    if not PROGRAM:
        return "set PENSTOCK_PROGRAM to the server program"
    if not shutil.which("strace"):
        return "strace is not installed"
    probe = subprocess.run(["strace", "-D", "-o", os.devnull, "true"], capture_output=True, text=True, timeout=LIMIT_S)
    return f"strace may not trace here: {probe.stderr.strip()}" if probe.stderr or probe.returncode else None


if __name__ == "__main__":
    if {"UBSAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ):
        print("not counted: a sanitizer makes calls of its own")
        sys.exit(0)
    if reason := reason_to_skip():
        print(reason, file=sys.stderr)
        sys.exit(77)
    unittest.main()

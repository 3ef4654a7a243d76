"""The load of a soak: penstock_load in several ways, and clients that it is not for: slow ones, and those who leave."""

import contextlib
import json
import socket
import struct
import subprocess
import threading
from dataclasses import dataclass

from .tools import Failure

FILE_NAME = "page.html"
FILE_BYTES = 20_000
SLACK_S = 100  # what penstock_load may take beyond its time, as its own limits have it
ANSWER_LIMIT_S = 30
SLOW_READERS = 4
LEAVERS = 2
STREAM_BYTES = 1 << 20
SLOW_PIECE_BYTES = 32 << 10
SLOW_PAUSE_S = 0.02
LEAVING_PAUSE_S = 0.02
BUFFER_BYTES = 16 << 10  # of a slow reader's socket, so that the server's output backs up
RESET = struct.pack("ii", 1, 0)  # SO_LINGER for no time: close resets (man 7 socket)


@dataclass(frozen=True)
class Way:
    """One penstock_load, again and again: all bounded by a rate, or by a number of requests for each second."""

    name: str
    path: str
    connections: int
    per_second: int
    arguments: tuple = ()
    is_open: bool = True  # requests are due at fixed times; else each follows an answer

    def command(self, program, port, seconds):
        bound = (["--rate", self.per_second] if self.is_open else
                 ["--requests", max(1, round(self.per_second * seconds))])
        return [str(word) for word in (program, "--port", port, "--path", self.path, "--connections", self.connections,
                                       "--seconds", f"{seconds:.3f}", *bound, *self.arguments)]


WAYS = (
    Way("keep-alive", "/plaintext", 20, 500),
    Way("pipelined", "/json", 4, 2_000, ("--depth", "16"), is_open=False),
    Way("churn", "/plaintext", 4, 100, ("--close",)),
    Way("files", "/" + FILE_NAME, 8, 200),
    Way("post", "/count", 4, 100, ("--method", "POST", "--body", "20000")),
)


def run_ways(program, port, seconds, setting, when_running):
    """Each way once, all at the same time; `when_running` is called meanwhile. What each has printed, by name."""
    with contextlib.ExitStack() as running:
        processes = {}
        for way in WAYS:
            process = subprocess.Popen(way.command(program, port, seconds), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       preexec_fn=setting.settle_client, start_new_session=True)
            processes[way.name] = running.enter_context(process)
            running.callback(process.kill)  # before it is waited for; nothing when it has ended
        when_running()
        return {name: result_of(name, process, seconds) for name, process in processes.items()}


def result_of(name, process, seconds):
    try:
        output, words = process.communicate(timeout=seconds + SLACK_S)
        return json.loads(output.removeprefix("READY\n"))
    except subprocess.TimeoutExpired as expired:
        raise Failure(f"{name}: penstock_load has not ended after {seconds + SLACK_S:.0f} s") from expired
    except ValueError as problem:
        why = words.strip().removeprefix("penstock_load: ") or "penstock_load printed no result"
        raise Failure(f"{name}: {why}") from problem


class OddClients:
    """Slow readers and clients that leave, in threads, until they are stopped. What goes wrong is kept, up to a bound."""

    ERRORS_KEPT = 20

    def __init__(self, port):
        self.address = ("127.0.0.1", port)
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.served = self.left = self.errors = 0
        self.words = []
        work = [self.read_slowly] * SLOW_READERS + [self.leave] * LEAVERS
        self.threads = [threading.Thread(target=self.repeat, args=(one, at), daemon=True) for at, one in enumerate(work)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join(2 * ANSWER_LIMIT_S)

    def repeat(self, work, turn):
        while not self.stopped.is_set():
            try:
                work(turn)
            except (OSError, ValueError) as problem:
                with self.lock:
                    self.errors += 1
                    self.words = (self.words + [f"{work.__name__}: {problem}"])[:self.ERRORS_KEPT]
                self.stopped.wait(LEAVING_PAUSE_S)
            turn += 1

    def connect(self):
        client = socket.socket()
        client.settimeout(ANSWER_LIMIT_S)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        try:
            client.connect(self.address)
        except OSError:
            client.close()
            raise
        return client

    def read_slowly(self, _):
        with self.connect() as client:
            client.sendall(request("GET", f"/stream/{STREAM_BYTES}?length", "Connection: close\r\n"))
            head = rest = b""
            while b"\r\n\r\n" not in head:
                piece = client.recv(SLOW_PIECE_BYTES)
                if not piece:
                    raise ValueError("no answer")
                head += piece
            head, _, rest = head.partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise ValueError(f"answered by {head[:40]}")
            size = len(rest)
            while piece := client.recv(SLOW_PIECE_BYTES):
                size += len(piece)
                if self.stopped.wait(SLOW_PAUSE_S):
                    return
            if size != STREAM_BYTES:
                raise ValueError(f"{size} bytes instead of {STREAM_BYTES}")
        with self.lock:
            self.served += 1

    def leave(self, turn):
        """In the middle of a head, of an answer, or of a body, in turn."""
        with self.connect() as client:
            if turn % 3 == 0:
                client.sendall(b"GET /plaintext HTTP/1.1\r\nHost: so")
            elif turn % 3 == 1:
                client.sendall(request("GET", "/stream/50000000"))
                client.recv(SLOW_PIECE_BYTES)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            else:
                client.sendall(request("POST", "/count", "Content-Length: 1000000\r\n") + b"x" * 10_000)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        with self.lock:
            self.left += 1
        self.stopped.wait(LEAVING_PAUSE_S)


def request(method, target, fields=""):
    return f"{method} {target} HTTP/1.1\r\nHost: soak\r\n{fields}\r\n".encode()

#!/usr/bin/env python3
"""Bodies of many gigabytes, both ways, through a server that holds next to nothing of them.

PENSTOCK_PROGRAM is the program. A body is 1 GB, over TLS and with sanitizers 100 MB; with PENSTOCK_LONG=1 it is 10 GB.
"""

import http.client
import os
import pathlib
import sys
import time
import unittest

sys.dont_write_bytecode = True
import _transport as transport
from program_test import LIMIT_S, PROGRAM, WithDirectory, serve

SANITIZED = bool({"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ))
LONG = os.environ.get("PENSTOCK_LONG") == "1"
BODY_BYTES = 10**10 if LONG else 10**8 if SANITIZED or transport.SECURED else 10**9
GROWTH_LIMIT_KIB = 1024
PIECE = b"0123456789abcdef" * (64 << 10)  # 1 MiB
SMALL_PIECE = PIECE[:5_000]  # a third of the server's block, so that chunks and blocks end at different places
# Of the slow reader: far below what the server can write, for long enough that everything between them is full.
SLOW_BYTES = 16 << 10
SLOW_PAUSE_S = 0.02
SLOW_S = 2
DEADLINE_S = 200  # for one body


class Memory:
    """Peak resident memory of a process, from now on."""

    def __init__(self, process):
        self.folder = pathlib.Path(f"/proc/{process}")
        try:
            (self.folder / "clear_refs").write_text("5")  # the peak becomes what is held now (man 5 proc)
            self.how = "peak reset"
        except OSError:
            self.how = "peak not reset"
        self.before = self.peak_kib()

    def peak_kib(self):
        for line in (self.folder / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
        raise AssertionError("this kernel does not tell VmHWM")

    def growth_kib(self):
        return self.peak_kib() - self.before


def connected(port):
    return transport.connect(port, LIMIT_S)


class Streaming(WithDirectory):
    def setUp(self):
        super().setUp()
        self.program = self.enterContext(serve(self.directory, "--demo"))
        # The code of everything used below is mapped and touched before memory is looked at.
        self.assertEqual(self.program.ask("POST", "/count", PIECE).body, str(len(PIECE)).encode())
        self.assertEqual(len(self.program.ask("GET", "/stream/1000000").body), 1_000_000)
        self.assertEqual(self.program.ask("POST", "/callback/count", PIECE).body, str(len(PIECE)).encode())
        self.assertEqual(len(self.program.ask("GET", "/callback/stream/1000000").body), 1_000_000)
        self.memory = Memory(self.program.process.pid)
        self.start = time.monotonic()

    def check_memory(self):
        growth = self.memory.growth_kib()
        seconds = time.monotonic() - self.start
        print(f"\n{self.id().rsplit('.')[-1]}: {BODY_BYTES / 1e9:g} GB in {seconds:.1f} s, "
              f"{BODY_BYTES / seconds / 1e9:.2f} GB/s; peak {self.memory.before} KiB before, {growth} KiB more after "
              f"({self.memory.how})", flush=True)
        if not SANITIZED:  # they keep what is freed
            self.assertLess(growth, GROWTH_LIMIT_KIB)

    def in_time(self):
        self.assertLess(time.monotonic() - self.start, DEADLINE_S)

    def upload(self, path, fields, pieces):
        """Sends the pieces behind the head and checks the answer; one more exchange shows that all is in step."""
        with connected(self.program.port) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: upload\r\n{fields}\r\n".encode())
            for piece in pieces:
                client.sendall(piece)
                self.in_time()
            one_more = b"GET /plaintext HTTP/1.1\r\nHost: upload\r\n\r\n"
            for request, wanted in ((b"", str(BODY_BYTES)), (one_more, "Hello, World!")):
                client.sendall(request)
                response = http.client.HTTPResponse(client)
                response.begin()
                self.assertEqual((response.status, response.read().decode()), (200, wanted))
        self.check_memory()

    def upload_with_length(self, path):
        def pieces():
            for _ in range(BODY_BYTES // len(PIECE)):
                yield PIECE
            yield PIECE[:BODY_BYTES % len(PIECE)]

        self.upload(path, f"Content-Length: {BODY_BYTES}\r\n", pieces())

    def test_an_upload_with_a_length(self):
        self.upload_with_length("/count")

    def test_an_upload_with_a_length_to_callbacks(self):
        self.upload_with_length("/callback/count")

    def test_an_upload_in_chunks(self):
        def chunk(data):
            return f"{len(data):x}\r\n".encode() + data + b"\r\n"

        def pieces():
            group = PIECE, *[SMALL_PIECE] * 20
            encoded = b"".join(map(chunk, group))
            size = sum(map(len, group))
            for _ in range(BODY_BYTES // size):
                yield encoded
            for at in range(0, BODY_BYTES % size, len(SMALL_PIECE)):
                yield chunk(SMALL_PIECE[:BODY_BYTES % size - at])
            yield b"0\r\n\r\n"

        self.upload("/count", "Transfer-Encoding: chunked\r\n", pieces())

    def download(self, target, chunked):
        """Reads all of it, slowly at first, and checks every byte."""
        response = self.request(target)
        self.assertEqual((response.status, response.chunked), (200, chunked))
        # Both begin again after so many bytes, with lines that are numbered: what is lost or doubled is out of step.
        period = bytearray(self.program.ask("GET", "/stream/102400").body)
        wanted = period * 12
        buffer = bytearray(1 << 20)
        window = memoryview(buffer)
        total = slow = 0
        while True:
            is_slow = time.monotonic() - self.start < SLOW_S
            count = response.readinto(window[:SLOW_BYTES] if is_slow else window)
            if count == 0:
                break
            at = total % len(period)
            self.assertTrue(buffer[:count] == wanted[at:at + count], f"other bytes after {total}")
            total += count
            self.in_time()
            if is_slow:
                slow = total
                time.sleep(SLOW_PAUSE_S)
        self.assertEqual(total, BODY_BYTES)
        self.assertLess(slow, BODY_BYTES // 10)
        self.check_memory()

    def request(self, target):
        client = self.enterContext(connected(self.program.port))
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: download\r\n\r\n".encode())
        response = self.enterContext(http.client.HTTPResponse(client))
        response.begin()
        return response

    def test_a_download_in_chunks(self):
        self.download(f"/stream/{BODY_BYTES}", chunked=True)

    def test_a_download_in_chunks_from_callbacks(self):
        self.download(f"/callback/stream/{BODY_BYTES}", chunked=True)

    def test_a_download_with_a_length(self):
        self.download(f"/stream/{BODY_BYTES}?length", chunked=False)


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

#!/usr/bin/env python3
"""Files of all sizes through `penstock serve`: byte by byte what lies on the disk, to clients of every kind.

PENSTOCK_PROGRAM is the program. The largest file has 5 GB, of which a few kilobytes lie on the disk.
"""

import contextlib
import os
import pathlib
import random
import re
import socket
import struct
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
import _transport as transport
from program_test import LIMIT_S, PROGRAM, WithDirectory, serve

SANITIZED = bool({"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ))
BLOCK = 1 << 20
# Around a page, what the server reads at once, 64 KiB and a megabyte.
SIZES = (0, 1, 4095, 4096, 4097, 16383, 16384, 16385, 65535, 65536, 65537, BLOCK - 1, BLOCK, BLOCK + 1)
HUGE_BYTES = 5_000_000_123
LARGE_BYTES = 64 * BLOCK  # more than sockets hold between them
# Of a client that takes next to nothing.
SMALL_BUFFER = 4096
SLOW_BYTES_PER_S = 1000
SLOW_S = 3
SLOW_CLIENTS = 5
ABORTS = 300
GROWTH_LIMIT_KIB = 4096
SMALL_REQUESTS = 2000
SMALL_LIMIT_S = 5  # for one of them; on two busy cores a turn is some milliseconds


class Content:
    """What a file holds: bytes that differ from place to place and from size to size."""

    def __init__(self, size, seed=0):
        self.size = size
        self.data = random.Random(size + seed).randbytes(size)

    def part(self, offset, size):
        return self.data[offset:offset + size]


class Sparse:
    """Zeros, and islands in them."""

    ZEROS = bytes(BLOCK)

    def __init__(self, size):
        self.size = size
        text = b"<an island that knows where it begins: %015d>"
        places = (0, BLOCK - 20, 100_000_000, (1 << 31) - 7, (1 << 32) - 20, (1 << 32) + 100, 4_500_000_000)
        self.islands = {place: text % place for place in places}
        self.islands[size - 1] = b"!"

    def write(self, path):
        with open(path, "wb") as file:
            file.truncate(self.size)
            for place, text in self.islands.items():
                file.seek(place)
                file.write(text)

    def part(self, offset, size):
        """A megabyte of it at most."""
        inside = [(place, text) for place, text in self.islands.items() if offset - len(text) < place < offset + size]
        if not inside:
            return self.ZEROS[:size]
        part = bytearray(size)
        for place, text in inside:
            begin = max(place, offset)
            text = text[begin - place:offset + size - place]
            part[begin - offset:begin - offset + len(text)] = text
        return bytes(part)


class Client:
    """A connection and what has come over it; every wait ends."""

    def __init__(self, port, receive_buffer=None):
        self.socket = transport.connect(port, LIMIT_S, receive_buffer)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, target, *fields, method="GET"):
        self.socket.sendall("".join([f"{method} {target} HTTP/1.1\r\nHost: files\r\n", *(f"{f}\r\n" for f in fields), "\r\n"]).encode())

    def head(self):
        """The status and the fields of the next answer."""
        while b"\r\n\r\n" not in self.rest:
            piece = self.socket.recv(4096)
            if not piece:
                raise AssertionError(f"the connection ends after {self.rest!r}")
            self.rest += piece
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        first, *lines = head.decode().split("\r\n")
        return int(first.split()[1]), dict(line.split(": ", 1) for line in lines)

    def read(self, size):
        """So many bytes, fewer only at the end of the connection."""
        buffer = bytearray(size)
        view = memoryview(buffer)
        have = min(size, len(self.rest))
        view[:have], self.rest = self.rest[:have], self.rest[have:]
        while have < size:
            count = self.socket.recv_into(view[have:])
            if count == 0:
                break
            have += count
        view.release()
        del buffer[have:]
        return buffer

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class WithFiles(WithDirectory):
    """A server of a directory with a file of every size, and with one of 5 GB."""

    def setUp(self):
        super().setUp()
        self.contents = {}
        for size in SIZES:
            self.add(f"{size}.bin", Content(size))
        self.contents["huge.bin"] = Sparse(HUGE_BYTES)
        self.contents["huge.bin"].write(self.directory / "huge.bin")
        self.program = self.enterContext(serve(self.directory))
        self.process = pathlib.Path(f"/proc/{self.program.process.pid}")

    def add(self, name, content):
        self.contents[name] = content
        self.write(name, content.data)

    def client(self, receive_buffer=None):
        return self.enterContext(Client(self.program.port, receive_buffer))

    def check_bytes(self, client, name, offset, size):
        """The next bytes on the connection are this part of the file; they are compared as they come."""
        for at in range(offset, offset + size, BLOCK):
            count = min(BLOCK, offset + size - at)
            part = client.read(count)
            self.assertEqual(len(part), count, f"{name} ends early behind {at}")
            self.assertTrue(part == self.contents[name].part(at, count), f"{name}: other bytes behind {at}")

    def check_answer(self, client, name, method="GET"):
        status, fields = client.head()
        size = self.contents[name].size
        self.assertEqual((status, fields["Content-Length"]), (200, str(size)), name)
        if method != "HEAD":
            self.check_bytes(client, name, 0, size)
        return fields

    def check_in_step(self, client):
        client.ask("/16385.bin")
        self.check_answer(client, "16385.bin")

    def descriptors(self):
        return len(os.listdir(self.process / "fd"))

    def memory_kib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", (self.process / "status").read_text()).group(1))

    def wait_until(self, condition, what):
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.005)


class Whole(WithFiles):
    def test_each_on_a_connection_of_its_own(self):
        for size in SIZES:
            with Client(self.program.port) as client:
                client.ask(f"/{size}.bin", "Connection: close")
                self.check_answer(client, f"{size}.bin")
                self.assertEqual(client.read(1), b"")

    def test_one_after_the_other_on_one_connection(self):
        client = self.client()
        for size in (*SIZES, *reversed(SIZES)):
            client.ask(f"/{size}.bin")
            self.check_answer(client, f"{size}.bin")

    def test_all_asked_for_in_one_write(self):
        client = self.client()
        requests = [(method, f"{size}.bin") for size in SIZES for method in ("GET", "HEAD")]
        client.socket.sendall("".join(f"{method} /{name} HTTP/1.1\r\nHost: files\r\n\r\n" for method, name in requests).encode())
        for method, name in requests:
            self.check_answer(client, name, method)
        self.check_in_step(client)

    def test_head_has_the_length_and_no_body(self):
        client = self.client()
        for name in self.contents:
            client.ask(f"/{name}", method="HEAD")
            self.check_answer(client, name, "HEAD")
        self.check_in_step(client)

    def test_five_gigabytes(self):
        client = self.client()
        start = time.monotonic()
        client.ask("/huge.bin")
        self.check_answer(client, "huge.bin")
        seconds = time.monotonic() - start
        print(f"\nfive gigabytes: {seconds:.1f} s, {HUGE_BYTES / seconds / 1e9:.2f} GB/s", flush=True)
        self.check_in_step(client)


class Parts(WithFiles):
    def check_part(self, client, name, value, offset, size):
        with self.subTest(name=name, range=value):
            client.ask(f"/{name}", f"Range: bytes={value}")
            status, fields = client.head()
            whole = self.contents[name].size
            if size == whole:
                self.assertEqual(status, 200)
            else:
                self.assertEqual((status, fields["Content-Range"]), (206, f"bytes {offset}-{offset + size - 1}/{whole}"))
            self.assertEqual(fields["Content-Length"], str(size))
            self.check_bytes(client, name, offset, size)

    def test_one_part(self):
        client = self.client()
        for name, content in self.contents.items():
            size = content.size
            if size < 2:
                continue
            middle = min(size // 2, 3 * BLOCK)
            self.check_part(client, name, "0-0", 0, 1)
            self.check_part(client, name, f"{size - 1}-", size - 1, 1)
            self.check_part(client, name, f"{size - 1}-{size + 10}", size - 1, 1)
            self.check_part(client, name, "-1", size - 1, 1)
            self.check_part(client, name, f"-{middle}", size - middle, middle)
            self.check_part(client, name, f"{size // 3}-{size // 3 + middle - 1}", size // 3, middle)
        self.check_in_step(client)

    def test_parts_beyond_four_gigabytes(self):
        client = self.client()
        border = 1 << 32
        for offset, size in (
            (border - 1, 1), (border, 1), (border - 1, 2), (border - 30, 200), (border - 3 * BLOCK, 6 * BLOCK + 1),
            ((1 << 31) - 10, 20), (4_500_000_000 - 5, 100), (HUGE_BYTES - 2 * BLOCK, 2 * BLOCK),
        ):
            self.check_part(client, "huge.bin", f"{offset}-{offset + size - 1}", offset, size)
        self.check_in_step(client)

    def test_what_is_beyond_the_end(self):
        client = self.client()
        for name, content in self.contents.items():
            if content.size > 0:
                client.ask(f"/{name}", f"Range: bytes={content.size}-")
                status, fields = client.head()
                self.assertEqual((status, fields["Content-Range"]), (416, f"bytes */{content.size}"))
                client.read(int(fields["Content-Length"]))
        self.check_in_step(client)

    def check_parts(self, client, name, parts):
        """Asks for the parts, which do not touch, and compares the whole body with what RFC 9110 §14.6 says."""
        client.ask(f"/{name}", "Range: bytes=" + ", ".join(f"{offset}-{offset + size - 1}" for offset, size in parts))
        status, fields = client.head()
        self.assertEqual(status, 206)
        boundary = re.fullmatch(r"multipart/byteranges; boundary=([\w-]+)", fields["Content-Type"]).group(1).encode()
        left = int(fields["Content-Length"])
        line_end = b""
        for offset, size in parts:
            head = b"%s--%s\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes %d-%d/%d\r\n\r\n" % (
                line_end, boundary, offset, offset + size - 1, self.contents[name].size)
            self.assertEqual(client.read(len(head)), head)
            self.check_bytes(client, name, offset, size)
            left -= len(head) + size
            line_end = b"\r\n"
        end = b"\r\n--%s--\r\n" % boundary
        self.assertEqual(client.read(len(end)), end)
        self.assertEqual(left, len(end))

    def test_many_parts(self):
        client = self.client()
        border = 1 << 32
        for name, parts in (
            ("16385.bin", [(0, 1), (16384, 1)]),
            ("65537.bin", [(i * 4000, 1 + i) for i in range(16)]),
            (f"{BLOCK + 1}.bin", [(500_000, 300_000), (0, 200_000), (BLOCK, 1)]),
            ("huge.bin", [(0, 10), (border - BLOCK, 2 * BLOCK), (HUGE_BYTES - 1, 1)]),
            ("huge.bin", [(border + 50, 200), (border - 30, 35), (100_000_000, 3)]),
        ):
            with self.subTest(name=name, parts=parts):
                self.check_parts(client, name, parts)
        self.check_in_step(client)


class Clients(WithFiles):
    def test_those_that_read_slowly(self):
        clients = [self.client(SMALL_BUFFER) for _ in range(SLOW_CLIENTS)]
        for client in clients:
            client.ask("/huge.bin")
            self.assertEqual(client.head()[0], 200)
        other = self.client()
        start = time.monotonic()
        for second in range(SLOW_S):
            for client in clients:
                self.check_bytes(client, "huge.bin", second * SLOW_BYTES_PER_S, SLOW_BYTES_PER_S)
            self.check_in_step(other)  # nobody waits for them
            # That is how slow they are; nothing is waited for.
            time.sleep(max(0, start + second + 1 - time.monotonic()))
        before = self.descriptors()
        for client in clients:
            client.socket.close()
        # A socket and a file each; the file may be kept open for others.
        self.wait_until(lambda: self.descriptors() <= before - SLOW_CLIENTS, "their connections stay open")
        self.check_in_step(other)

    def test_those_that_leave_in_the_middle(self):
        names = ("huge.bin", f"{BLOCK}.bin", "65537.bin")

        def leave(i):
            client = Client(self.program.port, SMALL_BUFFER if i % 2 else None)
            client.ask(f"/{names[i % len(names)]}", *(["Range: bytes=5-9,100000-900000"] if i % 4 == 3 else []))
            _, fields = client.head()
            client.read(min(i * 37 % 20_000, int(fields["Content-Length"]) - 1))
            client.reset() if i % 3 else client.socket.close()

        other = self.client()
        for i in range(50):
            leave(i)
        for name in ("16385.bin", *names):  # a file may be kept open for who asks next
            other.ask(f"/{name}", "Range: bytes=0-20000")
            self.assertIn(other.head()[0], (200, 206))
            other.read(min(20_001, self.contents[name].size))
        self.wait_until(lambda: self.connections() == 1, "connections stay open")
        descriptors = self.descriptors()
        memory = self.memory_kib()
        for i in range(ABORTS):
            leave(i)
        self.wait_until(lambda: self.descriptors() <= descriptors, "descriptors stay open")
        growth = self.memory_kib() - memory
        print(f"\nleft in the middle: {ABORTS} clients, {descriptors} descriptors, {growth} KiB more", flush=True)
        if not SANITIZED:  # they keep what is freed
            self.assertLess(growth, GROWTH_LIMIT_KIB)
        self.check_in_step(other)

    def connections(self):
        """Sockets of the server, but for its listener."""
        count = -1
        for entry in (self.process / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                count += os.readlink(entry).startswith("socket:")
        return count

    def test_small_ones_beside_a_large_one(self):
        state = {"bytes": 0, "failure": None, "stop": False}

        def download():
            try:
                while not state["stop"]:
                    with Client(self.program.port) as client:
                        client.ask("/huge.bin")
                        client.head()
                        for at in range(0, HUGE_BYTES - BLOCK, BLOCK):
                            self.check_bytes(client, "huge.bin", at, BLOCK)
                            state["bytes"] += BLOCK
                            if state["stop"]:
                                return
            except BaseException as failure:
                state["failure"] = failure

        other = self.client()
        thread = threading.Thread(target=download)
        thread.start()
        try:
            self.wait_until(lambda: state["bytes"] > 0 or state["failure"], "the download does not begin")
            begin = state["bytes"]
            slowest = 0
            start = time.monotonic()
            for i in range(SMALL_REQUESTS):
                name = ("1.bin", "4097.bin", "16385.bin")[i % 3]
                one = time.monotonic()
                other.ask(f"/{name}")
                self.check_answer(other, name)
                slowest = max(slowest, time.monotonic() - one)
            seconds = time.monotonic() - start
            end = state["bytes"]
            self.wait_until(lambda: state["bytes"] > end or state["failure"], "the download has stopped")
        finally:
            state["stop"] = True
            thread.join(LIMIT_S)
        self.assertFalse(thread.is_alive())
        self.assertIsNone(state["failure"])
        print(f"\nbeside {(end - begin) / 1e9:.2f} GB: {SMALL_REQUESTS} requests in {seconds:.1f} s, the slowest took "
              f"{slowest * 1000:.1f} ms", flush=True)
        self.assertGreater(end, begin)
        self.assertLess(slowest, SMALL_LIMIT_S)


class Changes(WithFiles):
    def setUp(self):
        super().setUp()
        self.add("large.bin", Content(LARGE_BYTES))

    def begin(self):
        """A client that has read the first megabyte; the rest is more than can be on its way."""
        client = self.client(SMALL_BUFFER)
        client.ask("/large.bin")
        status, fields = client.head()
        self.assertEqual((status, fields["Content-Length"]), (200, str(LARGE_BYTES)))
        self.check_bytes(client, "large.bin", 0, BLOCK)
        return client, fields

    def test_a_file_that_shrinks_ends_the_connection(self):
        client, _ = self.begin()
        # A whole number of pages: of the last one the kernel would erase what is on its way as well (man 2 truncate).
        os.truncate(self.directory / "large.bin", 2 * BLOCK)
        count = BLOCK
        ended = False
        while not ended and count < LARGE_BYTES:
            try:
                piece = client.read(4096)
            except transport.CUT:
                break
            self.assertTrue(piece == self.contents["large.bin"].part(count, len(piece)), f"other bytes behind {count}")
            count += len(piece)
            ended = len(piece) < 4096
        self.assertLess(count, LARGE_BYTES)
        self.assertFalse(ended and transport.SECURED, "it ended as if it were whole")
        self.check_in_step(self.client())

    def test_a_file_that_is_replaced_arrives_as_it_was(self):
        client, fields = self.begin()
        old, new = self.contents["large.bin"], Content(LARGE_BYTES - 1000, seed=1)
        self.write("new.bin", new.data)
        os.rename(self.directory / "new.bin", self.directory / "large.bin")
        self.check_bytes(client, "large.bin", BLOCK, LARGE_BYTES - BLOCK)
        deadline = time.monotonic() + LIMIT_S
        tag = fields["ETag"]
        while tag == fields["ETag"]:
            # The old file may be sent for a while, but then it is all of it, with its tag.
            self.assertLess(time.monotonic(), deadline, "the old file is sent for ever")
            client.ask("/large.bin")
            status, now = client.head()
            tag = now["ETag"]
            self.contents["large.bin"] = old if tag == fields["ETag"] else new
            self.assertEqual((status, now["Content-Length"]), (200, str(self.contents["large.bin"].size)))
            self.check_bytes(client, "large.bin", 0, self.contents["large.bin"].size)
        client.ask("/large.bin", f"If-None-Match: {tag}")
        self.assertEqual(client.head()[0], 304)

    def test_a_file_that_grows_arrives_with_the_length_it_had(self):
        client, _ = self.begin()
        with open(self.directory / "large.bin", "ab") as file:
            file.write(b"more" * 1000)
        self.check_bytes(client, "large.bin", BLOCK, LARGE_BYTES - BLOCK)
        self.check_in_step(client)

    def test_a_file_that_is_removed_arrives(self):
        client, _ = self.begin()
        os.remove(self.directory / "large.bin")
        self.check_bytes(client, "large.bin", BLOCK, LARGE_BYTES - BLOCK)

        def is_gone():
            client.ask("/large.bin", method="HEAD")
            return client.head()[0] == 404

        self.wait_until(is_gone, "the removed file is sent for ever")
        self.check_in_step(client)


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

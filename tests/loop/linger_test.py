#!/usr/bin/env python3
"""The last answers arrive although their client has sent more than is read, and has ended its side with it.

PENSTOCK_PROGRAM is the program.
"""

import contextlib
import socket
import sys
import unittest

sys.dont_write_bytecode = True
from program_test import LIMIT_S, WithDirectory, serve

FILE_BYTES = 400_000  # more than a socket takes at once
TRIES = 2_000
FILE = b"GET /large.bin HTTP/1.1\r\nHost: t\r\n\r\n"
REFUSED = b"get / HTTP/1.1\r\nHost: t\r\n\r\n"  # 501, and the end of the connection
MORE = b"GET / HTTP/1.1\r\nHost: t\r\n\r\n" * 4


class Linger(WithDirectory):
    def received(self, port, pieces):
        """All that came until the end, which may be a reset."""
        with socket.create_connection(("127.0.0.1", port), LIMIT_S) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(OSError):
                for piece in pieces:
                    client.sendall(piece)
                client.shutdown(socket.SHUT_WR)
            count = 0
            with contextlib.suppress(ConnectionResetError):
                while received := client.recv(1 << 20):
                    count += len(received)
            return count

    def test_a_file_is_not_cut_by_what_was_sent_behind_it(self):
        (self.directory / "large.bin").write_bytes(b"x" * FILE_BYTES)
        with serve(self.directory) as server:
            cut = 0
            for number in range(TRIES):
                whole = FILE + REFUSED + MORE
                at = sorted(number * step % len(whole) for step in (7, 11, 13, 17, 19, 23, 29, 31, 37))
                pieces = [whole[begin:end] for begin, end in zip([0, *at], [*at, len(whole)], strict=True)]
                cut += self.received(server.port, [piece for piece in pieces if piece]) < FILE_BYTES
            self.assertEqual(cut, 0, f"of {TRIES} answers that the server had made whole")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""`penstock serve --compress` as clients see it: zlib, zstd and curl undo what it has done, over real sockets.

PENSTOCK_PROGRAM is the program, PENSTOCK_SOURCE_DIR (or the place of this file) the source tree.
"""

import http.client
import shutil
import socket
import subprocess
import sys
import unittest
import zlib

sys.dont_write_bytecode = True
import _transport as transport
from program_test import LIMIT_S, PROGRAM, WithDirectory, serve

STEP, AT_ONCE = 16 << 10, 64 << 10
SIZES = (0, 1, 999, 1000, STEP - 1, STEP, STEP + 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 1 << 20)


def text(size):
    words = b"".join(b"%d water runs down the penstock\n" % number for number in range(size // 30 + 1))
    return words[:size]


def undo(tool, body):
    return subprocess.run([tool, "-d", "-c"], input=body, stdout=subprocess.PIPE, check=True, timeout=LIMIT_S).stdout


DECODERS = {"gzip": lambda body: zlib.decompress(body, 31), "deflate": lambda body: zlib.decompress(body, 15)}
for coding, tool in (("br", "brotli"), ("zstd", "zstd")):
    if shutil.which(tool):
        DECODERS[coding] = lambda body, tool=tool: undo(tool, body)


class Compression(WithDirectory):
    def setUp(self):
        super().setUp()
        for size in SIZES:
            self.write(f"{size}.txt", text(size))

    def ask(self, program, path, method="GET", version="HTTP/1.1", **fields):
        """Status, fields and body."""
        with program.connect() as client:
            client._http_vsn_str = version
            client.putrequest(method, path, skip_accept_encoding=True)
            for name, value in fields.items():
                client.putheader(name.replace("_", "-"), value)
            client.endheaders()
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read()

    def test_every_coding_gives_the_file_back(self):
        with serve(self.directory, "--compress") as program:
            _, fields, _ = self.ask(program, "/1000.txt", Accept_Encoding="br, zstd, gzip")
            self.assertIn(fields["Content-Encoding"], ("br", "zstd", "gzip"))
            for coding, decode in DECODERS.items():
                for size in SIZES:
                    with self.subTest(coding=coding, size=size):
                        status, fields, body = self.ask(program, f"/{size}.txt", Accept_Encoding=coding)
                        self.assertEqual(status, 200)
                        if size < 1000 or fields["Content-Encoding"] is None and coding in ("br", "zstd"):
                            self.assertIsNone(fields["Content-Encoding"])  # too short, or not in this build
                            self.assertEqual(body, text(size))
                        else:
                            self.assertEqual((fields["Content-Encoding"], fields["Vary"]), (coding, "Accept-Encoding"))
                            self.assertEqual(decode(body), text(size))

    def test_curl_reads_what_it_asks_for(self):
        if shutil.which("curl") is None:
            self.skipTest("curl is not here")
        with serve(self.directory, "--compress") as program:
            for size in SIZES:
                for options in ([], ["--http1.0"]):
                    with self.subTest(size=size, options=options):
                        url = f"{transport.SCHEME}://127.0.0.1:{program.port}/{size}.txt"
                        command = ["curl", "-sS", "--fail", "--compressed", *transport.CURL, "--max-time", str(LIMIT_S), *options, url]
                        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=2 * LIMIT_S)
                        self.assertEqual(done.stdout, text(size))

    def test_conditions_and_ranges(self):
        with serve(self.directory, "--compress") as program:
            path = f"/{1 << 20}.txt"
            _, fields, _ = self.ask(program, path, Accept_Encoding="gzip")
            tag = fields["ETag"]
            self.assertTrue(tag.startswith('W/"'))
            self.assertIsNone(fields["Accept-Ranges"])
            status, fields, body = self.ask(program, path, Accept_Encoding="gzip", If_None_Match=tag)
            self.assertEqual((status, fields["ETag"], fields["Vary"], body), (304, tag, "Accept-Encoding", b""))
            self.assertEqual(self.ask(program, path, Accept_Encoding="gzip", If_Match=tag)[0], 412)
            status, fields, body = self.ask(program, path, Accept_Encoding="gzip", Range="bytes=5-9")
            self.assertEqual((status, fields["Content-Encoding"], body), (206, None, text(10)[5:]))
            self.assertEqual(self.ask(program, path, "HEAD", Accept_Encoding="gzip")[1]["Content-Length"], None)

    def test_without_the_option_nothing_is_compressed(self):
        with serve(self.directory) as program:
            _, fields, body = self.ask(program, "/1000.txt", Accept_Encoding="gzip")
            self.assertEqual((fields["Content-Encoding"], fields["Vary"], body), (None, None, text(1000)))

    def test_a_stream_that_is_read_slowly_or_left(self):
        with serve(self.directory, "--compress", "--demo") as program:
            with transport.connect(program.port, LIMIT_S) as left:
                left.sendall(b"GET /stream/100000000 HTTP/1.1\r\nHost: t\r\nAccept-Encoding: gzip\r\n\r\n")
                self.assertTrue(left.recv(1000))
            _, fields, body = self.ask(program, "/stream/3000000", Accept_Encoding="gzip")
            self.assertEqual(fields["Content-Encoding"], "gzip")
            self.assertEqual(DECODERS["gzip"](body), self.ask(program, "/stream/3000000")[2])


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

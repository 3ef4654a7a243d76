#!/usr/bin/env python3
"""POST /upload of the demo routes: forms of curl and of a client by hand, put into files of which nothing is left.

PENSTOCK_PROGRAM is the program. Without curl its tests are skipped.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import _transport as transport
from program_test import LIMIT_S, PROGRAM, WithDirectory, serve

CURL = shutil.which("curl")
FILE = os.urandom(6_000_007)  # many of the server's blocks, and no multiple of anything
FIRST_BYTES = 1 << 20


class Upload(WithDirectory):
    def setUp(self):
        super().setUp()
        self.site = self.directory / "site"
        self.spool = self.directory / "spool"
        for directory in (self.site, self.spool):
            directory.mkdir()
        with unittest.mock.patch.dict(os.environ, TMPDIR=str(self.spool)):
            self.program = self.enterContext(serve(self.site, "--demo"))

    def open_files(self):
        """Those that the server has open below the spool directory, with a name or without."""
        found = []
        for entry in pathlib.Path(f"/proc/{self.program.process.pid}/fd").iterdir():
            try:
                target = os.readlink(entry)
            except FileNotFoundError:
                continue
            # Python's own temporary files are elsewhere: it chose its directory before.
            if target.startswith(str(self.spool)):
                found.append(target)
        return found

    def wait_until(self, condition):
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it did not come true in time")
            time.sleep(0.001)

    def check_nothing_left(self):
        self.wait_until(lambda: not self.open_files())
        self.assertEqual(list(self.spool.iterdir()), [])

    def begin(self, length):
        """A client whose form has a part of `length` bytes."""
        client = self.enterContext(transport.connect(self.program.port, LIMIT_S))
        client.sendall(
            b"POST /upload HTTP/1.1\r\nHost: upload\r\nContent-Type: multipart/form-data; boundary=XyZ\r\n"
            b"Content-Length: %d\r\n\r\n" % (length + 100)
            + b'--XyZ\r\nContent-Disposition: form-data; name="f"; filename="a.bin"\r\n\r\n'
        )
        return client

    def test_the_disk_holds_an_upload_only_while_it_arrives(self):
        client = self.begin(len(FILE))
        client.sendall(FILE[:FIRST_BYTES])
        self.wait_until(self.open_files)
        client.close()
        self.check_nothing_left()

    def test_a_server_that_is_killed_leaves_nothing(self):
        client = self.begin(len(FILE))
        client.sendall(FILE[:FIRST_BYTES])
        self.wait_until(self.open_files)
        self.program.process.send_signal(signal.SIGKILL)
        self.program.process.wait(LIMIT_S)
        if any(name.startswith(".penstock-") for name in os.listdir(self.spool)):
            self.skipTest("the file system has no files without a name")
        self.assertEqual(list(self.spool.iterdir()), [])

    def test_what_is_no_form(self):
        self.assertEqual(self.program.ask("POST", "/upload", b"x", Content_Type="text/plain").status, 415)
        answer = self.program.ask("POST", "/upload", b"--XyZ\r\n", Content_Type="multipart/form-data; boundary=XyZ")
        self.assertEqual((answer.status, answer.body), (400, b"multipart: the form ends without its closing delimiter\n"))

    def test_a_directory_that_has_gone(self):
        self.spool.rmdir()
        form = b'--XyZ\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--XyZ--\r\n'
        answer = self.program.ask("POST", "/upload", form, Content_Type="multipart/form-data; boundary=XyZ")
        self.assertEqual((answer.status, answer.body), (500, b"the upload cannot be stored\n"))

    @unittest.skipUnless(CURL, "there is no curl here")
    def test_curl(self):
        file = self.write("six.bin", FILE)
        command = [CURL, "--silent", "--show-error", "--max-time", str(LIMIT_S), "--noproxy", "*", *transport.CURL, "-i",
                   "-F", "text=hello", "-F", f"six=@{file}", "-F", f"other=@{file};filename=a b.txt", "-F", "none=",
                   f"{transport.SCHEME}://127.0.0.1:{self.program.port}/upload"]
        done = subprocess.run(command, capture_output=True, timeout=2 * LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        head, body = done.stdout.decode().split("\r\n\r\n")[-2:]
        self.assertIn(" 200 ", head)
        self.assertIn("X-Content-Type-Options: nosniff", head)
        size = len(FILE)
        self.assertEqual(body, f"text\t\t5\nsix\tsix.bin\t{size}\nother\ta b.txt\t{size}\nnone\t\t0\n")
        self.check_nothing_left()


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

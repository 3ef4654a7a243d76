#!/usr/bin/env python3
"""The load program by TLS, against servers of Python's ssl.

PENSTOCK_LOAD is the program. Without TLS in it or without openssl, which makes the certificate, nothing is tested.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
from load_program_test import misbehaving

LOAD = os.environ.get("PENSTOCK_LOAD", "")
LIMIT_S = 30  # far beyond what anything here needs
CANNOT_RUN = 77
BODY = b"x" * 100_000  # several records


def load(port, *arguments):
    command = [LOAD, "--port", str(port), "--seconds", "20", "--connections", "4", *map(str, arguments)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)


def answer(client):
    """Requests without a body, until the client ends or asks for the end."""
    data = b""
    while piece := client.recv(4096):
        data += piece
        while b"\r\n\r\n" in data:
            head, data = data.split(b"\r\n\r\n", 1)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
            if b"Connection: close" in head:
                client.unwrap()
                return


@contextlib.contextmanager
def serving(folder, version=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/certificate", f"{folder}/key")
    if version is not None:
        context.minimum_version = context.maximum_version = version

    def answer_by_tls(client):
        with context.wrap_socket(client, server_side=True) as secured:
            answer(secured)

    with misbehaving(answer_by_tls) as port:
        yield port


class ByTls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        subprocess.run(["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-keyout", f"{cls.folder}/key", "-out", f"{cls.folder}/certificate"],
                       check=True, capture_output=True, timeout=LIMIT_S)

    def result(self, *arguments, version=None):
        with serving(self.folder, version) as port:
            done = load(port, "--tls", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout.splitlines()[-1])

    def test_many_requests_of_a_connection(self):
        result = self.result("--requests", 200, "--length", len(BODY), "--tls-version", "1.3", "--tls-groups", "X25519",
                             "--tls-suites", "TLS_CHACHA20_POLY1305_SHA256")
        self.assertEqual((result["requests"], result["errors"], result["handshakes"]), (200, 0, 0))  # those were before READY
        self.assertGreater(result["bytes"], 200 * len(BODY))
        self.assertEqual([result[name] for name in ("tls_version", "tls_suite", "tls_group", "tls_certificate")],
                         ["TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256", "x25519", "EC 256"])

    def test_several_at_once(self):
        result = self.result("--requests", 64, "--depth", 8, "--length", len(BODY))
        self.assertEqual((result["requests"], result["errors"]), (64, 0))

    def test_a_handshake_for_each(self):
        for version in ("1.2", "1.3"):
            with self.subTest(version=version):
                result = self.result("--close", "--requests", 40, "--tls-version", version)
                self.assertEqual([result[name] for name in ("requests", "errors", "handshakes", "resumed", "tls_version")],
                                 [40, 0, 40, 0, f"TLSv{version}"])

    def test_a_resumed_handshake_for_each(self):
        for version in ("1.2", "1.3"):
            with self.subTest(version=version):
                result = self.result("--resume", "--requests", 40, "--tls-version", version)
                self.assertEqual([result[name] for name in ("requests", "errors", "handshakes", "resumed")], [40, 0, 40, 40])

    def test_a_server_of_another_version(self):
        with serving(self.folder, ssl.TLSVersion.TLSv1_2) as port:
            done = load(port, "--tls", "--tls-version", "1.3", "--patience", 5)
        self.assertEqual(done.returncode, 1)
        self.assertIn("protocol version", done.stderr)

    def test_a_server_without_tls(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def refuse():
                with contextlib.suppress(OSError):
                    while True:
                        client, _ = listener.accept()
                        with client:
                            client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            threading.Thread(target=refuse, daemon=True).start()
            done = load(listener.getsockname()[1], "--tls", "--patience", 5)
            listener.shutdown(socket.SHUT_RDWR)
        self.assertEqual(done.returncode, 1)
        self.assertIn("TLS: ", done.stderr)

    def test_what_cannot_be_asked_for(self):
        for arguments in (["--resume"], ["--tls-version", "1.3"], ["--tls", "--tls-version", "1.1"], ["--tls", "--tls-groups", ""],
                          ["--tls", "--resume", "--depth", 2]):
            with self.subTest(arguments=arguments):
                self.assertEqual(load(80, *arguments).returncode, 2)
        for arguments in (["--tls-groups", "none"], ["--tls-suites", "none"]):
            with self.subTest(arguments=arguments):
                done = load(80, "--tls", *arguments)
                self.assertEqual(done.returncode, 1)
                self.assertIn(arguments[0], done.stderr)


if __name__ == "__main__":
    if not pathlib.Path(LOAD).is_file() or "without OpenSSL" in load(1, "--tls").stderr or not shutil.which("openssl"):
        print("PENSTOCK_LOAD names no program with TLS, or there is no openssl")
        raise SystemExit(CANNOT_RUN)
    unittest.main()

#!/usr/bin/env python3
"""TLS down to records and segments: how a session begins and ends, how it is cut, and certificates that change under load.

Python's ssl in memory makes the records, so that the test chooses what goes into each and what goes into each segment.
PENSTOCK_PROGRAM is the program.
"""

import contextlib
import os
import signal
import socket
import ssl
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
import _certificates as certificates
from program_test import LIMIT_S, PROGRAM, WithDirectory, serve
from tls_clients_test import ask, connect, python_context, shown

GET = b"GET /plaintext HTTP/1.1\r\nHost: t\r\n\r\n"
LAST = b"GET /plaintext HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
VERSIONS = ("1.2", "1.3")
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE = 20, 21, 22


def records_of(data):
    """Each record's type and content."""
    found = []
    while len(data) >= 5:
        size = int.from_bytes(data[3:5], "big")
        found.append((data[0], data[5 : 5 + size]))
        data = data[5 + size :]
    return found


class Client:
    """A client whose records are made in memory and sent when the test says so."""

    def __init__(self, program, version="1.3"):
        self.socket = socket.create_connection(("127.0.0.1", program.port), LIMIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = python_context(version).wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.wire = b""  # all that came

    def close(self):
        self.socket.close()

    def flush(self):
        if data := self.outgoing.read():
            self.socket.sendall(data)

    def receive(self):
        """False at the end of the connection."""
        data = self.socket.recv(65_536)
        self.wire += data
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()
        return bool(data)

    def shake_hands(self):
        while True:
            try:
                self.tls.do_handshake()
                self.flush()
                return self
            except ssl.SSLWantReadError:
                self.flush()
                if not self.receive():
                    raise

    def records(self, *pieces):
        """The bytes of one record for each piece."""
        made = []
        for piece in pieces:
            self.tls.write(piece)
            made.append(self.outgoing.read())
        return made

    def read_to_end(self):
        """The plain text until the server's close_notify, which is looked at: without it this raises."""
        text = b""
        while True:
            try:
                piece = self.tls.read(65_536)
                if not piece:
                    return text
                text += piece
            except ssl.SSLZeroReturnError:
                return text
            except ssl.SSLWantReadError:
                self.receive()


class Wire(WithDirectory):
    def setUp(self):
        super().setUp()
        self.chain, self.key = self.directory / "chain.pem", self.directory / "key.pem"
        self.use(certificates.ecdsa())
        self.program = self.enterContext(serve(self.directory, "--demo", "--tls", self.chain, self.key, reactors=2))

    def use(self, pair):
        self.chain.write_bytes(pair[0].read_bytes())
        self.key.write_bytes(pair[1].read_bytes())

    def client(self, version="1.3"):
        return self.enterContext(contextlib.closing(Client(self.program, version).shake_hands()))


class Cuts(Wire):
    def check(self, requests, records, segments):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.client(version)
                data = segments(client.records(*records))
                for segment in data:
                    client.socket.sendall(segment)
                answer = client.read_to_end()
                self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), requests)
                self.assertEqual(answer.count(b"Hello, World!"), requests)

    def test_two_requests_in_one_record(self):
        self.check(2, [GET + LAST], lambda made: made)

    def test_one_request_over_three_records(self):
        self.check(1, [LAST[:10], LAST[10:30], LAST[30:]], lambda made: made)

    def test_seventeen_records_in_one_segment(self):
        self.check(17, [GET] * 16 + [LAST], lambda made: [b"".join(made)])

    def test_a_byte_in_each_record(self):
        self.check(2, [(GET + LAST)[i : i + 1] for i in range(len(GET + LAST))], lambda made: [b"".join(made)])

    def test_a_byte_in_each_segment(self):
        def bytewise(made):
            data = b"".join(made)
            return [data[i : i + 1] for i in range(len(data))]

        self.check(2, [GET, LAST], bytewise)

    def test_as_large_as_records_are(self):
        body = os.urandom(16_384 * 3)
        head = b"POST /echo HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        for version in VERSIONS:
            client = self.client(version)
            pieces = [head] + [body[at : at + 16_384] for at in range(0, len(body), 16_384)]
            client.socket.sendall(b"".join(client.records(*pieces)))
            self.assertEqual(client.read_to_end().split(b"\r\n\r\n", 1)[1], body)


class Ends(Wire):
    def test_goodbye_right_behind_a_request(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.client(version)
                client.socket.sendall(b"".join(client.records(b"GET /large HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")))
                wanted = client.read_to_end().partition(b"\r\n\r\n")[2]
                self.assertEqual(len(wanted), 102_400)
                client = self.client(version)
                (request,) = client.records(b"GET /large HTTP/1.1\r\nHost: t\r\n\r\n")
                with contextlib.suppress(ssl.SSLError):
                    client.tls.unwrap()
                client.socket.sendall(request + client.outgoing.read())
                client.socket.shutdown(socket.SHUT_WR)
                answer = client.read_to_end()  # and to the server's goodbye
                self.assertEqual(answer.partition(b"\r\n\r\n")[2], wanted)

    def test_the_server_says_goodbye(self):
        for version in VERSIONS:
            client = self.client(version)
            client.socket.sendall(b"".join(client.records(LAST)))
            self.assertIn(b"Hello, World!", client.read_to_end())  # which looks for it

    def test_an_upload_that_is_cut_off(self):
        client = self.client()
        client.socket.sendall(b"".join(client.records(b"POST /count HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)))
        client.socket.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ssl.SSLError):
            self.assertNotIn(b"HTTP/1.1 200", client.read_to_end())
        self.assertEqual(ask(self.program, python_context("1.3"))[0]["version"], "TLSv1.3")


class Beginnings(Wire):
    def raw(self, data, half_close=False):
        with socket.create_connection(("127.0.0.1", self.program.port), LIMIT_S) as plain:
            plain.sendall(data)
            if half_close:
                plain.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := plain.recv(65_536):
                answer += piece
            return answer

    def test_plain_http_is_told_where_to_go(self):
        answer = self.raw(GET)
        self.assertTrue(answer.startswith(b"HTTP/1.1 400 Bad Request\r\n"), answer)
        self.assertIn(b"https://", answer)

    def test_garbage_gets_an_alert(self):
        for data in (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x80\x2e\x01\x03\x01\x00", b"\x00" * 100,
                     b"\x16\x03\x01\x00\x04\x01\xff\xff\xff" + b"\x16\x03\x01\x40\x00" + b"x" * 16_384):
            with self.subTest(data=data[:20]):
                (kind, content), *rest = records_of(self.raw(data))
                self.assertEqual((kind, content[0], rest), (ALERT, 2, []))

    def test_a_hello_that_is_cut_off(self):
        client = Client(self.program)
        with contextlib.suppress(ssl.SSLWantReadError):
            client.tls.do_handshake()
        hello = client.outgoing.read()
        client.close()
        for size in (1, 5, 100, len(hello) - 1):
            self.assertEqual(self.raw(hello[:size], half_close=True), b"")

    def test_middleboxes_see_what_they_want(self):
        client = self.client()
        kinds = [kind for kind, _ in records_of(client.wire)]
        self.assertEqual(kinds[:3], [HANDSHAKE, CHANGE_CIPHER_SPEC, 23])  # RFC 8446 section D.4


class Reload(Wire):
    def reload(self, wanted):
        """Returns when what was to be shown is."""
        self.program.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + LIMIT_S
        streak = 0
        while streak < 8:  # each of the reactors, most likely
            self.assertLess(time.monotonic(), deadline)
            streak = streak + 1 if shown(self.program, "localhost") == wanted else 0

    def test_under_load(self):
        stop, failures, served = threading.Event(), [], [0] * 4

        def load(number):
            context = python_context(VERSIONS[number % 2])
            try:
                while not stop.is_set():
                    ask(self.program, context)
                    served[number] += 1
            except Exception as failure:
                failures.append(failure)

        old = self.client()
        threads = [threading.Thread(target=load, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            for pair in (certificates.other(), certificates.rsa(), certificates.ecdsa()):
                self.use(pair)
                self.reload(certificates.fingerprint(pair[0]))
        finally:
            stop.set()
            for thread in threads:
                thread.join(LIMIT_S)
        self.assertEqual(failures, [])
        self.assertGreater(min(served), 0)
        old.socket.sendall(b"".join(old.records(LAST)))
        self.assertIn(b"Hello, World!", old.read_to_end())

    def test_a_broken_file_changes_nothing(self):
        before = shown(self.program, "localhost")
        self.chain.write_text("no certificate")
        self.program.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + LIMIT_S
        while "stay as they were" not in self.program.stderr():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.assertIn(str(self.chain), self.program.stderr())
        self.assertEqual(shown(self.program, "localhost"), before)

    def test_a_session_outlives_it(self):
        for version in VERSIONS:
            self.use(certificates.ecdsa())
            self.reload(certificates.fingerprint(certificates.ecdsa()[0]))
            context = python_context(version)
            _, session = ask(self.program, context)
            # To other certificates and back: what is read last has nothing of the first but its files.
            self.use(certificates.other())
            self.reload(certificates.fingerprint(certificates.other()[0]))
            self.assertFalse(ask(self.program, context, session)[0]["resumed"], "under another certificate it is worth nothing")
            _, session = ask(self.program, context)
            self.use(certificates.ecdsa())
            self.reload(certificates.fingerprint(certificates.ecdsa()[0]))
            self.use(certificates.other())
            self.reload(certificates.fingerprint(certificates.other()[0]))
            self.assertTrue(ask(self.program, context, session)[0]["resumed"])

    def test_a_connection_outlives_it(self):
        for version in VERSIONS:
            self.use(certificates.ecdsa())
            self.reload(certificates.fingerprint(certificates.ecdsa()[0]))
            client = self.client(version)
            self.use(certificates.other())
            self.reload(certificates.fingerprint(certificates.other()[0]))
            client.socket.sendall(b"".join(client.records(GET, LAST)))
            self.assertEqual(client.read_to_end().count(b"Hello, World!"), 2)


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

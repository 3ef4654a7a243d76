#!/usr/bin/env python3
"""TLS by clients that mean harm: records and messages that no library sends, tickets and certificates that are worth nothing, and
hellos of every shape. After each of them the server must serve a good client.

Records are sealed here (_records.py), by the secrets that Python's ssl logs. PENSTOCK_PROGRAM is the program.
"""

import contextlib
import os
import signal
import socket
import ssl
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import _certificates as certificates
import _records as records
from _records import ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, hello, in_records, message, record
from program_test import LIMIT_S, PROGRAM, WithDirectory, serve
from tls_clients_test import ask, connect, python_context
from tls_wire_test import GET, LAST, Client, records_of

MANY = 1_000
WARNING = b"\1\x5a"  # user_canceled (RFC 8446 section 6)


class Sealing(Client):
    """One whose secrets are known, so that its records can be made by hand."""

    def __init__(self, program, version):
        super().__init__(program, version)
        self.version = version
        self.reason = ""  # of an end by an alert, in OpenSSL's words
        with tempfile.NamedTemporaryFile(delete=False) as log:
            self.log = log.name
        context = python_context(version)
        context.keylog_filename = self.log
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def close(self):
        super().close()
        os.unlink(self.log)

    def sealer(self, label="CLIENT_TRAFFIC_SECRET_0"):
        secrets = records.secrets_of(self.log)
        if self.version == "1.3":
            return records.Sealer13(secrets[label][1])
        client_random, master = secrets["CLIENT_RANDOM"]
        return records.Sealer12(master, client_random, self.wire[11:43])

    def answer(self):
        """The plain text until the end, whatever the end is like."""
        text = b""
        while True:
            try:
                if not (piece := self.tls.read(65_536)):
                    return text
                text += piece
            except ssl.SSLWantReadError:
                try:
                    if not self.receive():
                        return text
                except OSError:
                    return text
            except ssl.SSLError as error:
                self.reason = error.reason
                return text


class Attack(WithDirectory):
    def start(self, *arguments, chain=None):
        pair = chain or certificates.ecdsa()
        return self.enterContext(serve(self.directory, "--demo", "--tls", *pair, "--tls-suites", records.SUITES, *arguments))

    def check_serves(self, program):
        self.assertIsNone(program.process.poll(), program.stderr())
        self.assertEqual(ask(program, python_context("1.3"))[0]["version"], "TLSv1.3")


class Records(Attack):
    def setUp(self):
        super().setUp()
        self.program = self.start()

    def check(self, served, version, reason=None, **cases):
        """Each case makes bytes of a sealer; a request follows, which is answered or not, and then ends by an alert for that reason."""
        for name, make in cases.items():
            with self.subTest(case=name, version=version), contextlib.closing(Sealing(self.program, version).shake_hands()) as client:
                sealer = client.sealer()
                with contextlib.suppress(ConnectionError):
                    client.socket.sendall(make(sealer) + sealer.record(APPLICATION_DATA, LAST))
                self.assertEqual(b"Hello, World!" in client.answer(), served)
                if reason is not None:
                    self.assertEqual(client.reason, reason)
                self.check_serves(self.program)

    def test_that_hold_nothing(self):
        # Not even their type: only a tag (RFC 8446 section 5.4).
        self.check(False, "1.3", "SSLV3_ALERT_BAD_RECORD_MAC", only_a_tag=lambda s: s.raw(b""),
                   only_a_tag_behind_others=lambda s: s.record(APPLICATION_DATA, b"") * 3 + s.raw(b""))
        self.check(False, "1.3", only_zeros=lambda s: s.raw(bytes(20)), no_tag=lambda s: record(APPLICATION_DATA, b""), part_of_a_tag=lambda s: record(APPLICATION_DATA, bytes(15)))
        self.check(False, "1.2", part_of_a_tag=lambda s: record(APPLICATION_DATA, bytes(15)))
        self.check(True, "1.3", empty=lambda s: s.record(APPLICATION_DATA, b""),
                   padded=lambda s: s.record(APPLICATION_DATA, b"", padding=16_000))
        self.check(True, "1.2", empty=lambda s: s.record(APPLICATION_DATA, b""))

    def test_that_hold_nothing_within_the_handshake(self):
        # Byte by byte as well: the server looks at a record's head, which is then complete with any part of it.
        for size in (1, 1_000):
            with contextlib.closing(Sealing(self.program, "1.3")) as client:
                with contextlib.suppress(ssl.SSLWantReadError):
                    client.tls.do_handshake()
                client.flush()
                while True:
                    try:
                        client.receive()
                        client.tls.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        pass
                data = client.sealer("CLIENT_HANDSHAKE_TRAFFIC_SECRET").raw(b"")
                with contextlib.suppress(ConnectionError):
                    for at in range(0, len(data), size):
                        client.socket.sendall(data[at : at + size])
                self.assertEqual(client.answer(), b"")
                self.check_serves(self.program)

    def test_that_are_too_large_or_of_no_kind(self):
        for version in ("1.2", "1.3"):
            self.check(
                False, version,
                claims_too_much=lambda s: record(APPLICATION_DATA, bytes(16_384 + 2_049)),
                claims_all_there_is=lambda s: record(APPLICATION_DATA, bytes(65_535)),
                holds_too_much=lambda s: s.record(APPLICATION_DATA, b"GET /" + b"x" * 16_380),
                heartbeat=lambda s: s.record(24, b"\1\0\x40xyz"),
                unknown=lambda s: s.record(99, b"x"),
                not_sealed=lambda s: record(APPLICATION_DATA, GET),
                changed=lambda s: s.record(APPLICATION_DATA, GET)[:-1] + b"\0",
                twice=lambda s: s.record(APPLICATION_DATA, GET) * 2,
            )

    def test_empty_ones_without_end(self):
        for version in ("1.2", "1.3"):
            self.check(True, version, empty=lambda s: b"".join(s.record(APPLICATION_DATA, b"") for _ in range(MANY)))

    def test_alerts(self):
        for version in ("1.2", "1.3"):
            self.check(True, version, one=lambda s: s.record(ALERT, WARNING))
            self.check(False, version, many=lambda s: b"".join(s.record(ALERT, WARNING) for _ in range(100)),
                       short=lambda s: s.record(ALERT, b"\1"), long=lambda s: s.record(ALERT, WARNING + b"\0"),
                       none=lambda s: s.record(ALERT, b""), fatal=lambda s: s.record(ALERT, b"\2\x28"),
                       not_sealed=lambda s: record(ALERT, WARNING))

    def test_changes_of_cipher(self):
        for version in ("1.2", "1.3"):
            self.check(False, version, one=lambda s: record(CHANGE_CIPHER_SPEC, b"\1"),
                       many=lambda s: record(CHANGE_CIPHER_SPEC, b"\1") * MANY, sealed=lambda s: s.record(CHANGE_CIPHER_SPEC, b"\1"))

    def test_key_updates(self):
        self.check(True, "1.3", one=lambda s: s.key_update(), answered=lambda s: s.key_update(b"\1"),
                   many=lambda s: b"".join(s.key_update() for _ in range(MANY)),
                   many_answered=lambda s: b"".join(s.key_update(b"\1") for _ in range(MANY)))
        self.check(False, "1.3", neither=lambda s: s.key_update(b"\2"), empty=lambda s: s.key_update(b""),
                   long=lambda s: s.key_update(b"\0\0"), two_at_once=lambda s: s.record(HANDSHAKE, message(24, b"\0") * 2))

    def test_messages_behind_the_handshake(self):
        for version in ("1.2", "1.3"):
            self.check(False, version, hello=lambda s: s.record(HANDSHAKE, hello()),
                       finished=lambda s: s.record(HANDSHAKE, message(20, bytes(32))),
                       certificate=lambda s: s.record(HANDSHAKE, message(11, bytes(4))),
                       unknown=lambda s: s.record(HANDSHAKE, message(99, b"x")),
                       sixteen_megabytes=lambda s: s.record(HANDSHAKE, b"\x0b\xff\xff\xff" + bytes(1_000)),
                       empty=lambda s: s.record(HANDSHAKE, b""))
        self.check(False, "1.2", hello_requests=lambda s: b"".join(s.record(HANDSHAKE, message(0, b"")) for _ in range(100)))

    def test_what_holds_nothing_keeps_nobody_awake(self):
        program = self.start("--idle-timeout", 700)
        for version in ("1.2", "1.3"):
            with contextlib.closing(Sealing(program, version).shake_hands()) as client:
                sealer = client.sealer()
                client.socket.settimeout(0.1)
                for _ in range(100):  # a tenth of a second each
                    client.socket.sendall(sealer.record(APPLICATION_DATA, b""))
                    with contextlib.suppress(TimeoutError):
                        if not client.receive():
                            break
                        if ALERT in (kind for kind, _ in records_of(client.wire)[-1:]) or client.answer() == b"":
                            break
                else:
                    self.fail("it is still there")


class Hellos(Attack):
    def setUp(self):
        super().setUp()
        self.program = self.start()

    def first(self, data, program=None):
        """The first record that comes back: its kind and its content."""
        with socket.create_connection(("127.0.0.1", (program or self.program).port), LIMIT_S) as plain:
            plain.sendall(data)
            answer = b""
            while len(answer) < 5 or len(answer) < 5 + int.from_bytes(answer[3:5], "big"):
                if not (piece := plain.recv(65_536)):
                    break
                answer += piece
        return (records_of(answer) or [(0, b"")])[0]

    def check(self, cases, **options):
        """Each is (what is sent, the alert or None for a ServerHello)."""
        for name, (data, alert) in cases.items():
            with self.subTest(case=name):
                kind, content = self.first(data if data[:1] == b"\x16" else in_records(data, 16_384), **options)
                if alert is None:
                    self.assertEqual((kind, content[0]), (HANDSHAKE, 2))
                else:
                    self.assertEqual((kind, content[:1]), (ALERT, b"\2"))
                    self.assertIn(content[1], alert)
        self.check_serves(self.program)

    def test_downgrades(self):
        # RFC 8446 section 4.1.3: whoever has been made to speak TLS 1.2 sees it.
        _, content = self.first(in_records(hello(tls13=False), 16_384))
        self.assertEqual(content[30:38], b"DOWNGRD\1")
        _, content = self.first(in_records(hello(), 16_384))
        self.assertNotIn(b"DOWNGRD", content[6:38])
        self.check({
            # RFC 7507 section 3.
            "a fallback": (hello(tls13=False, suites=b"\xcc\xa9\x56\x00"), (86,)),
            "no fallback": (hello(suites=b"\x13\x03\x56\x00"), None),
            "SSL 3": (hello(tls13=False, version=b"\3\0"), (70,)),
            "TLS 1.1": (hello(tls13=False, version=b"\3\2"), (70,)),
            "TLS 1.1 in the extension": (hello(records.extension(43, b"\2\3\2"), tls13=False), (70,)),
            "no version": (hello(records.extension(43, b"\2\0\0"), tls13=False), (70,)),
            "no versions": (hello(records.extension(43, b"\0"), tls13=False), (50,)),
            "no suites that anybody has": (hello(suites=b"\xee\xee"), (40,)),
            "no encryption": (hello(suites=b"\xc0\xb4\xc0\xb5"), (40,)),
            "a session that is not known": (hello(tls13=False, session_id=b"s" * 32), None),
        })

    def test_names(self):
        names = (b"a\0b", b"\0", b"127.0.0.1", b"[::1]", b"\xff\xfe", b"x" * 255, b"x" * 256, b"x" * 10_000, b".", b"..", b"a\r\nb: c", b"%n")
        self.check({repr(name[:9]): (hello(records.server_names(name)), None) for name in names})
        self.check({
            "no name": (hello(records.server_names(b"")), (50,)),
            "no list": (hello(records.extension(0, b"")), (50,)),
            "a list that is longer than it is": (hello(records.extension(0, b"\0\x50\0\0\1a")), (50,)),
            "twice": (hello(records.server_names(b"a"), records.server_names(b"b")), (40, 47)),
        })
        for names in ((b"a", b"localhost"), [b"a"] * 2_000):  # taken or refused, as wolfSSL was built
            self.assertIn(self.first(in_records(hello(records.server_names(*names)), 16_384))[0], (ALERT, HANDSHAKE))
        self.check_serves(self.program)

    def test_protocols(self):
        self.check({
            "the same": (hello(records.protocols(*[b"http/1.1"] * 50)), None),
            "many": (hello(records.protocols(*[b"z%d" % i for i in range(1_000)], b"http/1.1")), None),
            "another": (hello(records.protocols(b"h2")), (120,)),
            "with more": (hello(records.protocols(b"http/1.1\0", b"http", b"HTTP/1.1", b"http/1.1,h2")), (120,)),
            "no list": (hello(records.extension(16, b"")), (50,)),
            "none": (hello(records.protocols()), (50,)),
            "an empty one": (hello(records.protocols(b"")), (50,)),
            "one that is longer than it is": (hello(records.extension(16, b"\0\x08\x08http/1")), (50,)),
        })

    def test_what_follows_a_hello(self):
        for data in (hello(), record(CHANGE_CIPHER_SPEC, b"\1") * MANY, record(ALERT, WARNING) * MANY, record(HANDSHAKE, b"") * MANY,
                     record(APPLICATION_DATA, bytes(100)), record(HANDSHAKE, b"\x0b\xff\xff\xff" + bytes(1_000)) * 20):
            for tls13 in (True, False):
                with socket.create_connection(("127.0.0.1", self.program.port), LIMIT_S) as plain, contextlib.suppress(ConnectionError):
                    plain.sendall(in_records(hello(tls13=tls13, session_id=b"s" * 32), 500) + data)
                    plain.shutdown(socket.SHUT_WR)
                    while plain.recv(65_536):
                        pass
        self.check_serves(self.program)

    def test_early_data(self):
        """Is not taken, so it is asked for another hello, whose key is of another group (RFC 8446 section 4.2.10)."""
        asks = in_records(hello(records.extension(42, b""), session_id=b"s" * 32), 16_384)
        again = in_records(hello(session_id=b"s" * 32), 16_384)  # its key is of the same group
        early = record(APPLICATION_DATA, bytes(1_000))
        retry = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")  # section 4.1.3
        for name, data in {
            "without end": early * MANY,
            "of nothing, without end": record(APPLICATION_DATA, b"") * 20 * MANY,
            "and no other key": early + again,
            "and another's hello": early + in_records(hello(), 16_384),
            "and once more": record(CHANGE_CIPHER_SPEC, b"\1") + early + asks,
            "within a hello": early * 2 + record(HANDSHAKE, again[5:6]) + early,
        }.items():
            with self.subTest(data=name), socket.create_connection(("127.0.0.1", self.program.port), LIMIT_S) as plain:
                answer = b""
                with contextlib.suppress(ConnectionError):
                    plain.sendall(asks)
                    answer = plain.recv(65_536)
                    plain.sendall(data)
                    plain.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionError):
                    while piece := plain.recv(65_536):
                        answer += piece
                found = records_of(answer)
                self.assertEqual([kind for kind, _ in found[:2]], [HANDSHAKE, CHANGE_CIPHER_SPEC])
                self.assertEqual(found[0][1][6:38], retry)
                self.assertNotIn(APPLICATION_DATA, [kind for kind, _ in found])  # what a handshake that goes on consists of
        self.check_serves(self.program)

    def test_tickets_that_are_none(self):
        # RFC 5077 section 3.4: a ticket that is worth nothing is none. OpenSSL's have 160 to 240 bytes.
        tickets = {str(size): (hello(records.extension(35, os.urandom(size)), tls13=False), None) for size in (1, 100, 142, 160, 176, 192)}
        self.check(tickets)


class Tickets(Attack):
    def ticket_of(self, program):
        with contextlib.closing(Sealing(program, "1.2").shake_hands()) as client:
            flight = b"".join(content for kind, content in records_of(client.wire) if kind == HANDSHAKE)
        while flight[0] != 4:  # NewSessionTicket (RFC 5077 section 3.3)
            flight = flight[4 + int.from_bytes(flight[1:4], "big") :]
        return flight[10 : 10 + int.from_bytes(flight[8:10], "big")]

    def resumes(self, program, ticket):
        with socket.create_connection(("127.0.0.1", program.port), LIMIT_S) as plain:
            plain.sendall(in_records(hello(records.extension(35, ticket), tls13=False, session_id=b"s" * 32), 16_384))
            answer = b""
            # A session that is resumed goes on by a change of cipher, a new one by a certificate and three more messages.
            while piece := plain.recv(65_536):
                answer += piece
                found = records_of(answer)
                kinds = [kind for kind, content in found]
                self.assertNotIn(ALERT, kinds)
                if CHANGE_CIPHER_SPEC in kinds or any(kind == HANDSHAKE and content[:1] == b"\x0e" for kind, content in found):
                    return CHANGE_CIPHER_SPEC in kinds
        self.fail("it says nothing")

    def test_that_are_changed(self):
        program, other = self.start(), self.start()
        ticket = self.ticket_of(program)
        size = int.from_bytes(ticket[32:34], "big")
        self.assertTrue(self.resumes(program, ticket))
        self.assertFalse(self.resumes(other, ticket))
        for at in (0, 15, 16, 27, 33, 34, 60, 34 + size - 1, 34 + size):
            changed = bytearray(ticket)
            changed[at] ^= 1
            self.assertFalse(self.resumes(program, bytes(changed)), at)
        for cut in (1, 33, len(ticket) - 1):
            self.assertFalse(self.resumes(program, ticket[:-cut]), cut)
        # It says itself how much of it is sealed: more than has come is never looked at.
        for said in (0, size - 1, size + 1, size + 32, size + 200, 65_535):
            self.assertFalse(self.resumes(program, ticket[:32] + said.to_bytes(2, "big") + ticket[34:]), said)
        self.check_serves(program)


AUTHORITY = """
[ca]
default_ca = it
[it]
database = {folder}/index.{name}
new_certs_dir = {folder}
default_md = sha256
policy = any
rand_serial = yes
unique_subject = no
[any]
commonName = supplied
[as]
{extensions}
"""


class BadCertificates(Attack):
    def issue(self, name, extensions="", days=("20200101000000Z", "20490101000000Z"), by=None, subject=None):
        """By the authority, or by another pair."""
        folder = certificates.folder()
        chain, key, request, config = (folder / f"attack-{name}.{kind}" for kind in ("pem", "key", "csr", "cnf"))
        (folder / f"index.{name}").write_text("")
        config.write_text(AUTHORITY.format(folder=folder, name=name, extensions=extensions or "basicConstraints = CA:FALSE"))
        certificates.openssl("req", "-newkey", *certificates.P256, "-nodes", "-subj", subject or f"/CN={name}", "-keyout", key, "-out", request)
        issuer, issuer_key = by or certificates.authority()
        certificates.openssl("ca", "-batch", "-notext", "-config", config, "-extensions", "as", "-startdate", days[0], "-enddate", days[1],
                             "-cert", issuer, "-keyfile", issuer_key, "-in", request, "-out", chain)
        return chain, key

    def accepts(self, program, pair, version, *above):
        context = python_context(version)
        if pair:
            whole = self.directory / "whole.pem"
            whole.write_bytes(b"".join(chain.read_bytes() for chain in (pair[0], *above)))
            context.load_cert_chain(whole, pair[1])
        try:
            with contextlib.closing(connect(program, context)) as secured:
                secured.sendall(LAST)
                answer = b""
                while piece := secured.recv(65_536):
                    answer += piece
                return b"Hello, World!" in answer
        except OSError:
            return False

    def test_of_every_kind(self):
        ca = "basicConstraints = critical,CA:TRUE\nkeyUsage = critical,keyCertSign"
        middle, false_root = self.issue("middle", ca), certificates.make("false-root", "/CN=Authority")
        no_ca, short = self.issue("no-ca", "keyUsage = critical,keyCertSign"), self.issue("short", ca + "\nbasicConstraints = CA:TRUE,pathlen:0")
        limited = self.issue("limited", ca + "\nnameConstraints = critical,permitted;DNS:good.example")
        below = self.issue("below", ca, by=short)
        good = [(certificates.client(),), (self.issue("plain"),), (self.issue("for-clients", "extendedKeyUsage = clientAuth"),),
                (self.issue("by-middle", by=middle), middle[0])]
        bad = {
            "expired": (self.issue("expired", days=("20200101000000Z", "20200102000000Z")),),
            "not yet valid": (self.issue("early", days=("20480101000000Z", "20490101000000Z")),),
            "for servers": (self.issue("for-servers", "extendedKeyUsage = serverAuth"),),
            "says what nobody knows": (self.issue("critical", "1.2.3.4.5 = critical,ASN1:UTF8String:x"),),
            "by one that is no authority": (self.issue("by-no-ca", by=no_ca), no_ca[0]),
            "by another's certificate": (self.issue("by-client", by=certificates.client()), certificates.client()[0]),
            "by an authority too deep": (self.issue("deep", by=below), below[0], short[0]),
            "outside the names": (self.issue("outside", "subjectAltName = DNS:bad.example", by=limited), limited[0]),
            "an authority of the same name": (false_root,),
            "by an authority of the same name": (self.issue("by-false", by=false_root), false_root[0]),
            "the same, and the right one": (self.issue("by-false-2", by=false_root), false_root[0], certificates.authority()[0]),
            "a hundred": (certificates.client(), *[certificates.client()[0]] * 99),
            "60 KB": (self.issue("large", "subjectAltName = " + ",".join(f"DNS:host{i}.example.org" for i in range(2_800))),),
        }
        for kind in ("required", "optional"):
            program = self.start("--tls-client-ca", certificates.authority()[0], "--tls-client-certificate", kind)
            for version in ("1.2", "1.3"):
                self.assertEqual(self.accepts(program, None, version), kind == "optional")
                for name, (pair, *above) in bad.items():
                    with self.subTest(kind=kind, version=version, name=name):
                        self.assertFalse(self.accepts(program, pair, version, *above))
                for pair, *above in good:
                    self.assertTrue(self.accepts(program, pair, version, *above), pair)


    def test_that_others_have_shown(self):
        # An authority below ours counts for the client that shows it, and for nobody who comes later.
        ca = "basicConstraints = critical,CA:TRUE\nkeyUsage = critical,keyCertSign"
        middle = self.issue("shown", ca)
        pair = self.issue("by-shown", by=middle)
        for kind in ("required", "optional"):
            program = self.start("--tls-client-ca", certificates.authority()[0], "--tls-client-certificate", kind)
            for version in ("1.2", "1.3"):
                for above, wanted in (((), False), ((middle[0],), True), ((), False)):
                    self.assertEqual(self.accepts(program, pair, version, *above), wanted, (kind, version, above))
                self.assertTrue(self.accepts(program, certificates.client(), version))
            # Nor what a chain has shown that was refused in the end.
            stranger = certificates.stranger()
            self.assertFalse(self.accepts(program, stranger, "1.3", middle[0]))
            self.assertFalse(self.accepts(program, pair, "1.3"))


class Ends(Attack):
    def test_a_reload_and_an_end_in_the_middle_of_everything(self):
        self.write("body", os.urandom(10_000_000))
        program = self.start()
        clients = [self.enterContext(contextlib.closing(Client(program, version).shake_hands())) for version in ("1.2", "1.3") * 5]
        for client in clients:
            (request,) = client.records(b"GET /body HTTP/1.1\r\nHost: t\r\n\r\n")
            client.socket.sendall(request)
            client.receive()
        for _ in range(10):
            with contextlib.suppress(ssl.SSLWantReadError):
                half = self.enterContext(contextlib.closing(Client(program)))
                half.tls.do_handshake()
            half.flush()
            program.process.send_signal(signal.SIGHUP)
        program.process.send_signal(signal.SIGTERM)
        for client in clients:
            self.assertGreater(len(client.read_to_end()), 10_000_000)
        self.assertEqual(program.process.wait(LIMIT_S), 0)


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

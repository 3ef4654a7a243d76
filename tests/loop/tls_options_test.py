#!/usr/bin/env python3
"""What the program's options about TLS are refused for, and what it tells; that TLS is spoken is tested elsewhere."""

import os
import re
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
import _certificates as certificates
from program_test import LIMIT_S, PROGRAM, VERSION, Program, WithDirectory, run, serve


class TlsOptions(WithDirectory):
    def refused(self, status, fragments, *arguments):
        """Ends with the status and one sentence on stderr that has the fragments."""
        with self.subTest(arguments=arguments):
            done = run("serve", self.directory, *arguments)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertRegex(done.stderr, r"\Apenstock: [^\n]+\n\Z")
            for fragment in fragments:
                self.assertIn(fragment, done.stderr)

    def test_help_names_them(self):
        for command in ("serve", "echo"):
            text = run(command, "--help").stdout
            for name in "tls CHAIN KEY,tls-self-signed,tls-password-file,tls-minimum 1.2|1.3,tls-suites,tls-client-ca".split(","):
                self.assertIn(f"--{name}", text)
            for name in "client-certificate ticket-lifetime key-log".split():
                self.assertIn(f"--tls-{name}", text)
            self.assertIn("--hsts SECONDS", text)
            self.assertIn("--redirect-port PORT", text)

    def test_nothing_of_it_without_a_certificate(self):
        for option, value in (
            ("--tls-password-file", "f"), ("--tls-minimum", "1.3"), ("--tls-suites", "X"), ("--tls-client-ca", "f"),
            ("--tls-client-certificate", "required"), ("--tls-ticket-lifetime", 0),
            ("--tls-key-log", "f"), ("--hsts", 0), ("--redirect-port", 0),
        ):
            self.refused(2, [f"{option} is about TLS", "--tls CHAIN KEY"], option, value)
            path = self.write("server.toml", f'{option[2:]} = "{value}"\n'.encode())
            self.refused(2, [f"{option} is about TLS"], "--config", path)

    def test_contradictions(self):
        pair = ["--tls", "chain", "key"]
        self.refused(2, ["--tls-self-signed", "leave one of them out"], *pair, "--tls-self-signed")
        self.refused(2, ["--tls-password-file", "--tls-self-signed"], "--tls-self-signed", "--tls-password-file", "f")
        self.refused(2, ["name their authorities with --tls-client-ca"], *pair, "--tls-client-certificate", "optional")
        self.refused(2, ["add --tls-client-certificate"], *pair, "--tls-client-ca", "ca")
        self.refused(2, ["both 8443"], *pair, "--port", 8443, "--redirect-port", 8443)
        self.refused(2, ["unix:/x has none"], *pair, "--address", "unix:/x", "--redirect-port", 80)

    def test_values(self):
        pair = ["--tls", "chain", "key"]
        self.refused(2, ["--tls takes two files"], "--tls", "chain")
        self.refused(2, ["--tls takes two files"], *pair, "--tls", "chain")
        self.refused(2, ['does not know "more"'], *pair, "more")
        self.refused(2, ['"1.1" is not 1.2 or 1.3'], *pair, "--tls-minimum", "1.1")
        self.refused(2, ['"none" is not optional or required'], *pair, "--tls-client-certificate", "none")
        self.refused(2, ["--hsts", "a number from 0 to 4294967295"], *pair, "--hsts", "-1")
        self.refused(2, ["--redirect-port", "a number from 0 to 65535"], *pair, "--redirect-port", 65536)
        self.refused(2, ["--tls-ticket-lifetime", "a number"], *pair, "--tls-ticket-lifetime", "1h")
        self.refused(2, ["--tls-key-log", "names no file"], *pair, "--tls-key-log", "")

    def test_the_password_is_read_from_a_file(self):
        wanted = [*"--tls chain key --tls-password-file".split()]
        self.refused(1, ["none", "cannot be read"], *wanted, self.directory / "none")
        self.refused(1, ["cannot be read"], *wanted, self.directory)
        self.refused(1, ["is empty"], *wanted, self.write("empty", b""))
        self.refused(1, ["1 to 1024 bytes"], *wanted, self.write("line", b"\nsecret\n"))
        self.refused(1, ["1 to 1024 bytes"], *wanted, self.write("long", b"x" * 1025))

    def test_self_signed_with_a_redirect(self):
        options = ["--tls-self-signed", "--redirect-port", 0, "--hsts", 60]
        with serve(self.directory, *options) as program:
            found = re.fullmatch(
                rf"{VERSION} serves \S+ at https://127\.0\.0\.1:(\d+) and sends there whoever comes to "
                r"http://127\.0\.0\.1:(\d+) with 1 reactor", program.line)
            self.assertIsNotNone(found, program.line)
            self.assertRegex(program.read_line(), r"\ASHA-256 of its certificate: ([0-9A-F]{2}:){31}[0-9A-F]{2}\Z")
            program.port = int(found[2])
            for method in ("GET", "HEAD", "POST"):
                response = program.ask(method, "/a//b?c=d", Host="named.example:80")
                self.assertEqual(response.status, 308)
                self.assertEqual(response.headers["Location"], f"https://named.example:{found[1]}/a//b?c=d")
                self.assertIsNone(response.headers["Strict-Transport-Security"])
            self.assertEqual(program.ask("GET", "/", Host="a%2Fb").status, 400)

    def test_each_start_makes_another_certificate(self):
        lines = set()
        for _ in range(2):
            with serve(self.directory, "--tls-self-signed") as program:
                lines.add(program.read_line())
        self.assertEqual(len(lines), 2)

    def test_the_configuration_file_has_them_too(self):
        path = self.write("server.toml", b"tls-self-signed = true\nredirect-port = 0\nport = 0\naddress = \"127.0.0.1\"\n")
        with Program("serve", self.directory, "--config", path) as program:
            self.assertRegex(program.line, r" at https://127\.0\.0\.1:\d+ and sends there ")
            self.assertIn("SHA-256", program.read_line())

    def test_the_demo_tells_of_a_plain_connection(self):
        with serve(self.directory, "--demo") as program:
            response = program.ask("GET", "/tls")
            self.assertEqual((response.status, response.body), (200, b"null"))
            self.assertEqual(response.headers["Content-Type"], "application/json")

    def test_a_hangup_ends_a_server_without_tls(self):
        with serve(self.directory) as program:
            program.process.send_signal(signal.SIGHUP)
            self.assertEqual(program.process.wait(LIMIT_S), -signal.SIGHUP)

    def test_a_hangup_of_a_server_with_tls_is_told_and_it_goes_on(self):
        chain, key = self.directory / "chain.pem", self.directory / "key.pem"
        for path, source in zip((chain, key), certificates.ecdsa()):
            path.write_bytes(source.read_bytes())
        with serve(self.directory, "--tls", chain, key, "--redirect-port", 0) as program:
            program.port = int(program.line.rsplit(":", 1)[1].split()[0])
            lines = []
            for line in ("SIGHUP: the certificates were read again", f"error: SIGHUP: the certificates stay as they were: {chain} cannot "
                         "be read: No such file or directory"):
                program.process.send_signal(signal.SIGHUP)
                lines.append(line)
                deadline = time.monotonic() + LIMIT_S
                while program.stderr().count("\n") < len(lines):
                    self.assertLess(time.monotonic(), deadline)
                    os.sched_yield()
                self.assertEqual(program.stderr().splitlines(), lines)
                self.assertEqual(program.ask("GET", "/").status, 308)
                chain.unlink(missing_ok=True)


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

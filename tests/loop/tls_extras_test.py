#!/usr/bin/env python3
"""What TLS has besides: stapled OCSP responses, and the log of secrets.

PENSTOCK_PROGRAM is the program. Which wolfSSL it has shows in whether it takes --tls-key-log.
"""

import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import _certificates as certificates
from program_test import LIMIT_S, PROGRAM, WithDirectory, run, serve

REQUEST = b"GET /plaintext HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
FLAGS = ("-tls1_2", "-tls1_3")


class Extras(WithDirectory):
    def s_client(self, program, *arguments):
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{program.port}", "-servername", "localhost", "-ign_eof",
                   *map(str, arguments)]
        done = subprocess.run(command, input=REQUEST, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2 * LIMIT_S)
        return done.stdout.decode(errors="replace")

    def signed_chain(self):
        """A certificate with its authority behind it, and its key."""
        leaf, key = certificates.signed("stapled", "/CN=localhost", ("-addext", "basicConstraints=CA:FALSE", "-addext", certificates.NAMES))
        chain = self.write("chain.pem", leaf.read_bytes() + certificates.authority()[0].read_bytes())
        return leaf, chain, key

    def response(self, leaf):
        """The authority's word about it."""
        ca, ca_key = certificates.authority()
        serial = certificates.openssl("x509", "-in", leaf, "-noout", "-serial").strip().split("=")[1]
        index = self.write("index.txt", f"V\t301231000000Z\t\t{serial}\tunknown\t/CN=localhost\n".encode())
        file = self.directory / f"{leaf.stem}.der"
        certificates.openssl("ocsp", "-index", index, "-CA", ca, "-rsigner", ca, "-rkey", ca_key, "-issuer", ca, "-cert", leaf,
                             "-respout", file, "-ndays", 7)
        return file

    def test_a_response_is_stapled(self):
        leaf, chain, key = self.signed_chain()
        with serve(self.directory, "--demo", "--tls", chain, key, "--tls-ocsp", self.response(leaf)) as program:
            for flag in FLAGS:
                with self.subTest(flag=flag):
                    told = self.s_client(program, flag, "-status", "-CAfile", certificates.authority()[0])
                    self.assertIn("OCSP Response Status: successful", told)
                    self.assertIn("Cert Status: good", told)
                    self.assertIn("Verify return code: 0 (ok)", told)
                    self.assertIn("Hello, World!", told)
                    self.assertIn("Hello, World!", self.s_client(program, flag))  # who does not ask for it

    def test_a_wrong_response_is_told_at_the_start(self):
        leaf, chain, key = self.signed_chain()
        other, _ = certificates.signed("another", "/CN=other")
        for file, pair, more, reason in (
            (self.response(other), (chain, key), (), "no OCSP response in DER about the certificate"),
            (self.write("garbage.der", b"garbage"), (chain, key), (), "no OCSP response in DER"),
            (self.response(leaf), (leaf, key), (), "the chain of its certificate does not have the authority's"),
            (self.response(leaf), (chain, key), ("--tls-client-ca", certificates.authority()[0], "--tls-client-certificate", "optional"),
             "leave it out where clients are asked"),
            (self.directory / "nowhere.der", (chain, key), (), "cannot be read"),
        ):
            with self.subTest(reason=reason):
                done = run("serve", self.directory, "--port", 0, "--tls", *pair, "--tls-ocsp", file, *more)
                self.assertEqual(done.returncode, 1)
                self.assertIn(reason, done.stderr)

    def test_the_log_of_secrets(self):
        chain, key = certificates.ecdsa()
        log, own = self.directory / "keys.log", self.directory / "own.log"
        refused = run("serve", self.directory, "--port", 0, "--tls", chain, key, "--tls-key-log", self.directory / "no/where")
        self.assertEqual(refused.returncode, 1)
        if "PENSTOCK_WOLFSSL=bundled" in refused.stderr:
            return  # the system's library tells no secrets
        self.assertIn("no/where cannot be written", refused.stderr)
        program = self.enterContext(serve(self.directory, "--demo", "--tls", chain, key, "--tls-key-log", log))
        self.assertIn("Hello, World!", self.s_client(program, "-tls1_3", "-keylogfile", own))
        lines = set(log.read_text().splitlines())
        theirs = {line for line in own.read_text().splitlines() if "TRAFFIC" in line}
        self.assertEqual(len(theirs), 4)
        self.assertEqual({line for line in lines if "TRAFFIC" in line}, theirs)
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

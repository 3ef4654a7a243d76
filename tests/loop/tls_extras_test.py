#!/usr/bin/env python3
"""What TLS has besides: the log of secrets.

PENSTOCK_PROGRAM is the program. Which wolfSSL it has shows in whether it takes --tls-key-log.
"""

import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import _certificates as certificates
from program_test import LIMIT_S, PROGRAM, WithDirectory, run, serve

REQUEST = b"GET /plaintext HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Extras(WithDirectory):
    def s_client(self, program, *arguments):
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{program.port}", "-servername", "localhost", "-ign_eof",
                   *map(str, arguments)]
        done = subprocess.run(command, input=REQUEST, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2 * LIMIT_S)
        return done.stdout.decode(errors="replace")

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

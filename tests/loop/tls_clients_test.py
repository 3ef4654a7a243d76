#!/usr/bin/env python3
"""TLS with clients that others wrote: curl and openssl (OpenSSL), GnuTLS, Node, Python, Chromium.

PENSTOCK_PROGRAM is the program.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
import _certificates as certificates
from _devtools import BROWSER, Chromium
from program_test import LIMIT_S, OUTCOME, PROGRAM, SITE, WithDirectory, serve

VERSIONS = {"1.2": "TLSv1.2", "1.3": "TLSv1.3"}
KINDS = {"ecdsa": certificates.ecdsa, "rsa": certificates.rsa}
REQUEST = b"GET /tls HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
# Several records, and no multiple of anything.
BODY = os.urandom(1_000_003)

NODE_CLIENT = """
const https = require("https");
const [port, version, cert, key] = process.argv.slice(1);
const fs = require("fs");
const agent = new https.Agent({keepAlive: false, maxCachedSessions: 10});
const options = {host: "127.0.0.1", port, path: "/tls", servername: "localhost", rejectUnauthorized: false, agent,
                 minVersion: version, maxVersion: version,
                 ...(cert ? {cert: fs.readFileSync(cert), key: fs.readFileSync(key)} : {})};
const ask = () => new Promise((done, failed) => https.get(options, (response) => {
    let text = "";
    response.on("data", (piece) => { text += piece; });
    response.on("end", () => done(JSON.parse(text)));
}).on("error", failed));
ask().then((first) => ask().then((second) => console.log(JSON.stringify([first, second]))));
"""


class Secured(WithDirectory):
    def start(self, *arguments, chains=None):
        options = [word for pair in chains or [certificates.ecdsa()] for word in ("--tls", *pair)]
        return self.enterContext(serve(self.directory, "--demo", *options, *arguments))

    def run_client(self, *command, **options):
        return subprocess.run([*map(str, command)], capture_output=True, timeout=2 * LIMIT_S, **options)

    def curl(self, program, path, *arguments):
        url = f"https://localhost:{program.port}{path}"
        return self.run_client("curl", "--silent", "--show-error", "--insecure", "--noproxy", "*", "--resolve",
                               f"localhost:{program.port}:127.0.0.1", "--max-time", LIMIT_S, *arguments, url)

    def s_client(self, program, *arguments, request=REQUEST):
        """Reads until the server ends, since its input stays open: what it printed, both streams."""
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{program.port}", "-servername", "localhost", "-ign_eof",
                   *map(str, arguments)]
        done = subprocess.run(command, input=request, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2 * LIMIT_S)
        return done.stdout.decode(errors="replace")

    def gnutls(self, program, *arguments):
        done = self.run_client("gnutls-cli", "--no-ca-verification", "--port", program.port, "--sni-hostname", "localhost",
                               "--logfile", self.directory / "gnutls.log", *arguments, "127.0.0.1", input=REQUEST)
        return done.stdout.decode(errors="replace") + (self.directory / "gnutls.log").read_text(errors="replace")

    def node(self, program, version, *pair):
        done = self.run_client("node", "-e", NODE_CLIENT, program.port, VERSIONS[version], *pair)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)


class EveryClient(Secured):
    def check_each(self, check):
        """With each kind of certificate, and in each version."""
        for kind, pair in KINDS.items():
            program = self.start(chains=[pair()])
            for version in VERSIONS:
                with self.subTest(kind=kind, version=version):
                    check(program, kind, version)

    def test_curl(self):
        def check(program, kind, version):
            only = (f"--tlsv{version}", "--tls-max", version)
            done = self.curl(program, "/tls", *only)
            self.assertEqual(done.returncode, 0, done.stderr)
            told = json.loads(done.stdout)
            self.assertEqual((told["version"], told["server_name"]), (VERSIONS[version], "localhost"))
            if version == "1.2":
                self.assertIn("-" + kind.upper() + "-", told["suite"])
            self.assertEqual(self.curl(program, "/body", *only).stdout, BODY)
            upload = self.curl(program, "/echo", *only, "--data-binary", "@" + str(self.directory / "body"), "-H", "Expect:")
            self.assertEqual(upload.stdout, BODY)
            part = self.curl(program, "/body", *only, "--range", "500000-500099")
            self.assertEqual(part.stdout, BODY[500_000:500_100])

        self.write("body", BODY)
        self.check_each(check)

    def test_openssl_resumes(self):
        def check(program, _, version):
            kept = self.directory / f"session-{version}"
            flag = "-tls" + version.replace(".", "_")
            first = self.s_client(program, flag, "-sess_out", kept)
            self.assertIn('"resumed":false', first)
            self.assertIn("New, " + VERSIONS[version], first)
            second = self.s_client(program, flag, "-sess_in", kept)
            self.assertIn('"resumed":true', second)
            self.assertIn("Reused, " + VERSIONS[version], second)
            self.assertIn("Secure Renegotiation IS" if version == "1.2" else "TLSv1.3", second)
            self.assertIn("Compression: NONE", second)

        self.check_each(check)

    def ticket_of_another(self, suite, limit):
        """Of a server that has the same name, and takes so much early data."""
        kept = self.directory / suite
        chain, key = certificates.ecdsa()
        command = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-cert", chain, "-key", key, "-early_data",
                   "-max_early_data", str(limit), "-no_anti_replay", "-ciphersuites", suite]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as other:
            end = threading.Timer(LIMIT_S, other.kill)
            end.start()
            try:
                line = next(line for line in other.stdout if line.startswith("ACCEPT"))
                command = ["openssl", "s_client", "-connect", line.split()[1], "-servername", "localhost", "-ign_eof", "-sess_out", kept]
                with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
                    client.stdin.write(b"all has come\n")
                    client.stdin.close()
                    next(line for line in other.stdout if "all has come" in line)
                    other.communicate("Q\n", LIMIT_S)  # it ends, and with it the client
            finally:
                end.cancel()
                other.kill()
        return kept

    def test_openssl_with_another_servers_ticket(self):
        limit = 60_000
        program = self.start()
        for suite in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"):
            ticket = ("-sess_in", self.ticket_of_another(suite, limit))
            self.assertIn('"resumed":false', self.s_client(program, *ticket))
            self.assertIn('"resumed":false', self.s_client(program, *ticket, "-groups", "X448:P-384"))  # says hello twice
            # Early data was promised by the other one (RFC 8446 section 4.2.10). 36 bytes: a record like the last of a handshake.
            for size in (1, 36, 17_000, limit):
                with self.subTest(suite=suite, size=size):
                    early = ("-early_data", self.write("early", b"e" * size))
                    told = self.s_client(program, *ticket, *early)
                    self.assertIn("Early data was rejected", told)
                    self.assertIn('"resumed":false', told)
                    told = self.s_client(program, *ticket, *early, "-groups", "X25519")
                    self.assertIn("alert bad record mac", told)  # with no other group nothing can be done for it

    def test_gnutls_resumes(self):
        def check(program, _, version):
            priority = f"NORMAL:-VERS-ALL:+VERS-TLS{version}"
            told = self.gnutls(program, "--priority", priority)
            self.assertIn(f'"version":"{VERSIONS[version]}"', told)
            # In TLS 1.3 the tickets come behind the handshake, and are waited for.
            resumed = self.gnutls(program, "--priority", priority, "--resume", *["--waitresumption"] * (version == "1.3"))
            self.assertIn('"resumed":true', resumed)

        self.check_each(check)

    def test_node(self):
        def check(program, _, version):
            first, second = self.node(program, version)
            self.assertEqual((first["version"], first["resumed"]), (VERSIONS[version], False))
            self.assertTrue(second["resumed"])

        self.check_each(check)

    def test_python_resumes(self):
        def check(program, _, version):
            context = python_context(version)
            first, session = ask(program, context)
            self.assertEqual((first["version"], first["resumed"]), (VERSIONS[version], False))
            second, _ = ask(program, context, session)
            self.assertTrue(second["resumed"])

        self.check_each(check)

    @unittest.skipUnless(BROWSER, "there is no Chromium here")
    def test_chromium(self):
        chain, key = certificates.ecdsa()
        with serve(SITE, "--tls", chain, key) as program, tempfile.TemporaryDirectory() as profile, \
                Chromium(pathlib.Path(profile) / "profile") as browser:
            browser.call("Security.setIgnoreCertificateErrors", ignore=True)
            browser.navigate(f"https://127.0.0.1:{program.port}/")
            document = browser.evaluate(OUTCOME)
            # The page's own checks: styles, script, font, pictures and a fetch have come, and none has failed.
            self.assertRegex(document, r'<html [^>]*data-checks="6" data-failed="0"')


class ClientCertificates(Secured):
    def start_asking(self, kind):
        return self.start("--tls-client-ca", certificates.authority()[0], "--tls-client-certificate", kind)

    def curl_with(self, program, pair, version):
        shown = ("--cert", pair[0], "--key", pair[1]) if pair else ()
        return self.curl(program, "/tls", f"--tlsv{version}", "--tls-max", version, *shown)

    def test_required(self):
        program = self.start_asking("required")
        for version in VERSIONS:
            with self.subTest(version=version):
                done = self.curl_with(program, certificates.client(), version)
                self.assertEqual(json.loads(done.stdout)["client_subject"], "/C=NZ/O=Example/CN=alice")
                self.assertNotEqual(self.curl_with(program, None, version).returncode, 0)
                self.assertNotEqual(self.curl_with(program, certificates.stranger(), version).returncode, 0)

    def test_optional(self):
        program = self.start_asking("optional")
        for version in VERSIONS:
            with self.subTest(version=version):
                done = self.curl_with(program, certificates.client(), version)
                self.assertEqual(json.loads(done.stdout)["client_subject"], "/C=NZ/O=Example/CN=alice")
                self.assertEqual(json.loads(self.curl_with(program, None, version).stdout)["client_subject"], "")
                self.assertNotEqual(self.curl_with(program, certificates.stranger(), version).returncode, 0)

    def test_others(self):
        program = self.start_asking("required")
        chain, key = certificates.client()
        self.assertIn("CN=alice", self.s_client(program, "-cert", chain, "-key", key))
        self.assertIn("CN=alice", self.gnutls(program, "--x509certfile", chain, "--x509keyfile", key))
        for version in VERSIONS:
            first, second = self.node(program, version, chain, key)
            self.assertIn("CN=alice", first["client_subject"])
            # Whoever resumes is not asked again, so nobody may.
            self.assertEqual((second["client_subject"], second["resumed"]), (first["client_subject"], False))

    def test_others_with_a_strangers_certificate(self):
        chain, key = certificates.stranger()
        for kind in ("required", "optional"):
            program = self.start_asking(kind)
            for version in VERSIONS:
                with self.subTest(kind=kind, version=version):
                    told = self.s_client(program, "-tls" + version.replace(".", "_"), "-cert", chain, "-key", key)
                    self.assertRegex(told, "alert (unknown ca|bad certificate)")  # the latter with Debian's wolfSSL
                    self.assertNotIn("HTTP/1.1", told)
                    told = self.gnutls(program, "--priority", f"NORMAL:-VERS-ALL:+VERS-TLS{version}", "--x509certfile", chain, "--x509keyfile", key)
                    self.assertIn("alert", told)
                    self.assertNotIn("HTTP/1.1", told)
                    done = self.run_client("node", "-e", NODE_CLIENT, program.port, VERSIONS[version], chain, key)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(b"alert", done.stderr)


class Choices(Secured):
    def test_protocol(self):
        program = self.start()
        self.assertIn("ALPN protocol: http/1.1", self.s_client(program, "-alpn", "h2,http/1.1"))
        self.assertIn("ALPN protocol: http/1.1", self.s_client(program, "-alpn", "http/1.0,http/1.1"))
        self.assertIn("ALPN protocol: http/1.0", self.s_client(program, "-alpn", "http/1.0"))
        self.assertIn("No ALPN negotiated", self.s_client(program))
        self.assertIn("no application protocol", self.s_client(program, "-alpn", "h2"))

    def test_certificate_by_name_and_kind(self):
        program = self.start(chains=[certificates.ecdsa(), certificates.rsa(), certificates.other()])
        for name, wanted in (("localhost", "ecdsa"), ("a.example.org", "ecdsa"), ("other.example.net", "other"), ("x", "ecdsa")):
            with self.subTest(name=name):
                self.assertEqual(shown(program, name), certificates.fingerprint(getattr(certificates, wanted)()[0]))
        told = self.s_client(program, "-sigalgs", "RSA-PSS+SHA256:RSA+SHA256")
        self.assertIn("Peer signature type: RSA-PSS", told)
        self.assertIn("ECDHE-RSA", self.s_client(program, "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"))

    def test_ed25519(self):
        program = self.start(chains=[certificates.ed25519()])
        self.assertIn("Peer signature type: ed25519", self.s_client(program))

    def test_what_is_old_is_refused(self):
        program = self.start()
        for arguments in (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1", "-cipher", "ALL:@SECLEVEL=0"],
                          *(["-tls1_2", "-cipher", f"{suite}:@SECLEVEL=0"] for suite in
                            ("ECDHE-ECDSA-NULL-SHA", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-SHA256", "AES128-GCM-SHA256"))):
            with self.subTest(arguments=arguments):
                told = self.s_client(program, *arguments)
                self.assertIn("alert", told)
                self.assertNotIn("HTTP/1.1 200", told)

    def test_minimum_version(self):
        program = self.start("--tls-minimum", "1.3")
        self.assertIn("protocol version", self.s_client(program, "-tls1_2"))
        self.assertIn("HTTP/1.1 200", self.s_client(program, "-tls1_3"))

    def test_no_renegotiation(self):
        program = self.start()
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{program.port}", "-tls1_2", "-ign_eof"]
        for before, wanted in ((b"", True), (b"R\n", False)):
            if before:
                command.remove("-ign_eof")  # by which a line is a command no longer
            done = subprocess.run(command, input=before + REQUEST, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2 * LIMIT_S)
            self.assertEqual(b"HTTP/1.1 200" in done.stdout, wanted)
            self.assertEqual(b"RENEGOTIATING" in done.stdout, not wanted)
            self.assertEqual(b"alert unexpected message" in done.stdout, not wanted)  # fatal, and from the server


def python_context(version, **options):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, "TLSv" + version.replace(".", "_"))
    return context


def connect(program, context, session=None, name="localhost"):
    plain = socket.create_connection(("127.0.0.1", program.port), LIMIT_S)
    try:
        return context.wrap_socket(plain, server_hostname=name, session=session, suppress_ragged_eofs=False)
    except BaseException:
        plain.close()
        raise


def ask(program, context, session=None):
    """What the server tells of the connection, and the session."""
    with contextlib.closing(connect(program, context, session)) as secured:
        secured.sendall(REQUEST)
        answer = b""
        while piece := secured.recv(65_536):
            answer += piece
        return json.loads(answer.split(b"\r\n\r\n", 1)[1]), secured.session


def shown(program, name):
    """The fingerprint of the certificate that is shown for the name."""
    with contextlib.closing(connect(program, python_context("1.3"), name=name)) as secured:
        return hashlib.sha256(secured.getpeercert(True)).hexdigest()


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

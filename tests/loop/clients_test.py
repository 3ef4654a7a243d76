#!/usr/bin/env python3
"""Clients that others wrote, on loopback: curl, Python's http.client, node's http and fetch; and a half-close.

PENSTOCK_PROGRAM is the program. A client that is not installed is skipped.
"""

import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import _transport as transport
from program_test import LIMIT_S, PROGRAM, WithDirectory, serve

CURL = shutil.which("curl")
NODE = shutil.which("node")
# Several of the server's blocks, and no multiple of anything.
BODY = os.urandom(300_007)
GREETING = b"Hello, World!"


class Client(WithDirectory):
    def setUp(self):
        super().setUp()
        self.program = self.enterContext(serve(self.directory, "--demo"))
        self.base = f"{transport.SCHEME}://127.0.0.1:{self.program.port}"


@unittest.skipUnless(CURL, "there is no curl here")
class Curl(Client):
    def curl(self, *arguments, **options):
        """What it printed: bodies, and what is asked for by -w or -i."""
        command = [CURL, "--silent", "--show-error", "--max-time", str(LIMIT_S), "--noproxy", "*", *transport.CURL, *arguments]
        done = subprocess.run(command, capture_output=True, timeout=2 * LIMIT_S, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.errors = done.stderr.decode()
        return done.stdout

    def test_both_versions(self):
        for version in ("--http1.0", "--http1.1"):
            for path in ("/plaintext", "/large", "/stream/300000", "/stream/300000?length", "/stream/0"):
                with self.subTest(version=version, path=path):
                    head = self.directory / "head"
                    output = self.curl(version, "-D", head, "-w", "%{http_code} %{http_version}", self.base + path)
                    self.assertEqual(output, self.program.ask("GET", path).body + b"200 1.1")
                    in_chunks = version == "--http1.1" and path.startswith("/stream") and "?" not in path
                    self.assertEqual(b"Transfer-Encoding: chunked" in head.read_bytes(), in_chunks)

    def test_many_on_one_connection(self):
        paths = "/plaintext /stream/300000 /large /stream/70000?length /missing /json /stream/0 /f".split()
        urls = [argument for path in paths for argument in ("-o", os.devnull, self.base + path)]
        output = self.curl("-w", "%{http_code} %{num_connects}\n", *urls).decode().splitlines()
        statuses = [404 if path == "/missing" else 200 for path in paths]
        self.assertEqual(output, [f"{status} {int(i == 0)}" for i, status in enumerate(statuses)])

    def test_one_connection_of_http_1_0(self):
        fields = ["--http1.0", "-H", "Connection: keep-alive"]
        urls = [self.base + "/plaintext", self.base + "/json"]
        output = self.curl(*fields, "-w", " %{num_connects}\n", *urls).decode().splitlines()
        self.assertEqual(output, ["Hello, World! 1", '{"message":"Hello, World!"} 0'])

    def test_uploads_that_wait_for_100(self):
        file = self.write("body", BODY)
        wait = ["--expect100-timeout", str(LIMIT_S), "-H", "Expect: 100-continue", "-w", " %{num_connects}\n", "-v"]
        for path in ("/echo", "/count"):
            wanted = BODY if path == "/echo" else str(len(BODY)).encode()
            for source, options in (("file", {}), ("pipe", {"input": BODY})):
                with self.subTest(path=path, source=source):
                    # A file twice, so that the second finds the connection as the first left it. A pipe ends once.
                    answers = [wanted + b" 1\n"] + [wanted + b" 0\n"] * (source == "file")
                    once = ["-T", file if source == "file" else "-", self.base + path]
                    output = self.curl(*wait, *once * len(answers), **options)
                    self.assertEqual(output, b"".join(answers))
                    self.assertEqual(self.errors.count("< HTTP/1.1 100 Continue"), len(answers))
                    self.assertEqual("> Transfer-Encoding: chunked" in self.errors, source == "pipe")
                    # It would wait for the whole of its time-out otherwise.
                    self.assertNotIn("Done waiting for 100-continue", self.errors)

    def test_uploads_that_do_not_wait(self):
        file = self.write("body", BODY)
        for path, wanted in (("/echo", BODY), ("/count", str(len(BODY)).encode())):
            for version in ("--http1.0", "--http1.1"):
                with self.subTest(path=path, version=version):
                    self.assertEqual(self.curl(version, "-H", "Expect:", "-T", file, self.base + path), wanted)

    def test_an_upload_that_is_refused_before_it_is_sent(self):
        file = self.write("body", b"x" * 2_000_000)  # more than the server takes for /echo
        wait = ["--expect100-timeout", str(LIMIT_S), "-H", "Expect: 100-continue", "-o", os.devnull]
        output = self.curl(*wait, "-w", "%{http_code} %{size_upload}", "-T", file, self.base + "/echo")
        self.assertEqual(output, b"413 0")

    def test_head_and_options(self):
        for path in ("/large", "/stream/300000", "/stream/300000?length"):
            urls = [self.base + path] * 2
            output = self.curl("-I", "-w", "%{http_code} %{num_connects}\n", *urls).decode()
            self.assertIn("\r\n\r\n200 1\n", output)
            self.assertTrue(output.endswith("\r\n\r\n200 0\n"), output)
        self.assertIn("Content-Length: 102400\r\n", self.curl("-I", self.base + "/large").decode())
        output = self.curl("-i", "-X", "OPTIONS", self.base + "/only-get").decode()
        self.assertIn("\r\nAllow: GET, HEAD, OPTIONS\r\n", output)
        output = self.curl("-i", "-X", "OPTIONS", "--request-target", "*", self.base).decode()
        self.assertRegex(output, r"\AHTTP/1\.1 20[04] ")


class Python(Client):
    def test_one_connection_for_all(self):
        connection = self.enterContext(self.program.connect())

        def answer(method, path, body=None, **options):
            connection.request(method, path, body, **options)
            sock = connection.sock
            response = connection.getresponse()
            read = response.read()
            self.assertIs(connection.sock, sock, "the connection was closed")
            return response.status, read

        count = str(len(BODY)).encode()
        pieces = [BODY[at:at + 9_999] for at in range(0, len(BODY), 9_999)]
        for _ in range(3):
            self.assertEqual(answer("GET", "/plaintext"), (200, GREETING))
            self.assertEqual(answer("POST", "/count", BODY), (200, count))
            self.assertEqual(answer("POST", "/count", iter(pieces)), (200, count))  # without a length, so in chunks
            self.assertEqual(answer("PUT", "/echo", iter(pieces), encode_chunked=True), (200, BODY))
            self.assertEqual(len(answer("GET", "/stream/300000")[1]), 300_000)
            self.assertEqual(answer("HEAD", "/stream/300000"), (200, b""))
            self.assertEqual(answer("POST", "/count", b""), (200, b"0"))
            self.assertEqual(answer("POST", "/count", iter([])), (200, b"0"))


NODE_AGENT = r"""
const http = require(process.env.PENSTOCK_TLS ? 'https' : 'http');
const port = Number(process.argv[1]);
const agent = new http.Agent({keepAlive: true, maxSockets: 1});
const locals = new Set();
function ask(method, path, pieces) {
    return new Promise((resolve, reject) => {
        const request = http.request({host: '127.0.0.1', port, method, path, agent}, response => {
            const parts = [];
            response.on('data', part => parts.push(part));
            response.on('end', () => resolve([response.statusCode, Buffer.concat(parts).length]));
        });
        request.on('socket', socket => socket.connecting
            ? socket.once('connect', () => locals.add(socket.localPort)) : locals.add(socket.localPort));
        request.on('error', reject);
        for (const piece of pieces ?? []) request.write(piece);
        request.end();
    });
}
(async () => {
    const answers = [];
    for (let round = 0; round < 3; ++round) {
        answers.push(await ask('GET', '/plaintext'));
        answers.push(await ask('POST', '/count', Array(30).fill('x'.repeat(10001))));
        answers.push(await ask('POST', '/echo', ['a', 'bc']));
        answers.push(await ask('GET', '/stream/300000'));
        answers.push(await ask('HEAD', '/large'));
    }
    answers.push(...await Promise.all(Array.from({length: 20}, () => ask('GET', '/plaintext'))));
    console.log(JSON.stringify({answers, connections: locals.size}));
    agent.destroy();
})();
"""

NODE_FETCH = r"""
const base = process.argv[1];
(async () => {
    const answers = [];
    const ask = async (path, options) => {
        const response = await fetch(base + path, options);
        answers.push([response.status, (await response.arrayBuffer()).byteLength]);
    };
    await ask('/plaintext');
    await ask('/stream/300000');
    await ask('/stream/300000?length');
    await ask('/echo', {method: 'POST', body: 'x'.repeat(300007)});
    const pieces = new ReadableStream({
        start(controller) {
            for (let i = 0; i < 30; ++i) controller.enqueue(new Uint8Array(10001));
            controller.close();
        }
    });
    await ask('/echo', {method: 'PUT', body: pieces, duplex: 'half'});
    await ask('/large', {method: 'HEAD'});
    await Promise.all(Array.from({length: 20}, () => ask('/small')));
    // One that stops reading in the middle.
    const aborted = new AbortController();
    const response = await fetch(base + '/stream/1000000000', {signal: aborted.signal});
    await response.body.getReader().read();
    aborted.abort();
    await ask('/plaintext');
    console.log(JSON.stringify(answers));
})();
"""

# Requests written at once; the answers are ended by the last of them.
NODE_PIPELINE = r"""
const socket = require(process.env.PENSTOCK_TLS ? 'tls' : 'net').connect(Number(process.argv[1]), '127.0.0.1');
const get = (path, fields = '') => `GET ${path} HTTP/1.1\r\nHost: node\r\n${fields}\r\n`;
const post = `POST /count HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n`;
socket.write(get('/plaintext').repeat(100) + post + get('/stream/100000?length') + post +
             get('/plaintext').repeat(100) + get('/f', 'Connection: close\r\n'));
let bytes = '';
socket.setEncoding('latin1');
socket.on('data', data => bytes += data);
socket.on('end', () => console.log(JSON.stringify({
    answers: bytes.split('HTTP/1.1 200 OK').length - 1,
    greetings: bytes.split('Hello, World!').length - 1,
    counts: bytes.split('Content-Length: 1\r\n\r\n5').length - 1,
    whole: bytes.endsWith('abcdefghijklmnopqrstuvwxyz'),
})));
"""


@unittest.skipUnless(NODE, "there is no node here")
class Node(Client):
    def node(self, script, argument):
        done = subprocess.run([NODE, "-e", script, str(argument)], capture_output=True, timeout=4 * LIMIT_S, text=True,
                              env=os.environ | transport.NODE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_an_agent_keeps_its_connection(self):
        told = self.node(NODE_AGENT, self.program.port)
        rounds = [[200, 13], [200, 6], [200, 3], [200, 300_000], [200, 0]] * 3
        self.assertEqual(told, {"answers": rounds + [[200, 13]] * 20, "connections": 1})

    def test_fetch(self):
        if subprocess.run([NODE, "-e", "fetch"], capture_output=True, timeout=LIMIT_S).returncode != 0:
            self.skipTest("this node has no fetch")
        told = self.node(NODE_FETCH, self.base)
        self.assertEqual(told, [[200, 13], [200, 300_000], [200, 300_000], [200, 300_007], [200, 300_030], [200, 0]]
                         + [[200, 128]] * 20 + [[200, 13]])

    def test_pipelining(self):
        told = self.node(NODE_PIPELINE, self.program.port)
        self.assertEqual(told, {"answers": 204, "greetings": 200, "counts": 2, "whole": True})


@unittest.skipIf(transport.SECURED, "Python ends both sides of TLS at once; tls_wire_test has it")
class HalfClose(Client):
    """A client that says by FIN that its request is whole, and then reads."""

    def answer(self, request):
        with socket.create_connection(("127.0.0.1", self.program.port), LIMIT_S) as client:
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            response = http.client.HTTPResponse(client)
            response.begin()
            body = response.read()
            self.assertEqual(client.recv(1), b"")  # nobody will ask again
            return response.status, body

    def test_it_is_answered(self):
        get = "GET {} HTTP/1.1\r\nHost: half\r\n\r\n"
        self.assertEqual(self.answer(get.format("/plaintext").encode()), (200, GREETING))
        self.assertEqual(len(self.answer(get.format("/large").encode())[1]), 102_400)
        # Much more than the sockets hold, so that it is written long after the FIN has come.
        for query in ("", "?length"):
            self.assertEqual(len(self.answer(get.format("/stream/20000000" + query).encode())[1]), 20_000_000)
        head = "POST {} HTTP/1.1\r\nHost: half\r\n{}\r\n"
        length = f"Content-Length: {len(BODY)}\r\n"
        self.assertEqual(self.answer(head.format("/echo", length).encode() + BODY), (200, BODY))
        self.assertEqual(self.answer(head.format("/count", length).encode() + BODY), (200, str(len(BODY)).encode()))
        chunks = f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n\r\n"
        chunked = head.format("/count", "Transfer-Encoding: chunked\r\n").encode() + chunks
        self.assertEqual(self.answer(chunked), (200, str(len(BODY)).encode()))

    def test_all_of_a_pipeline_is_answered(self):
        request = b"GET /plaintext HTTP/1.1\r\nHost: half\r\n\r\nGET /stream/200000 HTTP/1.1\r\nHost: half\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.program.port), LIMIT_S) as client:
            client.sendall(request * 50)
            client.shutdown(socket.SHUT_WR)
            with client.makefile("rb") as answers:
                everything = answers.read()
        self.assertEqual(everything.count(b"HTTP/1.1 200 OK\r\n"), 100)
        self.assertTrue(everything.endswith(b"\r\n0\r\n\r\n"))


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

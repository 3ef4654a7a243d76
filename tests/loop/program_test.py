#!/usr/bin/env python3
"""The server program from outside: its lines, its errors, its exit status, what it serves, and how it ends.

PENSTOCK_PROGRAM is the program, PENSTOCK_SOURCE_DIR (or the place of this file) the source tree.
"""

import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
import _transport as transport
from _devtools import BROWSER, Chromium

PROGRAM = os.environ.get("PENSTOCK_PROGRAM", "")
SOURCE = pathlib.Path(os.environ.get("PENSTOCK_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
SITE = SOURCE / "docs/examples/site"
LIMIT_S = 30  # far beyond what anything here needs, sanitizers included
VERSION = r"penstock \d+\.\d+\.\d+"


class Program:
    """One running server. Leaving the `with` ends it; unless something failed before, it must end well."""

    def __init__(self, *arguments):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.buffer = b""
        self.line = self.read_line()
        found = re.search(r"https?://(\S+):(\d+)", self.line)
        self.port = int(found.group(2)) if found else 0

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        try:
            if failure is None and self.process.poll() is None:
                self.process.terminate()
                status = self.process.wait(LIMIT_S)
                if status != 0:
                    raise AssertionError(f"it ended with {status}; stderr: {self.stderr()!r}")
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait(LIMIT_S)
            self.process.stdout.close()
            self.errors.close()

    def read_line(self):
        deadline = time.monotonic() + LIMIT_S
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not piece:
                raise AssertionError(f"no line came, only {self.buffer!r}; stderr: {self.stderr()!r}")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def stderr(self):
        # No seek: it would move the program's own place in the file, which is the same open file, and its next line
        # would go over the first.
        return os.pread(self.errors.fileno(), os.fstat(self.errors.fileno()).st_size, 0).decode()

    def end(self, *signals):
        """Sends the signals (SIGTERM); the exit status and the last line."""
        for number in signals or [signal.SIGTERM]:
            self.process.send_signal(number)
        line = self.read_line()
        return self.process.wait(LIMIT_S), line

    def connect(self):
        return transport.http_client(self.port, LIMIT_S, transport.SECURED and "https://" in self.line)

    def ask(self, method, target, body=None, **fields):
        """One request on a connection of its own: the response, with `body` read."""
        with self.connect() as connection:
            return exchange(connection, method, target, body, **fields)


def exchange(connection, method, target, body=None, **fields):
    connection.request(method, target, body, {name.replace("_", "-"): value for name, value in fields.items()})
    response = connection.getresponse()
    response.body = response.read()
    return response


def serve(directory, *arguments, reactors=1):
    return Program("serve", directory, "--address", "127.0.0.1", "--port", 0, "--reactors", reactors, *transport.server_options(),
                   *arguments)


def echo(*arguments):
    return Program("echo", "--address", "127.0.0.1", "--port", 0, "--reactors", 1, *arguments)


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S)


class WithDirectory(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, content):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


class CommandLine(WithDirectory):
    def refused(self, status, fragments, *arguments):
        """Ends with the status and one sentence on stderr that has the fragments; it is returned."""
        with self.subTest(arguments=arguments):
            done = run(*arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertRegex(done.stderr, r"\Apenstock: [^\n]+\n\Z")
            for fragment in fragments:
                self.assertIn(fragment, done.stderr)

    def test_help_and_version(self):
        options = "port address reactors pin steer-by-cpu connection-limit config idle-timeout drain-timeout".split()
        for arguments, wanted in (
            ([], ["serve", "echo", "--config", "--version", "SIGTERM"]),
            (["serve"], ["DIR", "--demo", "--listing", "--spa", "--compress", "--cache-control", *(f"--{name}" for name in options)]),
            (["echo"], [f"--{name}" for name in options]),
        ):
            with self.subTest(arguments=arguments):
                done = run(*arguments, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for text in wanted:
                    self.assertIn(text, done.stdout)
                self.assertLessEqual(max(map(len, done.stdout.splitlines())), 110)
        done = run("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, rf"\A{VERSION}\nTLS: wolfSSL [\d.]+, (bundled|the system's)\n\Z")

    def test_usage_errors(self):
        here = self.directory
        self.refused(2, ["no command", "penstock serve DIR"])
        self.refused(2, ["DIR is required"], "serve")
        self.refused(2, ['does not know "frobnicate"'], "frobnicate")
        self.refused(2, ['does not know "--prot"', "penstock serve --help"], "serve", here, "--prot", 80)
        self.refused(2, ['does not know "more"'], "serve", here, "more")
        self.refused(2, ['does not know "--demo"'], "echo", "--demo")
        self.refused(2, ["--port takes one value"], "serve", here, "--port")
        self.refused(2, ["--port takes one value"], "serve", here, "--port", 1, "--port", 2)
        for value in ("65536", "99999999999999999999", "-1", "1x", "0x10", ""):
            self.refused(2, ["--port", "a number from 0 to 65535"], "serve", here, "--port", value)
        self.refused(2, ["--cache-control", "is not PATTERN=VALUE"], "serve", here, "--cache-control", "*.css")
        self.refused(2, ["--steer-by-cpu", "--pin"], "serve", here, "--steer-by-cpu")

    def test_what_cannot_be_done(self):
        here = self.directory
        missing = here / "none"
        self.refused(1, [str(missing), "create it"], "serve", missing)
        self.refused(1, ["name the directory"], "serve", self.write("file", b"x"))
        self.refused(1, ["--spa: ", '"none.html"'], "serve", here, "--spa", "none.html")
        self.refused(1, ["localhost", "not numeric"], "serve", here, "--address", "localhost")
        self.refused(1, ["connection_limit is 0", "set it to"], "serve", here, "--connection-limit", 0)
        self.refused(1, [str(missing), "cannot be read"], "serve", here, "--config", missing)
        self.refused(1, [str(here), "cannot be read"], "serve", here, "--config", here)

    def test_a_port_that_is_taken(self):
        with serve(self.directory) as first:
            place = ["--address", "127.0.0.1", "--port", first.port]
            self.refused(1, [f"127.0.0.1:{first.port}", "choose another port"], "serve", self.directory, *place)
            self.refused(1, [f"127.0.0.1:{first.port}", "choose another port"], "echo", *place)
            self.assertEqual(first.ask("GET", "/").status, 404)

    def test_configuration_file(self):
        good = self.write("good.toml", b"# a comment\nport = 0\naddress = \"127.0.0.1\"\nreactors = 2\ndemo = true\n")
        with Program("serve", self.directory, "--config", good) as program:
            self.assertRegex(program.line, r" at http://127\.0\.0\.1:\d+ with 2 reactors$")
            self.assertEqual(program.ask("GET", "/plaintext").body, b"Hello, World!")
        with Program("--config", good, "serve", self.directory, "--reactors", 1, "--demo=false") as program:
            self.assertRegex(program.line, r" with 1 reactor$")
            self.assertEqual(program.ask("GET", "/plaintext").status, 404)
        for content, fragment in (
            (b"prot = 1\n", '"prot"'),
            (b"[serve]\nport = 1\n", '"serve"'),
            (b"port = many\n", "a number from 0 to 65535"),
            (b"demo = perhaps\n", "demo"),
        ):
            self.refused(2, [fragment], "serve", self.directory, "--config", self.write("bad.toml", content))


class Serving(WithDirectory):
    def test_options_of_files(self):
        self.write("app.html", b"app")
        self.write("style.css", b"css")
        rules = ["--cache-control", "*.css=max-age=3600, immutable", "--cache-control", "*=no-cache"]
        with serve(self.directory, "--listing", "--spa", "app.html", *rules) as program:
            self.assertIn(b'<a href="./style.css">', program.ask("GET", "/").body)
            self.assertEqual(program.ask("GET", "/settings/mine").body, b"app")
            self.assertEqual(program.ask("GET", "/none.css").status, 404)
            self.assertEqual(program.ask("GET", "/style.css").headers["cache-control"], "max-age=3600, immutable")
            self.assertEqual(program.ask("GET", "/app.html").headers["cache-control"], "no-cache")

    def test_first_and_last_line(self):
        with serve(self.directory) as program:
            self.assertRegex(
                program.line,
                rf"\A{VERSION} serves {re.escape(str(self.directory))} at {transport.SCHEME}://127\.0\.0\.1:\d+ with 1 reactor\Z",
            )
            self.assertEqual(program.ask("GET", "/none").status, 404)
            self.assertEqual(program.end(), (0, "penstock served 1 request"))
            self.assertEqual(program.stderr(), "")
        with Program("echo", "--port", 0, "--reactors", 2) as program:
            self.assertRegex(program.line, rf"\A{VERSION} echoes at http://localhost:\d+, on all addresses, with 2 reactors\Z")
            with program.connect() as connection:
                for _ in range(3):
                    self.assertEqual(exchange(connection, "GET", "/").status, 200)
            self.assertEqual(program.end(signal.SIGINT), (0, "penstock served 3 requests"))

    def test_the_sample_site_arrives_byte_by_byte(self):
        types = {
            ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".png": "image/png",
            ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".woff": "font/woff",
        }
        files = [path for path in SITE.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 5)
        with serve(SITE) as program, program.connect() as connection:
            for path in files:
                with self.subTest(path=path.name):
                    response = exchange(connection, "GET", "/" + path.relative_to(SITE).as_posix())
                    self.assertEqual(response.status, 200)
                    self.assertEqual(response.body, path.read_bytes())
                    self.assertEqual(response.headers["Content-Type"], types[path.suffix])
                    self.assertEqual(response.headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(exchange(connection, "GET", "/").body, (SITE / "index.html").read_bytes())
            self.assertEqual(exchange(connection, "GET", "/about/").body, (SITE / "about/index.html").read_bytes())
            moved = exchange(connection, "GET", "/about?q=1")
            self.assertEqual((moved.status, moved.headers["Location"]), (301, "/about/?q=1"))

    def test_nothing_outside_is_served(self):
        self.write("secret.txt", b"secret")
        site = self.write("site/public.txt", b"public").parent
        self.write("site/.hidden", b"secret")
        (site / "link.txt").symlink_to("../secret.txt")
        (site / "up").symlink_to("..")
        (site / "absolute.txt").symlink_to(self.directory / "secret.txt")
        targets = """
            /../secret.txt /%2e%2e/secret.txt /%2E%2E%2Fsecret.txt /..%2fsecret.txt /x/../../secret.txt
            /%252e%252e/secret.txt /..%252fsecret.txt /%25252e%25252e%25252fsecret.txt
            /..\\secret.txt /..%5csecret.txt /%2e%2e%5csecret.txt /%c0%ae%c0%ae/secret.txt /.../secret.txt
            /public.txt%00 /%00 /..%00/secret.txt /public.txt%00.html
            /link.txt /absolute.txt /up/secret.txt /up/ /up/site/public.txt
            /.hidden /%2ehidden //public.txt /.//public.txt /public.txt/ /public.txt/../../secret.txt
        """.split()
        targets += [f"/{self.directory}/secret.txt", f"/{self.directory}/secret.txt".replace("/", "%2f")]
        with serve(site) as program:
            for target in targets:
                with self.subTest(target=target):
                    response = program.ask("GET", target)
                    self.assertIn(response.status, (400, 404))
                    self.assertNotIn(b"secret", response.body)
                    self.assertNotIn(b"public", response.body)
            self.assertEqual(program.ask("GET", "/x/../public.txt").body, b"public")
            self.assertEqual(program.ask("GET", "/%70ublic.txt").body, b"public")

    def test_methods(self):
        self.write("a.txt", b"text")
        with serve(self.directory) as program, program.connect() as connection:
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                response = exchange(connection, method, "/a.txt", b"")
                self.assertEqual(response.status, 405)
                self.assertEqual(response.headers["Allow"], "GET, HEAD, OPTIONS")
            response = exchange(connection, "OPTIONS", "/a.txt")
            self.assertEqual((response.status, response.headers["Allow"]), (204, "GET, HEAD, OPTIONS"))
            self.assertEqual(exchange(connection, "GET", "/a.txt").body, b"text")

    def test_head_says_what_get_would(self):
        descriptors = lambda: len(os.listdir(f"/proc/{program.process.pid}/fd"))
        for size in (0, 100, 200_000):
            self.write(f"{size}.txt", b"x" * size)
        with serve(self.directory) as program, program.connect() as connection:
            exchange(connection, "GET", "/200000.txt")  # which is kept open
            before = descriptors()
            for target in ("/0.txt", "/100.txt", "/200000.txt", "/none"):
                with self.subTest(target=target):
                    get = exchange(connection, "GET", target)
                    head = exchange(connection, "HEAD", target)
                    self.assertEqual((head.status, head.body), (get.status, b""))
                    self.assertEqual(int(head.headers["Content-Length"]), len(get.body))
                    for response in (get, head):
                        del response.headers["Date"]
                    self.assertEqual(head.headers.items(), get.headers.items())
            for _ in range(200):
                exchange(connection, "HEAD", "/200000.txt")
            self.assertEqual(descriptors(), before)

    def test_two_reactors_answer_many_clients(self):
        content = os.urandom(60_000)
        self.write("f", content)
        for more in ([], ["--pin"], ["--pin", "--steer-by-cpu"]):
            with self.subTest(more=more), serve(self.directory, *more, reactors=2) as program:
                self.wait_for_threads(program, {"penstock-0", "penstock-1"})
                with contextlib.ExitStack() as stack:
                    clients = [stack.enter_context(program.connect()) for _ in range(64)]
                    for client in clients:
                        client.request("GET", "/f")
                    for client in clients:
                        self.assertEqual(client.getresponse().read(), content)
                self.assertEqual(program.end(), (0, "penstock served 64 requests"))
                self.assertEqual(program.stderr(), "")

    def wait_for_threads(self, program, wanted):
        """A thread gives itself its name, some time after it was started."""
        tasks = pathlib.Path(f"/proc/{program.process.pid}/task")
        deadline = time.monotonic() + LIMIT_S
        while not wanted <= (names := {(task / "comm").read_text().strip() for task in tasks.iterdir()}):
            self.assertLess(time.monotonic(), deadline, names)
            os.sched_yield()

    def test_unix_socket(self):
        path = self.directory / "socket"
        with Program("echo", "--address", f"unix:{path}", "--reactors", 2) as program:
            self.assertRegex(program.line, rf" echoes at unix:{re.escape(str(path))} with 2 reactors$")
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(LIMIT_S)
                client.connect(str(path))
                client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody")
                self.assertTrue(received(client).endswith(b"\r\n\r\nbody"))
            self.assertEqual(program.end()[0], 0)
        self.assertFalse(path.exists())


def received(client):
    """All until the server ends the connection."""
    data = b""
    while piece := client.recv(65536):
        data += piece
    return data


class Demo(WithDirectory):
    METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")

    def test_routes(self):
        self.write("plain.txt", b"from the directory")
        with serve(self.directory, "--demo") as program, program.connect() as connection:
            get = lambda target: exchange(connection, "GET", target)
            for target, body in (
                ("/", b"Hello, World!"),
                ("/plaintext", b"Hello, World!"),
                ("/json", b'{"message":"Hello, World!"}'),
                ("/f", b"abcdefghijklmnopqrstuvwxyz"),
                ("/hello/you", b"Hello, you!"),
                ("/plain.txt", b"from the directory"),
            ):
                with self.subTest(target=target):
                    response = get(target)
                    self.assertEqual((response.status, response.body), (200, body))
            self.assertEqual(get("/json").headers["Content-Type"], "application/json")
            self.assertEqual([len(get(f"/{name}").body) for name in ("small", "medium", "large")], [128, 1024, 102400])
            letters = get("/f")
            self.assertRegex(letters.headers["ETag"], '^"[^"]+"$')
            self.assertRegex(letters.headers["Last-Modified"], "^[A-Z][a-z]{2}, .* GMT$")
            self.assertEqual(get("/only-get").status, 200)
            for method in self.METHODS[1:5]:
                response = exchange(connection, method, "/only-get", b"")
                self.assertEqual((response.status, response.headers["Allow"]), (405, "GET, HEAD, OPTIONS"))
            for method in self.METHODS:
                response = exchange(connection, method, "/echo", b"a body")
                self.assertEqual((response.status, response.body), (200, b"a body"))

    def test_an_index_wins_over_the_greeting(self):
        self.write("index.html", b"<!doctype html>index")
        with serve(self.directory, "--demo") as program:
            response = program.ask("GET", "/")
            self.assertEqual((response.status, response.body), (200, b"<!doctype html>index"))

    def test_echo(self):
        with echo("--body-limit", 200_000) as program, program.connect() as connection:
            for size in (0, 1, 5_000, 100_000, 200_000):
                body = os.urandom(size)
                for method in self.METHODS:
                    response = exchange(connection, method, f"/any/{size}?x", body)
                    self.assertEqual((response.status, response.body), (200, body))
            pieces = [os.urandom(10_000) for _ in range(10)]
            response = exchange(connection, "POST", "/chunked", iter(pieces))  # without a length, so in chunks
            self.assertEqual(response.body, b"".join(pieces))
            self.assertEqual(program.ask("POST", "/", b"x" * 200_001).status, 413)
            self.assertEqual(program.ask("GET", "/plaintext").body, b"")


class Ending(WithDirectory):
    def serve(self, *arguments):
        return serve(self.directory, "--demo", *arguments)

    def test_whoever_has_read_the_line_may_end_it(self):
        for _ in range(20):
            with self.serve() as program:
                self.assertEqual(program.end(), (0, "penstock served 0 requests"))

    def begin_request(self, program):
        """A request that is half sent, after one that was answered, so that the server has it."""
        client = self.enterContext(transport.connect(program.port, LIMIT_S))
        client.sendall(b"GET /json HTTP/1.1\r\nHost: x\r\n\r\nPOST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo")
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = client.recv(4096)
            self.assertTrue(piece)
            answer += piece
        return client

    def test_what_is_under_way_is_answered(self):
        with self.serve("--drain-timeout", 600_000) as program:
            client = self.begin_request(program)
            program.process.send_signal(signal.SIGTERM)
            client.sendall(b"dy")
            self.assertTrue(received(client).endswith(b"\r\n\r\nbody"))
            self.assertEqual(program.read_line(), "penstock served 2 requests")
            self.assertEqual(program.process.wait(LIMIT_S), 0)

    def test_the_time_to_drain_is_limited(self):
        with self.serve("--drain-timeout", 50) as program:
            self.begin_request(program)
            self.assertEqual(program.end(), (0, "penstock served 1 request"))

    def test_a_second_signal_ends_it_at_once(self):
        with self.serve("--drain-timeout", 600_000) as program:
            self.begin_request(program)
            self.assertEqual(program.end(signal.SIGTERM, signal.SIGINT)[0], 0)

    def test_a_reader_that_leaves_does_not_end_it(self):
        with serve(self.directory) as program:
            program.process.stdout.close()
            self.assertEqual(program.ask("GET", "/").status, 404)
            program.process.send_signal(signal.SIGTERM)
            self.assertEqual(program.process.wait(LIMIT_S), 0)


# Resolves when the page's script has left its outcome on the root element, and gives the document as it is then.
OUTCOME = """new Promise(resolve => {
    const root = document.documentElement;
    const look = () => 'failed' in root.dataset && resolve(root.outerHTML);
    new MutationObserver(look).observe(root, {attributes: true});
    look();
})"""


@unittest.skipUnless(BROWSER, "there is no Chromium here")
class Browser(WithDirectory):
    def look_at(self, program):
        """The page's document after its scripts have run."""
        with Chromium(self.directory / "profile") as browser:
            browser.navigate(f"http://127.0.0.1:{program.port}/")
            return browser.evaluate(OUTCOME)

    def test_the_sample_site_works(self):
        with serve(SITE) as program:
            document = self.look_at(program)
            self.assertRegex(document, r'<html [^>]*data-checks="6" data-failed="0"')
            self.assertEqual(document.count('<li class="passed">'), 6)
            status, line = program.end()
            self.assertEqual((status, program.stderr()), (0, ""))
            # The page, five files it names, and the redirection with where it leads.
            self.assertGreaterEqual(int(re.search(r"\d+", line).group()), 8)

    def test_the_sample_site_tells_what_is_missing(self):
        copy = self.directory / "copy"
        shutil.copytree(SITE, copy)
        (copy / "dots.woff").unlink()
        with serve(copy) as program:
            document = self.look_at(program)
        self.assertRegex(document, r'<html [^>]*data-checks="6" data-failed="2"')
        self.assertIn("Not so: The font of the headline is loaded.", document)
        self.assertIn("Not so: No request has failed.", document)


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()

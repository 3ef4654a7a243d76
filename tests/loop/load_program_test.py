#!/usr/bin/env python3
"""The load program and the floor: against our own server, each other, and servers that misbehave.

PENSTOCK_LOAD, PENSTOCK_FLOOR and PENSTOCK_PROGRAM are the programs.
"""

import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

LOAD = os.environ.get("PENSTOCK_LOAD", "")
FLOOR = os.environ.get("PENSTOCK_FLOOR", "")
PROGRAM = os.environ.get("PENSTOCK_PROGRAM", "")
LIMIT_S = 30  # far beyond what anything here needs
CANNOT_RUN = 77
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def may_trace():
    """Whether strace is here and lets us give a call another result."""
    return bool(shutil.which("strace")) and subprocess.run(
        ["strace", "-o", os.devnull, "true"], capture_output=True, timeout=LIMIT_S).returncode == 0


def load(port, *arguments):
    command = [LOAD, "--port", str(port), "--seconds", "0.2", "--connections", "4", *map(str, arguments)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)


@contextlib.contextmanager
def running(*command):
    """The port of a program that names it in its first line."""
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        try:
            ready, _, _ = select.select([process.stdout], [], [], LIMIT_S)
            line = process.stdout.readline().decode() if ready else ""
            yield int(re.search(r"http://127\.0\.0\.1:(\d+)", line).group(1))
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def receive_request(client):
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        piece = client.recv(4096)
        if not piece:
            return None
        data += piece
    return data


@contextlib.contextmanager
def misbehaving(behave):
    """The port of a server that gives each connection to `behave`, in a thread that ends with the connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    clients = []

    def handle(client):
        with contextlib.suppress(OSError), client:
            behave(client)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                client.settimeout(LIMIT_S)
                clients.append(client)
                threading.Thread(target=handle, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for client in clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)


class WithLoad(unittest.TestCase):
    def result(self, port, *arguments):
        done = load(port, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        ready, line = done.stdout.splitlines()
        self.assertEqual(ready, "READY")
        return json.loads(line)

    def check_errors(self, result, *kinds):
        """Errors of these kinds and of no other."""
        counts = {name: result[name] for name in
                  ("wrong_status", "wrong_length", "malformed", "closed", "refused", "unanswered", "unended")}
        self.assertEqual([name for name, count in counts.items() if count], sorted(kinds), counts)
        self.assertEqual(result["errors"], sum(counts.values()))


class OurServer(WithLoad):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.port = cls.enterClassContext(running(PROGRAM, "serve", folder, "--demo", "--reactors", 1, "--address",
                                                 "127.0.0.1", "--port", 0))

    def test_one_after_the_other(self):
        result = self.result(self.port, "--path", "/plaintext", "--requests", 1000, "--seconds", 20, "--length", 13)
        self.assertEqual((result["requests"], result["errors"], result["reopened"]), (1000, 0, 0))
        self.assertLess(result["seconds"], 20)
        self.assertEqual(result["bytes"] % 1000, 0)
        order = [result[name] for name in ("p50_us", "p95_us", "p99_us", "p999_us", "max_us")]
        self.assertEqual(order, sorted(order))
        self.assertGreater(result["mean_us"], 0)
        self.assertGreater(result["cpu_s"], 0)

    def test_pipelined(self):
        result = self.result(self.port, "--path", "/json", "--depth", 16, "--requests", 1000, "--seconds", 20)
        self.assertEqual((result["requests"], result["errors"]), (1000, 0))  # also those of the last, shorter batch

    def test_a_connection_for_each(self):
        result = self.result(self.port, "--path", "/plaintext", "--close", "--requests", 200, "--seconds", 20)
        self.assertEqual((result["requests"], result["errors"], result["reopened"]), (200, 0, 200))

    def test_every_method_with_a_body(self):
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
            with self.subTest(method=method):
                result = self.result(self.port, "--path", "/echo", "--method", method, "--body", 3000, "--requests", 40,
                                     "--seconds", 20, "--length", 3000)
                self.assertEqual((result["requests"], result["errors"]), (40, 0))

    def test_bodies_that_do_not_fit_into_the_socket(self):
        result = self.result(self.port, "--path", "/echo", "--method", "POST", "--body", 1_000_000, "--depth", 3,
                             "--requests", 24, "--seconds", 20)
        self.assertEqual((result["requests"], result["errors"]), (24, 0))
        self.assertGreater(result["bytes"], 24_000_000)

    def test_requests_that_are_due_at_fixed_times(self):
        for arguments in ([], ["--depth", 4], ["--close"]):
            with self.subTest(arguments=arguments):
                result = self.result(self.port, "--path", "/plaintext", "--rate", 500, "--seconds", 0.4, *arguments)
                self.assertEqual((result["requests"], result["errors"]), (200, 0))
                self.assertGreaterEqual(result["seconds"], 0.398)  # the last one is not due before

    def test_warming_up_is_not_counted(self):
        start = time.monotonic()
        result = self.result(self.port, "--path", "/plaintext", "--warm", 0.4, "--requests", 10, "--seconds", 20)
        self.assertEqual((result["requests"], result["asked"], result["errors"]), (10, 10, 0))
        self.assertGreaterEqual(time.monotonic() - start, 0.4)  # the ten are not those before READY

    def test_the_histogram_holds_every_latency(self):
        result = self.result(self.port, "--path", "/plaintext", "--requests", 500, "--seconds", 20, "--histogram")
        latency = result["latency_ns"]
        ends = [end for end, _ in latency["buckets"]]
        self.assertEqual(ends, sorted(set(ends)))
        self.assertEqual(sum(count for _, count in latency["buckets"]), 500)
        self.assertAlmostEqual(latency["sum"] / 500e3, result["mean_us"], delta=0.1)
        self.assertAlmostEqual(latency["largest"] / 1e3, result["max_us"], delta=0.1)
        self.assertGreaterEqual(ends[-1], latency["largest"])

    def test_a_body_of_json(self):
        bodies = []

        def keep(client):
            data = b""
            while len(data.partition(b"\r\n\r\n")[2]) < 20 and (piece := client.recv(4096)):
                data += piece
            bodies.append(data)
            client.sendall(HELLO)

        with misbehaving(keep) as port:
            load(port, "--method", "POST", "--body", 20, "--json", "--connections", 1, "--patience", 1)
        head, _, body = bodies[0].partition(b"\r\n\r\n")
        self.assertIn(b"\r\nContent-Type: application/json", head)
        self.assertEqual(json.loads(body), "x" * 18)
        self.assertEqual(load(port, "--json").returncode, 2)

    def test_another_status(self):
        result = self.result(self.port, "--path", "/nowhere", "--requests", 50, "--seconds", 20, "--warm", 0.1)
        self.check_errors(result, "wrong_status")
        # And not those of the ramp and of warming up, which were wrong too.
        self.assertEqual((result["requests"], result["asked"], result["wrong_status"]), (50, 50, 50))
        result = self.result(self.port, "--path", "/nowhere", "--requests", 50, "--seconds", 20, "--status", 404)
        self.check_errors(result)

    def test_another_length(self):
        result = self.result(self.port, "--path", "/plaintext", "--requests", 50, "--seconds", 20, "--length", 12)
        self.check_errors(result, "wrong_length")

    def test_many_connections(self):
        result = self.result(self.port, "--path", "/plaintext", "--connections", 1000, "--requests", 3000,
                             "--seconds", 20)
        self.assertEqual((result["requests"], result["errors"], result["reopened"]), (3000, 0, 0))

    def test_in_step(self):
        command = [LOAD, "--port", str(self.port), "--path", "/plaintext", "--requests", "100", "--in-step"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
            try:
                self.assertEqual(process.stdout.readline(), b"READY\n")
                process.stdin.write(b".")
                self.assertEqual(json.loads(process.stdout.readline())["requests"], 100)
                self.assertIsNone(process.poll())
                process.stdin.close()
                self.assertEqual(process.wait(LIMIT_S), 0)
            finally:
                process.kill()


class Floor(WithLoad):
    def test_requests_in_pieces_and_many_at_once(self):
        with running(FLOOR, "--body", 3) as port, socket.create_connection(("127.0.0.1", port), LIMIT_S) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            response = client.recv(4096)
            self.assertRegex(response, rb"^HTTP/1\.1 200 OK\r\nDate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n"
                                       rb"Content-Type: [^\r]+\r\nContent-Length: 3\r\n\r\nxxx$")
            for piece in (b"GET / HTTP/1.1\r", b"\nHost: a\r\n\r", b"\nGET / HTTP/1.1\r\n\r\n" * 100 + b"GET"):
                client.sendall(piece)
            wanted = len(response) * 101
            received = 0
            while received < wanted:
                received += len(client.recv(65536))
            self.assertEqual(received, wanted)

    def test_bodies_that_do_not_fit_into_the_socket(self):
        with running(FLOOR, "--body", 20_000_000) as port:
            result = self.result(port, "--depth", 2, "--requests", 8, "--seconds", 20, "--length", 20_000_000)
            self.assertEqual((result["requests"], result["errors"]), (8, 0))

    def test_closing(self):
        with running(FLOOR, "--close") as port:
            self.check_errors(self.result(port, "--close", "--requests", 50, "--seconds", 20))
            # It says so in its responses, so the connections are opened again, and nothing is lost.
            result = self.result(port, "--requests", 50, "--seconds", 20)
            self.check_errors(result)
            self.assertGreaterEqual(result["reopened"], 46)

    def test_a_port_that_is_none(self):
        done = subprocess.run([FLOOR, "--port", "70000"], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage", done.stderr)


class Misbehaviour(WithLoad):
    def test_silence_from_the_beginning(self):
        with misbehaving(lambda client: client.recv(1)) as port:
            done = load(port, "--patience", 0.3)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("4 of 4 connections have had no answer", done.stderr)

    def test_silence_after_some_answers(self):
        def answer_twice(client):
            for _ in range(2):
                receive_request(client)
                client.sendall(HELLO)
            while client.recv(4096):
                pass

        for arguments in ([], ["--rate", 100]):
            with self.subTest(arguments=arguments), misbehaving(answer_twice) as port:
                start = time.monotonic()
                result = self.result(port, "--patience", 0.3, *arguments)
                self.assertGreaterEqual(time.monotonic() - start, 0.5)
                self.check_errors(result, "unanswered")
                self.assertEqual(result["requests"], 4)
                # One is on its way on each, or all that were due, whose waiting is no secret.
                self.assertEqual(result["unanswered"], 16 if arguments else 4)
                self.assertEqual(result["asked"], 4 + result["unanswered"])

    def test_a_slow_answer_delays_those_that_are_due_behind_it(self):
        def answer_slowly(client):
            receive_request(client)
            client.sendall(HELLO)
            for pause_s in (0.3, *[0] * 1000):
                if receive_request(client) is None:
                    return
                threading.Event().wait(pause_s)
                client.sendall(HELLO)

        with misbehaving(answer_slowly) as port:
            result = self.result(port, "--connections", 1, "--rate", 100, "--seconds", 0.3)
        self.assertEqual((result["requests"], result["errors"]), (30, 0))
        # Thirty were due, a hundredth of a second after each other; all waited for the end of the first.
        self.assertGreater(result["max_us"], 290_000)
        self.assertGreater(result["p50_us"], 100_000)

    def test_an_end_within_the_response(self):
        def break_off(client):
            receive_request(client)
            client.sendall(HELLO)
            receive_request(client)
            client.sendall(HELLO[:-1])

        with misbehaving(break_off) as port:
            self.check_errors(self.result(port), "closed")

    def test_requests_behind_the_last_response_are_lost(self):
        def answer_the_first(client):
            receive_request(client)
            client.sendall(HELLO.replace(b"Content", b"Connection: close\r\nContent"))

        with misbehaving(answer_the_first) as port:
            result = self.result(port, "--depth", 2, "--requests", 40, "--seconds", 20)
        self.check_errors(result, "closed")
        self.assertEqual(result["requests"], 20)
        self.assertEqual((result["closed"], result["asked"]), (20, 40))

    def test_a_response_that_nobody_asked_for(self):
        def answer_twice(client):
            while receive_request(client):
                client.sendall(HELLO * 2)

        with misbehaving(answer_twice) as port:
            self.check_errors(self.result(port), "malformed")

    def test_what_is_no_response(self):
        def talk(client):
            receive_request(client)
            client.sendall(HELLO)
            receive_request(client)
            client.sendall(b"SMTP is this")
            receive_request(client)

        with misbehaving(talk) as port:
            self.check_errors(self.result(port), "malformed")

    def test_requests_behind_what_is_no_response_are_lost(self):
        def talk_to_the_second(client):
            receive_request(client)  # both at once
            client.sendall(HELLO * 2)
            receive_request(client)
            client.sendall(b"SMTP is this")
            receive_request(client)

        with misbehaving(talk_to_the_second) as port:
            result = self.result(port, "--depth", 2, "--connections", 1, "--requests", 2, "--seconds", 20)
        self.check_errors(result, "malformed")
        self.assertEqual((result["requests"], result["asked"], result["malformed"]), (0, 2, 2))

    def test_an_end_that_does_not_come(self):
        def keep_open(client):
            receive_request(client)
            client.sendall(HELLO)
            client.recv(1)

        with misbehaving(keep_open) as port:
            done = load(port, "--close", "--patience", 0.3)
        self.assertEqual(done.returncode, 1)
        self.assertIn("have had no answer", done.stderr)

    def test_an_end_that_comes_no_longer(self):
        count = iter(range(1000))

        def end_the_first(client):
            receive_request(client)
            client.sendall(HELLO)
            if next(count) > 0:
                client.recv(1)

        with misbehaving(end_the_first) as port:
            result = self.result(port, "--close", "--connections", 1, "--patience", 0.3)
        self.check_errors(result, "unended")
        self.assertEqual((result["requests"], result["asked"], result["unended"]), (1, 1, 1))

    def test_a_connection_that_is_lost_at_the_end_of_the_ramp_makes_no_request_more(self):
        count = iter(range(1000))
        first_is_gone = threading.Event()

        def lose_the_first(client):
            if next(count) == 0:
                receive_request(client)
                client.sendall(HELLO)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65_536):
                    pass  # until it has noticed, and ended its own side
                first_is_gone.set()
                return
            first_is_gone.wait(LIMIT_S)
            while receive_request(client):
                client.sendall(HELLO)

        with misbehaving(lose_the_first) as port:
            result = self.result(port, "--connections", 2, "--requests", 2, "--seconds", 20)
        self.check_errors(result)
        self.assertEqual((result["requests"], result["asked"]), (2, 2))

    def test_nobody_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        done = load(port)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"4 of 4 connections have had no answer, \d+ were refused")

    def test_a_server_that_is_gone(self):
        def answer_once(client):
            receive_request(client)
            client.sendall(HELLO)
            receive_request(client)
            listener.close()

        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                client, _ = listener.accept()
                with client:
                    answer_once(client)

            thread = threading.Thread(target=serve)
            thread.start()
            result = self.result(listener.getsockname()[1], "--connections", 1, "--seconds", 20)
            thread.join(LIMIT_S)
        self.assertLess(result["seconds"], 10)
        self.check_errors(result, "closed", "refused")


class Kernel(unittest.TestCase):
    def test_what_it_refuses_is_told(self):
        if not may_trace():
            self.skipTest("strace is not installed, or may not trace here")
        for call, error, words in (("epoll_create1", "EMFILE", "epoll_create1: Too many open files"),
                                   ("epoll_pwait2", "ENOSYS", "epoll_pwait2: .* it takes Linux 5.11 or later: measure on"),
                                   ("epoll_ctl", "ENOSPC", "epoll_ctl: No space left")):
            with self.subTest(call=call), misbehaving(lambda client: client.recv(1)) as port:
                done = subprocess.run(["strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e",
                                       f"inject={call}:error={error}", LOAD, "--port", str(port)],
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, f"^penstock_load: {words}")

    def test_it_is_ended_after_seven_minutes_whatever_happens(self):
        if not may_trace():
            self.skipTest("strace is not installed, or may not trace here")
        with tempfile.TemporaryDirectory() as folder, running(FLOOR) as port:
            summary = pathlib.Path(folder) / "calls"
            subprocess.run(["strace", "-o", summary, "-e", "trace=alarm,setitimer,connect", LOAD, "--port", str(port),
                            "--requests", "1"], stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=LIMIT_S)
            # Of which call the library makes it depends on the processor.
            self.assertRegex(summary.read_text().partition("connect(")[0], r"alarm\(420\)|setitimer\(.*tv_sec=420")


class CommandLine(unittest.TestCase):
    def test_only_on_this_machine(self):
        for address in ("128.0.0.1", "10.0.0.1", "0.0.0.0", "::1", "localhost", "127.1"):
            with self.subTest(address=address):
                done = load(80, "--address", address)
                self.assertEqual(done.returncode, 2)
                self.assertIn(f'--address cannot be "{address}"', done.stderr)

    def test_what_is_refused(self):
        for arguments in (["--connections", 0], ["--connections", 10_001], ["--depth", 0], ["--seconds", 61],
                          ["--seconds", "nan"], ["--seconds", -1], ["--rate", "inf"], ["--method", "TRACE"],
                          ["--path", "nowhere"], ["--path", "/a b"], ["--path", "/\r\n"], ["--body", "1k"],
                          ["--status", 99], ["--close", "--depth", 2], ["--unknown"], ["word"], ["--port", 0],
                          ["--requests", 0]):
            with self.subTest(arguments=arguments):
                done = load(80, *arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertNotEqual(done.stderr, "")


if __name__ == "__main__":
    if not all(pathlib.Path(program).is_file() for program in (LOAD, FLOOR, PROGRAM)):
        print("PENSTOCK_LOAD, PENSTOCK_FLOOR and PENSTOCK_PROGRAM name no programs")
        raise SystemExit(CANNOT_RUN)
    unittest.main()

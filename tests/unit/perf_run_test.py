#!/usr/bin/env python3
"""What `perf/run` makes of figures: what clients print, medians and ratios, tables, and what may not be compared."""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ.get("PENSTOCK_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LIMIT_S = 30  # far beyond what anything here needs
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "perf"))

from runner import arguments, calls, http_peers, load, own_load, peers, report, rounds, same_core, servers, site
from runner.tools import Failure

WRK = """\
Running 2s test @ http://127.0.0.1:40001/1-kb.html
  1 threads and 50 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.91us    0.89ms  12.92ms   93.69%
    Req/Sec    56.20k     8.07k   62.00k    86.54%
  Latency Distribution
     50%  250.00us
     75%  491.00us
     90%  700.00us
     99%    5.80ms
  112324 requests in 2.10s, 137.50MB read
Requests/sec:  53487.61
Transfer/sec:     65.47MB
"""
STRACE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ------------------
 61.10    0.061100           6     10000           sendto
 38.90    0.038900           3     10002         2 recvfrom
------ ----------- ----------- --------- --------- ------------------
100.00    0.100000           4     20002         2 total
"""


def one_round(**fields):
    values = {field.name: 0 for field in dataclasses.fields(rounds.Round)}
    return rounds.Round(**(values | {"slowness": 1.0} | fields))


def rounds_of(*cpu_us):
    return [one_round(cpu_us=value) for value in cpu_us]


class Wrk(unittest.TestCase):
    def test_what_it_prints_is_read(self):
        self.assertEqual(load.parse_wrk(WRK, 1.5), load.Load(
            requests=112324, seconds=2.1, bytes_read=137.5 * (1 << 20), p50_us=250, p99_us=5800, errors=0,
            client_cpu_s=1.5,
        ))

    def test_seconds_have_a_space_behind_them(self):
        slow = WRK.replace("250.00us", "1.60s ").replace("5.80ms", "2.50s ")
        self.assertEqual((load.parse_wrk(slow).p50_us, load.parse_wrk(slow).p99_us), (1.6e6, 2.5e6))

    def test_errors_are_added_up(self):
        errors = "  Socket errors: connect 1, read 2, write 3, timeout 4\n  Non-2xx or 3xx responses: 50\n"
        self.assertEqual(load.parse_wrk(WRK.replace("Requests/sec", errors + "Requests/sec")).errors, 60)

    def test_units(self):
        times = {"9.00us": 9, "1.50ms": 1_500, "2.00s": 2_000_000, "1.50m": 90_000_000}
        self.assertEqual({text: load.parse_time_us(text) for text in times}, times)
        sizes = {"12B": 12, "1.00KB": 1024, "2.50GB": 2.5 * (1 << 30)}
        self.assertEqual({text: load.parse_bytes(text) for text in sizes}, sizes)

    def test_what_is_not_understood_is_told(self):
        for text in ("", WRK.replace(" requests in", " queries in"), WRK.replace("99%", "98%"),
                     WRK.replace("137.50MB", "137.50Mb"), WRK.replace("5.80ms", "5.80 ms")):
            with self.subTest(text=text), self.assertRaises(Failure):
                load.parse_wrk(text)


class Rows(unittest.TestCase):
    def test_ratios_are_taken_within_a_round(self):
        # The machine becomes twice as slow, and the order of the medians would say that both are alike.
        results = {"ours": rounds_of(10, 20, 20), "theirs": rounds_of(15, 30, 20)}
        ours, theirs = report.rows_of(results, "ours")
        self.assertEqual((ours.cpu_us, ours.best_cpu_us, ours.ratio, ours.best_ratio), (20, 10, 1, 1))
        self.assertEqual((theirs.cpu_us, theirs.best_cpu_us, theirs.ratio, theirs.best_ratio), (20, 15, 1.5, 1.5))

    def test_disturbed_rounds_and_errors_are_counted(self):
        disturbed = [one_round(cpu_us=1, foreign=0.5), one_round(cpu_us=1, slowness=2.0, errors=3), one_round(cpu_us=1)]
        row, = report.rows_of({"ours": disturbed}, "ours")
        self.assertEqual((row.disturbed, row.rounds, row.errors), (2, 3, 3))

    def test_the_best_round_is_an_undisturbed_one_where_there_is_one(self):
        rounds_ = [one_round(cpu_us=1, foreign=0.5), one_round(cpu_us=3), one_round(cpu_us=2)]
        self.assertEqual(report.best_of(rounds_), 2)
        self.assertEqual(report.best_of(rounds_[:1]), 1)

    def test_a_round_in_which_nothing_was_answered_does_not_count(self):
        nothing = load.Load(requests=0, seconds=2, bytes_read=0, p50_us=0, p99_us=0, errors=0)
        empty = rounds.make_round(nothing, servers.CpuTime(1, 1, 0), site.FILES[0], 2, 0, 1)
        row, = report.rows_of({"ours": [empty, *rounds_of(4, 6)]}, "ours")
        self.assertEqual((row.cpu_us, row.best_cpu_us, row.p50_us), (5, 4, 0))
        row, = report.rows_of({"ours": [empty]}, "ours")
        self.assertIn("| ours   |              – |", report.table_of_rows([row]))
        self.assertIn('"p50_us": null', json.dumps(empty.as_data()))

    def test_a_round_that_is_missing_is_told(self):
        with self.assertRaises(ValueError):
            report.rows_of({"ours": rounds_of(1, 2), "theirs": rounds_of(1)}, "ours")


class Tables(unittest.TestCase):
    def test_columns_stand_below_each_other(self):
        self.assertEqual(report.table(("server", "µs"), [("ours", "9.50"), ("another", "10")]),
                         "| server  |   µs |\n"
                         "| ------- | ---: |\n"
                         "| ours    | 9.50 |\n"
                         "| another |   10 |")
        with self.assertRaises(ValueError):
            report.table(("server", "µs"), [("ours",)])

    def test_numbers_have_three_digits_that_count(self):
        shown = {0.123: "0.12", 9.876: "9.88", 12.34: "12.3", 123.4: "123", 56789.1: "56,789", float("nan"): "–"}
        self.assertEqual({value: report.number(value) for value in shown}, shown)
        durations = {250: "250 µs", 5800: "5.80 ms", 1.5e6: "1.50 s"}
        self.assertEqual({value: report.duration(value) for value in durations}, durations)

    def test_a_row_for_each_server(self):
        results = {"ours": rounds_of(10), "theirs": rounds_of(12)}
        self.assertEqual(report.table(("x", "y"), [("a", "1")], left=("x",)).splitlines()[1], "| --- | --: |")
        lines = report.table_of_rows(report.rows_of(results, "ours")).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertRegex(lines[3], r"^\| theirs +\| +12.0 \| +12.0 \| +1.20 \| +1.20 \|")

    def test_who_was_not_measured_has_a_row_too(self):
        rows = report.rows_of({"ours": rounds_of(10)}, "ours")
        lines = report.table_of_rows(rows, "client", ["absent", "ours"]).splitlines()
        self.assertIn("client's µs", lines[0])
        self.assertRegex(lines[2], r"^\| absent +(\| +– ){13}\|$")
        self.assertRegex(lines[3], r"^\| ours ")

    def test_rare_system_calls_are_in_the_sum_only(self):
        text = report.table_of_calls({"ours": {"recvfrom": 1.0, "sendto": 2.0, "brk": 0.004}})
        self.assertIn("| ours   |                 3.00 | sendto 2.00, recvfrom 1.00 |", text)


class Measuring(unittest.TestCase):
    def test_large_answers_are_counted_by_their_bytes(self):
        cpu = servers.CpuTime(exact_s=0.5, user_s=0.1, kernel_s=0.4)
        half_done = load.Load(requests=1, seconds=2, bytes_read=150 << 20, p50_us=0, p99_us=0, errors=0)
        large = rounds.make_round(half_done, cpu, site.File("100 MB", 100 << 20), 2, 0, 1)
        self.assertEqual((large.answers, large.cpu_us), (1.5, 0.5e6 / 1.5))
        small = rounds.make_round(half_done, cpu, site.File("1 KB", 1 << 10), 2, 0, 1)
        self.assertEqual((small.answers, small.per_second, small.kernel_share), (1, 0.5, 0.8))

    def test_ticks_count_where_threads_have_ended(self):
        before, after = servers.CpuTime(1, 0.5, 0.5), servers.CpuTime(2, 1.0, 1.02)
        self.assertEqual((after - before).total_s, 1)
        self.assertEqual((servers.CpuTime(1.1, 1.5, 1.5) - before).total_s, 2)

    def test_calls_of_a_summary(self):
        self.assertEqual(calls.parse_summary(STRACE), {"sendto": 10000, "recvfrom": 10002})

    def test_a_server_that_fails_is_left_out_of_the_rounds_behind(self):
        class Loader:
            def run(self, server, work, setting, seconds, meter):
                asked.append(server.name)
                if server.name == "theirs" and asked.count("theirs") == 2:
                    raise Failure("no answer")
                with meter:
                    return load.Load(requests=10, seconds=1, bytes_read=10, p50_us=1, p99_us=1, errors=0)

        class Idle:
            def __init__(self, name):
                self.name = name

            @staticmethod
            def cpu_time():
                return servers.CpuTime(0, 0, 0)

        asked, failed = [], {}
        core = min(os.sched_getaffinity(0))
        bench = rounds.Bench(rounds.Setting(1, core, core, 0), Loader())
        both = [Idle("ours"), Idle("theirs")]
        run = lambda **handling: bench.run(both, site.FILES[0], 3, lambda *_: None, **handling)
        results = run(on_failure=lambda server, failure: failed.update({server.name: str(failure)}))
        self.assertEqual(asked, ["ours", "theirs", "ours", "theirs", "ours"])
        self.assertEqual(({name: len(all_) for name, all_ in results.items()}, failed),
                         ({"ours": 3}, {"theirs": "no answer"}))
        asked.clear()
        with self.assertRaises(Failure):
            run()


class OwnLoad(unittest.TestCase):
    SCENARIO = same_core.Scenario("x", 7, depth=3, body="json")

    def run_program(self, text):
        """The Load that a script in place of penstock_load leads to, and what was entered and left."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        program = folder / "load"
        program.write_text(f"#!{sys.executable}\nimport sys\n{text}")
        program.chmod(0o700)
        core = min(os.sched_getaffinity(0))
        meter = Recorder()
        server = servers.Server.__new__(servers.Server)
        server.name, server.port, server.paths = "mine", 80, {"json": "/j"}
        setting = rounds.Setting(2, core, core, 0)
        return own_load.OwnLoad(str(program)).run(server, self.SCENARIO, setting, 2, meter), meter

    def test_it_is_measured_in_step(self):
        line = json.dumps({"requests": 2, "asked": 8, "seconds": 2, "bytes": 3, "cpu_s": 7, "latency_ns":
                           {"sum": 9000, "largest": 5000, "buckets": [[4000, 1], [5000, 1]]}}
                          | dict.fromkeys(own_load.ERROR_KINDS, 1))
        result, meter = self.run_program(
            "print('READY', flush=True)\n"
            "step = sys.stdin.buffer.read(1)\n"
            "words = ' '.join(sys.argv[1:])\n"
            "wanted = '--in-step --histogram --port 80 --path /j --connections 7 --depth 3 --length 27 --warm 0.3 --seconds 2'\n"
            f"text = {line!r}\n"
            "print(text if step == b'.' and words == wanted else words, flush=True)\n"
            "sys.stdin.buffer.read(1)\n"
        )
        self.assertEqual(result, load.Load(requests=2, seconds=2, bytes_read=3, p50_us=4, p99_us=5, errors=7,
                                           client_cpu_s=7))
        self.assertEqual(meter.seen, ["entered", "left"])

    def test_what_went_wrong_is_told(self):
        cases = {
            "sys.exit('penstock_load: no answer')": "against mine: no answer",
            "print('READY', flush=True); sys.stdin.read(1); sys.exit('lost')": "against mine: lost",
            "print('READY', flush=True); sys.stdin.read(1); print('{\"requests\": 1}', flush=True)": "something else",
            "print('READY', flush=True); sys.stdin.read(1); print('hello', flush=True)": "something else",
            "print('HELLO', flush=True)": "it ended with 0 before it was ready",
            "": "it ended with 0 before it was ready",
            "print('READY', flush=True); sys.stdin.read(1); sys.exit(3)": "it ended with 3 before its result",
        }
        for text, words in cases.items():
            with self.subTest(text=text), self.assertRaisesRegex(Failure, words):
                self.run_program(text)


class Recorder:
    def __init__(self):
        self.seen = []

    def __enter__(self):
        self.seen.append("entered")

    def __exit__(self, *_):
        self.seen.append("left")


class HttpPeers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def command(self, peer, scenario):
        return peer.for_scenario(scenario).command(80, self.folder)

    def test_everybody_is_there_and_the_floor_is_first(self):
        everybody = http_peers.http_peers("floor", "penstock", "/site", {"h2o": "/h2o"}, ["mine=serve {port}"])
        self.assertEqual([(peer.name, peer.package) for peer in everybody],
                         [("floor", ""), ("penstock", ""), ("nginx", "nginx"), ("h2o", ""), ("lighttpd", "lighttpd"),
                          ("haproxy", "haproxy"), ("mine", "")])
        arguments.refuse_namesakes(everybody)

    def test_the_floor_answers_as_the_scenario_wants(self):
        floor, *_ = http_peers.http_peers("floor", "penstock", "/site", {}, [])
        self.assertEqual(self.command(floor, same_core.Scenario("x", 1, body="large")),
                         ["floor", "--port", "80", "--body", "102400"])
        self.assertEqual(self.command(floor, same_core.Scenario("x", 1, kind="close")),
                         ["floor", "--port", "80", "--body", "13", "--close"])

    def test_configurations_are_complete(self):
        found = {name: "/" + name for name in http_peers.OTHERS}
        everybody = http_peers.http_peers("floor", "penstock", "/the/site", found, [])
        for peer in everybody[2:]:
            for scenario in same_core.SCENARIOS:
                with self.subTest(peer=peer.name, scenario=scenario.name):
                    program, *words = self.command(peer, scenario)
                    self.assertEqual(program, found[peer.name])
                    text = pathlib.Path(words[-1]).read_text()
                    self.assertIn("/the/site", text)
                    self.assertRegex(text, r"\b80\b")
                    self.assertNotRegex(text, r"\{\w+\}|\{\{|\}\}")

    def test_given_commands(self):
        mine = http_peers.from_words("mine=serve '{port}' --a=b")
        self.assertEqual((mine.name, mine.paths), ("mine", http_peers.PATHS))
        self.assertEqual(self.command(mine, None), ["serve", "80", "--a=b"])
        other = http_peers.from_words("other@plaintext=/,large==serve --port={port}")
        self.assertEqual(self.command(other, None), ["serve", "--port=80"])
        self.assertEqual(other.paths, http_peers.PATHS | {"plaintext": "/", "large": ""})
        for words in ("mine", "mine=serve", "=serve {port}", "mine@nothing=/=serve {port}"):
            with self.subTest(words=words), self.assertRaises(Failure):
                http_peers.from_words(words)

    def test_bodies_have_their_sizes(self):
        http_peers.make_site(self.folder)
        self.assertEqual({path.name: path.stat().st_size for path in self.folder.iterdir()}, http_peers.SIZES)
        json.loads((self.folder / "json").read_text())

    def test_why_a_server_is_left_out(self):
        setting = rounds.Setting(1, *[min(os.sched_getaffinity(0))] * 2, 0)
        scenario = same_core.Scenario("x", 1)
        listen = ("import http.server, sys\n"
                  "class Handler(http.server.BaseHTTPRequestHandler):\n"
                  "    protocol_version = 'HTTP/' + (sys.argv + ['1.1'])[2]\n"
                  "    def do_GET(self):\n"
                  "        self.send_response(200 if self.path == '/plaintext' else 404)\n"
                  "        self.send_header('Content-Length', '4'); self.end_headers(); self.wfile.write(b'four')\n"
                  "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n")
        four = lambda port, *_: [sys.executable, "-c", listen, str(port)]
        def closing(version, header=""):
            text = listen.replace("'4')", f"'13'){header}").replace("(b'four')", "(b'x' * 13); self.close_connection = True")
            return lambda port, *_: [sys.executable, "-c", text, str(port), version]

        cases = (
            (http_peers.HttpPeer("absent", None, package="some-package"), "not installed .Debian package some-package."),
            (http_peers.HttpPeer("less", None, http_peers.PATHS | {"plaintext": ""}), "no path for plaintext"),
            (http_peers.HttpPeer("one", None, dict.fromkeys(http_peers.PATHS, "") | {"json": "/j"}), "measured by /j only"),
            (http_peers.HttpPeer("old", closing("1.0")), "it answered HTTP/1.0; only HTTP/1.1 with keep-alive"),
            (http_peers.HttpPeer("open", closing("1.1", "; self.send_header('Connection', 'close')")),
             "it closes the connection behind its answer; only HTTP/1.1"),
            (http_peers.HttpPeer("silent", closing("1.1")), "it closes the connection behind its answer; only HTTP/1.1"),
            (http_peers.HttpPeer("four", four), "status 200 and 4 bytes, instead of 200 and 13"),
            (http_peers.HttpPeer("lost", four, http_peers.PATHS | {"plaintext": "/lost"}), "status 404 and 4 bytes"),
        )
        for peer, words in cases:
            with self.subTest(peer=peer.name), contextlib.ExitStack() as running, self.assertRaisesRegex(Failure, words):
                same_core.start(peer, scenario, setting, running)

    def test_scenarios(self):
        self.assertEqual([one.name for one in same_core.scenarios("churn,c1")], ["churn", "c1"])
        with self.assertRaises(argparse.ArgumentTypeError):
            same_core.scenarios("c2")
        titles = {one.name: same_core.title(one) for one in same_core.SCENARIOS}
        self.assertEqual(titles["c1"], "c1: 1 connection, one at a time, 13 bytes")
        self.assertEqual(titles["pipe16"], "pipe16: 50 connections, 16 at once, 13 bytes")
        self.assertEqual(titles["churn"], "churn: 50 connections, a connection for each, 13 bytes")


class Servers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_given_commands(self):
        peer = peers.from_words("mine=serve '{directory}' --port {port}", "/a b")
        self.assertEqual((peer.name, peer.command(80, None)), ("mine", ["serve", "/a b", "--port", "80"]))
        for words in ("mine", "mine=serve", "=serve"):
            with self.subTest(words=words), self.assertRaises(Failure):
                peers.from_words(words, "/")

    def test_two_of_one_name(self):
        with self.assertRaisesRegex(Failure, "called nginx"):
            peers.static_peers("penstock", "nginx", "/", ["nginx=x {port}"])

    def test_the_reference_cannot_be_left_out(self):
        everybody = peers.static_peers("penstock", "nginx", "/", [])
        self.assertEqual([peer.name for peer in arguments.selected(everybody, ["penstock", "nginx"], "penstock")],
                         ["penstock", "nginx"])
        for wanted in (["nginx"], ["penstock", "nobody"]):
            with self.subTest(wanted=wanted), self.assertRaises(Failure):
                arguments.selected(everybody, wanted, "penstock")

    def script(self, text):
        return peers.Peer("script", lambda port, folder: [sys.executable, "-c", text, str(port)])

    def test_an_option_that_is_refused(self):
        with self.assertRaisesRegex(servers.Refused, "no such option"):
            servers.Server(self.script("import sys; print('no such option'); sys.exit(2)"), *self.place())

    def test_a_server_that_does_not_start(self):
        with self.assertRaisesRegex(Failure, "ended with 1 before it listened: out of luck"):
            servers.Server(self.script("import sys; sys.exit('out of luck')"), *self.place())
        with self.assertRaisesRegex(Failure, "ended with 3 before it listened and said nothing$") as silent:
            servers.Server(self.script("import sys; sys.exit(3)"), *self.place())
        self.assertEqual(same_core.told("script", silent.exception), "ended with 3 before it listened and said nothing")

    def test_servers_end_with_who_is_killed(self):
        text = ("import subprocess, sys, time\n"
                f"sys.path.insert(0, {str(SOURCE / 'perf')!r})\n"
                "from runner import machine\n"
                "settle = lambda: machine.settle(machine.cores()[0], 0, False)\n"
                "child = subprocess.Popen(['sleep', '600'], start_new_session=True, preexec_fn=settle)\n"
                "print(child.pid, flush=True)\n"
                "time.sleep(600)\n")
        with subprocess.Popen([sys.executable, "-B", "-c", text], stdout=subprocess.PIPE) as parent:
            child = int(parent.stdout.readline())
            self.assertTrue(servers.is_running(child, child))
            parent.kill()
        deadline = time.monotonic() + LIMIT_S / 3
        while servers.is_running(child, child) and time.monotonic() < deadline:
            time.sleep(0.01)
        is_left = servers.is_running(child, child)
        servers.end_orphans([child], child)
        self.assertFalse(is_left)

    def test_a_server_and_what_it_started_are_ended(self):
        listen = ("import socket, subprocess, sys, time\n"
                  "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
                  "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
                  "time.sleep(600)\n")
        with servers.Server(self.script(listen), *self.place()) as server:
            pids = server.processes()
            self.assertEqual([servers.is_running(pid, pids[0]) for pid in pids], [True, True])
        for pid in pids:
            self.assertFalse(servers.is_running(pid, pids[0]))

    def test_what_it_started_is_ended_also_when_it_has_ended_itself(self):
        listen = ("import socket, subprocess, sys\n"
                  "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
                  "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
                  "listener.accept()\n")
        with servers.Server(self.script(listen), *self.place()) as server:
            server.process.wait(LIMIT_S)
            first, child = server.processes()
            self.assertTrue(servers.is_running(child, first))
        self.assertFalse(servers.is_running(child, first))

    @staticmethod
    def place():
        return min(os.sched_getaffinity(0)), 0  # core, nice


class Files(unittest.TestCase):
    def test_they_have_their_sizes_and_do_not_repeat(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            files = [site.File("3 B", 3), site.File("2 MB", (2 << 20) + 1)]
            site.make_files(folder, files)
            self.assertEqual([(folder / file.name).stat().st_size for file in files], [3, (2 << 20) + 1])
            lines = (folder / files[1].name).read_bytes().splitlines()
            self.assertEqual(len(set(lines)), len(lines))


class Reservations(unittest.TestCase):
    def told(self, disturbed, is_quick=False):
        rounds_ = [{"disturbed": at < disturbed} for at in range(4)]
        return same_core.reservations({"c1": {"rounds": {"floor": rounds_[:2], "penstock": rounds_[2:]}}}, is_quick)

    def test_figures_that_are_none_are_called_so(self):
        self.assertEqual(self.told(2), [])
        sentence, = self.told(3)
        self.assertIn("3 of 4 rounds disturbed", sentence)
        sentence, = self.told(0, is_quick=True)
        self.assertIn("no figure of it is to be quoted", sentence)
        self.assertEqual(same_core.reservations({}, False), [])


class CommandLine(unittest.TestCase):
    def test_help_names_what_is_measured(self):
        done = subprocess.run([SOURCE / "perf/run", "static", "--help"], capture_output=True, text=True,
                              timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("NAME=COMMAND", done.stdout)

    def test_a_program_that_is_not_there(self):
        done = subprocess.run([SOURCE / "perf/run", "static", "--program", "/nowhere/penstock"], capture_output=True,
                              text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"/nowhere/penstock does not exist; give another\n", done.stderr)
        done = subprocess.run([SOURCE / "perf/run", "standard", "--system-allocator", "/nowhere/penstock", "--program",
                               sys.executable, "--load", sys.executable, "--only", "low"], capture_output=True, text=True,
                              timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "/nowhere/penstock does not exist; give another")

    def test_help_of_peers(self):
        done = subprocess.run([SOURCE / "perf/run", "peers", "--help"], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in ("--quick", "--rounds", "--scenarios", "--core", "--nice", "--patience", "--json"):
            self.assertIn(option, done.stdout)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""What `perf/run standard` makes of figures: summaries, verdicts, records, and what is measured."""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from _perf_standard import ENVIRONMENT, SOURCE, fake, fakes, histogram
from runner import own_load
from runner.histogram import Histogram, merged
from runner.standard import (answers, bench, capacity, checks, command, history, loads, records, resources, samples, scenarios,
                             study)
from runner.tools import Failure

LIMIT_S = 30  # far beyond what anything here needs
NAN = float("nan")


class Samples(unittest.TestCase):
    def test_an_outlier_is_left_out_of_the_summary(self):
        summary = samples.summary_of([100, 101, 102, 103, 500])
        self.assertEqual(summary.outliers, (4,))
        self.assertEqual(summary.kept, [100, 101, 102, 103])
        self.assertEqual(summary.median, 101.5)
        self.assertAlmostEqual(summary.spread, 3 / 101.5)
        self.assertIs(summary.is_stable, True)

    def test_the_fences_are_where_tukey_has_them(self):
        # Quartiles 2 and 4, so the fences are at -1 and at 7.
        self.assertEqual(samples.summary_of([1, 2, 3, 4, 7]).outliers, ())
        self.assertEqual(samples.summary_of([1, 2, 3, 4, 7.01]).outliers, (4,))
        self.assertEqual(samples.summary_of([-1.01, 2, 3, 4, 5]).outliers, (0,))

    def test_of_three_runs_none_is_an_outlier(self):
        self.assertEqual(samples.summary_of([1, 1, 1000]).outliers, ())
        self.assertIs(samples.summary_of([1, 1, 1000]).is_stable, False)

    def test_far_values_are_named_and_stay(self):
        # The others have the mean 10 and the standard deviation 1.
        for value, far in ((13.0, ()), (13.01, (3,)), (7.0, ()), (6.99, (3,))):
            with self.subTest(value=value):
                summary = samples.summary_of([9, 10, 11, value])
                self.assertEqual(summary.far, far)
        self.assertEqual(samples.summary_of([5, 5, 5, 6]).far, (3,))
        self.assertEqual(samples.summary_of([5, 5, 5, 5]).far, ())

    def test_in_ten_runs_one_can_be_far(self):
        values = [10.0, 10.1] * 4 + [10.0, 12.0]
        self.assertEqual(samples.summary_of(values).far, (9,))
        self.assertLess(abs(12 - sum(values) / 10), 3 * samples.statistics.stdev(values))  # not from the mean of all

    def test_spread(self):
        self.assertIs(samples.summary_of([100, 109.9]).is_stable, True)
        self.assertIs(samples.summary_of([100, 111]).is_stable, False)
        self.assertIsNone(samples.summary_of([100]).is_stable)

    def test_what_is_no_number_does_not_count(self):
        summary = samples.summary_of([NAN, 1, NAN, 1, 1, 1])
        self.assertEqual((summary.outliers, summary.far, summary.median), ((), (), 1))
        self.assertTrue(math.isnan(samples.summary_of([NAN]).median))
        self.assertTrue(math.isnan(samples.summary_of([]).median))


class Histograms(unittest.TestCase):
    def test_quantiles_are_the_smallest_value_of_which_enough_are_no_larger(self):
        one = histogram(*range(1, 101))
        self.assertEqual(one.quantiles_us([0, 0.5, 0.501, 0.99, 1]), [1, 50, 51, 99, 100])
        self.assertEqual((one.count, one.mean_us, one.max_us), (100, 50.5, 100))

    def test_the_largest_bounds_its_bucket(self):
        self.assertEqual(Histogram({1023: 1}, 1000, 1000).quantiles_us([0.5]), [1.0])

    def test_merging_is_exact(self):
        source = random.Random(1)
        values = [source.randrange(1, 5000) for _ in range(1000)]
        whole = histogram(*values)
        parts = merged([histogram(*values[at::7]) for at in range(7)])
        self.assertEqual(parts.counts, whole.counts)
        self.assertEqual(parts.largest_ns, whole.largest_ns)
        self.assertAlmostEqual(parts.mean_us, whole.mean_us)
        self.assertEqual(parts.quantiles_us([0.5, 0.99]), whole.quantiles_us([0.5, 0.99]))

    def test_of_nothing_nothing_is_known(self):
        for one in (Histogram({}), merged([])):
            self.assertEqual(one.count, 0)
            for value in (one.mean_us, one.max_us, *one.quantiles_us([0.5])):
                self.assertTrue(math.isnan(value))

    def test_what_is_none_is_told(self):
        for data in ({}, {"sum": 1, "largest": 1}, {"sum": 1, "largest": 1, "buckets": [[1]]},
                     {"sum": 1, "largest": 1, "buckets": [[1, 0]]}, {"sum": 1, "largest": 1, "buckets": [["1", 1]]}):
            with self.subTest(data=data), self.assertRaises((ValueError, KeyError)):
                Histogram.from_data(data)


class Loads(unittest.TestCase):
    def line(self, **fields):
        data = {"requests": 2, "asked": 3, "seconds": 1.0, "bytes": 10, "cpu_s": 0.5, "latency_ns":
                {"sum": 3000, "largest": 2000, "buckets": [[1000, 1], [2000, 1]]}} | dict.fromkeys(own_load.ERROR_KINDS, 0)
        return json.dumps(data | fields).encode() + b"\n"

    def test_connections_are_shared(self):
        self.assertEqual(loads.shares_of(50, 4), [13, 13, 12, 12])
        self.assertEqual(loads.shares_of(10, 16), [1] * 10)

    def test_a_rate_is_shared_as_the_connections_are(self):
        one = dataclasses.replace(scenarios.BY_NAME["medium"], rate=1000)
        server = unittest.mock.Mock(port=80)
        rates = []
        for connections in loads.shares_of(50, 4):
            words = loads.command("load", server, one, 13, 1, connections)
            rates.append(float(words[words.index("--rate") + 1]))
        self.assertEqual(sum(rates), 1000)

    def test_results_are_added(self):
        both = own_load.added([own_load.parse(self.line()), own_load.parse(self.line(seconds=1.5, closed=3))])
        self.assertEqual((both.requests, both.asked, both.seconds, both.bytes_read, both.error_count, both.client_cpu_s),
                         (4, 6, 1.5, 20, 3, 1.0))
        self.assertEqual(both.latency.counts, {1000: 2, 2000: 2})

    def test_what_is_not_understood_is_told(self):
        for line in (b"READY\n", b"{}\n", b"[]\n", self.line(latency_ns=None), self.line(requests=3)):
            with self.subTest(line=line), self.assertRaises(Failure):
                own_load.parse(line)


class Thresholds(unittest.TestCase):
    def test_each_line(self):
        def low(rate, **fields):
            whole = study.Study(ENVIRONMENT, 1, records={"low": fakes("low", [rate], **fields)})
            return {line.what: line.met for line in whole.lines}

        self.assertEqual([low(rate)["requests/s, low"] for rate in (9_999.9, 10_000)], [False, True])
        self.assertEqual([low(rate)["requests/s, low, recommended"] for rate in (14_999, 15_000)], [False, True])
        self.assertEqual([low(1, mean_us=us)["mean latency, low"] for us in (999, 1000)], [True, False])
        self.assertEqual([low(1, p99_us=us)["P99, low"] for us in (9_999, 10_000)], [True, False])
        self.assertEqual([low(1, errors=count)["errors, all scenarios"] for count in (0, 1)], [True, False])
        self.assertIsNone(low(1)["requests/s, home"])

    def test_the_whole_table(self):
        of = {name: fakes(name, [20_000.0], mean_us=900, p99_us=9_000) for name in
              ("low", "medium", "high", "home", "file-1kb")}
        whole = study.Study(ENVIRONMENT, 1, records=of)
        self.assertEqual({line.met for line in whole.lines}, {True})
        self.assertEqual(len(whole.lines), 15)
        self.assertEqual({line.met for line in study.Study(ENVIRONMENT, 1).lines}, {None})

    def test_an_unstable_figure_says_so(self):
        whole = study.Study(ENVIRONMENT, 1, records={"low": fakes("low", [20_000, 30_000])})
        self.assertEqual(whole.lines[0].verdict, "met (unstable)")


class Capacity(unittest.TestCase):
    @staticmethod
    def points(*ratios, p99_us=1000.0):
        return [capacity.Point(connections, p99_us * ratio, p99_us, 1, 1)
                for connections, ratio in zip(scenarios.CAPACITY_CONNECTIONS, ratios, strict=False)]

    def test_the_knee_is_where_it_leaves_the_floor_for_good(self):
        self.assertEqual(capacity.knee(self.points(1, 1.1, 1.6, 2, 3)), 50)
        self.assertEqual(capacity.knee(self.points(1, 2, 1.1, 2, 3)), 100)
        self.assertEqual(capacity.knee(self.points(2, 2, 2, 2, 2)), 10)
        self.assertIsNone(capacity.knee(self.points(1, 2, 3, 2, 1.5)))
        self.assertIsNone(capacity.knee([]))

    def test_what_to_configure(self):
        points = self.points(0.5, 0.9, 4, 0.9, 20)
        self.assertEqual([capacity.most_within(points, limit) for limit in (0.4, 1, 5, 10)], [None, 30, 100, 100])
        text = "\n".join(capacity.advice(points))
        self.assertIn("P99 < 1 ms: at most 30 busy connections for each reactor.", text)
        self.assertIn("From 200 connections on", text)
        self.assertIn("P99 < 1 ms: not even at 10", "\n".join(capacity.advice(self.points(1, p99_us=2000))))
        self.assertEqual(capacity.advice([]), [])

    def test_a_figure_that_is_missing_is_no_limit_kept(self):
        self.assertIsNone(capacity.most_within([capacity.Point(10, NAN, 1, 1, 1)], 10))
        self.assertIsNone(capacity.knee([capacity.Point(10, NAN, 1, 1, 1)]))


class Records(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_there_and_back(self):
        one = fake(number=3)
        again = records.Record(**json.loads(one.write(self.folder).read_text()))
        self.assertEqual(again, one)
        self.assertEqual(again.latency, one.latency)
        self.assertEqual((one.figure("errors"), one.figure("cpu_us")), (0, 5.0))

    def test_a_run_without_answers(self):
        nothing = own_load.Result(0, 0, 0.0, 0, dict.fromkeys(own_load.ERROR_KINDS, 0), 0.0, Histogram({}))
        results = records.results_of(nothing)
        json.dumps(results, allow_nan=False)
        one = dataclasses.replace(fake(), results=results)
        self.assertTrue(math.isnan(one.figure("per_second")))
        self.assertFalse(checks.error_check("x", [one]).passed)

    def test_history(self):
        path = self.folder / "history.json"
        whole = study.Study(ENVIRONMENT, 1, records={"low": fakes("low", [100, 101, 102, 900.0, 100, 101])})
        entry = history.entry_of("a.md", ENVIRONMENT, whole.summaries)
        history.append(path, entry)
        history.append(path, entry | {"report": "b.md"})
        history.append(path, entry | {"commit": "later"})
        self.assertEqual([(one["report"], one["commit"]) for one in json.loads(path.read_text())],
                         [("b.md", "abc"), ("a.md", "later")])
        self.assertEqual(entry["scenarios"]["low"]["per_second"], 101)
        self.assertIs(entry["scenarios"]["low"]["stable"], True)
        for text in ("{}", "[1]", "x"):
            path.write_text(text)
            with self.subTest(text=text), self.assertRaises(Failure):
                history.append(path, entry)
            self.assertEqual(path.read_text(), text)


class Checks(unittest.TestCase):
    def test_the_kind_of_build_is_read_above_the_program(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        program = folder / "bin/penstock"
        program.parent.mkdir()
        program.write_text("")
        self.assertIsNone(checks.build_check(program).passed)
        for kind, passed in (("Release", True), ("Debug", False), ("", False)):
            (folder / "CMakeCache.txt").write_text(f"CMAKE_BUILD_TYPE_X:STRING=Debug\nCMAKE_BUILD_TYPE:STRING={kind}\n")
            self.assertIs(checks.build_check(program).passed, passed)

    def test_governors(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.assertIsNone(checks.governor_check(folder).passed)
        for core, governor, passed in ((0, "performance", True), (1, "powersave", False)):
            place = folder / f"cpu{core}/cpufreq"
            place.mkdir(parents=True)
            (place / "scaling_governor").write_text(governor + "\n")
            self.assertIs(checks.governor_check(folder).passed, passed)

    def test_descriptors(self):
        limit = checks.resource.getrlimit(checks.resource.RLIMIT_NOFILE)[1]
        self.assertTrue(checks.descriptor_check(1).passed)
        if limit != checks.resource.RLIM_INFINITY:
            self.assertTrue(checks.descriptor_check(limit - 100).passed)
            self.assertFalse(checks.descriptor_check(limit - 99).passed)

    def passed(self, runs):
        summary = samples.summary_of(one.figure("per_second") for one in runs)
        return {check.kind: check.passed for check in checks.after("x", runs, summary)}

    def test_after_the_runs(self):
        good = {"errors of": True, "CPU time of": True, "rest during": True, "spread of": True}
        self.assertEqual(self.passed(fakes("low", [100, 101, 102])), good)
        self.assertEqual(self.passed(fakes("low", [100, 120])), good | {"spread of": False})
        self.assertEqual(self.passed(fakes("low", [100.0])), good | {"spread of": None})
        self.assertEqual(self.passed(fakes("low", [100, 101], errors=1)), good | {"errors of": False})
        self.assertEqual(self.passed(fakes("low", [100, 101], cpu_s=1.1)), good | {"CPU time of": False})
        self.assertEqual(self.passed(fakes("low", [100, 101], cpu_s=1.1, cores=2)), good)
        self.assertEqual(self.passed(fakes("low", [100, 101], foreign_cores=0.2)), good | {"rest during": False})

    def test_an_error_is_of_one_request(self):
        # Answered by another status, and so among the answers too.
        self.assertEqual(checks.error_rate(fakes("low", [1.0, 1.0], errors=100)), 1.0)
        self.assertEqual(checks.error_rate(fakes("low", [1.0], errors=25)), 0.25)
        self.assertEqual(checks.error_rate(fakes("low", [1.0], requests=0, errors=100)), 1.0)
        self.assertEqual(checks.error_rate(fakes("low", [1.0], errors=200)), 1.0)  # what nobody had asked for
        self.assertTrue(math.isnan(checks.error_rate(fakes("low", [1.0], asked=0, requests=0))))

    def test_the_share_of_the_cores_is_told_as_it_is(self):
        for cpu_s, words, passed in ((0.5, "50.0 %", True), (1.03, "103.0 %", True), (1.1, "110.0 %", False)):
            check = checks.cpu_check("x", fakes("low", [1.0], cpu_s=cpu_s))
            self.assertEqual((check.words, check.passed), (f"at most {words} of what the cores give", passed))

    def test_load_processes_of_sections_do_not_wait_for_each_other(self):
        class TwoCores:
            @staticmethod
            def client_cores():
                return {2, 3}
        self.assertEqual(command.apart(scenarios.BY_NAME["medium"], TwoCores).threads, 2)
        self.assertEqual(command.apart(scenarios.BY_NAME["threads-1"], TwoCores).threads, 1)

    def test_a_rate_that_is_not_kept(self):
        at_rate = study.at_rate(scenarios.BY_NAME["medium"], 0.9, 1000)
        self.assertEqual((at_rate.name, at_rate.rate), ("rate-90", 900))
        for got, passed in ((890.0, True), (800.0, False)):
            self.assertIs(self.passed([fake(scenario=at_rate, per_second=got)])["rate of"], passed)


class Resources(unittest.TestCase):
    def test_of_this_process(self):
        peak, now = (resources.memory_of(os.getpid(), field) for field in ("VmHWM", "VmRSS"))
        self.assertGreaterEqual(peak, now)
        self.assertGreater(now, 1 << 20)
        before = resources.switches_of([os.getpid()])
        subprocess.run([sys.executable, "-c", ""], check=True, timeout=LIMIT_S)  # waiting is a switch
        self.assertGreater(resources.switches_of([os.getpid()])[0], before[0])

    def test_switches_by_kind(self):
        text = "x:\t1\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t5\n"
        threads = len(list(pathlib.Path("/proc/self/task").iterdir()))
        with unittest.mock.patch.object(resources, "status_of", lambda _: text):
            self.assertEqual(resources.switches_of([os.getpid()]), (3 * threads, 5 * threads))

    def test_of_a_process_that_is_gone(self):
        with subprocess.Popen([sys.executable, "-c", ""]) as gone:
            gone.wait(LIMIT_S)
        self.assertEqual(resources.memory_of(gone.pid, "VmRSS"), 0)
        self.assertEqual(resources.switches_of([gone.pid]), (0, 0))
        self.assertFalse(resources.reset_peak(gone.pid))


class Scenarios(unittest.TestCase):
    def test_names_are_unique_and_their_answers_known(self):
        self.assertEqual(len(scenarios.BY_NAME), len(scenarios.SCENARIOS))
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        answers.make_site(folder)
        sizes = {one.name: len(answers.expected_body(one, folder)) for one in scenarios.SCENARIOS}
        for name, size in {"medium": 13, "head": 13, "delete": 0, "put": 2048, "body-1kb": 1024, "body-10kb": 10240,
                           "body-100kb": 102400, "body-1mb": 1 << 20, "file-1kb": 1024, "routes": 2}.items():
            self.assertEqual(sizes[name], size, name)

    def test_the_kinds_and_what_is_chosen(self):
        everything, sections = scenarios.selected(None)
        self.assertEqual((everything, sections), (list(scenarios.SCENARIOS), list(scenarios.SECTIONS)))
        self.assertEqual({one.kind for one in everything}, set(scenarios.RUNS))
        some, sections = scenarios.selected(["regression", "low", "rates"])
        self.assertEqual(([one.name for one in some], sections), (["low", "regression"], ["rates"]))
        some, sections = scenarios.selected(["basic"])
        self.assertEqual(([one.name for one in some], sections),
                         (["low", "medium", "high", "json", "post", "home", "file-1kb"], []))
        with self.assertRaisesRegex(Failure, "no WebSocket yet"):
            scenarios.selected(["websocket"])
        with self.assertRaisesRegex(Failure, "no scenario lowest"):
            scenarios.selected(["lowest"])

    def test_cores_are_apart_where_there_are_two(self):
        one = unittest.mock.patch.object
        cases = (([3], {3}, {3}), ([0, 1], {0}, {1}), ([0, 1, 2, 3], {0, 1}, {2, 3}), (list(range(16)), set(range(4)),
                                                                                         set(range(8, 16))))
        for cores, server, client in cases:
            with self.subTest(cores=cores), one(bench.machine, "cores", lambda cores=cores: cores):
                some = bench.Bench(None, None, None, None)
                self.assertEqual(some.server_cores(scenarios.BY_NAME["reactors-4"]), server)
                self.assertEqual(some.client_cores(), client)

    def test_no_server_is_started_to_count_calls_that_nobody_counts(self):
        started = []

        @contextlib.contextmanager
        def running(*_):
            started.append(True)
            yield None

        def count_calls(*_):
            with running():
                return None

        one = unittest.mock.patch.object
        for strace, servers in ((None, 1), ("strace", 2)):
            started.clear()
            some = bench.Bench(bench.Tools(None, None, None, None, strace), None, None, unittest.mock.Mock(quick=True))
            with one(some, "running", running), one(some, "record"), one(some, "count_calls", count_calls):
                some.measure(scenarios.BY_NAME["medium"], 1)
            self.assertEqual(len(started), servers)


class CommandLine(unittest.TestCase):
    def run_standard(self, *arguments):
        return subprocess.run([SOURCE / "perf/run", "standard", *arguments], capture_output=True, text=True, timeout=LIMIT_S)

    def test_help(self):
        done = self.run_standard("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in ("--quick", "--only", "--seconds", "--runs", "--output", "--peers", "--system-allocator", "c10000"):
            self.assertIn(option, done.stdout)

    def test_what_cannot_be_measured(self):
        for arguments, words in ((["--only", "websocket"], "no WebSocket yet"),
                                 (["--only", "low,allocators"], "--system-allocator PROGRAM, of a build with -DPENSTOCK_"),
                                 (["--program", "/nowhere/penstock"], "/nowhere/penstock does not exist"),
                                 (["--seconds", "0"], "0 is not a whole number from 1 to 60"),
                                 (["--runs", "1000000"], "is not a whole number from 1 to 100")):
            with self.subTest(arguments=arguments):
                done = self.run_standard(*arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.stderr)

    def test_the_peak_is_sought_under_its_own_name(self):
        whole, asked = study.Study(ENVIRONMENT, 1), []

        def measure(scenario, _):
            asked.append(scenario.name)
            return [fake(scenario=scenario, per_second=100.0)]

        command.measure_rates(unittest.mock.Mock(measure=measure, client_cores=lambda: {0}), whole, 1)
        self.assertEqual(asked, ["peak", "rate-25", "rate-50", "rate-75", "rate-90"])
        self.assertEqual(whole.peak, 100.0)

    def test_failed_checks_are_named_at_the_end(self):
        found = [checks.Check("governor", "", False, ""), checks.Check("rest during", "low", False, ""),
                 checks.Check("rest during", "high", False, ""), checks.Check("spread of", "low", None, ""),
                 checks.Check("errors of", "low", True, "")]
        self.assertEqual(command.failed_checks(study.Study(ENVIRONMENT, 1, checks=found)),
                         ["failed: governor", "failed: rest during low, high"])

    def test_names_of_reports(self):
        self.assertEqual([command.name_of(only) for only in (None, ["low"], ["low", "rates"], ["x" * 70])],
                         ["all", "low", "low+rates", "selection"])


if __name__ == "__main__":
    unittest.main()

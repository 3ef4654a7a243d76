#!/usr/bin/env python3
"""What `perf/run compare`, `soak`, `footprint` and `cold-start` make of figures, and how another commit is built."""

import contextlib
import dataclasses
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ.get("PENSTOCK_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LIMIT_S = 30  # far beyond what anything here needs
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "perf"))

from runner import at_hand, commits, compare, footprint, judgement, rounds, same_core, servers, soak, soak_load
from runner.judgement import Level
from runner.tools import Failure

METRICS = {metric.field: metric for metric in judgement.METRICS}
MIB = 1 << 20


def one_round(**fields):
    values = {field.name: 0 for field in dataclasses.fields(rounds.Round)}
    return rounds.Round(**(values | {"slowness": 1.0, "per_second": 1000, "p99_us": 100, "cpu_us": 10} | fields))


def rounds_of(field, *values):
    return [one_round(**{field: value}) for value in values]


STEADY = [one_round()] * 3


class Levels(unittest.TestCase):
    def level(self, field, base, head, witness=STEADY):
        """Of a series in which every round is alike, or as given."""
        base, head = (rounds_of(field, *(values if isinstance(values, tuple) else (values,) * 3)) for values in (base, head))
        verdict, = [one for one in judgement.judge(base, head, witness) if one.metric.field == field]
        return verdict.level

    def test_each_threshold(self):
        for field, base, cases in (
            ("per_second", 1000, ((2000, Level.PASSES), (1000, Level.PASSES), (951, Level.PASSES), (950, Level.WARNS),
                                  (901, Level.WARNS), (900, Level.FAILS), (1, Level.FAILS))),
            ("p99_us", 100, ((50, Level.PASSES), (109.9, Level.PASSES), (110, Level.WARNS), (119.9, Level.WARNS),
                             (120, Level.FAILS), (900, Level.FAILS))),
            ("cpu_us", 10, ((5, Level.PASSES), (10.99, Level.PASSES), (11, Level.WARNS), (11.99, Level.WARNS),
                            (12, Level.FAILS), (90, Level.FAILS))),
        ):
            for head, level in cases:
                with self.subTest(field=field, head=head):
                    self.assertEqual(self.level(field, base, head), level)

    def test_median_and_best_have_to_agree(self):
        # The best rounds are alike, and the others were slower by half.
        self.assertEqual(self.level("cpu_us", (10, 10, 10), (10, 15, 15)), Level.NOISE)
        # One lucky round of base, and all else alike.
        self.assertEqual(self.level("cpu_us", (5, 10, 10), (10, 10, 10)), Level.NOISE)
        self.assertEqual(self.level("per_second", (1000, 1000, 1000), (1000, 500, 500)), Level.NOISE)

    def test_of_a_warning_and_a_failure_the_warning_counts(self):
        self.assertEqual(self.level("cpu_us", (10, 10, 10), (11.5, 13, 13)), Level.WARNS)
        self.assertEqual(self.level("per_second", (1000, 1000, 1000), (930, 800, 800)), Level.WARNS)

    def test_ratios_are_taken_within_a_pair(self):
        # The machine becomes twice as slow, for both.
        self.assertEqual(self.level("cpu_us", (10, 20, 20), (10, 20, 20)), Level.PASSES)
        self.assertEqual(self.level("cpu_us", (10, 20, 20), (13, 26, 26)), Level.FAILS)

    def test_when_the_witness_is_not_steady_it_is_noise(self):
        unsteady = rounds_of("cpu_us", 10, 15, 7)
        self.assertEqual(self.level("cpu_us", 10, 13, unsteady), Level.NOISE)
        self.assertEqual(self.level("cpu_us", 10, 10, unsteady), Level.PASSES)
        # More than three of its spreads, here 0.3, are no chance.
        self.assertEqual(self.level("cpu_us", 10, 18.9, unsteady), Level.NOISE)
        self.assertEqual(self.level("cpu_us", 10, 19.5, unsteady), Level.FAILS)
        self.assertEqual(self.level("cpu_us", 10, 11.5, rounds_of("cpu_us", 10, 10.4, 9.6)), Level.WARNS)
        self.assertEqual(self.level("cpu_us", 10, 11.5, rounds_of("cpu_us", 10, 10.6, 9.4)), Level.NOISE)
        # It was in another figure.
        self.assertEqual(self.level("p99_us", 100, 130, unsteady), Level.FAILS)

    def test_by_the_clock_nothing_is_judged_when_most_pairs_were_disturbed(self):
        loud = one_round(foreign=0.5)
        for witness, level in (([loud, STEADY[0], STEADY[0]], Level.FAILS), ([loud, loud, STEADY[0]], Level.NOISE)):
            with self.subTest(level=level):
                self.assertEqual(self.level("per_second", 1000, 500, witness), level)
                self.assertEqual(self.level("p99_us", 100, 300, witness), level)
                self.assertEqual(self.level("cpu_us", 10, 13, witness), Level.FAILS)

    def test_who_answers_nothing_fails(self):
        nothing = float("nan")
        self.assertEqual(self.level("cpu_us", 10, nothing), Level.FAILS)
        self.assertEqual(self.level("per_second", 1000, 0), Level.FAILS)

    def test_series_of_different_lengths_are_an_error(self):
        with self.assertRaises(ValueError):
            judgement.judge(STEADY, STEADY[1:], STEADY)

    def test_the_spread_of_a_witness(self):
        self.assertEqual(judgement.spread_of([10, 10, 10]), 0)
        self.assertAlmostEqual(judgement.spread_of([10, 11, 8]), 0.1)
        self.assertEqual(judgement.spread_of([]), 0)

    def test_what_is_looked_at_twice_counts_as_the_milder_says(self):
        slow = judgement.judge(STEADY, rounds_of("cpu_us", 13, 13, 13), STEADY)
        same = judgement.judge(STEADY, STEADY, STEADY)
        self.assertEqual(max(one.level for one in judgement.of_both(slow, same)), Level.PASSES)
        self.assertEqual(max(one.level for one in judgement.of_both(slow, slow)), Level.FAILS)

    def test_the_table_tells_each_figure(self):
        text = judgement.table_of(judgement.judge(STEADY, rounds_of("cpu_us", 13, 13, 13), STEADY))
        self.assertRegex(text, r"CPU µs/request \| +10\.0 \| +13\.0 \| +\+30\.0% \| +\+30\.0% \| +0\.0% \| FAILS")
        self.assertRegex(text, r"requests/s +\| +1,000 \| +1,000 \| +\+0\.0% \| +\+0\.0% \| +0\.0% \| passes")


class Conclusions(unittest.TestCase):
    def conclude(self, head, errors=0, of_base=0, disturbed=0):
        verdicts = {"c1": judgement.judge(STEADY, rounds_of("cpu_us", *head), STEADY)}
        data = {"c1": {"rounds": [[{name: {"errors": count, "disturbed": pair < disturbed and name == "floor"}
                                    for name, count in (("base", of_base), ("head", errors), ("floor", 0))}
                                   for pair in range(4)]]}}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            return compare.conclude(verdicts, data), printed.getvalue()

    def test_warnings_and_noise_pass(self):
        self.assertEqual(self.conclude((10, 10, 10)), (0, "\nPASSES\n"))
        self.assertEqual(self.conclude((10, 10, 10), of_base=1), (0, "\nthere were errors of base in c1\n\nPASSES\n"))
        status, text = self.conclude((11, 11, 11))
        self.assertEqual(status, 0)
        self.assertIn("warns: c1: CPU µs/request +10.0%", text)
        status, text = self.conclude((10, 15, 15))
        self.assertEqual(status, 0)
        self.assertIn("noise: c1: CPU µs/request +50.0%", text)

    def test_what_was_not_judged_is_told(self):
        self.assertEqual(self.conclude((10, 10, 10), disturbed=2), (0, "\nPASSES\n"))
        status, text = self.conclude((10, 10, 10), disturbed=3)
        self.assertEqual(status, 0)
        self.assertRegex(text, "^\nPASSES by CPU time only: more than half of the pairs were disturbed, so requests/s and P99 ")
        loud, quiet = ({"rounds": [[{"floor": {"disturbed": is_loud}}]]} for is_loud in (True, False))
        self.assertIn("by CPU time only in churn: ", compare.unjudged({"c1": quiet, "churn": loud}))

    def test_what_is_slower_beyond_doubt_fails(self):
        status, text = self.conclude((13, 13, 13))
        self.assertEqual(status, 1)
        self.assertIn("FAILS: c1: CPU µs/request +30.0%", text)

    def test_an_error_of_heads_fails(self):
        status, text = self.conclude((10, 10, 10), errors=1)
        self.assertEqual(status, 1)
        self.assertIn("errors of head in c1", text)


class Turns(unittest.TestCase):
    class Bench:
        """Gives the rounds one after the other, and takes a second for each repeat."""

        def __init__(self, given, patience=100):
            self.given = iter(given)
            self.patience = rounds.Patience(patience)
            self.waits = 0

        def measure(self, *_):
            return next(self.given)

        def wait_until_quiet(self):
            self.waits += 1

    def test_a_disturbed_turn_is_repeated_as_a_whole_and_the_least_disturbed_counts(self):
        quiet, loud, louder = one_round(), one_round(foreign=0.5), one_round(foreign=0.7)
        bench = self.Bench([quiet, loud, quiet, quiet])
        self.assertEqual(compare.turn_of(bench, ["base", "head"], None), [quiet, quiet])
        self.assertEqual(bench.waits, 1)
        bench = self.Bench([quiet, louder, loud, quiet, loud, louder])
        self.assertEqual(compare.turn_of(bench, ["base", "head"], None), [loud, quiet])
        self.assertEqual(bench.waits, compare.REPEATS)

    def test_without_patience_nothing_is_repeated(self):
        loud = one_round(foreign=0.5)
        bench = self.Bench([loud, loud], patience=0)
        self.assertEqual(compare.turn_of(bench, ["base", "head"], None), [loud, loud])

    def test_what_would_fail_is_looked_at_again(self):
        for again, level in ((10, Level.PASSES), (13, Level.FAILS)):
            with self.subTest(again=again):
                heads = [13, 13, again, again]
                given = [one_round(cpu_us=value) for head in heads for value in (10, head, 10)]
                verdicts, data = self.compare(given)
                self.assertEqual(verdicts[-1].level, level)
                self.assertEqual([len(turns) for turns in data["rounds"]], [2, 2])

    def test_what_passes_is_looked_at_once(self):
        _, data = self.compare([one_round()] * 6)
        self.assertEqual([len(turns) for turns in data["rounds"]], [2])

    def compare(self, given):
        bench = self.Bench(given)
        bench.setting = None
        options = unittest.mock.Mock(pairs=2, no_verdict=False)
        peers = [unittest.mock.Mock() for _ in range(3)]
        for peer, name in zip(peers, ("base", "head", "floor")):
            peer.name = name
        with unittest.mock.patch.object(same_core, "start", lambda peer, *_: peer), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return compare.compare(bench, peers, same_core.Scenario("c1", 1), options)


class Commits(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write_cache(self, *lines):
        (self.folder / "CMakeCache.txt").write_text("\n".join(lines) + "\n")

    def test_settings_are_those_of_the_build(self):
        self.write_cache("# a comment", "CMAKE_BUILD_TYPE:STRING=MinSizeRel", "CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/clang++",
                         "CMAKE_CXX_FLAGS:STRING=-march=native -g", "CMAKE_CXX_FLAGS_MINSIZEREL:STRING=-Os",
                         "CMAKE_EXE_LINKER_FLAGS_MINSIZEREL:STRING=-s", "CMAKE_INTERPROCEDURAL_OPTIMIZATION:UNINITIALIZED=ON",
                         "PENSTOCK_JEMALLOC:BOOL=OFF", "PENSTOCK_PROFILE:STRING=", "CMAKE_CXX_FLAGS_DEBUG:STRING=-O0",
                         "PENSTOCK_TESTS:BOOL=ON", "CMAKE_CXX_COMPILER-ADVANCED:INTERNAL=1")
        self.assertEqual(commits.settings_of(self.folder), [
            "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DCMAKE_CXX_COMPILER=/usr/bin/clang++", "-DCMAKE_CXX_FLAGS=-march=native -g",
            "-DCMAKE_CXX_FLAGS_MINSIZEREL=-Os", "-DCMAKE_EXE_LINKER_FLAGS_MINSIZEREL=-s",
            "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON", "-DPENSTOCK_JEMALLOC=OFF"])

    def test_what_another_commit_cannot_be_built_like(self):
        with self.assertRaisesRegex(Failure, "is no build folder"):
            commits.settings_of(self.folder)
        self.write_cache("PENSTOCK_PROFILE:STRING=use")
        with self.assertRaisesRegex(Failure, "a profile that another commit has not"):
            commits.settings_of(self.folder)

    def test_a_commit_is_built_with_them_in_a_folder_that_goes_away(self):
        self.write_cache("CMAKE_BUILD_TYPE:STRING=Release", "CMAKE_CXX_FLAGS:STRING=-g")
        called = []

        def call(command, about, environment=None):
            called.append([str(word) for word in command])
            if "checkout" in command:
                (pathlib.Path(command[2]) / "tools/penstock").mkdir(parents=True)
            return "abc123\n"

        with unittest.mock.patch.object(commits, "call", call):
            with commits.built("HEAD~3", self.folder, ["program"], "tools/penstock", "/git") as build:
                self.assertEqual((build.name, build.parents[1].name), ("base", "abc123"))
                self.assertTrue(build.parents[1].is_dir())
            self.assertFalse(build.parents[1].exists())
            with self.assertRaisesRegex(Failure, "HEAD~3 has no perf/budget"), \
                    commits.built("HEAD~3", self.folder, ["program"], "perf/budget", "/git"):
                pass
        configured, = [words for words in called if words[0] == "cmake" and "-S" in words]
        self.assertEqual(configured[-3:], ["-DPENSTOCK_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-g"])
        self.assertIn(["cmake", "--build", str(build), "--target", "program"], called)
        self.assertEqual(called[0][-1], "HEAD~3^{commit}")

    def test_what_does_not_end_well_is_told(self):
        with self.assertRaisesRegex(Failure, "a reason: python3?.* ended with 1: out of luck"):
            commits.call([sys.executable, "-c", "import sys; sys.exit('out of luck')"], "a reason")


class Repositories(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.git("init", "-q")
        self.git("-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-m", "First")
        self.enterContext(unittest.mock.patch.object(commits, "ROOT", self.folder))

    def git(self, *words):
        subprocess.run(["git", "-C", self.folder, *words], check=True, capture_output=True, timeout=LIMIT_S)

    def test_a_commit_that_is_not_there(self):
        self.assertRegex(commits.short_name("HEAD", "git"), "^[0-9a-f]+$")
        for words in ("nothing", "HEAD~7"):
            with self.subTest(words=words), self.assertRaises(Failure) as caught:
                commits.short_name(words, "git")
            self.assertRegex(str(caught.exception), rf"^there is no commit {words}( \(git: [^\n]+\))?$")

    def test_a_repository_of_somebody_else(self):
        ended = commits.Ended(["/git"], "there is no commit x", 128, "fatal: detected dubious ownership in repository at 'a'\nb")
        with self.assertRaises(Failure) as caught, commits.telling_what_git_says():
            raise ended
        self.assertRegex(str(caught.exception), "^git does not read .*belongs to another user .*safe.directory")

    def test_what_is_neither_a_program_nor_a_commit(self):
        for words, told in ((f"{self.folder}/nowhere", "nowhere does not exist; "), ("./nowhere", "does not exist; "),
                            (f"{self.folder}/", "is a folder; "), ("a/branch", "neither a program that exists nor a commit"),
                            ("branch", "there is no commit branch")):
            with self.subTest(words=words), self.assertRaisesRegex(Failure, told):
                compare.check_commit(words)
        self.git("branch", "a/branch")
        compare.check_commit("a/branch")


class Soak(unittest.TestCase):
    def samples(self, count=20, resident=lambda at: 8 * MIB, descriptors=lambda at: 45, errors=0):
        return [soak.Sample(at_s=float(at), resident_bytes=round(resident(at)), descriptors=round(descriptors(at)),
                            connections=36, requests=100, errors=errors, p99_us=1000.0, slow_served=at, left=at)
                for at in range(count)]

    def test_level_samples_pass(self):
        samples = self.samples(descriptors=lambda at: 45 + at % 3)
        self.assertEqual(soak.complaints(samples), [])
        self.assertIn("PASSES: 2,000 requests, 19 slow readers and 19 who left", soak.verdict(samples, []))

    def test_what_grows_in_the_first_half_only_is_no_matter(self):
        self.assertEqual(soak.complaints(self.samples(resident=lambda at: min(at, 8) * MIB)), [])

    def test_memory_that_grows_fails(self):
        # Over the nine seconds of the second half: just within what is allowed, and beyond it.
        self.assertEqual(soak.complaints(self.samples(resident=lambda at: 8 * MIB + at * MIB / 9.1)), [])
        found, = soak.complaints(self.samples(resident=lambda at: 8 * MIB + at * MIB / 8.9))
        self.assertRegex(found, r"memory grew by 1,03\d KiB in the second half, of at most 1,024 KiB")
        # Of a large process it is a share.
        self.assertEqual(soak.complaints(self.samples(resident=lambda at: 1000 * MIB + at * 2 * MIB)), [])
        self.assertEqual(len(soak.complaints(self.samples(resident=lambda at: 1000 * MIB + at * 3 * MIB))), 1)

    def test_descriptors_that_grow_fail(self):
        self.assertEqual(soak.complaints(self.samples(descriptors=lambda at: 45 + at * 7 // 9)), [])
        found, = soak.complaints(self.samples(descriptors=lambda at: 45 + 2 * at))
        self.assertEqual(found, "descriptors grew by 18.0 in the second half, of at most 8.00")

    def test_what_others_used_is_told(self):
        samples = self.samples()
        self.assertEqual(soak.disturbance(samples), "")
        loud = [dataclasses.replace(one, foreign=0.3) for one in samples[:3]]
        self.assertIn("3 of 20 samples disturbed by others", soak.disturbance(loud + samples[3:]))
        self.assertTrue(soak.line_of(loud[0]).endswith(" (disturbed)"))
        self.assertNotIn("disturbed", soak.line_of(samples[0]))

    def test_own_work_is_not_that_of_others(self):
        server = unittest.mock.Mock()
        busy = iter(({0: 10.0, 1: 20.0, 2: 0.0}, {0: 11.0, 1: 20.5, 2: 9.0}))
        times = iter((servers.CpuTime(1, 0, 0), servers.CpuTime(1.75, 0, 0)))
        server.cpu_time = lambda: next(times)
        usage = unittest.mock.Mock(ru_utime=0, ru_stime=0)
        with unittest.mock.patch.object(soak.machine, "busy_s", lambda: next(busy)), \
                unittest.mock.patch.object(soak.resource, "getrusage", lambda _: usage), \
                unittest.mock.patch.object(soak.time, "process_time", iter((0.0, 0.25)).__next__), \
                unittest.mock.patch.object(soak.time, "monotonic", iter((5.0, 7.0)).__next__):
            self.assertEqual(soak.ForeignMeter(server, {0, 1}).foreign(), 0.25)  # 1.5 s less 1 s of our own, in 2 s

    def test_shrinking_is_well(self):
        falling = self.samples(resident=lambda at: (100 - at) * MIB, descriptors=lambda at: 90 - at)
        self.assertEqual(soak.complaints(falling), [])

    def test_errors_and_too_few_samples_fail(self):
        self.assertEqual(soak.complaints(self.samples(errors=1)), ["20 errors"])
        self.assertEqual(soak.complaints(self.samples(count=4)), ["4 samples are too few to tell what grows"])
        self.assertEqual(soak.complaints([]), ["0 samples are too few to tell what grows"])
        self.assertEqual(soak.verdict([], ["a", "b"]), "FAILS: a; b")

    def test_a_short_soak_has_its_samples_closer(self):
        self.assertEqual([soak.sample_seconds(seconds) for seconds in (1, 60, 200, 36_000)], [0.3, 3, 10, 10])

    def test_ways_are_bounded(self):
        for way in soak_load.WAYS:
            words = way.command("load", 80, 3)
            bound = "--rate" if way.is_open else "--requests"
            self.assertEqual(words[words.index(bound) + 1], str(way.per_second if way.is_open else 3 * way.per_second))
            self.assertEqual(words[words.index("--seconds") + 1], "3.000")

    def test_a_load_program_that_fails_is_told(self):
        process = subprocess.Popen([sys.executable, "-c", "import sys; sys.exit('penstock_load: no answer')"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with process, self.assertRaisesRegex(Failure, "files: no answer"):
            soak_load.result_of("files", process, 1)

    def test_odd_clients_tell_what_is_wrong(self):
        with servers.socket.create_server(("127.0.0.1", 0)) as nobody:
            port = nobody.getsockname()[1]
        odd = soak_load.OddClients(port)
        odd.stopped.wait = lambda _: odd.stopped.set()  # once
        odd.repeat(odd.read_slowly, 0)
        self.assertEqual(odd.errors, 1)
        self.assertRegex(odd.words[0], "read_slowly: .*refused")


class Footprint(unittest.TestCase):
    ROLLUP = ("55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:    6608 kB\nPss:    4000 kB\nPss_Dirty:  2 kB\n"
              "Private_Clean:   100 kB\nPrivate_Dirty:   2800 kB\n")

    def test_memory_of_a_process_is_read(self):
        self.assertEqual(footprint.parse_rollup(self.ROLLUP), (6608 << 10, 4000 << 10, 2900 << 10))
        with self.assertRaises(Failure):
            footprint.parse_rollup("Rss: 12 kB\n")

    def test_bytes_of_each_connection(self):
        rest = footprint.Memory(9 * MIB, 4 * MIB, MIB)
        one = footprint.Idle("x", rest, rest, footprint.Memory(9 * MIB, 5 * MIB, 2 * MIB), 1024)
        self.assertEqual(one.each_bytes, 1024)
        self.assertIn("resident, 1,024 idle", footprint.table_of([one], 1024))
        self.assertRegex(footprint.table_of([one], 1024).splitlines()[2], r"\| +1,024 \|$")
        less = footprint.Idle("x", rest, rest, footprint.Memory(9 * MIB, 4 * MIB - 1024, MIB), 1024)
        self.assertRegex(footprint.table_of([less], 1024).splitlines()[2], r"\| +0 \|$")

    def test_sizes_are_of_what_is_built(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            program.write_bytes(b"x" * 100)
            there = {"a": program, "again": program, "not": program.parent / "nowhere"}
            with unittest.mock.patch.object(footprint, "stripped", lambda *_: None):
                self.assertEqual(footprint.sizes_of(there), {str(program): {"bytes": 100, "stripped_bytes": None}})

    def test_more_connections_than_descriptors(self):
        with unittest.mock.patch.object(footprint.resource, "getrlimit", lambda _: (50, 4_000)), \
                self.assertRaisesRegex(Failure, "4000 connections are more than the hard limit of 4000"):
            footprint.raise_descriptor_limit(4_000)

    def test_an_answer_is_looked_at(self):
        head = "HTTP/1.1 {} X\r\nContent-Length: {}\r\n\r\n"
        for answer, words in ((head.format(200, 13) + "x" * 13, None), (head.format(404, 13), "something else"),
                              (head.format(200, 14), "something else"), (head.format(200, 13) + "x", "has ended"),
                              ("HTTP/1.1 200 OK\r\n\r\n", "something else"), ("", "has ended")):
            ours, theirs = servers.socket.socketpair()
            with self.subTest(answer=answer), ours, theirs:
                ours.settimeout(LIMIT_S)
                theirs.sendall(answer.encode())
                theirs.shutdown(servers.socket.SHUT_WR)
                with self.assertRaisesRegex(Failure, words) if words else contextlib.nullcontext():
                    at_hand.ask(ours, "mine")

    def test_servers_that_are_not_known(self):
        with unittest.mock.patch.object(at_hand.http_peers, "make_site"), self.assertRaisesRegex(Failure, "no server x"):
            at_hand.peers_at_hand("floor", "penstock", ["x"])


class CommandLine(unittest.TestCase):
    def run_it(self, *words):
        return subprocess.run([SOURCE / "perf/run", *words], capture_output=True, text=True, timeout=LIMIT_S)

    def test_help_of_each(self):
        for command, option in (("compare", "BASE"), ("soak", "--minutes"), ("footprint", "--connections"),
                                ("cold-start", "--starts")):
            with self.subTest(command=command):
                done = self.run_it(command, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(option, done.stdout)

    def test_programs_that_are_not_there(self):
        for words in (("compare", "/nowhere/a", "--build", "/nowhere"), ("soak", "--minutes", "1", "--program", "/nowhere/a"),
                      ("footprint", "--program", "/nowhere/a"), ("cold-start", "--program", "/nowhere/a")):
            with self.subTest(words=words):
                done = self.run_it(*words)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, "/nowhere/.* does not exist")

    def test_what_cannot_be_asked_for(self):
        for words in (("soak",), ("soak", "--minutes", "0"), ("soak", "--minutes", "nan"), ("soak", "--minutes", "1e9"),
                      ("compare",), ("compare", "HEAD", "--seconds", "60"), ("compare", "HEAD", "--scenarios", "c2"),
                      ("compare", "HEAD", "--pairs", "1"), ("compare", "HEAD", "--nice", "20"),
                      ("cold-start", "--nice", "-21"), ("peers", "--nice", "x"), ("standard", "--nice", "99")):
            with self.subTest(words=words):
                self.assertEqual(self.run_it(*words).returncode, 2)


if __name__ == "__main__":
    unittest.main()

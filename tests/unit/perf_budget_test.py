#!/usr/bin/env python3
"""How `perf/run budget` judges counts: what grows, what is explained, what is gone."""

import concurrent.futures
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ.get("PENSTOCK_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LIMIT_S = 30  # far beyond what anything here needs
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "perf"))

from runner import budget, commits, servers
from runner.tools import Failure


def counts_of(**simulated):
    return {name: {"simulated": count, "served": None, "calls": 3.0} for name, count in simulated.items()}


@contextlib.contextmanager
def history(*messages):
    """A repository of empty commits, for the budget to look into; gives what calls git there."""
    with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(budget, "ROOT", folder):
        def git(*words, **more):
            return subprocess.run(["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x", *words], check=True,
                                  capture_output=True, timeout=LIMIT_S, **more).stdout.decode().strip()
        git("init", "-q")
        for message in messages:
            git("commit", "-q", "--allow-empty", "-m", message)
        yield git


class Budget(unittest.TestCase):
    def judge(self, new, old, excused=()):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            return budget.judge(new, old, dict(excused)), printed.getvalue()

    def test_what_grows_by_more_than_two_hundredths_fails(self):
        for new, status in ((5_000, 0), (5_100, 0), (5_101, 1), (4_000, 0), (9_000, 1)):
            with self.subTest(new=new):
                failed, text = self.judge(counts_of(plaintext=new, json=6_000), counts_of(plaintext=5_000, json=6_000))
                self.assertEqual(failed, status)
                self.assertEqual("plaintext: instructions, simulated per request grew from 5,000" in text, bool(status))

    def test_a_system_call_more_fails(self):
        new = counts_of(plaintext=5_000)
        new["plaintext"]["calls"] = 4.0
        self.assertEqual(self.judge(new, counts_of(plaintext=5_000))[0], 1)

    def test_a_reason_is_shown_and_lets_it_pass(self):
        failed, text = self.judge(counts_of(plaintext=6_000), counts_of(plaintext=5_000), {"plaintext": "counted by route"})
        self.assertEqual(failed, 0)
        self.assertIn("(+20.0%), since: counted by route", text)

    def test_a_new_scenario_is_not_judged(self):
        self.assertEqual(self.judge(counts_of(plaintext=9, new=9), counts_of(plaintext=9))[0], 0)

    def test_a_scenario_that_is_gone_fails_without_a_reason(self):
        old = counts_of(plaintext=9, close=1)
        self.assertEqual(self.judge(counts_of(plaintext=9), old)[0], 1)
        self.assertEqual(self.judge(counts_of(plaintext=9), old, {"close": "nobody closes"})[0], 0)

    def test_what_is_above_its_ceiling_or_has_none_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            ceilings = pathlib.Path(folder) / "ceilings.json"
            ceilings.write_text('{"plaintext": 1800}')
            with unittest.mock.patch.multiple(budget, CEILINGS=ceilings, ROOT=pathlib.Path(folder)), \
                    contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(budget.exceeds_ceilings(counts_of(plaintext=1_800)), 0)
                self.assertEqual(budget.exceeds_ceilings(counts_of(plaintext=1_801)), 1)
                self.assertEqual(budget.exceeds_ceilings(counts_of(unknown=1)), 1)
                over_tls = {"plaintext": {"simulated": None, "served": 1_800, "calls": 3}}
                self.assertEqual(budget.exceeds_ceilings(over_tls), 0)
                over_tls["plaintext"]["served"] = 1_801
                self.assertEqual(budget.exceeds_ceilings(over_tls), 1)

    def test_reasons_are_lines_of_commits(self):
        with history("First\n\nBudget: close: not of this range",
                     "Second\n\nBudget: json, body-100k: a reason\nBudget: no reason"):
            self.assertEqual(budget.excuses("git", "HEAD~1"), {"json": "a reason", "body-100k": "a reason"})

    def test_a_message_that_is_no_utf8_is_read_all_the_same(self):
        with history("First") as git:
            # As tools other than `git commit` write it, which would turn it into UTF-8.
            text = (f"tree {git('rev-parse', 'HEAD^{tree}')}\nparent {git('rev-parse', 'HEAD')}\n"
                    "author x <x> 1 +0000\ncommitter x <x> 1 +0000\n\n").encode() + b"Gr\xf6\xdfer\n\nBudget: json: a reason\n"
            git("update-ref", "HEAD", git("hash-object", "-t", "commit", "-w", "--stdin", input=text))
            self.assertEqual(budget.excuses("git", "HEAD~1"), {"json": "a reason"})

    def test_what_a_command_has_started_ends_with_it_when_its_time_is_over(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(commits, "LIMIT_S", 1):
            place = pathlib.Path(folder) / "pid"
            # As cmake starts ninja, and that the compilers.
            with self.assertRaises(Failure):
                commits.call(["sh", "-c", f"sleep {LIMIT_S} & echo $! > {place}; wait"], "a build")
            child = int(place.read_text())
            try:
                deadline = time.monotonic() + LIMIT_S / 3
                while servers.stat_fields(child)[:1] not in ([], ["Z"]) and time.monotonic() < deadline:
                    time.sleep(0.01)
                self.assertIn(servers.stat_fields(child)[:1], ([], ["Z"]))
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)

    def test_a_server_that_names_no_port_is_not_waited_for_without_end(self):
        with unittest.mock.patch.object(budget, "LIMIT_S", 1):
            done = []

            def serve():
                with contextlib.suppress(Failure):
                    budget.serve(["sleep", str(LIMIT_S)], {"name": "x"}, 1)
                done.append(True)

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            thread.join(LIMIT_S / 3)
            self.assertTrue(done)

    def test_what_is_under_way_ends_at_once_when_it_is_not_wanted_any_longer(self):
        for reason in (KeyboardInterrupt, Failure):
            started = time.monotonic()
            with self.subTest(reason=reason), concurrent.futures.ThreadPoolExecutor(2) as workers:
                works = [workers.submit(commits.call, ["sleep", str(LIMIT_S)], "sleeping"),
                         workers.submit(budget.serve, ["sleep", str(LIMIT_S)], {"name": "x"}, 1),
                         workers.submit(commits.call, ["sleep", str(LIMIT_S)], "waiting for its turn")]
                with self.assertRaises(reason), budget.ending_at_once(workers, works):
                    raise reason
                self.assertTrue(all(work.done() for work in works))
                self.assertTrue(works[2].cancelled() or works[2].exception())
            self.assertLess(time.monotonic() - started, LIMIT_S / 2)
            self.assertEqual(commits.ONGOING, set())

    def test_the_words_by_which_a_reason_is_asked_for_are_none(self):
        with history("First", "Second\n\nBudget: json: \u2026"):
            self.assertEqual(budget.excuses("git", "HEAD~1"), {})

    def test_a_commit_that_is_not_there_is_told_before_anything_is_counted(self):
        options = unittest.mock.Mock(against="no-such-commit")
        with unittest.mock.patch.multiple(budget, tools=unittest.mock.DEFAULT, programs_of=unittest.mock.DEFAULT,
                                          count_all=unittest.mock.DEFAULT) as mocked, \
                unittest.mock.patch.object(budget, "short_name", side_effect=Failure("there is no commit")), \
                self.assertRaisesRegex(Failure, "there is no commit"):
            budget.run(options)
        mocked["count_all"].assert_not_called()

    def test_callgrinds_sum_is_read_and_nothing_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "out"
            file.write_text("events: Ir\nfn=(1) main\n1 7\nsummary: 123456\n\ntotals: 123456\n")
            self.assertEqual(budget.instructions_in(file), 123456)
            for text in ("summary: 0\n", "events: Ir\n"):
                file.write_text(text)
                with self.assertRaises(Failure):
                    budget.instructions_in(file)


if __name__ == "__main__":
    unittest.main()

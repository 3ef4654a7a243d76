#!/usr/bin/env python3
"""Files given to `perf/run standard` that are of the right shape and hold what no measurement gives: refused at once."""

import json
import pathlib
import tempfile
import unittest

from _perf_standard import ENVIRONMENT
from runner.standard import drawings, pages, sources, study
from runner.tools import Failure


def peers_of(time, scenario="c50", server="floor"):
    return json.dumps({"scenarios": {scenario: {"rounds": {server: [{"cpu_us": time}] * 3, "penstock": [{"cpu_us": time}] * 3}}}})


class HostileFiles(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "file"

    def read(self, read, text):
        self.path.write_text(text)
        return read(self.path)

    def assert_refused(self, read, text):
        """Before anything is measured: half an hour later it would cost the report."""
        with self.assertRaisesRegex(Failure, "is nothing that perf/run"):
            self.read(read, text)

    def test_a_time_of_nothing(self):
        self.assert_refused(sources.read_peers, peers_of(0))

    def test_numbers_that_are_too_large(self):
        huge = 10 ** 400
        self.assert_refused(sources.read_peers, peers_of(huge))
        self.assert_refused(sources.read_counts, json.dumps({"counts": {"plaintext": {"served": huge}}}))

    def test_endless_memory(self):
        self.assert_refused(sources.read_footprint,
                            json.dumps({"idle": [{"name": "penstock", "bytes_per_connection": float("inf")}]}))

    def test_why_is_said_in_words(self):
        cases = ((sources.read_peers, "x", "it is no JSON$"), (sources.read_peers, "[" * 100_000, "it is no JSON$"),
                 (sources.read_peers, "\xff", "it is no JSON$"),
                 (sources.read_peers, '{"counts": {}}', "it is of perf/run budget$"),
                 (sources.read_counts, peers_of(1.0), "it is of perf/run peers$"),
                 (sources.read_footprint, "{}", "it has no idle$"), (sources.read_footprint, "[]", "it is built otherwise$"),
                 (sources.read_footprint, '{"idle": [1]}', "it is built otherwise$"),
                 (sources.read_peers, peers_of(0), "0.0 is not above 0$"),
                 (sources.read_peers, peers_of(10 ** 400), "it has a number that is too large$"))
        for read, text, words in cases:
            with self.subTest(text=text[:40]), self.assertRaisesRegex(Failure, "is nothing that perf/run .*: " + words):
                self.path.write_text(text, "latin-1")
                read(self.path)
        with self.assertRaisesRegex(Failure, "gone does not exist; make it by perf/run peers --json FILE$"):
            sources.read_peers(self.path.parent / "gone")
        with self.assertRaisesRegex(Failure, "cannot be read: Is a directory$"):
            sources.read_peers(self.path.parent)

    def test_brackets_without_end(self):
        for read in (sources.read_peers, sources.read_counts, sources.read_footprint):
            with self.subTest(read=read.__name__):
                self.assert_refused(read, "[" * 100_000)

    def test_less_than_nothing_meets_no_goal(self):
        self.assert_refused(sources.read_counts, json.dumps({"counts": {"plaintext": {"served": -1}}}))

    def test_names_break_no_table(self):
        self.assert_refused(sources.read_peers, peers_of(1.0, scenario="c50\n# x"))
        self.assert_refused(sources.read_peers, peers_of(1.0, server="floor\n\n# y"))

    def test_a_figure_of_another_commit_is_told(self):
        found = self.read(sources.read_peers, json.dumps(json.loads(peers_of(1.0)) | {"commit": "0000000-of-long-ago"}))
        whole = study.Study(ENVIRONMENT, 10, sources={found.command: found})
        whole.checks.append(sources.commit_check(found, ENVIRONMENT["commit"]))
        self.assertIn("0000000-of-long-ago", pages.page(whole, drawings.drawings_of(whole), "PERF-x"))


if __name__ == "__main__":
    unittest.main()

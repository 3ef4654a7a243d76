#!/usr/bin/env python3
"""`perf/run standard` from its checks to its report, against the real program.

PENSTOCK_PROGRAM and PENSTOCK_LOAD are the programs.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SOURCE = pathlib.Path(os.environ.get("PENSTOCK_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("PENSTOCK_PROGRAM", "")
LOAD = os.environ.get("PENSTOCK_LOAD", "")
LIMIT_S = 60  # it takes a few seconds
CANNOT_RUN = 77
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "perf"))

from runner.standard import records


class Quick(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_standard(self, *arguments):
        command = [SOURCE / "perf/run", "standard", "--program", PROGRAM, "--load", LOAD, "--output", self.folder / "report",
                   "--records", self.folder / "runs", *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)

    def test_a_scenario(self):
        done = self.run_standard("--quick", "--only", "post")
        self.assertEqual(done.returncode, 0, done.stderr)
        report, = (self.folder / "report").glob("PERF-*-post.md")
        text = report.read_text()
        self.assertIn("- answers of each scenario: 1 of 1 has passed", text)
        self.assertIn("- errors of each scenario: 1 of 1 has passed", text)
        self.assertIn("- spread of each scenario: not known", text)
        self.assertEqual(done.stdout.splitlines()[-1], f"The report is {report}")
        self.assertRegex(text, r"\| requests/s, low +\| +≥ 10,000 \| +– \| not measured \|")
        self.assertIn("without rows for that reason: WebSocket", text)
        self.assertFalse((self.folder / "report/baseline-history.json").exists())
        path, = (self.folder / "runs").iterdir()
        record = records.Record(**json.loads(path.read_text()))
        self.assertEqual((record.scenario["name"], record.scenario["sent_bytes"]), ("post", 2048))
        self.assertGreater(record.results["requests"], 100)
        self.assertEqual((record.results["errors"], record.results["asked"]), (0, record.results["requests"]))
        self.assertEqual(record.latency.count, record.results["requests"])
        for figure in ("cpu_us", "end_rss_bytes"):
            self.assertGreater(record.resources[figure], 0)
        self.assertGreaterEqual(record.resources["peak_rss_bytes"], record.resources["end_rss_bytes"])

    def test_a_plot_and_the_history_of_a_scenario_that_counts(self):
        done = self.run_standard("--seconds", "1", "--runs", "1", "--only", "low")
        self.assertEqual(done.returncode, 0, done.stderr)
        plot, = (self.folder / "report").glob("PERF-*-low-percentiles.svg")
        xml.etree.ElementTree.parse(plot)
        self.assertIn('"per_second"', (self.folder / "report/baseline-history.json").read_text())

    def test_a_report_that_could_not_be_written_is_told_before(self):
        (self.folder / "report").mkdir()
        (self.folder / "report/baseline-history.json").write_text("{}")
        done = self.run_standard("--only", "low")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is no list of entries", done.stderr)
        self.assertEqual(list((self.folder / "runs").iterdir()), [])
        (self.folder / "report/baseline-history.json").unlink()
        (self.folder / "report").rmdir()
        (self.folder / "report").write_text("")
        self.assertIn("there is no place for the report", self.run_standard("--only", "low").stderr)

    def test_an_answer_that_is_another_is_an_error_and_told(self):
        # The file is not there: the program is told of another folder by a script in between.
        script = self.folder / "program"
        empty = self.folder / "empty"
        empty.mkdir()
        script.write_text(f"#!/bin/sh\n[ $1 = serve ] || exec '{PROGRAM}' \"$@\"\n"
                          f"shift 2\nexec '{PROGRAM}' serve '{empty}' \"$@\"\n")
        script.chmod(0o700)
        done = self.run_standard("--quick", "--only", "file-1kb", "--program", script)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there were errors: answers of file-1kb", done.stderr)
        report, = (self.folder / "report").glob("PERF-*.md")
        self.assertIn("file-1kb: /1-kb.html is answered with status 404 instead of 200", report.read_text())


if __name__ == "__main__":
    if not PROGRAM or not LOAD:
        sys.exit(CANNOT_RUN)
    unittest.main()

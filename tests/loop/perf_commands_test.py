#!/usr/bin/env python3
"""The sub-commands of `perf/run` that measure our own program, each once and short. No figure matters here.

PENSTOCK_PROGRAM, PENSTOCK_LOAD and PENSTOCK_FLOOR are the programs.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("PENSTOCK_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("PENSTOCK_PROGRAM", "")
LOAD = os.environ.get("PENSTOCK_LOAD", "")
FLOOR = os.environ.get("PENSTOCK_FLOOR", "")
LIMIT_S = 120  # far beyond what anything here needs
CANNOT_RUN = 77


def may_trace():
    """Whether strace is here and lets us give a call another result."""
    return bool(shutil.which("strace")) and subprocess.run(
        ["strace", "-o", os.devnull, "true"], capture_output=True, timeout=LIMIT_S).returncode == 0


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.file = self.folder / "figures.json"

    def run_it(self, *words):
        """What it printed, and what it wrote."""
        done = subprocess.run([SOURCE / "perf/run", *map(str, words), "--json", self.file], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, json.loads(self.file.read_text())

    def test_a_program_is_compared_with_itself(self):
        build = pathlib.Path(PROGRAM).parents[1]
        text, data = self.run_it("compare", PROGRAM, PROGRAM, "--build", build, "--pairs", 2, "--seconds", 0.05,
                                 "--scenarios", "c1,churn", "--patience", 0, "--no-verdict")
        self.assertEqual(list(data["scenarios"]), ["c1", "churn"])
        for name, scenario in data["scenarios"].items():
            self.assertIn(f"### {name}: ", text)
            (turns,) = scenario["rounds"]
            self.assertEqual([list(turn) for turn in turns], [["base", "head", "floor"]] * 2)
            for turn in turns:
                for server, one in turn.items():
                    self.assertGreater(one["answers"], 0, f"{server} in {name}")
                    self.assertEqual(one["errors"], 0, f"{server} in {name}")
            self.assertEqual(list(scenario["verdicts"]), ["per_second", "p99_us", "cpu_us"])

    def test_a_soak(self):
        text, data = self.run_it("soak", "--minutes", 0.1, "--program", PROGRAM, "--load", LOAD)
        self.assertRegex(text, r"PASSES: [\d,]+ requests, \d+ slow readers and \d+ who left, no errors")
        self.assertEqual(data["problems"], [])
        self.assertGreater(len(data["samples"]), 5)
        for sample in data["samples"]:
            self.assertGreater(sample["requests"], 100)
            self.assertGreater(sample["resident_bytes"], 1 << 20)
            self.assertGreater(sample["connections"], 20)  # that many rest on it all the time
        self.assertGreater(data["samples"][-1]["left"], 10)
        self.assertGreater(data["samples"][-1]["slow_served"], 0)

    def test_a_soak_of_a_server_that_ends(self):
        script = self.folder / "program"
        script.write_text(f"#!{sys.executable}\n"
                          "import socket, sys\n"
                          "port = int(sys.argv[sys.argv.index('--port') + 1])\n"
                          "with socket.create_server(('127.0.0.1', port)) as listener:\n"
                          "    for _ in range(3):\n"
                          "        listener.accept()[0].close()\n")
        script.chmod(0o700)
        done = subprocess.run([SOURCE / "perf/run", "soak", "--minutes", "0.1", "--program", script, "--load", LOAD],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("FAILS: ", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_what_a_profile_is_recorded_of(self):
        build = pathlib.Path(PROGRAM).parents[1]
        done = subprocess.run([SOURCE / "perf/run", "train", "--build", build, "--requests", "256"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        listed = json.loads(subprocess.run([build / "perf/penstock_budget_simulated"], capture_output=True, timeout=LIMIT_S).stdout)
        self.assertEqual(done.stdout, f"{len(listed)} scenarios were served\n")

    def test_footprint(self):
        text, data = self.run_it("footprint", "--program", PROGRAM, "--floor", FLOOR, "--only", "penstock,floor",
                                 "--connections", 200, "--inside", self.folder / "not-built")
        self.assertIn("resident, 200 idle", text)
        self.assertEqual([one["name"] for one in data["idle"]], ["penstock", "floor"])
        for one in data["idle"]:
            self.assertGreater(one["at_start"]["resident_bytes"], 100 << 10)
            self.assertLess(one["bytes_per_connection"], 64 << 10)
        self.assertGreater(next(iter(data["sizes"].values()))["bytes"], 1 << 10)

    def test_cold_start(self):
        text, data = self.run_it("cold-start", "--program", PROGRAM, "--floor", FLOOR, "--only", "penstock,floor",
                                 "--starts", 3)
        self.assertRegex(text, r"\| penstock \| +\d")
        self.assertEqual({name: len(all_) for name, all_ in data["starts_ms"].items()}, {"penstock": 3, "floor": 3})
        for all_ in data["starts_ms"].values():
            self.assertTrue(all(0 < one < 10_000 for one in all_), all_)


class Floor(unittest.TestCase):
    def test_a_port_that_cannot_be_had_is_told_with_the_call(self):
        if not may_trace():
            self.skipTest("strace is not installed, or may not trace here")
        for call, error, words in (("bind", "EACCES", "cannot be had (bind: Permission denied)"),
                                   ("listen", "EINVAL", "cannot be had (listen: Invalid argument)"),
                                   ("listen", "EADDRINUSE", "is taken")):
            with self.subTest(call=call, error=error):
                done = subprocess.run(["strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e",
                                       f"inject={call}:error={error}", FLOOR], stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=LIMIT_S)
                self.assertEqual((done.returncode, done.stderr),
                                 (1, f"penstock_floor: port 0 {words}; give another, or 0 for any that is free\n"))

    def test_a_port_that_is_taken_is_refused(self):
        with subprocess.Popen([FLOOR], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as first:
            try:
                port = first.stdout.readline().strip().rpartition(":")[2]
                self.assertGreater(int(port), 0)
                done = subprocess.run([FLOOR, "--port", port], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                      timeout=LIMIT_S)
            finally:
                first.kill()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"penstock_floor: port {port} is taken; give another, or 0 for any that is free\n")


if __name__ == "__main__":
    if not all((PROGRAM, LOAD, FLOOR)):
        print("PENSTOCK_PROGRAM, PENSTOCK_LOAD or PENSTOCK_FLOOR is not set")
        sys.exit(CANNOT_RUN)
    unittest.main()

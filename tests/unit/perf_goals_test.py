#!/usr/bin/env python3
"""The goals of speed in the report of `perf/run standard`, and the servers that `perf/run peers --goals` adds."""

import json
import math
import pathlib
import tempfile
import unittest

from _perf_standard import ENVIRONMENT, fakes
from runner import http_peers
from runner.standard import drawings, goals, pages, study
from runner.tools import Failure


def peers_of(**best):
    """Rounds of one scenario each: `c50={"floor": 4.0, …}`."""
    return {"scenarios": {name: {"rounds": {server: [{"cpu_us": one} for one in (time * 2, time, None)]
                                            for server, time in times.items()}} for name, times in best.items()}}


def judged(**fields):
    return {line.what: line for line in goals.judge(study.Study(ENVIRONMENT, 10, **fields))}


class Goals(unittest.TestCase):
    def test_what_nobody_has_measured_is_neither_met_nor_missed(self):
        lines = judged()
        self.assertEqual({line.met for line in lines.values()}, {None})
        self.assertEqual({line.figure for line in lines.values()}, {"–"})
        self.assertEqual(len(lines), 10 + 1 + 3 + 2 + 4)

    def test_ratios_are_of_the_best_rounds_and_rounded_as_they_are_shown(self):
        lines = judged(peers=peers_of(c50={"floor": 4.0, "penstock": 4.016}, c10={"floor": 4.0, "penstock": 4.21},
                                      pipe16={"floor": 1.0, "penstock": 1.24}, churn={"floor": 10, "penstock": 8.9}))
        found = {name: lines[f"CPU time a request ÷ the floor's, {name}"] for name in ("c1", "c50", "c10", "pipe16", "churn")}
        self.assertEqual({name: (line.figure, line.verdict) for name, line in found.items()}, {
            "c1": ("–", "not measured"), "c50": ("1.00", "met"), "c10": ("1.05", "NOT MET (a tie)"),
            "pipe16": ("1.24", "NOT MET"), "churn": ("0.89", "met")})

    def test_layers_are_judged_by_the_worst(self):
        line, = goals.layers(peers_of(c1={"floor": 1.0, "layers": 1.0}, c200={"floor": 1.0, "layers": 1.2},
                                      pipe16={"floor": 1.0, "layers": 9.0}))
        self.assertEqual((line.figure, line.met), ("1.20", False))

    def test_reactors_stand_beside_one_reactor(self):
        lines = goals.reactors(peers_of(c50={"floor": 1.0, "penstock": 4.0, "reactors-2": 4.2, "reactors-8": 5.0}))
        self.assertEqual([(line.figure, line.met) for line in lines], [("1.05", True), ("–", None), ("1.25", False)])

    def test_counts_and_memory(self):
        lines = judged(counts={"plaintext": {"served": 1800.0}, "pipelined": {"served": 1300.6}}, footprint={"penstock": 128.4})
        self.assertTrue(lines["user instructions a request, plaintext"].met)
        self.assertFalse(lines["user instructions a request, pipelined"].met)
        self.assertTrue(lines["bytes of memory for an idle connection"].met)
        self.assertFalse(goals.idle_bytes({"penstock": 128.6}).met)
        self.assertIsNone(goals.idle_bytes({"nginx": 1.0}).met)

    def test_runs_of_the_report(self):
        lines = judged(records={"body-100kb": fakes("body-100kb", [1.0, 2.0], page_faults=17.0),
                                "c1000": [*fakes("c1000", [1.0], max_us=1.0), *fakes("c1000", [1.0], max_us=50_001.0)]},
                       rates={"rate-50": fakes("medium", [1.0], p999_us=999.0)})
        self.assertEqual([line.met for line in lines.values() if line.met is not None], [False, True, False])
        self.assertEqual(lines["the longest request of 1,000 busy connections"].figure, "50.0 ms")

    def test_missed_goals_stand_at_the_top_of_the_report(self):
        whole = study.Study(ENVIRONMENT, 10, peers=peers_of(c50={"floor": 4.0, "penstock": 4.08}))
        text = pages.page(whole, drawings.drawings_of(whole), "PERF-x")
        short = text.split("## What is required")[0]
        self.assertIn("- **CPU time a request ÷ the floor's, c50**: 1.02, wanted ≤ 1.00 (a tie)", short)
        self.assertIn("Of all goals, 19 of 20 were not measured.", short)
        self.assertRegex(text, r"\| user instructions a request, plaintext +\| +≤ 1,800 \| +– \| not measured +\|")


class Files(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "file"

    def test_of_the_other_commands(self):
        self.path.write_text(json.dumps({"counts": {"plaintext": {"served": 1760.4, "calls": 3}, "close": {"served": None}}}))
        counts = goals.read_counts(self.path)
        self.assertEqual(counts["plaintext"]["served"], 1760.4)
        self.assertTrue(math.isnan(counts["close"]["served"]))
        self.path.write_text(json.dumps({"idle": [{"name": "penstock", "bytes_per_connection": 128}]}))
        self.assertEqual(goals.read_footprint(self.path), {"penstock": 128.0})

    def test_anything_else_is_refused_by_name(self):
        for text in ("", "[]", "{}", '{"counts": []}', '{"counts": {"a": 1}, "idle": [{"name": 1}]}'):
            self.path.write_text(text)
            for read in (goals.read_counts, goals.read_footprint):
                with self.subTest(text=text), self.assertRaisesRegex(Failure, "is nothing that perf/run (budget|footprint)"):
                    read(self.path)


class Servers(unittest.TestCase):
    def test_what_goals_need_beside_the_others(self):
        peers = {peer.name: peer for peer in http_peers.goal_peers("p", "l", "site")}
        self.assertEqual(list(peers), [*(f"reactors-{count}" for count in goals.REACTORS), goals.LAYERS])
        command = peers["reactors-4"].for_scenario(None).command(8080, None)
        self.assertEqual(command[command.index("--reactors") + 1], "4")
        self.assertEqual(peers["layers"].for_scenario(None).command(8080, None), ["l", "", "8080"])
        self.assertEqual(peers["layers"].paths, {"plaintext": "/layers/plaintext", "json": "", "medium": "", "large": ""})


if __name__ == "__main__":
    unittest.main()

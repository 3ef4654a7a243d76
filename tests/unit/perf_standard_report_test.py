#!/usr/bin/env python3
"""The report of `perf/run standard` and its plots."""

import math
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

from _perf_standard import ENVIRONMENT, fake, fakes
from runner.standard import checks, command, drawings, pages, plots, scenarios, sources, study, thresholds
from runner.tools import Failure

NAN = float("nan")
SVG = "{http://www.w3.org/2000/svg}"


def peers_source(data):
    return {"peers": sources.Source("peers", "abc", data)}


def report_of(**fields):
    whole = study.Study(ENVIRONMENT, 10, **fields)
    return pages.page(whole, drawings.drawings_of(whole), "PERF-x")


class Plots(unittest.TestCase):
    def parse(self, svg):
        self.assertLess(len(svg), 100_000)
        root = xml.etree.ElementTree.fromstring(svg)
        self.assertEqual(root.tag, SVG + "svg")
        self.assertEqual([one.tag for one in root.iter() if one.tag in (SVG + "script", SVG + "style", SVG + "image")], [])
        return root

    def test_points_are_where_they_belong(self):
        root = self.parse(plots.lines("t", "x", "y", [("a", [(0, 0), (5, 50), (10, 100)])]))
        places = [tuple(map(float, pair.split(","))) for pair in root.find(SVG + "polyline").get("points").split()]
        self.assertEqual(places[0], (plots.LEFT, plots.HEIGHT - plots.BOTTOM))
        self.assertEqual(places[2], (plots.WIDTH - plots.RIGHT, plots.TOP))
        self.assertEqual(places[1][0] * 2, places[0][0] + places[2][0])

    def test_it_is_bounded_whatever_is_given(self):
        many = [(f"series {name}" * 50, [(at, at + 1) for at in range(10_000)]) for name in range(100)]
        root = self.parse(plots.lines("t" * 10_000, "x" * 10_000, "y", many, True, True))
        curves = root.findall(SVG + "polyline")
        self.assertEqual(len(curves), plots.SERIES_LIMIT)
        self.assertEqual({len(curve.get("points").split()) for curve in curves}, {plots.POINTS_LIMIT})
        root = self.parse(plots.bars("t", "y", [(str(at), at) for at in range(1000)]))
        self.assertLessEqual(len(root.findall(SVG + "rect")), plots.BARS_LIMIT)

    def test_the_last_point_stays(self):
        points = [(at, at) for at in range(1001)]
        self.assertEqual(plots.thinned(points, False, False)[-1], (1000, 1000))

    def test_hostile_words_are_words(self):
        root = self.parse(plots.lines("</svg><script>&\0\x1b", "<", "&amp;", [("a]]>b", [(1, 2), (2, 3)])]))
        self.assertIn("</svg><script>&", [one.text for one in root.iter(SVG + "text")])

    def test_what_cannot_be_drawn_is_left_out(self):
        bad = [(1, NAN), (NAN, 1), (math.inf, 1), (0, 5), (5, 0), (-1, -1)]
        for log in (False, True):
            self.parse(plots.lines("t", "x", "y", [("a", bad), ("b", [])], log, log))
        self.parse(plots.lines("t", "x", "y", []))
        self.assertEqual(len(self.parse(plots.bars("t", "y", [("a", NAN), ("b", -1), ("c", 0)])).findall(SVG + "rect")), 1)

    def test_ticks_are_round(self):
        self.assertEqual(plots.Scale([0, 97], 0, 1, False).ticks(), [0, 20, 40, 60, 80])
        self.assertEqual(plots.Scale([15, 20_000], 0, 1, True).ticks(), [100, 1000, 10_000])
        self.assertEqual([round(one) for one in plots.Scale([15, 120], 0, 1, True).ticks()], [20, 50, 100])
        self.assertLessEqual(len(plots.Scale([1e-300, 1e300], 0, 1, True).ticks()), plots.TICKS_LIMIT)

    def test_of_a_study(self):
        of = {name: fakes(name, [100.0]) for name in ("low", "medium", "reactors-1", "reactors-2", "threads-1", "threads-2")}
        peers = {"scenarios": {"c50": {"rounds": {"floor": [{"cpu_us": 2.0}], "nginx": [{"cpu_us": None}, {"cpu_us": 4}]}}}}
        pair = [(connections, fakes("low", [1.0]), fakes("low", [1.0])) for connections in (10, 30)]
        made = drawings.drawings_of(study.Study(ENVIRONMENT, 1, records=of, sources=peers_source(peers), capacity=pair))
        self.assertEqual(list(made), ["connections", "percentiles", "capacity", "reactors", "load-processes", "peers"])
        for _, svg in made.values():
            self.parse(svg)
        self.assertEqual(drawings.drawings_of(study.Study(ENVIRONMENT, 1)), {})


class Report(unittest.TestCase):
    def test_a_check_that_has_failed_is_named_at_the_top(self):
        failing = [checks.Check("governor", "", None, "none"), checks.Check("errors of", "low", False, "7 closed"),
                   checks.Check("rest during", "high", False, "others used 0.90 cores")]
        text = report_of(records={"low": fakes("low", [20_000.0, 20_001])}, checks=failing)
        short = text.split("## What is required")[0]
        self.assertIn("- **errors of** low (7 closed)", short)
        self.assertIn("- **rest during** high (others used 0.90 cores)", short)
        self.assertNotIn("governor", short)
        self.assertRegex(text, r"\| errors of low +\| FAILED +\| 7 closed")
        self.assertRegex(text, r"\| governor +\| not known +\|")

    def test_checks_that_have_passed_are_counted(self):
        several = [checks.Check("errors of", name, name != "low", "w") for name in ("low", "medium", "high")]
        text = report_of(checks=[*several, checks.Check("release build", "", True, "it is")])
        self.assertIn("- errors of each scenario: 2 of 3 have passed", text)
        self.assertRegex(text, r"\| release build +\| passed +\| it is")
        self.assertNotIn("errors of medium", text)

    def test_without_failures_it_says_so(self):
        text = report_of(records={"low": fakes("low", [20_000.0, 20_001])}, checks=[checks.Check("a", "", True, "b")])
        self.assertIn("No check has failed.", text)
        self.assertIn("Every requirement that was measured is met; 10 of 15 were not measured.", text)

    def test_how_many_were_measured(self):
        lines = [thresholds.Line("a", "b", "c", met) for met in (True, None, None, False)]
        self.assertEqual(pages.not_measured(lines), "2 of 4 were not measured")
        self.assertEqual(pages.not_measured(lines[:2]), "1 of 2 was not measured")
        self.assertEqual(pages.not_measured(lines[:1]), "all 1 were measured")

    def test_what_cannot_be_known_has_not_failed(self):
        for passed, words in (((None, None), "not known"), ((True, None, False), "1 of 2 have passed, 1 not known"),
                              ((True,), "1 of 1 has passed")):
            several = [checks.Check("spread of", f"s{at}", one, "w") for at, one in enumerate(passed)]
            with self.subTest(passed=passed):
                self.assertIn(f"- spread of each scenario: {words}\n", report_of(checks=several))

    def test_the_closing_counts_in_plain_words(self):
        whole = study.Study(ENVIRONMENT, 10, records={"low": fakes("low", [9_000.0])},
                            checks=[checks.Check("a", "", None, "b"), checks.Check("c", "", False, "d")])
        self.assertEqual(command.closing_of(whole),
                         "1 scenario; 1 of 2 checks failed, 2 requirements not met, 10 of 15 were not measured; 0 goals of speed "
                         "missed, 23 of 23 were not measured")

    def test_what_a_server_says_breaks_no_table(self):
        text = report_of(failures={"low": "a | b\n## c"}, checks=[checks.Check("answers of", "low", False, "a | b\n## c")])
        self.assertRegex(text, r"\| answers of low \| FAILED +\| a \\\| b ## c +\|\n")
        self.assertNotIn("\n## c", text)
        self.assertIn("No requirement was measured.", text)

    def test_what_is_not_met_or_not_measured_is_named(self):
        text = report_of(records={"low": fakes("low", [9_000.0])}, failures={"home": "status 404"}, notes=["TLS: none"])
        short = text.split("## What is required")[0]
        self.assertIn("- **requests/s, low**: 9,000, wanted ≥ 10,000", short)
        self.assertIn("- home: status 404", short)
        self.assertIn("- TLS: none", short)
        self.assertIn("without rows for that reason: WebSocket", text)

    def test_outliers_and_far_runs_are_marked_and_shown(self):
        text = report_of(records={"low": fakes("low", [20_000, 20_001, 20_002, 20_003, 90_000.0])})
        self.assertRegex(text, r"\| low 5 +\| +90,000 .*outlier by requests/s, requests/s beyond 3 σ")
        self.assertRegex(text, r"\| low +\| 4 of 5 +\| +20,002 ")

    def test_an_unstable_figure_is_called_so(self):
        self.assertIn("**unstable**", report_of(records={"low": fakes("low", [10_000, 20_000])}))

    def test_all_sections(self):
        rate = study.at_rate(scenarios.BY_NAME["medium"], 0.25, 40_000)
        peers = {"scenarios": {"c50": {"rounds": {"floor": [{"cpu_us": 2.0}], "penstock": [{"cpu_us": 3.0}]},
                                       "left_out": {"h2o": "not installed (Debian package h2o)"}}}}
        text = report_of(
            records={"low": fakes("low", [20_000.0])}, peak=40_000, rates={"rate-25": [fake(scenario=rate)]},
            capacity=[(10, fakes("low", [1.0]), fakes("low", [1.0])), (30, fakes("low", [1.0]), fakes("low", [1.0]))],
            allocators={"low": (fakes("low", [1.0]), fakes("low", [1.0], allocator="system"))}, sources=peers_source(peers),
            checks=[checks.Check("rest during", "capacity-10", False, "others")])
        self.assertRegex(text, r"\| 25 % +\| 10,000 \|")
        self.assertIn("![P99 beside the floor's](PERF-x-capacity.svg)", text)
        self.assertIn("no advice to follow", text)
        self.assertRegex(text, r"\| low +\| system +\|")
        runs = text.split("## Every run")[1]
        for name in ("low 1", "rate-25 1", "capacity-10 1", "capacity-30-floor 1", "low, system allocator 1"):
            self.assertRegex(runs, rf"\| {name} +\| ")
        self.assertNotIn("nothing is compared", text)
        self.assertIn("3.00 µs (1.50)", text)
        self.assertIn("`perf/run peers` at commit abc", text.split("## Beside other servers")[1])
        self.assertIn("- h2o: not installed (Debian package h2o)", text)
        same = report_of(allocators={"low": (fakes("low", [1.0]), fakes("low", [1.0]))})
        self.assertIn("Both programs have the same allocator", same)

    def test_a_run_without_figures_has_a_row(self):
        nothing = fake("low", per_second=None, p99_us=None, mean_us=None, cpu_us=None)
        self.assertRegex(report_of(records={"low": [nothing]}), r"\| low 1 +\| +– \|")

    def test_what_was_measured_over_tls(self):
        data = {"wolfssl": "wolfSSL 5.5.4, the system's", "scenarios": {"full": {
            "left_out": {"h2o": "not installed (Debian package h2o)"},
            "rounds": {"penstock": [{"cpu_us": 120.0}], "nginx": [{"cpu_us": 200.0}]}}}}
        text = report_of(sources={"tls": sources.Source("tls", "abc", data)})
        part = text.split("## Over TLS")[1].split("\n## ")[0]
        self.assertIn("Penstock has wolfSSL 5.5.4, the system's.", part)
        self.assertIn("120 µs (0.60)", part)
        self.assertIn("- h2o: not installed", part)
        self.assertRegex(text, r"\| CPU time ÷ nginx's over TLS, full +\| +≤ 1.00 \| +0.60 \| met")
        self.assertRegex(text, r"\| CPU time ÷ nginx's over TLS, keep-1 +\| +≤ 0.65 \| .* \| not measured")
        self.assertNotIn("Over TLS", report_of())

    def test_files_of_other_commands(self):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "rounds.json"
        rounds = '{"scenarios": {"a": {"rounds": {"b": [{"cpu_us": 1}, {"cpu_us": 1}, {"cpu_us": 1}]}}}'
        path.write_text(rounds + "}")
        self.assertEqual(sources.read_peers(path).command, "peers")
        with self.assertRaisesRegex(Failure, "perf/run tls --json has written: it is of perf/run peers"):
            sources.read_tls(path)
        path.write_text(rounds + ', "wolfssl": "wolfSSL 5.5.4, bundled"}')
        self.assertEqual(sources.read_tls(path).command, "tls")
        with self.assertRaisesRegex(Failure, "perf/run peers --json has written: it is of perf/run tls"):
            sources.read_peers(path)
        for wrong in ('"a|b"', "1"):
            path.write_text(rounds + f', "wolfssl": {wrong}}}')
            with self.assertRaisesRegex(Failure, "is no name"):
                sources.read_tls(path)

    def test_files_of_peers_that_are_none(self):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "peers.json"
        for text in ("", "[]", "{}", '{"scenarios": []}', '{"scenarios": {"a": {}}}',
                     '{"scenarios": {"a": {"rounds": {}, "left_out": []}}}',
                     '{"scenarios": {"a": {"rounds": {"b": [{"cpu_us": "x"}]}}}}'):
            path.write_text(text)
            with self.subTest(text=text), self.assertRaisesRegex(Failure, "nothing that perf/run peers"):
                sources.read_peers(path)


if __name__ == "__main__":
    unittest.main()

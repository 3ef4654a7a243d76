#!/usr/bin/env python3
"""What `perf/run tls` asks for, and how it judges what comes."""

import argparse
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "perf"))

from runner import tls, tls_peers

FULL, RESUMED, KEPT = tls_peers.SCENARIOS[:3]


def result(**fields):
    return {"errors": 0, "asked": 10, "handshakes": 10, "resumed": 0, "tls_version": "TLSv1.3", "tls_group": "x25519",
            "tls_suite": "TLS_AES_128_GCM_SHA256", "tls_certificate": "EC 256"} | fields


class Judging(unittest.TestCase):
    def test_what_is_as_asked_is_not_complained_about(self):
        self.assertEqual(tls.complaint_on(result(), FULL), "")
        self.assertEqual(tls.complaint_on(result(resumed=10, tls_group=""), RESUMED), "")
        self.assertEqual(tls.complaint_on(result(handshakes=0), KEPT), "")

    def test_other_work_is_told(self):
        for fields, scenario, words in (({"errors": 1}, FULL, "1 of 10"), ({"tls_version": "TLSv1.2"}, FULL, "TLSv1.2"),
                                        ({"tls_suite": tls_peers.CHACHA}, FULL, tls_peers.CHACHA),
                                        ({"tls_group": "secp256r1"}, FULL, "secp256r1"),
                                        ({"tls_certificate": "RSA 2048"}, FULL, "RSA 2048"),
                                        ({"resumed": 1}, FULL, "1 of 10"), ({"resumed": 9}, RESUMED, "9 of 10")):
            with self.subTest(fields=fields):
                self.assertIn(words, tls.complaint_on(result(**fields), scenario))

    def test_goals(self):
        best = {"full": {"penstock": 100.0, "nginx": 100.0}, "keep-1": {"penstock": 6.6, "nginx": 10.0},
                "keep-50": {"nginx": 10.0}}
        self.assertEqual([line[2:] for line in tls.verdicts(best)],
                         [("1.00", "met"), ("0.66", "not met"), ("–", "not measured")])
        self.assertEqual({line[3] for line in tls.verdicts({})}, {"not measured"})


class Scenarios(unittest.TestCase):
    def test_words_for_the_load_program(self):
        self.assertEqual(FULL.words(), ["--tls", "--tls-version", "1.3", "--tls-suites", "TLS_AES_128_GCM_SHA256", "--tls-groups",
                                        "X25519"])
        self.assertEqual(RESUMED.words()[-1], "--resume")
        old = next(one for one in tls_peers.SCENARIOS if one.version == "1.2")
        self.assertIn("X25519:P-256", old.words())

    def test_goals_are_of_scenarios_that_are_always_measured(self):
        always = {one.name for one in tls_peers.SCENARIOS if not one.is_optional}
        self.assertLessEqual({name for name, _ in tls_peers.GOALS}, always)

    def test_scenarios_by_name(self):
        self.assertEqual(tls.scenarios("keep-1,full"), (KEPT, FULL))
        with self.assertRaises(argparse.ArgumentTypeError):
            tls.scenarios("full,none")


if __name__ == "__main__":
    unittest.main()

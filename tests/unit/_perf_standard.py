"""Records of runs that nobody has made, for the tests of `perf/run standard`."""

import dataclasses
import os
import pathlib
import sys

SOURCE = pathlib.Path(os.environ.get("PENSTOCK_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "perf"))

from runner import own_load
from runner.histogram import Histogram
from runner.standard import records, scenarios

ENVIRONMENT = {"date": "2026-01-02", "version": "0.1.0", "commit": "abc", "machine": "a machine", "placement": "Apart.",
               "cores": [0, 1]}


def histogram(*values_us):
    """Each in a bucket of its own."""
    counts = {}
    for value in values_us:
        counts[int(value * 1e3)] = counts.get(int(value * 1e3), 0) + 1
    return Histogram(counts, sum(values_us) * 1e3, int(max(values_us, default=0) * 1e3))


def fake(name="medium", number=1, scenario=None, **fields):
    """A record; `fields` of its results or its resources are other than usual."""
    latency = histogram(*[100.0] * 95, *[900.0] * 5)
    results = records.results_of(
        own_load.Result(100, 100, 0.001, 13_000, dict.fromkeys(own_load.ERROR_KINDS, 0), 0.1, latency))
    used = {"cpu_us": 5.0, "user_us": 1.0, "system_us": 4.0, "client_cpu_us": 5.0, "cpu_s": 0.5, "wall_s": 1.0, "cores": 1,
            "busy": 0.5, "client_busy": 0.5,
            "foreign_cores": 0.01, "peak_rss_bytes": 7 << 20, "peak_is_of_run": True, "end_rss_bytes": 6 << 20,
            "voluntary_switches": 0.01, "involuntary_switches": 0.001,
            "page_faults": 0.0, "calls": 2.0, "calls_by_name": {"recvfrom": 2.0},
            "allocator": "jemalloc"}
    results |= {field: value for field, value in fields.items() if field in results}
    used |= {field: value for field, value in fields.items() if field in used}
    assert not fields.keys() - results.keys() - used.keys(), fields
    one = scenario or scenarios.BY_NAME[name]
    return records.Record(f"{name}-{number}", "2026-01-02T03:04:05Z", ENVIRONMENT, {"seconds": 1}, dataclasses.asdict(one),
                          results, used)


def fakes(name, per_second, **fields):
    return [fake(name, number, per_second=value, **fields) for number, value in enumerate(per_second, start=1)]

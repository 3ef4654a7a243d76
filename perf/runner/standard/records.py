"""A run as JSON: all that was measured, and all that has to be known to measure it again."""

import json
from dataclasses import asdict, dataclass

from ..histogram import Histogram
from ..report import known

SHARES = {"p50_us": 0.50, "p95_us": 0.95, "p99_us": 0.99, "p999_us": 0.999}
NOT_A_NUMBER = float("nan")


@dataclass(frozen=True)
class Record:
    id: str
    time: str
    environment: dict
    configuration: dict
    scenario: dict
    results: dict
    resources: dict

    def write(self, folder):
        path = folder / f"{self.id}.json"
        path.write_text(json.dumps(asdict(self)) + "\n")
        return path

    @property
    def latency(self):
        return Histogram.from_data(self.results["latency_ns"])

    def figure(self, name):
        """Of the results or of the resources. What JSON calls null is no number."""
        value = self.results.get(name, self.resources.get(name))
        return NOT_A_NUMBER if value is None else value


def results_of(result):
    """`result`: of loads.run."""
    seconds = result.seconds
    quantiles = result.latency.quantiles_us(list(SHARES.values()))
    return {
        "requests": result.requests,
        "asked": result.asked,
        "seconds": seconds,
        "per_second": result.requests / seconds if seconds else None,
        "bytes_per_second": result.bytes_read / seconds if seconds else None,
        "mean_us": known(result.latency.mean_us),
        **{name: known(value) for name, value in zip(SHARES, quantiles, strict=True)},
        "max_us": known(result.latency.max_us),
        "errors": result.error_count,
        "errors_by_kind": result.errors,
        "latency_ns": result.latency.as_data(),
    }


def resources_of(result, gauge, cores, client_cores, calls, allocator):
    """`gauge`: a resources.Gauge that was read; `cores`: how many the server may use; `calls`: per request, or None."""
    requests = result.requests

    def each(value):
        return value / requests if requests else None

    cpu_s, kernel_share = gauge.cpu.total_s, gauge.cpu.kernel_share
    return {
        "cpu_us": each(cpu_s * 1e6),
        "user_us": each(cpu_s * 1e6 * (1 - kernel_share)),
        "system_us": each(cpu_s * 1e6 * kernel_share),
        "client_cpu_us": each(result.client_cpu_s * 1e6),
        "cpu_s": cpu_s,
        "wall_s": gauge.wall_s,
        "cores": cores,
        "busy": cpu_s / gauge.wall_s / cores,
        "client_busy": result.client_cpu_s / gauge.wall_s / client_cores,
        "foreign_cores": max(0.0, sum(gauge.busy.values()) - cpu_s - result.client_cpu_s) / gauge.wall_s,
        "peak_rss_bytes": gauge.peak_bytes,
        "peak_is_of_run": gauge.peak_is_of_run,
        "end_rss_bytes": gauge.end_bytes,
        "voluntary_switches": each(gauge.switches[0]),
        "involuntary_switches": each(gauge.switches[1]),
        "page_faults": each(gauge.page_faults),
        "calls": None if calls is None else sum(calls.values()),
        "calls_by_name": calls,
        "allocator": allocator,
    }

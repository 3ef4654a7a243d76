"""The tables of the report, in Markdown."""

import math

from ..report import BYTES_PER_MB, duration, number, percent, table
from .checks import error_rate
from .sources import best_of_peers
from .study import marks_of, summaries_of

BYTES_PER_MIB = 1 << 20
LATENCIES = {"mean_us": "mean", "p50_us": "P50", "p95_us": "P95", "p99_us": "P99", "p999_us": "P99.9", "max_us": "max"}
NONE = "–"


def of_results(by_name):
    lines = []
    for name, records in by_name.items():
        summaries = summaries_of(records)
        rate = summaries["per_second"]
        lines.append((
            name, f"{len(rate.kept)} of {len(records)}", number(rate.median), share(rate.spread),
            {True: "yes", False: "**unstable**", None: "one run"}[rate.is_stable],
            *(duration(summaries[figure].median) for figure in LATENCIES),
            number(summaries["bytes_per_second"].median / BYTES_PER_MB), rate_of_errors(records),
        ))
    return table(("scenario", "runs kept", "requests/s", "spread", "stable", *LATENCIES.values(), "MB/s", "errors"), lines,
                 left=("scenario", "runs kept", "stable"))


def of_resources(by_name):
    lines = []
    for name, records in by_name.items():
        summaries = summaries_of(records)

        def median(figure):
            return number(summaries[figure].median)

        peak_is_of_run = all(one.resources["peak_is_of_run"] for one in records)
        lines.append((
            name, median("cpu_us"), median("user_us"), median("system_us"), median("client_cpu_us"),
            mib(summaries["peak_rss_bytes"].median) + " since its start" * (not peak_is_of_run),
            mib(summaries["end_rss_bytes"].median), f"{summaries['voluntary_switches'].median:.3f}",
            f"{summaries['involuntary_switches'].median:.4f}", f"{summaries['page_faults'].median:.4f}", median("calls"),
            f"{share(summaries['busy'].median)}, {share(summaries['client_busy'].median)}",
        ))
    return table(("scenario", "CPU µs/request", "user", "system", "client's µs", "peak RSS, MiB", "RSS at the end",
                  "voluntary switches/request", "involuntary", "page faults/request", "system calls/request",
                  "busy: server, load"), lines, left=("scenario",))


def of_runs(by_name):
    lines = []
    for name, records in by_name.items():
        for place, (one, marks) in enumerate(zip(records, marks_of(records), strict=True)):
            lines.append((f"{name} {place + 1}", number(one.figure("per_second")),
                          *(duration(one.figure(figure)) for figure in LATENCIES),
                          number(one.figure("cpu_us")), f"{one.figure('foreign_cores'):.2f}", str(one.figure("errors")),
                          marks))
    return table(("run", "requests/s", *LATENCIES.values(), "CPU µs/request", "others' cores", "errors", "marked"), lines,
                 left=("run", "marked"))


def of_rates(study):
    lines = []
    for records in study.rates.values():
        summaries = summaries_of(records)
        wanted = records[0].scenario["rate"]
        lines.append((percent(wanted / study.peak), number(wanted), number(summaries["per_second"].median),
                      *(duration(summaries[figure].median) for figure in LATENCIES), rate_of_errors(records)))
    return table(("of the peak", "due/s", "requests/s", *LATENCIES.values(), "errors"), lines, left=("of the peak",))


def of_capacity(points):
    return table(("connections", "requests/s", "P99", "the floor's requests/s", "its P99", "ratio of P99"),
                 [(f"{point.connections:,}", number(point.per_second), duration(point.p99_us),
                   number(point.floor_per_second), duration(point.floor_p99_us), f"{point.ratio:.2f}")
                  for point in points], left=())


def of_allocators(study):
    lines = []
    for name, pair in study.allocators.items():
        for records in pair:
            summaries = summaries_of(records)
            lines.append((name, records[0].resources["allocator"], number(summaries["per_second"].median),
                          duration(summaries["p99_us"].median), number(summaries["cpu_us"].median),
                          mib(summaries["peak_rss_bytes"].median), mib(summaries["end_rss_bytes"].median)))
    return table(("scenario", "allocator", "requests/s", "P99", "CPU µs/request", "peak RSS, MiB", "RSS at the end"), lines,
                 left=("scenario", "allocator"))


def of_peers(data, reference="floor"):
    best = best_of_peers(data)
    servers = list(dict.fromkeys(server for times in best.values() for server in times))
    lines = []
    for name, times in best.items():
        own = times.get(reference)
        lines.append((name, *(cell(times.get(server), own) for server in servers)))
    return table(("scenario", *servers), lines, left=("scenario",))


def cell(time_us, own_us):
    if time_us is None:
        return NONE
    return f"{number(time_us)} µs" + (f" ({time_us / own_us:.2f})" if own_us else "")


def of_lines(lines):
    return table(("required", "at least or below", "figure", "verdict"),
                 [(line.what, line.wanted, line.figure, line.verdict) for line in lines],
                 left=("required", "verdict"))


def of_checks(checks):
    return table(("check", "verdict", "figure"), [(check.name, check.verdict, one_line(check.words)) for check in checks],
                 left=("check", "verdict", "figure"))


def one_line(words):
    """Of what others have said, a server for example: it must not end a cell or a line."""
    return " ".join(words.split()).replace("|", "\\|")


def rate_of_errors(records):
    rate = error_rate(records)
    return NONE if math.isnan(rate) else "0" if rate == 0 else f"{rate * 100:.3f} %"


def share(value):
    return NONE if math.isnan(value) else f"{value * 100:.1f} %"


def mib(value):
    return NONE if math.isnan(value) else f"{value / BYTES_PER_MIB:.1f}"

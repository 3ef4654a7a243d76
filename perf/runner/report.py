"""Medians, ratios and tables of rounds. How the rounds were measured is not known here."""

import statistics
from dataclasses import dataclass

HEAD = ("server", "CPU µs/request", "best", "ratio", "best", "in kernel", "{}'s µs", "requests/s", "MB/s",
        "P50", "P99", "busy: server, {}", "disturbed", "errors")
BYTES_PER_MB = 1_000_000
NARROWEST = 3  # of a column: what parts the head from the rest has at least so many signs in each
QUICK_LOOK = "A quick look, of single short rounds: no figure of it is to be quoted."


@dataclass(frozen=True)
class Row:
    name: str
    cpu_us: float
    best_cpu_us: float
    ratio: float  # to the reference within the same round
    best_ratio: float
    kernel_share: float
    client_cpu_us: float
    per_second: float
    bytes_per_second: float
    p50_us: float
    p99_us: float
    server_busy: float
    client_busy: float
    disturbed: int
    rounds: int
    errors: int


def rows_of(results, reference):
    """A row for each server of `results` (name: rounds), as medians. All have as many rounds as the reference."""
    own = results[reference]
    best = best_of(own)
    rows = []
    for name, rounds in results.items():
        def median(field):
            return median_of(getattr(one, field) for one in rounds)

        rows.append(Row(
            name=name,
            ratio=median_of(one.cpu_us / ours.cpu_us for one, ours in zip(rounds, own, strict=True)),
            best_cpu_us=best_of(rounds),
            best_ratio=best_of(rounds) / best,
            disturbed=sum(one.is_disturbed for one in rounds),
            rounds=len(rounds),
            errors=sum(one.errors for one in rounds),
            **{field: median(field) for field in ("cpu_us", "kernel_share", "client_cpu_us", "per_second",
                                                  "bytes_per_second", "p50_us", "p99_us", "server_busy", "client_busy")},
        ))
    return rows


def best_of(rounds):
    return best_of_times((one.cpu_us, one.is_disturbed) for one in rounds)


def best_of_times(times):
    """Of pairs (time, whether it was disturbed): the lowest, of the undisturbed ones where there are some."""
    known = [(time, is_disturbed) for time, is_disturbed in times if time == time]
    quiet = [time for time, is_disturbed in known if not is_disturbed]
    return min(quiet or [time for time, _ in known], default=float("nan"))


def median_of(values):
    """Of those that are numbers: a round may have ended before an answer did."""
    known = [value for value in values if value == value]
    return statistics.median(known) if known else float("nan")


def table(head, lines, left=("server",)):
    """Markdown; columns of words are named in `left`, those of numbers stand to the right."""
    columns = []
    for title, *cells in zip(head, *lines, strict=True):
        width = max(NARROWEST, *map(len, [title, *cells]))
        if title in left:
            columns.append([cell.ljust(width) for cell in (title, "-" * width, *cells)])
        else:
            columns.append([cell.rjust(width) for cell in (title, "-" * (width - 1) + ":", *cells)])
    return "\n".join("| " + " | ".join(line) + " |" for line in zip(*columns, strict=True))


def table_of_rows(rows, client="wrk", names=()):
    """`names`: of servers that have a line each even when they have no row."""
    known = {row.name: row for row in rows}
    lines = [line_of(known[name]) if name in known else (name, *["–"] * (len(HEAD) - 1))
             for name in names or known]
    return table([title.format(client) for title in HEAD], lines)


def line_of(row):
    return (
        row.name,
        number(row.cpu_us),
        number(row.best_cpu_us),
        f"{row.ratio:.2f}",
        f"{row.best_ratio:.2f}",
        percent(row.kernel_share),
        number(row.client_cpu_us),
        number(row.per_second),
        number(row.bytes_per_second / BYTES_PER_MB),
        duration(row.p50_us),
        duration(row.p99_us),
        f"{percent(row.server_busy)}, {percent(row.client_busy)}",
        f"{row.disturbed} of {row.rounds}",
        str(row.errors),
    )


def table_of_calls(calls):
    """`calls`: for each server, how often it makes each system call for an answer."""
    def counts(of_one):
        shown = sorted(of_one.items(), key=lambda item: -item[1])
        return ", ".join(f"{name} {count:.2f}" for name, count in shown if count >= 0.005)

    return table(("server", "system calls/request", "which"),
                 [(name, f"{sum(of_one.values()):.2f}", counts(of_one)) for name, of_one in calls.items()],
                 left=("server", "which"))


def known(value):
    """For JSON, which has no word but null for what is not a number."""
    return value if value == value else None


def kibibytes(count):
    return "–" if count is None else f"{count / 1024:,.0f} KiB"


def number(value):
    """Three digits that count, and all of those before the point."""
    if value != value:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def counted(count, noun):
    """With its plural, of words that only take an s."""
    return f"{count:{',g' if isinstance(count, float) else ','}} {noun}" + "s" * (count != 1)


def percent(share):
    return f"{share * 100:.0f} %"


def duration(microseconds):
    if microseconds != microseconds:
        return number(microseconds)
    if microseconds < 1e3:
        return f"{number(microseconds)} µs"
    return f"{number(microseconds / 1e3)} ms" if microseconds < 1e6 else f"{number(microseconds / 1e6)} s"

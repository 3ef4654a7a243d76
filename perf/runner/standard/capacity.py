"""At how many connections the 99th percentile leaves the floor's, and what to configure for a latency."""

from dataclasses import dataclass

KNEE = 1.5  # times the floor's: what the floor has to do as well is no sign of too much load
LIMITS_MS = (1, 5, 10)
US_PER_MS = 1e3


@dataclass(frozen=True)
class Point:
    connections: int
    p99_us: float
    floor_p99_us: float
    per_second: float
    floor_per_second: float

    @property
    def ratio(self):
        return self.p99_us / self.floor_p99_us if self.floor_p99_us else float("nan")


def knee(points):
    """The number of connections from which on it is above the floor's and stays there; None when it does not leave it."""
    found = None
    for point in sorted(points, key=lambda point: -point.connections):
        if not point.ratio > KNEE:
            break
        found = point.connections
    return found


def most_within(points, limit_ms):
    """The largest number of connections up to which the 99th percentile is below the limit; None when at none."""
    found = None
    for point in sorted(points, key=lambda point: point.connections):
        if not point.p99_us < limit_ms * US_PER_MS:
            break
        found = point.connections
    return found


def advice(points):
    """Sentences; none without points."""
    if not points:
        return []
    found = knee(points)
    largest = max(point.connections for point in points)
    sentences = [
        f"From {found} connections on the 99th percentile is more than {KNEE} times the floor's." if found else
        f"Up to {largest} connections the 99th percentile does not leave the floor's: it is at most {KNEE} times that, or "
        "comes back to it."
    ]
    for limit_ms in LIMITS_MS:
        most = most_within(points, limit_ms)
        if most is None:
            sentences.append(f"P99 < {limit_ms} ms: not even at {min(point.connections for point in points)} busy connections "
                             "for a reactor on a machine like this; it takes faster cores, or fewer connections than were "
                             "measured.")
            continue
        more = " (the most that was measured)" if most == largest else ""
        sentences.append(f"P99 < {limit_ms} ms: at most {most} busy connections for each reactor{more}. `--reactors` is the "
                         f"number of connections that are busy at once divided by {most}, rounded up, with a core for each. "
                         f"`--connection-limit {most}` holds it where connections are always busy; idle ones count there too.")
    return sentences

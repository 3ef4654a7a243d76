"""Which plots a report has. One that would have a single point is left out."""

from . import plots
from .sources import best_of_peers
from .study import latency_of

NINES = {1 / (1 - share): words for share, words in
         ((0.0, "0 %"), (0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %"))}
CURVE_POINTS = 100
CPU_SCENARIOS = ("c50", "c200", "c10")  # of the peers: the first that is there


def drawings_of(study):
    """By the end of their file's name: (words below the plot, SVG)."""
    made = {
        "connections": over_connections(study),
        "percentiles": percentiles(study),
        "capacity": capacity(study),
        "reactors": scaling(study, "reactors", "reactors", "reactors"),
        "load-processes": scaling(study, "load processes", "threads", "load processes"),
        "peers": peers(study),
    }
    return {name: drawing for name, drawing in made.items() if drawing is not None}


def over_connections(study):
    summaries = study.summaries
    places = sorted((records[0].scenario["connections"], name) for name, records in study.records.items()
                    if records and records[0].scenario["group"] == "load")
    if len(places) < 2:
        return None
    series = [(words, [(connections, summaries[name][figure].median) for connections, name in places])
              for figure, words in (("p50_us", "P50"), ("p99_us", "P99"), ("p999_us", "P99.9"))]
    return "Latency over connections", plots.lines(
        "Latency over connections", "connections", "", series, True, True,
        {connections: f"{connections:,}" for connections, _ in places}, plots.of_us)


def percentiles(study):
    series = []
    for name, records in study.records.items():
        if records and records[0].scenario["group"] == "load":
            series.append((name, curve_of(latency_of(records))))
    if not any(len(points) > 1 for _, points in series):
        return None
    return "Percentiles, all runs together", plots.lines(
        "Latency by percentile", "share of the requests", "", series, True, True, NINES, plots.of_us)


def curve_of(latency):
    """Up to where a single request decides; x is how rare a longer one is: 1 of so many."""
    if not latency.count:
        return []
    most = min(latency.count, max(NINES))
    rarities = [most ** (place / (CURVE_POINTS - 1)) for place in range(CURVE_POINTS)]
    return list(zip(rarities, latency.quantiles_us([1 - 1 / rarity for rarity in rarities]), strict=True))


def capacity(study):
    points = study.points
    if len(points) < 2:
        return None
    series = [("Penstock", [(point.connections, point.p99_us) for point in points]),
              ("the floor", [(point.connections, point.floor_p99_us) for point in points])]
    return "P99 beside the floor's", plots.lines(
        "P99 over connections, beside the floor", "connections", "", series,
        x_names={point.connections: str(point.connections) for point in points}, y_name=plots.of_us)


def scaling(study, group, field, words):
    summaries = study.summaries
    points = sorted((records[0].scenario[field], summaries[name]["per_second"].median)
                    for name, records in study.records.items() if records and records[0].scenario["group"] == group)
    if len(points) < 2:
        return None
    return f"Requests a second over {words}", plots.lines(
        f"Requests a second over {words}", words, "requests/s", [("median", points)],
        x_names={value: str(value) for value, _ in points})


def peers(study):
    if study.peers is None:
        return None
    best = best_of_peers(study.peers)
    name = next((name for name in CPU_SCENARIOS if best.get(name)), None)
    if name is None:
        return None
    return f"CPU time per request, {name}, best rounds", plots.bars(
        f"CPU time per request, {name}", "µs", list(best[name].items()))

"""baseline-history.json: a small entry for each report, so that figures can be followed over time."""

import json
import os

from ..report import known
from ..tools import Failure

FIGURES = ("per_second", "p99_us", "cpu_us")


def entry_of(report, environment, summaries):
    return {
        "report": report,
        "date": environment["date"],
        "version": environment["version"],
        "commit": environment["commit"],
        "machine": environment["machine"],
        "scenarios": {
            name: {figure: rounded(figures[figure].median) for figure in FIGURES}
            | {"stable": figures["per_second"].is_stable}
            for name, figures in summaries.items()
        },
    }


def rounded(value):
    return None if known(value) is None else round(value, 2)


def append(path, entry):
    """A report that is made again takes the place of its entry."""
    entries = read(path)
    entries = [one for one in entries if one.get("report") != entry["report"]] + [entry]
    new = path.with_suffix(".new")
    new.write_text(json.dumps(entries, indent=1) + "\n")
    os.replace(new, path)


def read(path):
    try:
        entries = json.loads(path.read_text()) if path.exists() else []
    except (OSError, ValueError) as problem:
        raise Failure(f"{path} cannot be read: {problem}") from problem
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise Failure(f"{path} is no list of entries; move it away")
    return entries

"""What is measured, as data: a row for each scenario. Other scenarios are further rows."""

from dataclasses import dataclass

from ..report import counted
from ..tools import Failure

RUNS = {"basic": 5, "extended": 3, "regression": 10}
SECTIONS = ("rates", "capacity", "allocators")  # what is more than runs of one scenario
NOT_YET = {"websocket": "WebSocket"}  # the standard has rows for it, and the program has it not
JSON_BYTES = 2 << 10  # of a body that is sent


@dataclass(frozen=True)
class Scenario:
    name: str
    kind: str
    group: str
    connections: int = 50
    threads: int = 4  # processes of the load program, which share the connections
    method: str = "GET"
    path: str = "/plaintext"
    sent_bytes: int = 0  # of JSON, in each request
    depth: int = 1
    closes: bool = False
    reactors: int = 1
    program: str = "penstock"  # or "routes", which has 1,000 of them, or "floor"
    rate: float = 0  # requests that are due in a second; 0: the next follows an answer

    @property
    def title(self):
        words = [f"{self.method} {self.path}"]
        words += [f"{self.sent_bytes:,} bytes of JSON"] * bool(self.sent_bytes)
        words += [counted(self.connections, "connection"), f"{self.threads} load process" + "es" * (self.threads != 1)]
        words += [f"{self.depth} at once"] * (self.depth > 1) + ["a connection for each"] * self.closes
        words += [f"{self.reactors} reactors"] * (self.reactors > 1)
        words += [f"{self.rate:,.0f} a second are due"] * bool(self.rate)
        return ", ".join(words)


def numbered(name, kind, group, field, values, **fields):
    return tuple(Scenario(f"{name}{value}", kind, group, **{field: value}, **fields) for value in values)


LOADS = (
    Scenario("low", "basic", "load", connections=10, threads=2),
    Scenario("medium", "basic", "load", connections=50, threads=4),
    Scenario("high", "basic", "load", connections=200, threads=8),
    Scenario("c1000", "extended", "load", connections=1_000, threads=8),
    Scenario("c10000", "extended", "load", connections=10_000, threads=8),
)
SCENARIOS = (
    *LOADS,
    *numbered("threads-", "extended", "load processes", "threads", (1, 2, 4, 8, 16), connections=64),
    Scenario("json", "basic", "methods", path="/json"),
    Scenario("post", "basic", "methods", method="POST", path="/echo", sent_bytes=JSON_BYTES),
    Scenario("put", "extended", "methods", method="PUT", path="/echo", sent_bytes=JSON_BYTES),
    Scenario("delete", "extended", "methods", method="DELETE", path="/echo"),
    Scenario("head", "extended", "methods", method="HEAD"),
    Scenario("body-1kb", "extended", "bodies", path="/medium"),
    # The program has no text of 10 KB and of 1 MB: these are files, of which it keeps the first in memory.
    Scenario("body-10kb", "extended", "bodies", path="/10-kb.html"),
    Scenario("body-100kb", "extended", "bodies", path="/large"),
    Scenario("body-1mb", "extended", "bodies", path="/1-mb.html"),
    Scenario("home", "basic", "files", path="/"),
    Scenario("file-1kb", "basic", "files", path="/1-kb.html"),
    Scenario("pipe16", "extended", "connections", depth=16),
    Scenario("churn", "extended", "connections", closes=True),
    *numbered("reactors-", "extended", "reactors", "reactors", (1, 2, 4, 8), connections=200, threads=8),
    Scenario("routes", "extended", "routes", path="/api/v1/resource500/7/parts", program="routes"),
    Scenario("middleware", "extended", "routes", path="/layers/plaintext", program="routes"),
    Scenario("routes-post", "extended", "routes", method="POST", path="/echo", sent_bytes=JSON_BYTES, program="routes"),
    Scenario("regression", "regression", "regression"),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
ALLOCATOR_SCENARIOS = ("medium", "json", "post", "file-1kb")
CAPACITY_CONNECTIONS = (10, 30, 50, 100, 200)
RATE_SHARES = (0.25, 0.50, 0.75, 0.90)


def selected(words):
    """The scenarios and the sections of a list of names, kinds among them; all when there is none."""
    if words is None:
        return list(SCENARIOS), list(SECTIONS)
    known = list(dict.fromkeys([*BY_NAME, *RUNS, *SECTIONS]))  # one of the kinds is called as its only scenario
    if unknown := [word for word in words if word not in known]:
        if unknown[0] in NOT_YET:
            raise Failure(f"there is no {NOT_YET[unknown[0]]} yet to be measured")
        raise Failure(f"there is no scenario {unknown[0]}, only {', '.join(known)}")
    return ([scenario for scenario in SCENARIOS if scenario.name in words or scenario.kind in words],
            [section for section in SECTIONS if section in words])

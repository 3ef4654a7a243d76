"""`perf/run budget`: instructions and system calls per request, which repeat exactly on one machine with one set of packages.

Counted twice for each scenario, of few requests and of more: the difference has neither start nor end in it. `--against`
builds another commit beside this tree and fails when a count has grown by more than two hundredths and no commit from there
to here says why, on a line of its own: "Budget: plaintext, json: what the requests get for it". CI runs
`perf/run budget --ceilings --against HEAD~1`.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import select
import socket
import ssl
import subprocess
import tempfile
import time
from dataclasses import dataclass

from . import arguments, machine, report, tools
from .arguments import BUILD, ROOT, add_json, check_programs, names
from .calls import parse_summary
from .commits import LIMIT_S, built, call, end_ongoing, ongoing, settings_of, short_name, telling_what_git_says
from .tools import Failure

# Requests; multiples of the depth to which they are pipelined. On loopback threads and the clock add some thousand instructions
# to a run, so there are more of them to share that.
FEW, MORE = 320, {"simulated": 960, "served": 6_720, "calls": 960}
GROWTH_LIMIT = 0.02
# Of one call more or less, and of what the clock brings in between: a date is written once a second.
SMALLEST_GROWTH = {"simulated": 5, "served": 25, "calls": 0.05}
UNITS = {"simulated": "instructions, simulated", "served": "instructions, loopback", "calls": "system calls"}
HOW_TO_BUILD = arguments.HOW_TO_BUILD.replace("ci/install build", "ci/install build test")  # valgrind and strace
CEILINGS = ROOT / "perf/budget/ceilings.json"
PROGRAMS = ("penstock_budget_simulated", "penstock_budget_served")
PIECE_BYTES = 1 << 20
TAKEN_AT_ONCE_BYTES = 128 * 1024
POLL_S = 0.01
END_LIMIT_S = 5


def add_command(commands):
    command = commands.add_parser("budget", help="instructions and system calls per request",
                                  description=__doc__.replace("`", ""), formatter_class=argparse.RawTextHelpFormatter)
    command.add_argument("--build", type=pathlib.Path, default=BUILD,
                         help="the folder of a release build (%(default)s)")
    command.add_argument("--only", type=names, help="scenarios, for example plaintext,json (all)")
    command.add_argument("--against", metavar="COMMIT", help="count that commit too, and judge the growth since")
    command.add_argument("--ceilings", action="store_true",
                         help="fail when a count is above perf/budget/ceilings.json")
    add_json(command, "the counts")
    command.set_defaults(run=run)


def run(options):
    found = tools.find("valgrind", "strace", *["git"] * bool(options.against))
    programs_of(options.build)
    if options.against:
        # Or there is none, which is better told before a minute of counting.
        short_name(options.against, found["git"])
        settings_of(options.build)
    counts = count_all(options.build, options.only, found)
    before, excused = None, {}
    if options.against:
        before = count_commit(options.against, options.build, options.only, found)
        excused = excuses(found["git"], options.against)
    print(table_of(counts, before))
    if options.json:
        options.json.write_text(as_json(counts, before))
    failed = exceeds_ceilings(counts) if options.ceilings else 0
    return judge(counts, before, excused) | failed if options.against else failed


def as_json(counts, before):
    return json.dumps({"commit": arguments.commit(), "counts": counts, "before": before}, indent=1) + "\n"


# ---- Counting


def count_all(build, only, found):
    """For each scenario's name, what was counted by kind; None for what cannot be."""
    simulated, served = programs_of(build)
    scenarios = scenarios_of(simulated)
    if only is not None:
        if unknown := set(only) - {scenario["name"] for scenario in scenarios}:
            raise Failure(f"{sorted(unknown)[0]} is not one of {', '.join(one['name'] for one in scenarios)}")
        scenarios = [scenario for scenario in scenarios if scenario["name"] in only]
    with tempfile.TemporaryDirectory(prefix="penstock-budget-") as folder:
        counter = Counter(pathlib.Path(folder), simulated, served, make_site(pathlib.Path(folder), scenarios), found)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
            counted = {
                (scenario["name"], kind): workers.submit(counter.count, kind, scenario)
                for scenario in scenarios for kind in UNITS
            }
            with ending_at_once(workers, counted.values()):
                return {scenario["name"]: {kind: counted[scenario["name"], kind].result() for kind in UNITS}
                        for scenario in scenarios}


@contextlib.contextmanager
def ending_at_once(workers, works):
    """When one fails or we are interrupted: nobody waits for counts that are not wanted any longer."""
    try:
        yield
    except BaseException:
        workers.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + END_LIMIT_S
        # Again and again, since one may have been about to start the next.
        while not all(work.done() for work in works) and time.monotonic() < deadline:
            end_ongoing()
            time.sleep(POLL_S)
        raise


def programs_of(build):
    programs = [build / "perf" / name for name in PROGRAMS]
    check_programs(*programs, how=HOW_TO_BUILD)
    return programs


def scenarios_of(simulated):
    return json.loads(call([simulated], "the scenarios could not be listed"))


def make_site(folder, scenarios):
    site = folder / "site"
    site.mkdir()
    for scenario in scenarios:
        if scenario["has_file"]:
            (site / scenario["request"].split()[1].rpartition("/")[2]).write_bytes(b"x" * scenario["body_bytes"])
    return site


@dataclass(frozen=True)
class Counter:
    folder: pathlib.Path
    simulated: pathlib.Path
    served: pathlib.Path
    site: pathlib.Path
    found: dict

    def count(self, kind, scenario):
        if kind == "simulated" and is_secured(scenario):
            return None  # its client would be counted too
        if kind == "served" and scenario["has_file"]:
            return None  # valgrind does not know openat2, without which no file is opened
        if kind != "simulated" and scenario["closes"]:
            return None  # whether a request is there when its connection is accepted is a race, and costs calls
        if kind == "calls" and scenario["body_bytes"] > TAKEN_AT_ONCE_BYTES:
            return None  # likewise how much of it the client has read when the kernel is asked to take more
        few, more = (getattr(self, kind + "_in_all")(scenario, requests) for requests in (FEW, MORE[kind]))
        return (more - few) / (MORE[kind] - FEW)

    def simulated_in_all(self, scenario, requests):
        """Of what a reactor does in its turns, less what the simulated kernel does for it."""
        output = self.new_file()
        call(self.callgrind(output) + ["--toggle-collect=penstock::Reactor::run_turn(int)",
                                       "--toggle-collect=penstock::platform::*",
                                       self.simulated, scenario["name"], str(requests)],
             f"{scenario['name']} could not be counted")
        return instructions_in(output)

    def served_in_all(self, scenario, requests):
        output = self.new_file()
        serve([*self.callgrind(output), self.served, *port_and_kind(scenario, "")], scenario, requests)
        return instructions_in(output)

    def calls_in_all(self, scenario, requests):
        output = self.new_file()
        serve([self.found["strace"], "-D", "-f", "-c", "-o", output, self.served, *port_and_kind(scenario, self.site)],
              scenario, requests)
        # By -D the server, and not strace, is the child that is waited for: the summary comes soon after.
        deadline = time.monotonic() + LIMIT_S
        while not re.search(r"^100\.00 .* total$", output.read_text(), re.M):
            if time.monotonic() > deadline:
                raise Failure("strace writes no summary")
            time.sleep(POLL_S)
        return sum(parse_summary(output.read_text()).values())

    def callgrind(self, output):
        return [self.found["valgrind"], "--tool=callgrind", "--quiet", f"--callgrind-out-file={output}"]

    def new_file(self):
        return pathlib.Path(tempfile.mkstemp(dir=self.folder)[1])


def is_secured(scenario):
    return scenario.get("tls", False)  # earlier programs list no such thing


def port_and_kind(scenario, site):
    return [site, "0", *["tls"] * is_secured(scenario)]


def serve(command, scenario, requests):
    """Starts the server, has it answer so many requests, and ends it."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, preexec_fn=machine.end_with_parent) as server, ongoing(server):
        try:
            is_ready, _, _ = select.select([server.stdout], [], [], LIMIT_S)
            line = server.stdout.readline() if is_ready else b"it names no port"
            if not line.strip().isdigit():
                raise Failure(f"{command[0]} {command[-1]}: {line.decode(errors='replace').strip() or 'it says nothing'}")
            Client(int(line), scenario).ask(requests)
            server.terminate()
            server.wait(LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise Failure(f"scenario {scenario['name']}: {problem}") from problem
        finally:
            if server.poll() is None:
                server.kill()


class Client:
    """Asks one after the other, or so many at once as the scenario has it."""

    def __init__(self, port, scenario):
        self.address = ("127.0.0.1", port)
        self.scenario = scenario
        self.request = scenario["request"].encode()

    def ask(self, requests):
        if self.scenario["closes"]:
            for _ in range(requests):
                with self.connect() as connection:
                    connection.sendall(self.request)
                    self.read_first(connection)
                    self.expect(connection.recv(1) == b"", "the connection goes on")
            return
        with self.connect() as connection:
            connection.sendall(self.request)
            size = self.read_first(connection)
            depth = self.scenario["depth"]
            for _ in range(requests // depth):
                connection.sendall(self.request * depth)
                self.read(connection, size * depth)

    def connect(self):
        plain = socket.create_connection(self.address, LIMIT_S)
        if not is_secured(self.scenario):
            return plain
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context.wrap_socket(plain)

    def read_first(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(PIECE_BYTES)
            self.expect(piece, "no answer comes")
            head += piece
        size = head.index(b"\r\n\r\n") + 4 + self.scenario["body_bytes"]
        self.expect(head.startswith(b"HTTP/1.1 200 "), f"it is answered by {head[:40]}")
        self.expect(len(head) <= size, "its answer is longer than was expected")
        self.read(connection, size - len(head))
        return size

    def read(self, connection, size):
        while size > 0:
            piece = connection.recv(min(size, PIECE_BYTES))
            self.expect(piece, "an answer ends too early")
            size -= len(piece)

    def expect(self, condition, otherwise):
        if not condition:
            raise Failure(f"scenario {self.scenario['name']}: {otherwise}")


def instructions_in(output):
    """The sum that callgrind writes at the end of its file."""
    found = re.search(r"^(?:summary|totals): (\d+)$", output.read_text(), re.M)
    if found is None or int(found.group(1)) == 0:
        raise Failure(f"callgrind has counted nothing: {output}")
    return int(found.group(1))


# ---- Another commit


def count_commit(commit, like, only, found):
    """Scenarios that it has not are left out."""
    with built(commit, like, PROGRAMS, "perf/budget", found["git"]) as build:
        return count_all(build, only_known(build, only), found)


def only_known(build, only):
    if only is None:
        return None
    known = {one["name"] for one in scenarios_of(programs_of(build)[0])}
    return [name for name in only if name in known]


def excuses(git, commit):
    """Of what the commits since then say: for each scenario that may have grown, why."""
    found = {}
    with telling_what_git_says():
        messages = call([git, "-C", ROOT, "log", "--format=%B", f"{commit}..HEAD"], "the commits' messages cannot be read")
    for line in messages.splitlines():
        if match := re.fullmatch(r"Budget: ([\w-]+(?:, [\w-]+)*): (.*\w.*)", line.strip()):
            found.update({name: match.group(2) for name in match.group(1).split(", ")})
    return found


def judge(counts, before, excused):
    failed = False
    for name in sorted(before.keys() - counts.keys() - excused.keys()):
        failed = True
        print(f'{name} is not counted any longer. Bring it back, or say why in the commit message: "Budget: {name}: …"')
    for name, kind, old, new in pairs(counts, before):
        if new - old <= max(GROWTH_LIMIT * old, SMALLEST_GROWTH[kind]):
            continue
        growth = f"{name}: {UNITS[kind]} per request grew from {number(old)} to {number(new)} ({new / old - 1:+.1%})"
        if name in excused:
            print(f"{growth}, since: {excused[name]}")
        else:
            failed = True
            print(f'{growth}. Mend it, or say why in the commit message: "Budget: {name}: …"')
    return 1 if failed else 0


def exceeds_ceilings(counts):
    """What grows by less than is noticed in each commit comes here in the end."""
    ceilings = json.loads(CEILINGS.read_text())
    failed = 0
    for name, kinds in counts.items():
        ceiling = ceilings.get(name)
        kind = "served" if kinds["simulated"] is None else "simulated"
        if ceiling is None or kinds[kind] > ceiling:
            failed = 1
            print(f"{name}: {number(kinds[kind])} {UNITS[kind]}, and "
                  + ("there is no ceiling" if ceiling is None else f"the ceiling is {number(ceiling)}")
                  + f". Mend it, or write another into {CEILINGS.relative_to(ROOT)} and say why")
    return failed


def pairs(counts, before):
    return [(name, kind, before[name][kind], new)
            for name, kinds in counts.items() if name in before
            for kind, new in kinds.items() if new is not None and before[name][kind] is not None]


def table_of(counts, before):
    def cell(name, kind):
        new = counts[name][kind]
        if new is None:
            return "–"
        old = (before or {}).get(name, {}).get(kind)
        return number(new) if old is None else f"{number(old)} → {number(new)}"

    return report.table(("scenario", *UNITS.values()),
                        [(name, *(cell(name, kind) for kind in UNITS)) for name in counts], left=("scenario",))


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"

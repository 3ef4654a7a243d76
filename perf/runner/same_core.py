"""`perf/run peers`: what a request costs each server, server and client on one core, beside the cheapest responder."""

import contextlib
import http.client
import json
import pathlib
import sys
from dataclasses import asdict, dataclass

from . import http_peers, machine, report
from .arguments import ROOT, TOOLS, add_common, check_common, check_programs, commit, refuse_namesakes, scenarios_of, selected
from .http_peers import REFERENCE, SIZES
from .judgement import DISTURBED_SHARE
from .own_load import OwnLoad
from .rounds import Bench, Patience, Setting
from .servers import Refused, Server
from .tools import Failure

ANSWER_LIMIT_S = 10
HTTP_1_1 = 11  # as http.client has it
CAN_BE_MEASURED = "only HTTP/1.1 with keep-alive can be measured"
CLOSES = f"it closes the connection behind its answer; {CAN_BE_MEASURED}"


class Absent(Failure):
    """The server is not here, or has nothing to offer. All else that keeps it from being measured is an error."""


@dataclass(frozen=True)
class Scenario:
    name: str
    connections: int
    depth: int = 1  # requests at once on each
    body: str = "plaintext"
    kind: str = "keep-alive"  # or "close": a connection for each request

    @property
    def size(self):
        return SIZES[self.body]

    @property
    def closes(self):
        return self.kind == "close"

    def path_at(self, server):
        return server.paths[self.body]


SCENARIOS = (
    Scenario("c1", 1),
    Scenario("c10", 10),
    Scenario("c50", 50),
    Scenario("c200", 200),
    Scenario("c1000", 1000),
    Scenario("json50", 50, body="json"),
    Scenario("pipe16", 50, depth=16),
    Scenario("1kb", 50, body="medium"),
    Scenario("100kb", 50, body="large"),
    Scenario("churn", 50, kind="close"),
)
scenarios = scenarios_of(SCENARIOS)


def add_command(commands):
    command = commands.add_parser(
        "peers", help="small answers in several ways, beside other servers", description=__doc__.replace("`", ""),
        epilog='Another server: NAME="COMMAND with {port}"; with paths of its own: NAME@plaintext=/a,json=/b="COMMAND".',
    )
    add_common(command, seconds=1)
    command.add_argument("--floor", type=pathlib.Path, default=TOOLS / "penstock_floor", help="(%(default)s)")
    command.add_argument("--load", type=pathlib.Path, default=TOOLS / "penstock_load", help="(%(default)s)")
    command.add_argument("--scenarios", type=scenarios, default=SCENARIOS, help="for example c1,pipe16 (all)")
    command.add_argument("--goals", action="store_true", help="also Penstock with 2, 4 and 8 reactors, and with 1,000 routes and "
                         "three middlewares around the handler: reactors-2, reactors-4, reactors-8 and layers")
    command.add_argument("--layers", type=pathlib.Path, default=TOOLS / "penstock_budget_served", help="what serves the last of "
                         "them (%(default)s)")
    command.add_argument("--core", type=int, help="of servers and clients (the first)")
    command.set_defaults(run=run)


def run(options):
    peers, setting = prepare(options)
    print(heading(options, setting), flush=True)
    data = {"commit": commit(), "is_quick": options.quick, "setting": asdict(setting), "scenarios": {}}
    bench = Bench(setting, OwnLoad(options.load))
    ratios, errors = [], []
    servers = [peer.name for peer in peers]
    for scenario in options.scenarios:
        results, left_out = measure(bench, peers, scenario, options)
        rows = report.rows_of(results, REFERENCE)
        print(f"\n### {title(scenario)}\n\n{report.table_of_rows(rows, 'client', servers)}", flush=True)
        for name, problem in left_out.items():
            print(f"\n{name}: {told(name, problem)}", flush=True)
        errors += [f"{row.name} in {scenario.name}" for row in rows if row.errors]
        errors += [f"{name} in {scenario.name}" for name, problem in left_out.items()
                   if not isinstance(problem, Absent)]
        ratios.append((scenario.name, *best_ratios(rows, servers)))
        data["scenarios"][scenario.name] = asdict(scenario) | {
            "left_out": {name: told(name, problem) for name, problem in left_out.items()},
            "rounds": {name: [one.as_data() for one in rounds] for name, rounds in results.items()},
        }
    summary = report.table(("scenario", *servers), ratios, left=("scenario",))
    print(f"\n### Best rounds to those of {REFERENCE}\n\n{summary}")
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    for sentence in reservations(data["scenarios"], options.quick):
        print(f"\n{sentence}")
    if errors:
        print(f"\nthere were errors: {', '.join(errors)}", file=sys.stderr)
    return 1 if errors else 0


def told(name, problem):
    """Behind its name, with which some of the sentences begin."""
    return str(problem).removeprefix(f"{name}: ").removeprefix(f"{name} ")


def reservations(scenarios, is_quick):
    """Why the figures are not to be quoted; mostly nothing."""
    found = []
    if is_quick:
        found.append(report.QUICK_LOOK)
    all_ = [one for of_one in scenarios.values() for rounds in of_one["rounds"].values() for one in rounds]
    disturbed = sum(one["disturbed"] for one in all_)
    if disturbed > DISTURBED_SHARE * len(all_):
        found.append(f"{disturbed} of {report.counted(len(all_), 'round')} disturbed: requests a second and latencies tell of "
                     "others, and of CPU time only the best rounds are worth something. Measure again on a quieter machine.")
    return found


def best_ratios(rows, servers):
    known = {row.name: f"{row.best_ratio:.2f}" for row in rows}
    return [known.get(name, "–") for name in servers]


def prepare(options):
    """Finds what is needed before anything is started. From here on this process keeps off the core that is measured."""
    check_common(options, options.program, options.floor, options.load)
    cores = machine.cores()
    core = cores[0] if options.core is None else options.core
    if core not in cores:
        raise Failure(f"there are only the cores {', '.join(map(str, cores))}")
    site = ROOT / "build/perf/bodies"
    http_peers.make_site(site)
    peers = http_peers.http_peers(options.floor, options.program, site, http_peers.others_at_hand(), options.given)
    of_goals = http_peers.goal_peers(options.program, options.layers, site)
    if options.goals:
        check_programs(options.layers)
        peers += of_goals
    refuse_namesakes(peers)
    if options.only is not None:
        peers = selected(peers, options.only, REFERENCE, "" if options.goals else
                         f" (with --goals: {', '.join(peer.name for peer in of_goals)})")
    machine.keep_off(core)
    return peers, Setting(options.seconds, core, core, options.nice, is_batch=True)


def measure(bench, peers, scenario, options):
    """The rounds of each server, and for each of the others why it has none."""
    left_out = {}

    def progress(number, server, one):
        print(f"{scenario.name}, round {number + 1}, {server.name}: {report.number(one.cpu_us)} µs"
              + " (disturbed)" * one.is_disturbed, file=sys.stderr)

    def leave_out(peer, problem):
        if peer.name == REFERENCE:
            raise problem
        left_out[peer.name] = problem

    with contextlib.ExitStack() as running:
        servers = []
        for peer in peers:
            try:
                servers.append(start(peer, scenario, bench.setting, running))
            except Failure as problem:
                leave_out(peer, problem)
        if not options.quick:
            # A share for each scenario, so that a noisy beginning leaves some of it for the end.
            bench.patience = Patience(options.patience / len(options.scenarios))
        results = bench.run(servers, scenario, options.rounds, progress, on_failure=leave_out)
    return results, left_out


def start(peer, scenario, setting, running):
    if peer.package:
        raise Absent(f"not installed (Debian package {peer.package})")
    if not peer.paths[scenario.body]:
        own = [path for path in peer.paths.values() if path]
        raise Absent(f"it is measured by {own[0]} only" if len(own) == 1 else f"it has no path for {scenario.body}")
    try:
        server = running.enter_context(
            Server(peer.for_scenario(scenario), setting.server_core, setting.nice, setting.is_batch))
    except Refused as refusal:
        raise Failure(f"it refuses an option: {refusal}") from refusal
    server.paths = peer.paths
    check_answer(server, scenario)
    return server


def check_answer(server, scenario):
    """Who answers something else does other work. Twice on one connection, as the load asks, where it is to go on."""
    path = scenario.path_at(server)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ANSWER_LIMIT_S)
    try:
        check_one(connection, path, scenario)
        if not scenario.closes:
            connection.auto_open = 0  # a connection that has ended is what is looked for
            try:
                check_one(connection, path, scenario)
            except (ConnectionError, http.client.NotConnected) as problem:
                raise Failure(CLOSES) from problem
    except (OSError, http.client.HTTPException) as problem:
        raise Failure(f"it was asked for {path}: {problem!r}") from problem
    finally:
        connection.close()


def check_one(connection, path, scenario):
    connection.request("GET", path)
    response = connection.getresponse()
    size = len(response.read())
    if response.status != 200 or size != scenario.size:
        raise Failure(f"it answers {path} with status {response.status} and {size} bytes, instead of 200 and {scenario.size}")
    if response.version < HTTP_1_1:
        raise Failure(f"it answered HTTP/1.0; {CAN_BE_MEASURED}")
    if response.will_close and not scenario.closes:
        raise Failure(CLOSES)


def heading(options, setting):
    return (
        f"## Beside the floor, commit {commit()}\n\n{machine.description(ROOT)}; servers and the client on core "
        f"{setting.server_core}, SCHED_BATCH, niceness {setting.nice}. {options.rounds} x {setting.seconds} s for each "
        f"server, in turn. Medians; *best* is the lowest round, of undisturbed ones where there are some, and the figure "
        f"to quote, the *ratio* behind it that to the best of {REFERENCE}; the other *ratio* is that within the same round. "
        f"*client's µs* is the CPU time of the client for a request."
    )


def title(scenario):
    ways = {"keep-alive": f"{scenario.depth} at once" if scenario.depth > 1 else "one at a time",
            "close": "a connection for each"}
    connections = f"{scenario.connections:,} connection" + "s" * (scenario.connections > 1)
    return f"{scenario.name}: {connections}, {ways[scenario.kind]}, {scenario.size:,} bytes"

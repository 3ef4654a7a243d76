"""`perf/run footprint`: memory at start and for each idle connection, beside other servers, and the size of the program."""

import contextlib
import json
import pathlib
import re
import resource
import select
import socket
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass

from . import machine, report, tools
from .arguments import PROGRAM, ROOT, TOOLS, add_json, bounded, check_programs, commit, names
from .at_hand import SCENARIO, ask, peers_at_hand, telling_refusals
from .commits import Ended, call
from .servers import Server
from .tools import Failure

BUILDS = ("release", "fast", "minimal")
MOST_CONNECTIONS = 25_000  # the client has ports for no more of them (man 7 ip, ip_local_port_range)
CONNECTIONS = 3_000  # nginx is configured for 4,096 here, and ends idle ones when a sixteenth of them is left
OTHER_DESCRIPTORS = 100
ANSWER_LIMIT_S = 10
HEAD = ("server", "resident at start", "of it its own", "resident, {:,} idle", "bytes per idle connection")


@dataclass(frozen=True)
class Memory:
    resident_bytes: int
    proportional_bytes: int  # with a share of what several processes have in common (man 5 proc_pid_smaps)
    private_bytes: int


@dataclass(frozen=True)
class Idle:
    name: str
    at_start: Memory
    before: Memory  # after one request: what the first takes for ever is not theirs
    after: Memory
    connections: int

    @property
    def each_bytes(self):
        return (self.after.proportional_bytes - self.before.proportional_bytes) / self.connections


def add_command(commands):
    command = commands.add_parser("footprint", help="memory at rest and for idle connections, size of the program",
                                  description=__doc__.replace("`", ""))
    command.add_argument("--program", type=pathlib.Path, default=PROGRAM,
                         help="the program of a release build (%(default)s)")
    command.add_argument("--floor", type=pathlib.Path, default=TOOLS / "penstock_floor", help="(%(default)s)")
    command.add_argument("--inside", type=pathlib.Path, default=TOOLS / "penstock_footprint",
                         help="what counts from inside; left out where it is not (%(default)s)")
    command.add_argument("--only", type=names, help="for example penstock,nginx (all)")
    command.add_argument("--connections", type=bounded(1, MOST_CONNECTIONS), default=CONNECTIONS, help="(%(default)s)")
    add_json(command, "the figures")
    command.set_defaults(run=run)


def run(options):
    check_programs(options.program, options.floor)
    raise_descriptor_limit(options.connections)
    peers, absent = peers_at_hand(options.floor, options.program, options.only)
    print(f"## Footprint, commit {commit()}\n\n{machine.description(ROOT)}")
    sizes = sizes_of({"given": options.program} | {name: ROOT / f"build/{name}/bin/penstock" for name in BUILDS})
    print(f"\n### Size of the program\n\n{table_of_sizes(sizes)}", flush=True)
    measured = [measure(peer, options.connections) for peer in peers]
    print(f"\n### From outside, after one request each\n\n{table_of(measured, options.connections)}", flush=True)
    if absent:
        print(f"\nnot installed: {', '.join(absent)}")
    if options.json:
        options.json.write_text(json.dumps({
            "commit": commit(), "sizes": sizes,
            "idle": [asdict(one) | {"bytes_per_connection": one.each_bytes} for one in measured]}, indent=1) + "\n")
    return look_inside(options.inside) if options.inside.is_file() else 0


def look_inside(program):
    """Shows what it prints. Its status: 1 when idle connections hold more than the design allows."""
    try:
        status, output = 0, call([program], "what idle connections hold is not known")
    except Ended as ended:
        print(f"perf/run: {ended}", file=sys.stderr)
        status, output = ended.status, ended.output
    print(f"\n### From inside\n\n```\n{output.strip()}\n```")
    return status if 0 <= status else 1  # below 0 it is the signal that has ended it


def raise_descriptor_limit(connections):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < connections + OTHER_DESCRIPTORS:
        raise Failure(f"{connections} connections are more than the hard limit of {hard} descriptors allows; "
                      "give --connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def measure(peer, connections):
    with contextlib.ExitStack() as open_:
        with telling_refusals(peer.name):
            server = open_.enter_context(Server(peer.for_scenario(SCENARIO), machine.cores()[0], 0))
        at_start = memory_of(server)
        try:
            with connect(server) as first:
                ask(first, peer.name)
            before = memory_of(server)
            clients = [open_.enter_context(connect(server)) for _ in range(connections)]
            for client in clients:
                ask(client, peer.name)
        except OSError as problem:
            raise Failure(f"{peer.name}: {problem}") from problem
        after = memory_of(server)
        if ended := len(ended_of(clients)):
            raise Failure(f"{peer.name} has ended {ended} of {connections} connections: it is not configured for so many")
    return Idle(peer.name, at_start, before, after, connections)


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), ANSWER_LIMIT_S)


def ended_of(clients):
    """Nothing was asked for, so what can be read is an end."""
    poller = select.poll()
    for client in clients:
        poller.register(client, select.POLLIN)
    return poller.poll(0)


def memory_of(server):
    """Of all its processes."""
    texts = []
    for pid in server.processes():
        try:
            texts.append(pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text())
        except OSError:
            pass  # it ends just now
    found = [parse_rollup(text) for text in texts]
    if not found:
        raise Failure(f"{server.name} has ended{server.what_it_said()}")
    return Memory(*(sum(figures) for figures in zip(*found, strict=True)))


def parse_rollup(text):
    """Resident, proportional and private bytes of a process."""
    kibibytes = {name: int(count) for name, count in re.findall(r"^(\w+): +(\d+) kB$", text, re.M)}
    if not {"Rss", "Pss", "Private_Clean", "Private_Dirty"} <= kibibytes.keys():
        raise Failure("the kernel does not tell the memory of a process (man 5 proc_pid_smaps)")
    return (1024 * kibibytes["Rss"], 1024 * kibibytes["Pss"],
            1024 * (kibibytes["Private_Clean"] + kibibytes["Private_Dirty"]))


def sizes_of(programs):
    """Bytes of those that are built, as they are and stripped; each file once."""
    strip = tools.place_of("strip")
    sizes = {}
    with tempfile.TemporaryDirectory(prefix="penstock-strip-") as folder:
        seen = set()
        for name, program in programs.items():
            if not program.is_file() or (place := program.resolve()) in seen:
                continue
            seen.add(place)
            sizes[str(program.relative_to(ROOT)) if program.is_relative_to(ROOT) else str(program)] = {
                "bytes": program.stat().st_size, "stripped_bytes": stripped(strip, program, pathlib.Path(folder) / name)}
    return sizes


def stripped(strip, program, copy):
    """None where there is no strip (Debian: binutils)."""
    if strip is None:
        return None
    done = subprocess.run([strip, "-o", copy, program], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=ANSWER_LIMIT_S, check=False)
    if done.returncode != 0:
        raise Failure(f"strip ended with {done.returncode}: {done.stderr.strip()}")
    return copy.stat().st_size


def table_of_sizes(sizes):
    lines = [(name, report.kibibytes(of_one["bytes"]), report.kibibytes(of_one["stripped_bytes"]))
             for name, of_one in sizes.items()]
    return report.table(("program", "size", "stripped"), lines, left=("program",))


def table_of(measured, connections):
    # The kernel may take back a page meanwhile; who needs less than nothing needs nothing.
    lines = [(one.name, *map(report.kibibytes, (one.at_start.resident_bytes, one.at_start.private_bytes,
                                                one.after.resident_bytes)), f"{max(0.0, one.each_bytes):,.0f}")
             for one in measured]
    return report.table([title.format(connections) for title in HEAD], lines)

"""`perf/run tls`: what handshakes, requests and idle connections by TLS cost each server, on one core with the client."""

import contextlib
import json
import pathlib
import re
import socket
import ssl
import subprocess
import sys
from dataclasses import asdict, dataclass

from . import machine, own_load, report
from .arguments import (LONGEST_ROUND_S, MOST_ROUNDS, PROGRAM, ROOT, TOOLS, add_json, add_nice, add_patience, bounded,
                        check_common, commit, names, scenarios_of)
from .footprint import ended_of, memory_of, raise_descriptor_limit
from .load import Load
from .rounds import Bench, Patience, Setting
from .servers import Refused, Server
from .tls_peers import GOALS, KINDS, REFERENCE, SCENARIOS, make_site, peers_of
from .tools import Failure

CHECK_LIMIT_S = 60
ANSWER_LIMIT_S = 10
MOST_CONNECTIONS = 4_000  # nginx is configured for some more
SERVERS = ("penstock", "nginx", "h2o")
IDLE = "idle, after a handshake and a request"
BEGUN = "in the handshake, of which only the client's hello has been sent"
scenarios = scenarios_of(SCENARIOS)


@dataclass(frozen=True)
class TlsLoad:
    program: str

    def run(self, server, scenario, setting, seconds, meter):
        """As OwnLoad does it."""
        words = own_load.command(self.program, server, scenario.path_at(server), scenario, scenario.size, seconds)
        result = own_load.drive([words + scenario.words()], server, seconds, setting.settle_client, meter)
        p50_us, p99_us = result.latency.quantiles_us([0.50, 0.99])
        return Load(requests=result.requests, seconds=result.seconds, bytes_read=result.bytes_read, p50_us=p50_us,
                    p99_us=p99_us, errors=result.error_count, client_cpu_s=result.client_cpu_s)


def add_command(commands):
    command = commands.add_parser("tls", help="handshakes, requests and idle connections by TLS, beside other servers",
                                  description=__doc__.replace("`", ""))
    command.add_argument("--program", type=pathlib.Path, default=PROGRAM, help="the program of a build (%(default)s)")
    command.add_argument("--load", type=pathlib.Path, default=TOOLS / "penstock_load", help="(%(default)s)")
    command.add_argument("--only", type=names, default=list(SERVERS), help="for example penstock,nginx (all)")
    command.add_argument("--scenarios", type=scenarios, help="for example full,keep-50 (all that are not optional: "
                         f"{', '.join(one.name for one in SCENARIOS if one.is_optional)})")
    command.add_argument("--all", action="store_true", help="also those")
    command.add_argument("--rounds", type=bounded(1, MOST_ROUNDS), default=5, help="of each server (%(default)s)")
    command.add_argument("--seconds", type=bounded(1, LONGEST_ROUND_S), default=1, help="of each round (%(default)s)")
    command.add_argument("--quick", action="store_true", help="one round of one second, no repeats")
    command.add_argument("--connections", type=bounded(0, MOST_CONNECTIONS), default=1_000,
                         help="that memory is measured of; 0: not at all (%(default)s)")
    add_nice(command, "servers and clients alike")
    add_patience(command, 60)
    add_json(command, "every round")
    command.set_defaults(run=run)


def run(options):
    check_common(options, options.program, options.load)
    if unknown := [name for name in options.only if name not in SERVERS]:
        raise Failure(f"there is no server {unknown[0]}, only {', '.join(SERVERS)}")
    folder = ROOT / "build/perf/tls"
    make_site(folder)
    core = machine.cores()[0]
    machine.keep_off(core)
    setting = Setting(options.seconds, core, core, options.nice, is_batch=True)
    bench = Bench(setting, TlsLoad(options.load))
    library = library_of(options.program)
    chosen = options.scenarios or tuple(one for one in SCENARIOS if options.all or not one.is_optional)
    print(f"## TLS, commit {commit()}\n\n{machine.description(ROOT)}; servers and the client on core {core}, SCHED_BATCH, "
          f"niceness {options.nice}. {options.rounds} x {options.seconds} s for each server, in turn; *ratio* to {REFERENCE}. "
          f"Penstock has {library}.", flush=True)
    data = {"commit": commit(), "wolfssl": library, "is_quick": options.quick, "setting": asdict(setting), "scenarios": {}}
    errors, best = [], {}
    for scenario in chosen:
        results, left_out = measure(bench, scenario, options, folder, len(chosen))
        show(scenario, results, left_out, options.only)
        best[scenario.name] = {name: report.best_of(rounds) for name, rounds in results.items()}
        errors += [f"{name} in {scenario.name}" for name, rounds in results.items() if any(one.errors for one in rounds)]
        data["scenarios"][scenario.name] = asdict(scenario) | {
            "left_out": left_out, "rounds": {name: [one.as_data() for one in rounds] for name, rounds in results.items()}}
    print(f"\n### Goals\n\n{report.table(('what', 'goal', 'penstock to nginx', 'verdict'), verdicts(best), ('what', 'verdict'))}",
          flush=True)
    if options.connections:
        data["memory"] = memory(options, folder)
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    if options.quick:
        print(f"\n{report.QUICK_LOOK}")
    if errors:
        print(f"\nthere were errors: {', '.join(errors)}", file=sys.stderr)
    return 1 if errors else 0


def library_of(program):
    """Whose TLS a build has, which decides what a handshake costs."""
    told = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CHECK_LIMIT_S,
                          check=False).stdout
    found = re.search(r"^TLS: (.+)$", told, re.M)
    return found.group(1) if found else "unknown"


def measure(bench, scenario, options, folder, count):
    """The rounds of each server, and for each of the others in words why it has none."""
    left_out = {}

    def progress(number, server, one):
        print(f"{scenario.name}, round {number + 1}, {server.name}: {report.number(one.cpu_us)} µs"
              + " (disturbed)" * one.is_disturbed, file=sys.stderr)

    with contextlib.ExitStack() as running:
        servers = []
        for name, peer in peers_of(options.program, folder, scenario).items():
            if name not in options.only:
                continue
            try:
                servers.append(start(name, peer, bench.setting, running))
                check_answer(options.load, servers[-1], scenario)
            except Failure as problem:
                left_out[name] = str(problem)
        servers = [server for server in servers if server.name not in left_out]
        bench.patience = Patience(0 if options.quick else options.patience / count)
        results = bench.run(servers, scenario, options.rounds, progress,
                            on_failure=lambda server, problem: left_out.update({server.name: str(problem)}))
    return results, left_out


def start(name, peer, setting, running):
    if peer is None:
        raise Failure(f"not installed (Debian package {name})")
    try:
        return running.enter_context(Server(peer, setting.server_core, setting.nice, setting.is_batch))
    except Refused as refusal:
        raise Failure(f"it refuses an option: {refusal}") from refusal


def check_answer(program, server, scenario):
    """Who agrees on another suite, or does not resume, does other work."""
    words = own_load.command(program, server, scenario.path_at(server), scenario, scenario.size, 1)
    words = [word for word in words if word != "--in-step"] + scenario.words()
    done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CHECK_LIMIT_S,
                          check=False)
    if done.returncode != 0:
        raise Failure(done.stderr.strip().removeprefix("penstock_load: ") or f"penstock_load ended with {done.returncode}")
    if complaint := complaint_on(json.loads(done.stdout.splitlines()[-1]), scenario):
        raise Failure(complaint)


def complaint_on(result, scenario):
    """Empty when it is what the scenario asks for."""
    if result["errors"]:
        kinds = [kind for kind in own_load.ERROR_KINDS if result.get(kind)]
        return f"{result['errors']} of {result['asked']} requests had errors: {', '.join(kinds)}"
    wanted = {"tls_version": f"TLSv{scenario.version}", "tls_suite": scenario.suite_asked, "tls_certificate": KINDS[scenario.key]}
    if scenario.kind != "resumed":  # which in TLS 1.2 agrees on none
        wanted["tls_group"] = scenario.group.lower()
    for name, value in wanted.items():
        if result[name].lower() != value.lower():
            return f"it has agreed on \"{result[name]}\", instead of {value}"
    resumed = result["handshakes"] if scenario.kind == "resumed" else 0
    if result["resumed"] != resumed:
        return f"{result['resumed']} of {result['handshakes']} handshakes were resumed, instead of {resumed}"
    return ""


def show(scenario, results, left_out, servers):
    kinds = {"full": "a full handshake for each", "resumed": "a resumed handshake for each", "keep-alive": "one at a time"}
    title = (f"{scenario.name}: {report.counted(scenario.connections, 'connection')}, {kinds[scenario.kind]}, "
             f"{scenario.size:,} bytes, TLS {scenario.version}, {scenario.suite_asked}, {scenario.group}, {KINDS[scenario.key]}")
    rows = report.rows_of(results, REFERENCE if REFERENCE in results else next(iter(results))) if results else []
    print(f"\n### {title}\n\n{report.table_of_rows(rows, 'client', servers)}", flush=True)
    for name, problem in left_out.items():
        print(f"\n{name}: {problem}", flush=True)


def verdicts(best):
    """A line for each goal; `best`: by scenario and server, CPU µs of the best round."""
    lines = []
    for name, most in GOALS:
        times = best.get(name, {})
        is_known = {"penstock", "nginx"} <= times.keys() and times["penstock"] == times["penstock"] and times["nginx"] > 0
        ratio = round(times["penstock"] / times["nginx"], 2) if is_known else None
        verdict = "not measured" if ratio is None else "met" if ratio <= most else "not met"
        lines.append((name, f"≤ {most:.2f}", "–" if ratio is None else f"{ratio:.2f}", verdict))
    return lines


def memory(options, folder):
    """Prints bytes by which a server's memory has grown for each connection, and gives them by server and kind."""
    raise_descriptor_limit(options.connections)
    setting = Setting(1, machine.cores()[0], machine.cores()[0], options.nice)
    found, problems = {}, {}
    for name, peer in peers_of(options.program, folder, SCENARIOS[0]).items():
        if name not in options.only:
            continue
        try:
            found[name] = {what: growth(name, peer, setting, options.connections, connect)
                           for what, connect in ((IDLE, connect_and_ask), (BEGUN, say_hello))}
        except (Failure, OSError) as problem:
            problems[name] = str(problem)
    lines = [(name, *(f"{of_one[what] / 1024:,.1f}" for what in (IDLE, BEGUN))) for name, of_one in found.items()]
    print(f"\n### Memory\n\nKiB for each of {options.connections:,} connections: {IDLE}; {BEGUN}.\n\n"
          f"{report.table(('server', 'idle', 'in the handshake'), lines)}", flush=True)
    for name, problem in problems.items():
        print(f"\n{name}: {problem}", flush=True)
    return {"connections": options.connections, "bytes": found, "left_out": problems}


def growth(name, peer, setting, count, connect):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.ExitStack() as running:
        server = start(name, peer, setting, running)
        with connect_and_ask(server, context):
            pass
        before = memory_of(server)
        clients = [running.enter_context(connect(server, context)) for _ in range(count)]
        if connect is say_hello:
            # A whole handshake behind them all: by then the server has read what they said.
            running.enter_context(connect_and_ask(server, context))
        after = memory_of(server)
        if connect is connect_and_ask and (ended := len(ended_of(clients))):
            raise Failure(f"it has ended {ended} of {count} connections")
    return max(0.0, (after.proportional_bytes - before.proportional_bytes) / count)


def connect_and_ask(server, context):
    client = context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), ANSWER_LIMIT_S))
    try:
        client.sendall(b"GET /plaintext HTTP/1.1\r\nHost: localhost\r\n\r\n")
        data = b""
        while not data.endswith(b"Hello, World!"):
            piece = client.recv(4096)
            if not piece:
                raise Failure(f"{server.name} has ended a connection before its answer")
            data += piece
    except BaseException:
        client.close()
        raise
    return client


def say_hello(server, context):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    client = socket.create_connection(("127.0.0.1", server.port), ANSWER_LIMIT_S)
    client.sendall(outgoing.read())
    return client

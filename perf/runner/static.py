"""`perf/run static`: files of five sizes from Penstock, nginx and whoever else is given, on one core each."""

import argparse
import contextlib
import json
import pathlib
import sys
from dataclasses import asdict

from . import machine, report, site, tools
from .arguments import ROOT, add_common, bounded, check_common, commit, names, selected
from .calls import count_calls
from .load import Wrk
from .peers import NGINX_VARIANTS, REFERENCE, static_peers
from .rounds import Bench, Patience, Setting
from .servers import Refused, Server
from .tools import Failure

CALLS_S = 1
MOST_CONNECTIONS = 4_000  # as many as nginx is configured for


def add_command(commands):
    command = commands.add_parser(
        "static", help="files of several sizes, beside nginx", description=__doc__.replace("`", ""),
        epilog='Another server: NAME="COMMAND with {port} and, if it wants, {directory}".',
    )
    add_common(command, seconds=2)
    command.add_argument("--directory", type=pathlib.Path, default=ROOT / "build/perf/site",
                         help="where the files are made and kept (%(default)s)")
    command.add_argument("--sizes", type=sizes, default=site.FILES, help="for example 1KB,1MB (all)")
    command.add_argument("--connections", type=bounded(1, MOST_CONNECTIONS), default=50, help="of wrk (%(default)s)")
    command.add_argument("--server-core", type=int, help="(the first)")
    command.add_argument("--client-core", type=int, help="(the second where there is one)")
    command.add_argument("--calls", action="store_true", help="count system calls per request too, by strace")
    command.set_defaults(run=run)


def sizes(text):
    known = {file.label.replace(" ", ""): file for file in site.FILES}
    by_word = {name.lower(): file for name, file in known.items()}
    wanted = [word.strip() for word in names(text)]
    if unknown := [word for word in wanted if word.lower() not in by_word]:
        raise argparse.ArgumentTypeError(f"there are no files of {unknown[0]}, only of {', '.join(known)}")
    return tuple(by_word[word.lower()] for word in wanted)


def run(options):
    peers, setting, wrk, strace = prepare(options)
    print(heading(options, setting), flush=True)
    data = {"commit": commit(), "setting": asdict(setting) | {"wrk": wrk.program, "connections": wrk.connections},
            "files": {}, "calls": {}}
    bench = Bench(setting, wrk)
    with contextlib.ExitStack() as running:
        servers = start(peers, setting, running)
        for server in servers:
            site.check_answers(server, options.directory, options.sizes)
        print(f"\nAll answers are equal to the files, byte by byte: {', '.join(server.name for server in servers)}.")
        for file in options.sizes:
            results = measure(bench, servers, file, options)
            print(f"\n### {file.label}\n\n{report.table_of_rows(report.rows_of(results, REFERENCE))}", flush=True)
            data["files"][file.label] = {name: [one.as_data() for one in all_] for name, all_ in results.items()}
        for file in options.sizes if strace else ():
            calls = {server.name: count_calls(strace, wrk, setting, server, file, CALLS_S) for server in servers}
            print(f"\n### System calls, {file.label}\n\n{report.table_of_calls(calls)}", flush=True)
            data["calls"][file.label] = calls
    if options.quick:
        print(f"\n{report.QUICK_LOOK}")
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    return 1 if complain_about_errors(data["files"]) else 0


def prepare(options):
    """Finds what is needed and makes the files, before anything is started."""
    check_common(options, options.program)
    options.directory = options.directory.resolve()
    wants_nginx = options.only is None or any(name in NGINX_VARIANTS for name in options.only)
    found = tools.find("wrk", *["nginx"] * wants_nginx, *["strace"] * options.calls)
    peers = static_peers(options.program, found.get("nginx"), options.directory, options.given)
    if options.only is not None:
        peers = selected(peers, options.only, REFERENCE)
    cores = machine.cores()
    setting = Setting(
        seconds=options.seconds,
        server_core=cores[0] if options.server_core is None else options.server_core,
        client_core=cores[1 % len(cores)] if options.client_core is None else options.client_core,
        nice=options.nice,
    )
    if not {setting.server_core, setting.client_core} <= set(cores):
        raise Failure(f"there are only the cores {', '.join(map(str, cores))}")
    site.make_files(options.directory, options.sizes)
    return peers, setting, Wrk(found["wrk"], options.connections), found.get("strace")


def start(peers, setting, running):
    servers = []
    for peer in peers:
        try:
            servers.append(running.enter_context(Server(peer, setting.server_core, setting.nice)))
        except Refused as refusal:
            if not peer.may_be_refused:
                raise Failure(f"{peer.name} could not be started: {refusal}") from refusal
            print(f"\n{peer.name} is left out, as the program refuses it: {refusal}")
    return servers


def measure(bench, servers, file, options):
    def progress(number, server, one):
        print(f"{file.label}, round {number + 1}, {server.name}: {report.number(one.cpu_us)} µs"
              + " (disturbed)" * one.is_disturbed, file=sys.stderr)

    if not options.quick:
        # A share for each size, so that a noisy beginning leaves some of it for the end.
        bench.patience = Patience(options.patience / len(options.sizes))
        for server in servers:
            bench.warm(server, file)
    return bench.run(servers, file, options.rounds, progress)


def heading(options, setting):
    shared = setting.server_core == setting.client_core
    place = (f"all on core {setting.server_core}" if shared else
             f"servers on core {setting.server_core}, wrk on core {setting.client_core}")
    return (
        f"## Static files, commit {commit()}\n\n{machine.description(options.directory)}; {place}. "
        f"wrk, {options.connections} connections, one thread; {options.rounds} x {setting.seconds} s "
        f"for each server, in turn. Medians; *best* is the lowest round, *ratio* a server's CPU time to that of "
        f"{REFERENCE} in the same round: below 1 it needs less. *wrk's µs* is the CPU time of wrk for a request."
    )


def complain_about_errors(files):
    failed = [f"{name} at {label}" for label, results in files.items() for name, rounds in results.items()
              if any(one["errors"] for one in rounds)]
    if failed:
        print(f"\nwrk met errors: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)

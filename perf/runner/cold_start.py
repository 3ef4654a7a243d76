"""`perf/run cold-start`: how long from exec to the first answer, beside other servers. Their files are in memory already."""

import json
import os
import pathlib
import socket
import statistics
import struct
import time

from . import machine, report
from .arguments import (MOST_ROUNDS, PROGRAM, ROOT, TOOLS, add_json, add_nice, bounded, check_nice, check_programs, commit,
                        names)
from .at_hand import SCENARIO, ask, peers_at_hand, telling_refusals
from .servers import PORTS_TO_TRY, START_LIMIT_S, USAGE_STATUS, Refused, Server, free_port
from .tools import Failure

ANSWER_LIMIT_S = 10
POLL_S = 0.0001
STAMP = struct.Struct("q")


def add_command(commands):
    command = commands.add_parser("cold-start", help="from exec to the first answer, beside other servers",
                                  description=__doc__.replace("`", ""))
    command.add_argument("--program", type=pathlib.Path, default=PROGRAM,
                         help="the program of a release build (%(default)s)")
    command.add_argument("--floor", type=pathlib.Path, default=TOOLS / "penstock_floor", help="(%(default)s)")
    command.add_argument("--only", type=names, help="for example penstock,nginx (all)")
    command.add_argument("--starts", type=bounded(1, MOST_ROUNDS), default=20, help="of each (%(default)s)")
    add_nice(command, "the servers and of who asks them")
    add_json(command, "every start")
    command.set_defaults(run=run)


def run(options):
    check_programs(options.program, options.floor)
    check_nice(options.nice)
    peers, absent = peers_at_hand(options.floor, options.program, options.only)
    core = machine.cores()[0]
    machine.keep_off(core)
    os.setpriority(os.PRIO_PROCESS, 0, options.nice)
    starts_ms = {peer.name: [] for peer in peers}
    for _ in range(options.starts):
        for peer in peers:
            starts_ms[peer.name].append(start_of(peer, core, options.nice) * 1e3)
    print(f"## Cold start, commit {commit()}\n\n{machine.description(ROOT)}; servers on core {core}. {options.starts} starts "
          f"of each, in turn, in milliseconds.\n\n{table_of(starts_ms)}")
    if absent:
        print(f"\nnot installed: {', '.join(absent)}")
    if options.json:
        options.json.write_text(json.dumps({"commit": commit(), "starts_ms": starts_ms}, indent=1) + "\n")
    return 0


def start_of(peer, core, nice):
    with telling_refusals(peer.name), TimedServer(peer.for_scenario(SCENARIO), core, nice) as server:
        return server.first_answer_s


class TimedServer(Server):
    """Asked for an answer as soon as it takes a connection; `first_answer_s` is how long that took."""

    def start(self, peer, settle):
        for _ in range(PORTS_TO_TRY):
            self.port = free_port()
            started_ns = self.launch_stamped(peer, settle)
            if self.take_first_answer():
                self.first_answer_s = (time.monotonic_ns() - started_ns) / 1e9
                return
            if self.process.returncode == USAGE_STATUS:
                raise Refused(self.words() or "it says nothing")
        raise Failure(f"{self.name} ended with {self.process.returncode} before it answered{self.what_it_said()}")

    def launch_stamped(self, peer, settle):
        """When the child was about to become the server: what this process needs to make a child is not the server's."""
        command = peer.command(self.port, self.folder)
        reader, writer = os.pipe()

        def settle_and_stamp():
            settle()
            os.write(writer, STAMP.pack(time.monotonic_ns()))

        try:
            self.launch(command, settle_and_stamp)
            return STAMP.unpack(os.read(reader, STAMP.size))[0]
        finally:
            os.close(reader)
            os.close(writer)

    def take_first_answer(self):
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), ANSWER_LIMIT_S) as connection:
                    ask(connection, self.name)
                    return True
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    return False
                time.sleep(POLL_S)
            except OSError as problem:
                raise Failure(f"{self.name}: {problem}") from problem
        raise Failure(f"{self.name} does not listen on port {self.port} after {START_LIMIT_S} s{self.what_it_said()}")


def table_of(starts_ms):
    lines = [(name, report.number(statistics.median(all_)), report.number(min(all_)), report.number(max(all_)))
             for name, all_ in starts_ms.items()]
    return report.table(("server", "median", "best", "worst"), lines)

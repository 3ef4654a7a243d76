"""The load of a scenario: several penstock_load, which together have its connections and its rate."""

import dataclasses

from .. import own_load


def shares_of(connections, threads):
    """How many each process gets; no process gets none."""
    count = min(threads, connections)
    return [connections // count + (place < connections % count) for place in range(count)]


def command(program, server, scenario, size, seconds, connections):
    """Of one process, which has so many of the connections."""
    rate = scenario.rate * connections / scenario.connections
    share = dataclasses.replace(scenario, connections=connections)
    return [*own_load.command(program, server, scenario.path, share, size, seconds), "--method", scenario.method,
            *["--rate", f"{rate:.3f}"] * (rate > 0), *["--json", "--body", str(scenario.sent_bytes)] * bool(scenario.sent_bytes)]


def run(program, server, scenario, size, seconds, settle, meter):
    commands = [command(program, server, scenario, size, seconds, connections)
                for connections in shares_of(scenario.connections, scenario.threads)]
    return own_load.drive(commands, server, seconds, settle, meter)

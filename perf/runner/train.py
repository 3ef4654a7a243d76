"""`perf/run train`: has the programs of a build serve every scenario of the budgets, so that what they record is a profile."""

import pathlib
import tempfile

from .arguments import ROOT, bounded
from .budget import is_secured, make_site, port_and_kind, programs_of, scenarios_of, serve
from .commits import call

REQUESTS = 16_000  # of each, many against what starting takes


def add_command(commands):
    command = commands.add_parser("train", help="record a profile; tools/fast calls it",
                                  description=__doc__.replace("`", ""))
    command.add_argument("--build", type=pathlib.Path, default=ROOT / "build/fast",
                         help="the folder of a build with PENSTOCK_PROFILE=record (%(default)s)")
    command.add_argument("--requests", type=bounded(256, 1_000_000), default=REQUESTS,
                         help="of each scenario, in sixteens; of large bodies fewer (%(default)s)")
    command.set_defaults(run=run)


def run(options):
    simulated, served = programs_of(options.build)
    with tempfile.TemporaryDirectory(prefix="penstock-train-") as folder:
        scenarios = scenarios_of(simulated)
        site = make_site(pathlib.Path(folder), scenarios)
        for scenario in scenarios:
            requests = options.requests // 16 if scenario["body_bytes"] > 10_000 else options.requests
            if not is_secured(scenario):
                call([simulated, scenario["name"], str(requests)], f"{scenario['name']} could not be served")
            serve([served, *port_and_kind(scenario, site)], scenario, requests)
    print(f"{len(scenarios)} scenarios were served")
    return 0

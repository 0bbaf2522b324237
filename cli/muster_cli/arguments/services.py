"""The arguments of `check`, `provision` and of the services, which name their own in their `__main__`."""

import math

import muster_coordinator.__main__ as coordinator
import muster_supervisor.__main__ as supervisor
import muster_worker.__main__ as worker
from muster_bus.process.arguments import add_team_file, count
from muster_cli.arguments.command import AddParser, add_command, add_json


def add_commands(add_parser: AddParser) -> None:
    check = add_command(add_parser, "check", "say everything that is wrong in a team file; start nothing")
    check.add_argument(
        "file", nargs="?", metavar="FILE", help="default: MUSTER_TEAM_FILE, else ./team.yaml, else the sample"
    )
    add_json(check)
    provision = add_command(
        add_parser, "provision", "make the streams, consumers and buckets of a team; again changes nothing"
    )
    provision.add_argument("--replicas", type=count, default=1, metavar="N", help="copies of each stream; default 1")
    provision.add_argument(
        "--wait",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="for a broker that is away or busy, or `forever`; default 10",
    )
    add_json(provision)
    add_team_file(provision)
    supervisor.add_arguments(add_command(add_parser, "supervisor", supervisor.SUMMARY))
    worker.add_arguments(add_command(add_parser, "worker", worker.SUMMARY))
    coordinator.add_arguments(add_command(add_parser, "coordinator", coordinator.SUMMARY))


def _seconds(text: str) -> float:
    return math.inf if text == "forever" else count(text)

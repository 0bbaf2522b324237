"""`python -m muster_worker`, which is `muster worker`: run a worker until a signal.

What a worker needs is imported when it runs: the command line reads the arguments from here for its help.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from muster_bus.process.arguments import add_name, add_team_file, count
from muster_bus.process.command import run_command

if TYPE_CHECKING:
    from muster_bus.connection import Bus
    from muster_bus.process.settings import Settings

SUMMARY = "run a worker: it does the tasks of its roles"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--role", action="append", metavar="R", help="only this role of the team; may be repeated")
    parser.add_argument("--slots", type=count, metavar="N", help="tasks at a time; default: what the team file says")
    add_team_file(parser)
    add_name(parser)


async def serve(given: Namespace, settings: "Settings") -> int:
    """Run a worker of the team until a signal; returns the exit code."""
    import logging
    from pathlib import Path

    from muster_agent.team.checking.role_code import role_code
    from muster_agent.team.file import load_team
    from muster_agent.team.lookup import find_team_file
    from muster_bus.process.logging import set_up_logging
    from muster_bus.process.service import run_service
    from muster_worker.executor import Executor
    from muster_worker.worker import Worker

    set_up_logging("worker", given.name or "", settings.log)  # for a team file that cannot be read
    team = load_team(find_team_file(given.team_file, settings.team_file, Path.cwd()), role_code(given.role))
    roles = given.role or [role.name for role in team.roles]
    slots = given.slots or sum(team.role(name).slots for name in roles)
    # What cannot be imported is an error before anything starts.
    executor = Executor(team, {**settings.keys, **settings.model_env}, roles, given.name, slots)

    def make(bus: "Bus") -> Worker:
        for notice in executor.notice:
            logging.getLogger("muster.service").info(notice)
        return Worker(bus, executor, slots)

    return await run_service("worker", given.name, settings, make)


def main() -> int:
    from muster_bus.process.settings import process_settings

    parser = ArgumentParser(prog="python -m muster_worker", description=SUMMARY)
    add_arguments(parser)
    given = parser.parse_args()
    return run_command(lambda: serve(given, process_settings(os.environ)))


if __name__ == "__main__":
    sys.exit(main())

"""`python -m muster_supervisor`, which is `muster supervisor`: run a supervisor until a signal.

What a supervisor needs is imported when it runs: the command line reads the arguments from here for its help.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from muster_bus.process.arguments import add_name, add_team_file
from muster_bus.process.command import run_command

if TYPE_CHECKING:
    from muster_agent.team.schema import Team
    from muster_bus.connection import Bus
    from muster_bus.process.settings import Settings
    from muster_supervisor.supervisor import Supervisor

SUMMARY = "run a supervisor: it plans requests and answers them"


def add_arguments(parser: ArgumentParser) -> None:
    add_team_file(parser)
    add_name(parser)


async def serve(given: Namespace, settings: "Settings") -> int:
    """Run a supervisor of the team until a signal; returns the exit code."""
    import logging
    from pathlib import Path

    from muster_agent.team.file import load_team
    from muster_agent.team.lookup import find_team_file
    from muster_bus.process.logging import set_up_logging
    from muster_bus.process.service import run_service

    set_up_logging("supervisor", given.name or "", settings.log)  # for a team file that cannot be read
    team = load_team(find_team_file(given.team_file, settings.team_file, Path.cwd()))
    show = logging.getLogger("muster.service").info

    def make(bus: "Bus") -> "Supervisor":
        return make_supervisor(bus, team, settings, show)

    return await run_service("supervisor", given.name, settings, make)


def make_supervisor(bus: "Bus", team: "Team", settings: "Settings", show: Callable[[str], object]) -> "Supervisor":
    """A supervisor with the team's model; `show` gets what a person should know about that model."""
    from functools import partial

    from muster_agent.models.choose import choose_model, provider_of
    from muster_supervisor.supervisor import FromEnvironment, Supervisor

    lead = team.supervisor
    model = choose_model(lead.model, settings.model_env, team.prices, lead.offline_seconds, team.providers)
    if model.notice:
        show(model.notice)
    known = FromEnvironment(
        settings.callback_secret, partial(provider_of, env=settings.model_env, providers=team.providers)
    )
    return Supervisor(bus, team, model, known)


def main() -> int:
    from muster_bus.process.settings import process_settings

    parser = ArgumentParser(prog="python -m muster_supervisor", description=SUMMARY)
    add_arguments(parser)
    given = parser.parse_args()
    return run_command(lambda: serve(given, process_settings(os.environ)))


if __name__ == "__main__":
    sys.exit(main())

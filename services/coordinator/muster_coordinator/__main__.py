"""`python -m muster_coordinator`, which is `muster coordinator`: run a coordinator until a signal.

What a coordinator needs is imported when it runs: the command line reads the arguments from here for its help.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from muster_bus.process.arguments import add_name, port_or_any
from muster_bus.process.command import run_command

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings

SUMMARY = "run a coordinator: it serves the HTTP API and reports work that was done twice"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", help="to listen on; default MUSTER_HTTP_HOST or 127.0.0.1")
    parser.add_argument(
        "--port", type=port_or_any, metavar="N", help="default MUSTER_HTTP_PORT or 8080; 0: any free one"
    )
    add_name(parser)


async def serve(given: Namespace, settings: "Settings") -> int:
    """Run a coordinator until a signal; returns the exit code."""
    from muster_bus.process.service import run_service
    from muster_coordinator.coordinator import Coordinator

    host, port = given.host or settings.http_host, settings.http_port if given.port is None else given.port
    return await run_service("coordinator", given.name, settings, lambda bus: Coordinator(bus, host, port))


def main() -> int:
    from muster_bus.process.settings import process_settings

    parser = ArgumentParser(prog="python -m muster_coordinator", description=SUMMARY)
    add_arguments(parser)
    given = parser.parse_args()
    return run_command(lambda: serve(given, process_settings(os.environ)))


if __name__ == "__main__":
    sys.exit(main())

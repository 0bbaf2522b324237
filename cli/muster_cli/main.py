"""The `muster` command: reads the words and the environment, and runs the command."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, cast

from muster_bus.process.command import run_command
from muster_cli.arguments.parser import COMMANDS, parser

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings

Command = Callable[[Namespace, "Settings"], int | Coroutine[Any, Any, int]]


def main() -> NoReturn:
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Run one command; returns its exit code."""
    given = parser().parse_args(words)
    return run_command(lambda: _start(given))


def _start(given: Namespace) -> int | Coroutine[Any, Any, int]:
    from muster_bus.process.settings import process_settings

    nats_url = getattr(given, "nats_url", None)  # of the commands that talk to a broker
    settings = process_settings({**os.environ, "MUSTER_NATS_URL": nats_url} if nats_url else os.environ)
    module, _, name = COMMANDS[given.command].partition(":")
    command = cast("Command", getattr(import_module(module), name))
    return command(given, settings)

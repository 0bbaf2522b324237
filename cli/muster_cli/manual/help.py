"""`muster help`: what `--help` prints, under the word that people try first."""

from argparse import Namespace
from typing import TYPE_CHECKING

from muster_bus.process.command import Exit
from muster_cli.arguments.parser import parsers

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings


def show_help(given: Namespace, _settings: "Settings") -> int:
    whole, commands = parsers()
    (whole if given.about is None else commands[given.about]).print_help()
    return Exit.DONE

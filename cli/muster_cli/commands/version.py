"""`muster version`: print the version."""

from argparse import Namespace
from typing import TYPE_CHECKING

from muster_bus.process.command import Exit
from muster_bus.process.version import version as version_here
from muster_cli.view.console import say

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings


def version(_given: Namespace, _settings: "Settings") -> int:
    return print_version()


def print_version() -> int:
    say(f"muster {version_here()}")
    return Exit.DONE

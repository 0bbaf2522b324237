"""`muster version`: print the version."""

from argparse import Namespace
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING

from muster_bus.process.command import Exit

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings


def version(_given: Namespace, _settings: "Settings") -> int:
    return print_version()


def print_version() -> int:
    print(f"muster {version_of('muster-cli')}")
    return Exit.DONE

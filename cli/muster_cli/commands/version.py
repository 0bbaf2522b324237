"""Which Muster this is."""

from argparse import Namespace
from importlib.metadata import version as version_of

from muster_cli.exits import Exit


def version(_given: Namespace) -> int:
    print(f"muster {version_of('muster-cli')}")
    return Exit.DONE

"""How a command is added to the parser, and the argument that most commands have."""

import argparse
from collections.abc import Callable

AddParser = Callable[..., argparse.ArgumentParser]


def add_command(add_parser: AddParser, name: str, summary: str) -> argparse.ArgumentParser:
    return add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")


def add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="one JSON document on standard output")

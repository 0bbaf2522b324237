"""The arguments that services share with one another and with the `muster` command.

The standard library only: `muster --help` must be instant.
"""

import argparse


def add_team_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--team-file", metavar="FILE", help="default: MUSTER_TEAM_FILE, else ./team.yaml, else the sample team"
    )


def add_name(parser: argparse.ArgumentParser) -> None:
    text = "of this instance; a worker may have one of those under workers in the team file"
    parser.add_argument("--name", help=f"{text}; default: the host's name and four random digits")


def count(text: str) -> int:
    """A whole number of at least 1, or a usage error."""
    return _whole(text, None, "a whole number of at least 1")


def port(text: str) -> int:
    """A port, or a usage error."""
    return _whole(text, 65_535, "a port from 1 to 65535")


def port_or_any(text: str) -> int:
    """A port, 0 for one that is free, or a usage error."""
    return 0 if text == "0" else port(text)


def _whole(text: str, most: int | None, what: str) -> int:
    if not text.isdecimal() or int(text) < 1 or (most is not None and int(text) > most):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)

"""Where text for people goes: as wide as their terminal, or as wide as our own files when nobody's terminal it is."""

from rich.console import Console

WIDTH = 120


def console(*, is_error: bool = False) -> Console:
    found = Console(stderr=is_error)
    return found if found.is_terminal else Console(stderr=is_error, width=WIDTH)

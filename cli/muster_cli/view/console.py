"""Where text for people goes, as wide as their terminal or our own files; and how they are read."""

import signal
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console

WIDTH = 120


def console(*, is_error: bool = False) -> Console:
    found = Console(stderr=is_error)
    return found if found.is_terminal else Console(stderr=is_error, width=WIDTH)


@contextmanager
def interruptible() -> Generator[None]:
    """While a person is read: Ctrl-C ends the read. A running loop would only take note of it, until the read ends."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

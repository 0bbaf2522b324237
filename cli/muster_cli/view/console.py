"""The terminal: where text for people goes, and what is read from them."""

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console

WIDTH = 120


def console(*, is_error: bool = False) -> Console:
    found = Console(stderr=is_error)
    return found if found.is_terminal else Console(stderr=is_error, width=WIDTH)


def read_standard_input() -> str:
    with interruptible():
        return sys.stdin.read()


@contextmanager
def interruptible() -> Generator[None]:
    """Let Ctrl-C end a read from standard input; the handler of a running event loop would wait until the read ends."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

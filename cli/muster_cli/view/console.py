"""The one way to the terminal: nothing else prints or asks (`tests/architecture/test_printing.py`).

Rich is imported when something is drawn: a command that prints one line must be instant.
"""

import json
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from muster_bus.process.printable import printable_json
from muster_cli.view.plain import clean

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 120
MAX_TYPED = 4096  # bytes of a line: a terminal takes no longer one


def console(*, is_error: bool = False) -> "Console":
    """For everything with colours or columns; whatever is printed on it is harmless."""
    from muster_cli.view.printing.terminal import Terminal

    found = Terminal(is_error=is_error)
    return found if found.is_terminal else Terminal(is_error=is_error, width=WIDTH)


def say(text: str, *, is_error: bool = False) -> None:
    """Bare text."""
    print(clean(text), file=sys.stderr if is_error else sys.stdout)


def say_json(document: object, *, is_indented: bool = False) -> None:
    """A document for programs: what a terminal would obey is escaped, and the document is still the same."""
    text = json.dumps(document, ensure_ascii=False, indent=2 if is_indented else None)
    print("\n".join(map(printable_json, text.split("\n"))))


def is_confirmed(question: str) -> bool:
    """Ask a person at the terminal; without one the answer is no."""
    if not sys.stdin.isatty():
        return False
    with interruptible():
        reply = input(f"{clean(question)} [y/N] ")
    return reply.strip().lower() in ("y", "yes")


def is_interactive() -> bool:
    """Whether a person sits in front of it, who sees what is asked and can reply."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def line_from_terminal(question: str) -> str | None:
    """What a person types in reply; None at the end of the input. The event loop goes on meanwhile."""
    import asyncio
    import os

    print(clean(question), end=" ", file=sys.stderr, flush=True)
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = os.read(sys.stdin.fileno(), MAX_TYPED)  # a terminal gives one line at a time
    return line.decode(errors="replace").strip() if line else None


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

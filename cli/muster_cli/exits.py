"""What the command's exit code says to a program."""

from enum import IntEnum


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    CANCELLED = 4
    NO_BROKER = 5
    INTERRUPTED = 130  # as shells expect after Ctrl-C


def exit_of(status: str) -> Exit:
    """The exit code of an answer's status."""
    return {"done": Exit.DONE, "partial": Exit.PARTIAL, "cancelled": Exit.CANCELLED}.get(status, Exit.FAILED)

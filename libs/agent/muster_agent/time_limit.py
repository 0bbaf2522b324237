"""A limit of processor time for what a stranger's input can make long; a busy machine makes it no shorter."""

import contextlib
import time
from collections.abc import Generator
from contextvars import ContextVar

_ends_at: ContextVar[float] = ContextVar("_ends_at", default=float("inf"))  # by the clock of this thread's own time


class TooSlow(Exception):
    """It takes longer than anybody waits for."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Let what is within take so much time, and no more than is left to whoever has set a limit around it."""
    token = _ends_at.set(min(_ends_at.get(), time.thread_time() + seconds))
    try:
        yield
    finally:
        _ends_at.reset(token)


def look_at_the_time() -> None:
    """Raise if the limit is reached; to be called before every step that takes little time by itself."""
    if time.thread_time() > _ends_at.get():
        raise TooSlow

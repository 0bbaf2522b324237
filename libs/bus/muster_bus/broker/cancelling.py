"""Keeps a cancellation that Python 3.11's `asyncio.wait_for` forgets."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def heeding_cancellation() -> Generator[None]:
    """nats-py waits with `asyncio.wait_for`, which in Python 3.11 forgets a cancellation if the reply came with it."""
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    yield
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError

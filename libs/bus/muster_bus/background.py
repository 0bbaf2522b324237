"""Background tasks whose errors are logged: asyncio keeps the error of a loose task silent until it is collected."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

log = logging.getLogger("muster.bus")

CANCEL_SECONDS = 0.5  # for a task to clean up, before it is cancelled again


def supervised(coroutine: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
    """Run it in the background. The caller keeps the task and cancels it; an error that ends it is logged as a bug."""
    task = asyncio.get_running_loop().create_task(coroutine)
    task.add_done_callback(partial(_ended, what))
    return task


async def end(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks until they have ended: `wait_for` of Python 3.11, which nats-py uses, may forget a cancel."""
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=CANCEL_SECONDS)


@contextmanager
def repeated(action: Callable[[], None], first: float, then: float) -> Generator[None]:
    """Call it after some seconds, and again and again, while the block lasts."""

    async def repeat() -> None:
        await asyncio.sleep(first)
        while True:
            action()
            await asyncio.sleep(then)

    repeating = supervised(repeat(), action.__qualname__)
    try:
        yield
    finally:
        repeating.cancel()


def _ended(what: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s: a background task failed", what, exc_info=error)

"""Background tasks whose errors are logged: asyncio keeps the error of a loose task silent until it is collected."""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

log = logging.getLogger("muster.bus")


def supervised(coroutine: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
    """Run it in the background. The caller keeps the task and cancels it; an error that ends it is logged as a bug."""
    task = asyncio.get_running_loop().create_task(coroutine)
    task.add_done_callback(partial(_ended, what))
    return task


def _ended(what: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s: a background task failed", what, exc_info=error)

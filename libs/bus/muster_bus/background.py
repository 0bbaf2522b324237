"""What goes on beside its owner never ends unseen: a loose task keeps its error to itself until it is collected."""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

log = logging.getLogger("muster.bus")


def supervised(coroutine: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
    """Run it beside the caller, who keeps the task and cancels it; an error that ends it is logged as a bug."""
    task = asyncio.get_running_loop().create_task(coroutine)
    task.add_done_callback(partial(_ended, what))
    return task


def _ended(what: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s broke and goes on no more", what, exc_info=error)

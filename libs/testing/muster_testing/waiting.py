"""Wait for a condition; a wait that takes too long fails the test and names the condition."""

import asyncio
import time
from collections.abc import Awaitable, Callable

LIMIT_SECONDS = 60.0  # for what takes one second on an idle machine: a busy one is no failure


async def until(is_so: Callable[[], bool], what: str, within: float = LIMIT_SECONDS) -> None:
    """Wait until a condition in this process holds."""

    async def ask() -> bool:
        return is_so()

    await until_asked(ask, what, within, every=0.005)


async def until_asked(
    ask: Callable[[], Awaitable[bool]], what: str, within: float = LIMIT_SECONDS, every: float = 0.02
) -> None:
    """Wait until somebody who has to be asked, such as the broker, says that a condition holds."""
    limit = time.monotonic() + within
    while not await ask():
        if time.monotonic() > limit:
            raise AssertionError(f"not within {within:g} s: {what}")
        await asyncio.sleep(every)

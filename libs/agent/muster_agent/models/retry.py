"""Asking a busy provider again, a few times and not for long; what it cannot mend is the supervisor's to retry."""

import asyncio
from collections.abc import Awaitable, Callable

from muster_agent.errors import ModelAway
from muster_agent.models.port import Ask, Model, Reply

TRIES = 3
MAX_WAIT_SECONDS = 20.0  # a provider that wants longer gets the attempt back instead of a held slot
Sleep = Callable[[float], Awaitable[None]]


async def ask_with_retry(model: Model, ask: Ask, sleep: Sleep = asyncio.sleep) -> Reply:
    """The reply, after at most two more tries while the model is away for a short time."""
    for tried in range(1, TRIES):
        try:
            return await model.ask(ask)
        except ModelAway as away:
            wait = away.retry_after_seconds if away.retry_after_seconds is not None else 0.5 * 2**tried
            if wait > MAX_WAIT_SECONDS:
                raise
        await sleep(wait)
    return await model.ask(ask)

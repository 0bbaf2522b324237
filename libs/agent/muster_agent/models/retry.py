"""Retries a call of a busy model a few times; if that does not help, the supervisor retries the whole attempt."""

import asyncio
from collections.abc import Awaitable, Callable

from muster_agent.errors import ModelAway
from muster_agent.models.port import Ask, Model, Reply

TRIES = 3
MAX_WAIT_SECONDS = 20.0  # rather than hold a slot for longer, the attempt fails and is retried later
Sleep = Callable[[float], Awaitable[None]]


async def ask_with_retry(model: Model, ask: Ask, sleep: Sleep = asyncio.sleep) -> Reply:
    """The reply of the model, after at most two retries with a short wait before each."""
    for tried in range(1, TRIES):
        try:
            return await model.ask(ask)
        except ModelAway as away:
            wait = away.retry_after_seconds if away.retry_after_seconds is not None else 0.5 * 2**tried
            if wait > MAX_WAIT_SECONDS:
                raise
        await sleep(wait)
    return await model.ask(ask)

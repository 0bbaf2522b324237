"""Retries a call of a busy model a few times; if that does not help, the supervisor retries the whole attempt."""

import asyncio
from collections.abc import Awaitable, Callable

from muster_agent.errors import ModelAway, RateLimited
from muster_agent.models.port import Ask, Model, Reply
from muster_agent.spans import chat, replied
from muster_bus.tracing import names
from muster_bus.tracing.tracing import Value, current, event

TRIES = 3
MAX_WAIT_SECONDS = 20.0  # rather than hold a slot for longer, the attempt fails and is retried later
Sleep = Callable[[float], Awaitable[None]]


async def ask_with_retry(model: Model, ask: Ask, sleep: Sleep = asyncio.sleep) -> Reply:
    """The reply of the model, after at most two retries with a short wait before each; all of it is one span."""
    with chat(model, ask) as span:
        reply = await _ask(model, ask, sleep)
        replied(span, reply)
        return reply


async def _ask(model: Model, ask: Ask, sleep: Sleep) -> Reply:
    for tried in range(1, TRIES):
        try:
            return await model.ask(ask)
        except ModelAway as away:
            wait = away.retry_after_seconds if away.retry_after_seconds is not None else 0.5 * 2**tried
            if wait > MAX_WAIT_SECONDS:
                raise
            _note_wait(wait, away)
        await sleep(wait)
    return await model.ask(ask)


def _note_wait(seconds: float, away: ModelAway) -> None:
    """An event of the call's span. What the provider wrote is shown only where content is: it may quote the prompt."""
    attributes: dict[str, Value] = {names.SECONDS: seconds}
    if reason := current().shown(str(away)):
        attributes[names.REASON] = reason
    if isinstance(away, RateLimited):
        event(names.RATE_LIMIT, attributes)
    else:
        event(names.RETRY, {**attributes, names.ERROR_TYPE: away.error_class})

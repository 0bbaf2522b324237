"""Stores what somebody says to a request on `control`, and waits for what its owner makes of it.

It is kept as soon as it is stored there. What it became, or why it was refused, the owner writes into the log.
"""

import asyncio
import secrets
from collections.abc import Callable

from muster_bus.connection import Bus
from muster_bus.log import RequestLog
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState
from muster_protocol.messages import Cancel, Decision, Note, ReassignTask, Reply, RetryTask

GIVE_UP_AFTER_SECONDS = 30.0
TAKEN_IN_SECONDS = 5.0  # by an owner that lives; without one what was said is kept
LOOK_SECONDS = 1.0


async def say(bus: Bus, said: Cancel | Note | Reply | RetryTask | ReassignTask) -> int:
    """Store it; returns its place on `control`."""
    origin = bus.origin(said.request_id, nonce=secrets.token_hex(4))
    return (await bus.store(said, origin, give_up_after=GIVE_UP_AFTER_SECONDS)).sequence


async def taken_in(
    known: RequestLog, outcome: Callable[[RequestState], Decision | None], within: float
) -> Decision | None:
    """What the owner made of it; None: nobody has taken it in yet, and it is kept. `outcome` raises what refuses it."""
    try:
        async with asyncio.timeout(within):
            while (found := outcome(known.state)) is None:
                if not await known.changed(LOOK_SECONDS):
                    await known.refresh()
            return found
    except TimeoutError:
        return None


def raise_refused(state: RequestState, sequence: int) -> None:
    """Raise with the reason, if the owner refused the message at this place on `control`."""
    refused = next((one for one in state.refusals if one.control_sequence == sequence), None)
    if refused is not None:
        where, _, reason = refused.reason.partition(": ")
        is_field = bool(reason) and " " not in where
        raise Invalid(reason if is_field else refused.reason, where if is_field else "")

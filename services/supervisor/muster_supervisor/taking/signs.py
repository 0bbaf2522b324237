"""Looks whether others work for a request: then a take without progress of its own was not in vain.

It is asked only when the request would be given up as poison, because it costs a message to every worker.
"""

import asyncio
import secrets
from enum import Enum

from muster_bus.broker.queues import learn_time
from muster_bus.buckets.workers import live_workers
from muster_bus.connection import Bus, Incoming
from muster_bus.receive import open_live
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway, Invalid
from muster_protocol.fold import RequestState, TaskPhase
from muster_protocol.messages import Check, Started
from muster_supervisor.poison import may_be_worked_on, waits_in_queue

SIGN_SECONDS = 2.0  # a worker answers within milliseconds; one whose process hangs longer gives no sign
MAX_ASKED = 500  # attempts; one that runs is sign enough
_STARTED = {Started.kind: Started}


class Signs(Enum):
    """Whether others work for a request."""

    SEEN = "a worker says that it does, or is busy with what stands before it in the queue"
    DOUBTFUL = "there is no sign, and yet others may be at work: a worker may hang, or a stream be full"
    NONE = "there is nothing that others could be at work on"


async def signs_of_work(bus: Bus, state: RequestState, delivery: int) -> Signs:
    """What there is to see of others' work for a request that was taken so often in vain."""
    await learn_time(bus)
    if not may_be_worked_on(state, delivery, bus.clock.now()):
        return Signs.NONE
    is_seen = await _is_queued(bus, state) or await _is_run(bus, state)
    return Signs.SEEN if is_seen else Signs.DOUBTFUL


async def _is_queued(bus: Bus, state: RequestState) -> bool:
    try:
        return waits_in_queue(state, await live_workers(bus), bus.clock.now())
    except BrokerAway:
        return False


async def _is_run(bus: Bus, state: RequestState) -> bool:
    """Whether a worker answers that it runs one of the attempts that the log waits for."""
    reserved = [task for task in state.tasks.values() if task.phase is TaskPhase.RESERVED]
    attempts = tuple((task.spec.id, task.attempts[-1].number) for task in reserved[:MAX_ASKED])
    if not attempts:
        return False
    answered = asyncio.Event()
    check = Check(request_id=state.request_id, attempts=attempts, at=round(bus.clock.now(), 3))

    def listen(message: Incoming) -> None:
        if is_sign(message, check):
            answered.set()

    subscription = await bus.subscribe(subjects.events(state.request_id), listen)
    try:
        async with asyncio.timeout(SIGN_SECONDS):
            origin = bus.origin(state.request_id, nonce=secrets.token_hex(4))
            await bus.store(check, origin, give_up_after=SIGN_SECONDS)
            return await answered.wait()
    except (TimeoutError, BrokerAway):
        return False
    finally:
        await bus.unsubscribe(subscription)


def is_sign(message: Incoming, check: Check) -> bool:
    """Whether a worker says with this event, after it was asked, that it runs one of the attempts."""
    try:
        sender, started = open_live(message, _STARTED)
    except Invalid:
        return False
    return sender.startswith("worker/") and started.attempt_id in check.attempt_ids and started.at >= check.at

"""Tells workers to stop: single attempts, or everything of a request that still runs or waits in the queue."""

import asyncio
import logging
from functools import partial

from muster_bus.broker.queues import delete_task
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import BrokerAway
from muster_protocol.fold import TaskPhase
from muster_protocol.messages import Abort
from muster_supervisor.owner import Owner

log = logging.getLogger("muster.supervisor")

ABORT_SECONDS = 0.5  # a full CONTROL costs workers some useless work; it must not cost the answer


async def abort_attempts(owner: Owner, attempts: tuple[AttemptId, ...], reason: str) -> None:
    """Tell workers to stop these attempts; none named means all of the request."""
    named = tuple((one.task_id, one.attempt) for one in attempts)
    message = Abort(request_id=owner.request_id, attempts=named, reason=reason)
    try:
        await owner.bus.store(message, owner.origin(), give_up_after=ABORT_SECONDS, carrier=owner.log.carrier)
    except BrokerAway as error:
        log.warning("… request %s: the abort for its workers was not stored: %s", owner.request_id, error)


def stop_overtaken(owner: Owner) -> None:
    """Stop, in the background, attempts whose task is done: an earlier one that was given up has succeeded after all.

    Each is told once, and once more when its message is known, which is deleted then.
    """
    for task_id in owner.state.overtaken:
        attempt = owner.state.tasks[task_id].attempts[-1]
        told = (task_id, attempt.number, attempt.task_sequence)
        if told not in owner.told_to_stop:
            owner.told_to_stop.add(told)
            attempt_id = owner.state.attempt_id(task_id, attempt.number)
            owner.in_background(partial(_stop, owner, attempt_id, attempt.task_sequence))


async def _stop(owner: Owner, attempt: AttemptId, task_sequence: int | None) -> None:
    await abort_attempts(owner, (attempt,), "an earlier attempt has succeeded")
    if task_sequence is not None:
        await delete_task(owner.bus, task_sequence)


async def abort_request(owner: Owner, reason: str) -> None:
    """Tell workers to stop the whole request, and delete its tasks that no worker has taken yet."""
    await abort_attempts(owner, (), reason)
    waiting = [
        attempt.task_sequence
        for task in owner.state.tasks.values()
        if task.phase is TaskPhase.RESERVED and (attempt := task.attempts[-1]).task_sequence is not None
    ]
    await asyncio.gather(*(delete_task(owner.bus, sequence) for sequence in waiting))

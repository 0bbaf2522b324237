"""Tells workers to stop: single attempts, or everything of a request that still runs or waits in the queue."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial

from muster_bus.broker.queues import delete_task
from muster_bus.connection import Bus
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import BrokerAway
from muster_protocol.fold import RequestState, TaskPhase
from muster_protocol.messages import Abort
from muster_supervisor.owner import Owner

log = logging.getLogger("muster.supervisor")

DELETED_AT_ONCE = 64
ABORT_SECONDS = 0.5  # a full CONTROL costs workers some useless work; it must not cost the answer


async def abort_attempts(owner: Owner, attempts: tuple[AttemptId, ...], reason: str) -> None:
    """Tell workers to stop these attempts."""
    await _abort(owner.bus, owner.state, attempts, reason, owner.log.carrier)


async def _abort(
    bus: Bus, state: RequestState, attempts: tuple[AttemptId, ...], reason: str, carrier: Mapping[str, str] | None
) -> None:
    named = tuple((one.task_id, one.attempt) for one in attempts)
    message = Abort(request_id=state.request_id, attempts=named, reason=reason)
    origin = bus.origin(state.request_id, term=state.term)
    try:
        await bus.store(message, origin, give_up_after=ABORT_SECONDS, carrier=carrier)
    except BrokerAway as error:
        log.warning("… request %s: the abort for its workers was not stored: %s", state.request_id, error)


def stop_overtaken(owner: Owner) -> None:
    """Stop, in the background, attempts for which nobody waits any more.

    An earlier one that was given up has succeeded after all, or a person gave the task to somebody else. Each is told
    once, and once more when its message is known, which is deleted then.
    """
    state = owner.state
    for task_id in state.overtaken:
        newest = state.attempt_id(task_id, len(state.tasks[task_id].attempts))
        _stop_once(owner, newest, "an earlier attempt has succeeded")
    for task_id, number in state.withdrawn:
        _stop_once(owner, state.attempt_id(task_id, number), "a person gave the task to somebody else")


def _stop_once(owner: Owner, attempt_id: AttemptId, reason: str) -> None:
    sequence = owner.state.tasks[attempt_id.task_id].attempts[attempt_id.attempt - 1].task_sequence
    told = (attempt_id.task_id, attempt_id.attempt, sequence)
    if told not in owner.told_to_stop:
        owner.told_to_stop.add(told)
        owner.in_background(partial(stop, owner, attempt_id, sequence, reason))


async def stop(owner: Owner, attempt: AttemptId, task_sequence: int | None, reason: str) -> None:
    """Tell the worker of an attempt to stop, and delete its message: nobody waits for it."""
    await abort_attempts(owner, (attempt,), reason)
    if task_sequence is not None:
        await delete_task(owner.bus, task_sequence)


async def abort_request(
    bus: Bus, state: RequestState, reason: str, carrier: Mapping[str, str] | None, unnoted: Sequence[int] = ()
) -> None:
    """Tell workers to stop the whole request, and delete its tasks that no worker has taken yet.

    `unnoted` are messages that only their owner knows.
    """
    reserved = [task.attempts[-1] for task in state.tasks.values() if task.phase is TaskPhase.RESERVED]
    if not reserved:
        return
    await _abort(bus, state, (), reason, carrier)
    noted = [attempt.task_sequence for attempt in reserved if attempt.task_sequence is not None]
    await delete_tasks(bus, [*noted, *unnoted])


async def delete_tasks(bus: Bus, sequences: Sequence[int]) -> None:
    """Delete task messages for which nobody waits, a few at a time: a request may have ten thousand."""
    for start in range(0, len(sequences), DELETED_AT_ONCE):
        chunk = sequences[start : start + DELETED_AT_ONCE]
        await asyncio.gather(*(delete_task(bus, sequence) for sequence in chunk))

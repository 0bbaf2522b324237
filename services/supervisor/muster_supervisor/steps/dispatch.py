"""Gives ready tasks to workers: reserve in the log, publish what the fold confirms, record where it is stored."""

import asyncio
import logging
from collections.abc import Collection, Coroutine
from functools import partial

from muster_bus.publish import Outgoing, Stored
from muster_protocol.errors import Invalid, Retryable, Terminal
from muster_protocol.fold import Attempt, TaskState, context_of, last_moment
from muster_protocol.messages import Dispatch, Dispatched, Failure, Reserved, Task
from muster_protocol.retry import is_resumed
from muster_supervisor.choosing.among import functions, with_role
from muster_supervisor.decide import DispatchTasks
from muster_supervisor.owner import Owner, Placed
from muster_supervisor.spans import publish_span
from muster_supervisor.steps.expire import fail_attempt

log = logging.getLogger("muster.supervisor")

NOTED_AFTER_SECONDS = 0.1  # a task that is done by then needs no note (decision 53)
CHECK_SECONDS = 0.25  # how often a write that waits for room checks that the request is still ours
LARGE_RETRY_SECONDS = 1.0  # before a large message is tried again that the object store did not take


async def dispatch(owner: Owner, step: DispatchTasks) -> None:
    """Reserve the attempts, then publish those that the fold gives us."""
    if owner.is_workflow_new:
        owner.is_workflow_new = False
        await owner.bus.tracing.exported()  # what hangs under a span that nobody has would be an orphan
    there = (reservation for reservation in step.attempts if reservation.task_id in owner.state.tasks)
    chosen = (with_role(owner, reservation) for reservation in there)
    attempts = tuple(reservation for reservation in chosen if reservation is not None)
    if not attempts:
        return  # the one before took the only probe, or they left the plan
    sequence = await owner.append(Reserved(attempts=attempts))
    owner.check()
    tasks = owner.state.tasks  # by now without those that were dropped meanwhile
    reserved = [(tasks[r.task_id], r.attempt) for r in attempts if r.task_id in tasks]
    ours = [
        (task, task.attempts[-1])
        for task, number in reserved
        if len(task.attempts) == number and task.attempts[-1].reserved_sequence == sequence
    ]
    owner.in_background(lambda: publish(owner, ours))  # a full TASKS delays these tasks only


async def publish(owner: Owner, attempts: list[tuple[TaskState, Attempt]]) -> None:
    """Store the task messages; in the background, so that the loop goes on. Where they are is noted later."""
    names = {task.spec.id for task, _ in attempts}
    owner.publishing |= names
    try:
        outgoing = await _all_outgoing(owner, attempts)
        stored = await _while_ours(owner, _stored(owner, outgoing))
    finally:
        owner.publishing -= names
        owner.log.wake()
    places = zip(outgoing, stored, strict=True)
    kept = [Placed(task.spec.id, attempt.number, at.sequence) for (task, attempt, _), at in places if at is not None]
    if kept:
        owner.unnoted.append((owner.now() + NOTED_AFTER_SECONDS, kept))


async def _stored(owner: Owner, outgoing: list[tuple[TaskState, Attempt, Outgoing]]) -> list[Stored | None]:
    """Store all at once; if the broker refuses one for good, each by itself, so that only its own attempt fails."""
    messages = [message for _, _, message in outgoing]
    if not messages:
        return []
    try:
        chosen = partial(_chosen, outgoing)
        with publish_span(owner, messages, chosen):
            return list(await owner.bus.store_all(messages))
    except Terminal as reason:
        log.warning("… request %s: the broker refuses one of %d tasks: %s", owner.request_id, len(outgoing), reason)
    stored: list[Stored | None] = []  # the broker drops those that are stored already: they have the same message id
    for task, attempt, message in outgoing:
        try:
            stored += await owner.bus.store_all([message])
        except Terminal as reason:
            failure = Failure.model_validate({"class": "resource", "message": str(reason), "is_final": True})
            await fail_attempt(owner, owner.state.attempt_id(task.spec.id, attempt.number), failure)
            stored.append(None)
    return stored


def _chosen(outgoing: list[tuple[TaskState, Attempt, Outgoing]]) -> list[str]:
    """Which role was chosen for which task, and why."""
    return [f"{task.spec.id}: {one.role}: {one.why}" for task, one, _ in outgoing if one.role is not None]


async def _while_ours(owner: Owner, storing: Coroutine[None, None, list[Stored | None]]) -> list[Stored | None]:
    """Wait for a write, but no longer than the request is ours: a full TASKS may delay it past that."""
    task = asyncio.get_running_loop().create_task(storing)
    try:
        while not (await asyncio.wait([task], timeout=CHECK_SECONDS))[0]:
            owner.check()
        return task.result()
    finally:
        task.cancel()


async def publish_again(owner: Owner) -> None:
    """Publish what an earlier owner reserved and did not record; the broker drops what was stored after all."""
    tasks = [owner.state.tasks[task_id] for task_id in owner.state.dispatch_unconfirmed]
    await publish(owner, [(task, task.attempts[-1]) for task in tasks])


def note_stored(owner: Owner) -> None:
    """Record where the messages are of attempts that last, once that is due: of the others nobody looks for them."""
    due: list[Placed] = []
    while owner.unnoted and owner.unnoted[0][0] <= owner.now():
        due += owner.unnoted.popleft()[1]
    notes = tuple(
        Dispatch(task_id=one.task_id, attempt=one.attempt, sequence=one.sequence) for one in owner.open_of(due)
    )
    if notes:
        owner.in_background(partial(_record, owner, Dispatched(attempts=notes)))


async def _record(owner: Owner, dispatched: Dispatched) -> None:
    await owner.append(dispatched)


async def _all_outgoing(
    owner: Owner, attempts: list[tuple[TaskState, Attempt]]
) -> list[tuple[TaskState, Attempt, Outgoing]]:
    """The messages of these attempts; one whose message is too large to be sent has failed."""
    found: list[tuple[TaskState, Attempt, Outgoing]] = []
    plain, origin = functions(owner.resources.team), owner.bus.origin(owner.request_id)
    for task, attempt in attempts:
        if attempt.result is not None or task.success is not None:
            continue
        try:
            message = _task(owner, task, attempt, plain)
            # Its parent is the workflow span, which outlives whoever publishes.
            found.append((task, attempt, await owner.bus.outgoing(message, origin, owner.log.carrier)))
        except Retryable as reason:  # a full object store delays the large message, not the others
            log.warning("… task    %s/%s: its message is not stored yet: %s", owner.request_id, task.spec.id, reason)
            owner.in_background(partial(_publish_later, owner, task, attempt))
        except Invalid as reason:
            failure = Failure.model_validate({"class": "resource", "message": str(reason), "is_final": True})
            await fail_attempt(owner, owner.state.attempt_id(task.spec.id, attempt.number), failure)
    return found


async def _publish_later(owner: Owner, task: TaskState, attempt: Attempt) -> None:
    owner.publishing.add(task.spec.id)
    await asyncio.sleep(LARGE_RETRY_SECONDS)
    owner.check()
    await publish(owner, [(task, attempt)])


def _task(owner: Owner, task: TaskState, attempt: Attempt, plain: Collection[str]) -> Task:
    assert task.spec.tag is not None, "the planner routes every task to a tag"
    tag = attempt.role or task.spec.tag
    return Task(
        request_id=owner.request_id,
        task_id=task.spec.id,
        attempt=attempt.number,
        tag=tag,
        worker=task.spec.worker,
        team=owner.resources.team.team,
        priority=owner.lane,
        # another role may have failed before, and a model described the task better for it; a function sees its own
        description=task.spec.description if tag in plain else task.description,
        expected_output=task.spec.expected_output,
        inputs=task.spec.inputs,
        context=context_of(owner.state, task),
        model=attempt.model or task.spec.model,
        resumes=attempt.number > 1 and is_resumed(_failure_before(task, attempt)),
        notes=tuple([note.reason for note in owner.state.notes]),
        timeout_seconds=attempt.timeout_seconds,
        deadline=attempt.deadline,
        work_ends=last_moment(owner.state),
        tokens=attempt.tokens,
        usd=attempt.usd,
        reserved_at=attempt.reserved_at,
        reserved_sequence=attempt.reserved_sequence,
    )


def _failure_before(task: TaskState, attempt: Attempt) -> Failure | None:
    before = task.attempts[attempt.number - 2].result
    return None if before is None else before.error

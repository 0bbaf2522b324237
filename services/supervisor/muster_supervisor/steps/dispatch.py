"""Attempts and retries, carried out: reserve first, publish what the fold confirms, note where it is stored."""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial

from muster_agent.models.port import Ask, RefineBrief, require_complete
from muster_agent.models.retry import ask_with_retry
from muster_bus import telemetry
from muster_bus.publish import Outgoing, Stored
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway, Invalid, Retryable, Terminal
from muster_protocol.fold import Attempt, TaskState
from muster_protocol.messages import (
    Abort,
    Dispatch,
    Dispatched,
    Failure,
    Reserved,
    Result,
    ResultStatus,
    Revision,
    Task,
    Usage,
)
from muster_supervisor.decide import DispatchTasks, Expire, Refine, timed_out
from muster_supervisor.owner import Owner

log = logging.getLogger("muster.supervisor")

REFINE_SECONDS = 30.0
LOOK_SECONDS = 0.25  # whether what is being stored is still ours
LARGE_AGAIN_SECONDS = 1.0  # until a large message is tried again that the object store did not take
ABORT_SECONDS = 0.5  # a full CONTROL costs workers some work in vain; it must not cost the answer


async def dispatch(owner: Owner, step: DispatchTasks) -> None:
    """Reserve the attempts, then publish those that the log gives us."""
    first = step.attempts[0]
    message_id = f"{owner.request_id}.reserved.{owner.term}.{first.task_id}.{first.attempt}"
    sequence = await owner.append(Reserved(attempts=step.attempts), message_id)
    owner.check()
    reserved = [(owner.state.tasks[r.task_id], r.attempt) for r in step.attempts]
    ours = [
        (task, task.attempts[-1])
        for task, number in reserved
        if len(task.attempts) == number and task.attempts[-1].reserved_sequence == sequence
    ]
    owner.in_background(lambda: publish(owner, ours))  # what finds no room holds up its own tasks only


async def publish(owner: Owner, attempts: list[tuple[TaskState, Attempt]]) -> None:
    """Store the task messages, then note where they are; beside the loop, which goes on with what is due."""
    names = {task.spec.id for task, _ in attempts}
    owner.publishing |= names
    try:
        outgoing = await _all_outgoing(owner, attempts)
        stored = await _while_ours(owner, _stored(owner, outgoing))
    finally:
        owner.publishing -= names
        owner.log.wake()
    notes = tuple(
        Dispatch(task_id=task.spec.id, attempt=attempt.number, sequence=where.sequence)
        for (task, attempt, _), where in zip(outgoing, stored, strict=True)
        if where is not None
    )
    if not notes:
        return
    message_id = f"{owner.request_id}.dispatched.{owner.term}.{notes[0].task_id}.{notes[0].attempt}"
    await _note(owner, Dispatched(attempts=notes), message_id)


async def _stored(owner: Owner, outgoing: list[tuple[TaskState, Attempt, Outgoing]]) -> list[Stored | None]:
    """All at once; when one is refused for good, each by itself: its attempt has failed, its neighbours go on."""
    try:
        return list(await owner.bus.store_all([message for _, _, message in outgoing]))
    except Terminal as reason:
        log.warning("… request %s  a task is refused: %s", owner.request_id, reason)
    stored: list[Stored | None] = []  # again: the message ids swallow those that are there
    for task, attempt, message in outgoing:
        try:
            stored += await owner.bus.store_all([message])
        except Terminal as reason:
            failure = Failure.model_validate({"class": "resource", "message": str(reason), "is_final": True})
            await _fail(owner, task.spec.id, attempt.number, failure)
            stored.append(None)
    return stored


async def _while_ours(owner: Owner, storing: Coroutine[None, None, list[Stored | None]]) -> list[Stored | None]:
    """A full TASKS may hold this up for longer than the request is ours."""
    task = asyncio.get_running_loop().create_task(storing)
    try:
        while not (await asyncio.wait([task], timeout=LOOK_SECONDS))[0]:
            owner.check()
        return task.result()
    finally:
        task.cancel()


async def publish_again(owner: Owner) -> None:
    """What an earlier owner reserved and did not note: its message id swallows what was stored after all."""
    tasks = [owner.state.tasks[task_id] for task_id in owner.state.dispatch_unconfirmed]
    await publish(owner, [(task, task.attempts[-1]) for task in tasks])


async def _note(owner: Owner, dispatched: Dispatched, message_id: str) -> None:
    """Worth writing only while somebody might have to find or delete one of these messages."""
    attempts = (owner.state.tasks[note.task_id].attempts[note.attempt - 1] for note in dispatched.attempts)
    if any(attempt.result is None for attempt in attempts):
        await owner.append(dispatched, message_id)


async def _all_outgoing(
    owner: Owner, attempts: list[tuple[TaskState, Attempt]]
) -> list[tuple[TaskState, Attempt, Outgoing]]:
    """Their messages; an attempt whose message cannot travel, such as a reduce over too much, has failed."""
    found: list[tuple[TaskState, Attempt, Outgoing]] = []
    for task, attempt in attempts:
        if attempt.result is not None:
            continue
        try:
            found.append((task, attempt, await _outgoing(owner, task, attempt)))
        except Retryable as reason:  # a full object store holds up the one that is large, not its neighbours
            log.warning("… request %s  %s is not stored yet: %s", owner.request_id, task.spec.id, reason)
            owner.in_background(partial(_publish_later, owner, task, attempt))
        except Invalid as reason:
            failure = Failure.model_validate({"class": "resource", "message": str(reason), "is_final": True})
            await _fail(owner, task.spec.id, attempt.number, failure)
    return found


async def _publish_later(owner: Owner, task: TaskState, attempt: Attempt) -> None:
    owner.publishing.add(task.spec.id)
    await asyncio.sleep(LARGE_AGAIN_SECONDS)
    owner.check()
    await publish(owner, [(task, attempt)])


async def _outgoing(owner: Owner, task: TaskState, attempt: Attempt) -> Outgoing:
    message = _task(owner, task, attempt)
    subject = subjects.tasks(message.tag)
    if not telemetry.is_recording():
        return await _prepared(owner, subject, message)
    attributes = telemetry.attributes_of("publish", subject, "tasks.{tag}", owner.request_id)
    with telemetry.span("publish tasks.{tag}", telemetry.SpanKind.PRODUCER, attributes):
        return await _prepared(owner, subject, message)


async def _prepared(owner: Owner, subject: str, message: Task) -> Outgoing:
    return await owner.bus.outgoing(
        subject, message, request_id=owner.request_id, message_id=message.message_id, carrier=owner.log.carrier
    )


def _task(owner: Owner, task: TaskState, attempt: Attempt) -> Task:
    assert task.spec.tag is not None, "the planner routes every task to a tag"
    results = owner.state.tasks
    return Task(
        request_id=owner.request_id,
        task_id=task.spec.id,
        attempt=attempt.number,
        tag=task.spec.tag,
        team=owner.resources.team.team,
        description=task.description,
        expected_output=task.spec.expected_output,
        context={
            dependency: done.output
            for dependency in task.spec.dependencies
            if (done := results[dependency].result) is not None
        },
        model=task.spec.model,
        timeout_seconds=attempt.timeout_seconds,
        deadline=attempt.deadline,
        tokens=attempt.tokens,
        usd=attempt.usd,
        reserved_at=attempt.reserved_at,
        reserved_sequence=attempt.reserved_sequence,
    )


async def refine(owner: Owner, step: Refine) -> None:
    """Let the model see the error and say the task better; without it the description stays."""
    task = owner.state.tasks[step.task_id]
    description, usage = task.spec.description, Usage()
    try:
        async with asyncio.timeout(min(REFINE_SECONDS, owner.seconds_left())), owner.resources.model_slots:
            brief = RefineBrief(description, task.reason or "")
            reply = await ask_with_retry(owner.resources.model, Ask(brief))
            usage = reply.usage
            description = require_complete(reply).text or description
    except Exception as error:  # noqa: BLE001 - whatever a model raises, the task is tried again
        log.warning("… task    %s/%s  keeps its description: %r", owner.request_id, step.task_id, error)
    revision = Revision(
        task_id=step.task_id,
        attempt=step.attempt,
        description=description,
        not_before=step.not_before,
        reason=task.reason or "",
        usage=usage,
    )
    await owner.append(revision, f"{owner.request_id}.revision.{owner.term}.{step.task_id}.{step.attempt}")


async def expire(owner: Owner, step: Expire) -> None:
    """Record that an attempt gave no result, and tell its worker to stop."""
    attempt = owner.state.tasks[step.task_id].attempts[step.attempt - 1]
    if attempt.result is not None:
        return  # it came while an earlier step was carried out
    failure = timed_out(step.task_id, attempt.timeout_seconds)
    await _fail(owner, step.task_id, step.attempt, failure, attempt.timeout_seconds)
    owner.in_background(lambda: abort(owner, ((step.task_id, step.attempt),), "its timeout was reached"))


async def _fail(owner: Owner, task_id: str, attempt: int, failure: Failure, seconds: float = 0.0) -> None:
    """Record as its owner that an attempt failed."""
    result = Result(
        request_id=owner.request_id,
        task_id=task_id,
        attempt=attempt,
        status=ResultStatus.FAILED,
        error=failure,
        worker="",  # none reported it
        role=owner.state.tasks[task_id].spec.tag or "",
        seconds=seconds,
    )
    # With the term: the same words of an earlier term of ours do not count, and must not swallow these.
    await owner.append(result, f"{result.message_id}.{owner.term}")


async def abort(owner: Owner, attempts: tuple[tuple[str, int], ...], reason: str) -> None:
    """Tell workers to stop these attempts, or all of the request."""
    message = Abort(request_id=owner.request_id, attempts=attempts, reason=reason)
    which = "-".join(f"{task}.{number}" for task, number in attempts) or "all"
    subject = subjects.control(owner.request_id)
    message_id = f"{owner.request_id}.abort.{owner.term}.{which}"
    try:
        await owner.bus.store(
            subject,
            message,
            request_id=owner.request_id,
            message_id=message_id,
            give_up_after=ABORT_SECONDS,
            carrier=owner.log.carrier,
        )
    except BrokerAway as error:
        log.warning("… request %s  workers were not told to stop: %s", owner.request_id, error)

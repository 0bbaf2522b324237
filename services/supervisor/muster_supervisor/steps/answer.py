"""The answer, written: stop what still runs, compose, and compare-and-set it at the end of the log."""

import asyncio
import logging
from dataclasses import replace

from muster_bus import telemetry
from muster_bus.topology import delete_message
from muster_protocol.errors import Invalid, Retryable
from muster_protocol.fold import TaskStatus
from muster_protocol.messages import Answer, AnswerStatus
from muster_supervisor.composing.compose import Draft, compose, cut, gaps, merge
from muster_supervisor.decide import GiveAnswer, status_of
from muster_supervisor.owner import Owner
from muster_supervisor.steps.dispatch import abort

log = logging.getLogger("muster.supervisor")

WRITE_SECONDS = 0.5  # kept back from composing to write the answer
AGAIN_SECONDS = 0.1
MAX_GAPS, MAX_REASON = 1000, 200  # what is left of the reasons in an answer that was too long; the log has them all


async def give_answer(owner: Owner, step: GiveAnswer) -> None:
    """Exactly one answer: if entries came meanwhile, correct the table, and compose again at most once."""
    if owner.state.plan_entry is None and owner.planning_error:
        step = replace(step, reason=f"{step.reason}; {owner.planning_error}")
    if owner.state.in_flight:
        owner.in_background(lambda: _stop_the_rest(owner, step.reason or "the request is answered"))
    draft = await _compose(owner, step)
    has_composed_again = False
    await owner.finish_background()
    while owner.state.answer is None:
        answer = _final(owner, step, draft)
        try:
            is_written = await owner.compare_and_set(answer)
        except (Invalid, Retryable) as reason:
            if isinstance(reason, Retryable) and owner.now() < owner.deadline - WRITE_SECONDS:
                await asyncio.sleep(AGAIN_SECONDS)  # a large body was not taken yet
                continue
            if draft.is_cut:
                raise
            draft = cut(draft, str(reason))
            continue
        if is_written:
            log.info("✓ answer  %s  %s  %.2f s", owner.request_id, answer.status, answer.seconds)
            await owner.finish_background()
            return
        has_more = bool(merge(owner.state, step.reason).made_of - draft.made_of)
        if has_more and not has_composed_again and owner.now() < owner.deadline - WRITE_SECONDS:
            has_composed_again = True
            draft = await _compose(owner, step)


async def _compose(owner: Owner, step: GiveAnswer) -> Draft:
    """With the model if there is one and time for it; the plain merge is always possible."""
    seconds = owner.deadline - owner.now() - WRITE_SECONDS
    with telemetry.span("compose", telemetry.SpanKind.INTERNAL, {"muster.request": owner.request_id}):
        plain = merge(owner.state, step.reason)
        if seconds <= 0 or step.is_plain or len(plain.made_of) < 2:
            return plain  # nothing to unite: it waits for nobody who thinks
        try:
            async with asyncio.timeout(seconds), owner.resources.model_slots:
                return await compose(owner.state, owner.resources.model, step.reason)
        except Exception as error:  # noqa: BLE001 - whatever a model raises, finished work is not thrown away
            log.warning("… answer  %s  composed without the model: %r", owner.request_id, error)
            return merge(owner.state, step.reason)


def _final(owner: Owner, step: GiveAnswer, draft: Draft) -> Answer:
    state = owner.state
    outcomes = state.outcomes()
    done = sum(outcome.status == "done" for outcome in outcomes)
    missing = gaps(state)
    if draft.is_cut:
        missing = tuple(gap[:MAX_REASON] for gap in missing[:MAX_GAPS])
        outcomes = tuple(row.model_copy(update={"reason": row.reason and row.reason[:MAX_REASON]}) for row in outcomes)
    return Answer(
        request_id=owner.request_id,
        status=step.status if step.status is AnswerStatus.CANCELLED else status_of(state),
        text=draft.text if state.plan_entry is not None else step.reason,
        output=draft.output,
        tasks=outcomes,
        gaps=(step.reason, *missing) if step.reason else missing,
        confidence=round(done / len(outcomes), 3) if outcomes else None,
        usage=state.usage + draft.usage + owner.spent,
        seconds=round(owner.now() - owner.delivery.time, 3),
        sequential_seconds=round(sum(outcome.seconds for outcome in outcomes), 3),
        trace_id=telemetry.current_trace_id(owner.delivery.headers, owner.request_id),
        model=owner.resources.model.name,
        request_hash=owner.request_hash,
    )


async def _stop_the_rest(owner: Owner, reason: str) -> None:
    """Tell workers to stop, and take what still waits out of the queue; no answer waits for that."""
    await abort(owner, (), reason)
    waiting = [
        attempt.task_sequence
        for task in owner.state.tasks.values()
        if task.status is TaskStatus.RUNNING and (attempt := task.attempts[-1]).task_sequence is not None
    ]
    await asyncio.gather(*(delete_message(owner.bus, "TASKS", sequence) for sequence in waiting))

"""Writes the one answer of a request. Every answer is written here, also that of a request which is refused.

The answer is compare-and-set at the end of the log: it is based on everything that was written before it.
"""

import asyncio
import logging
from dataclasses import replace

from muster_agent.models.port import Model
from muster_bus.background import supervised
from muster_bus.buckets.conflicts import count_of_request
from muster_bus.lease import Delivery
from muster_bus.log import RequestLog
from muster_bus.tracing import names
from muster_bus.tracing.tracing import error_type
from muster_protocol import headers as h
from muster_protocol.errors import Invalid, Retryable
from muster_protocol.fold import RequestState, is_complete
from muster_protocol.messages import COMPOSE, Answer, AnswerStatus
from muster_supervisor.abort import abort_request
from muster_supervisor.calling.callbacks import Callbacks
from muster_supervisor.composing.check import check, look_for
from muster_supervisor.composing.compose import compose, needs_model
from muster_supervisor.composing.final import Circumstances, final_answer
from muster_supervisor.composing.fit import fitted
from muster_supervisor.composing.merge import Draft, chosen, completed, cut, merge
from muster_supervisor.decide import GiveAnswer
from muster_supervisor.owner import Owner
from muster_supervisor.spans import export_workflow, is_workflow_exported, step_span
from muster_supervisor.spending import paying
from muster_supervisor.steps.lost import forget_turns
from muster_supervisor.steps.wanted import Unwanted, while_wanted
from muster_supervisor.taking.answered import acknowledge
from muster_supervisor.taking.disposition import Disposition, Held, classify

log = logging.getLogger("muster.supervisor")

WRITE_SECONDS = 0.5  # kept back from composing to write the answer
COUNT_SECONDS = 0.2  # for the number of conflicts; it is read while the answer is composed
CHECK_SECONDS = 2.0  # for what is done by now, where the request itself is refused
RETRY_SECONDS = 0.1  # before a large answer is tried again that the object store did not take


async def give_answer(owner: Owner, step: GiveAnswer) -> None:
    """Stop what still runs, compose, and write; after a lost write try again, and compose again at most once."""
    if owner.state.plan_entry is None and owner.planning_error:
        step = replace(step, reason=f"{step.reason}; {owner.planning_error}")
    if owner.state.in_flight:
        why = step.reason or "the request is answered"
        unnoted = owner.unnoted_messages()
        owner.in_background(lambda: abort_request(owner.bus, owner.state, why, owner.log.carrier, unnoted))
    counting = supervised(_count_conflicts(owner), "counting the conflicts of a request")
    draft = await _compose(owner, step)
    has_composed_again = False
    await owner.finish_background()
    await asyncio.wait([counting])
    while owner.state.answer is None:
        if _is_outdated(owner.state, step):
            return
        made_of = chosen(owner.state, draft.selected).keys()
        if made_of - draft.made_of and not has_composed_again and owner.now() < owner.deadline - WRITE_SECONDS:
            has_composed_again = True
            draft = await _compose(owner, step)
            continue
        draft = _fitted(draft if made_of == draft.made_of else completed(draft, owner.state, step.reason), owner.state)
        draft = await check(draft, owner.state, owner.deadline - owner.now() - WRITE_SECONDS)
        answer = _final(owner, step, draft)
        try:
            is_written = await owner.compare_and_set(answer)
        except (Invalid, Retryable) as reason:
            if isinstance(reason, Retryable) and owner.now() < owner.deadline - WRITE_SECONDS:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if draft.is_cut:
                raise
            draft = cut(draft, str(reason))
            continue
        if is_written and owner.state.answer is not None:  # else its bytes changed on the wire, and nobody can read it
            owner.has_answered = True
            _log_written(answer)
            owner.in_background(lambda: forget_turns(owner))
            await owner.finish_background()


def _is_outdated(state: RequestState, step: GiveAnswer) -> bool:
    """Whether something else is to be done by now."""
    if state.cancelled is not None and step.status is not AnswerStatus.CANCELLED:
        return True  # somebody will not wait for it
    # A success came late, or a person wants more tries: what was skipped is to be done now.
    return not step.reason and state.plan_entry is not None and not is_complete(state)


async def refuse(owner: Owner, reason: str, cause: str) -> None:
    """Report a request that cannot be carried out, and answer it without the model, which may be what fails."""
    await owner.bus.report(reason, owner.delivery, request_id=owner.request_id)
    await give_answer(owner, GiveAnswer(AnswerStatus.FAILED, reason, is_plain=True, cause=cause))


async def refuse_unread(
    callbacks: Callbacks, delivery: Delivery, reason: Invalid
) -> tuple[Disposition, RequestState] | None:
    """Answer a delivery that holds no usable request, so that nobody can own it, by its log. The reason was reported.

    Returns what the delivery is and its log, if somebody else has answered it or has the request; None: it is settled.
    """
    bus = callbacks.bus
    request_id = h.request_id_of(delivery.headers, delivery.sequence, delivery.data)
    held = Held.of(delivery)
    trace = bus.tracing.request(request_id, delivery.headers)
    known = RequestLog(bus, request_id, trace.carrier)
    await known.refresh(from_leader=True)
    has_workflow = is_workflow_exported(known.state)
    around = Circumstances(bus.clock.now() - delivery.time, trace.trace_id, held.request_hash)
    is_cut = False
    while (found := await classify(bus, known.state, held)) is Disposition.OURS:  # again after a lost write
        draft = merge(known.state, str(reason))
        draft = await check(cut(draft, str(reason)) if is_cut else draft, known.state, CHECK_SECONDS)
        answer = _refusal(known.state, reason, around, draft)
        try:
            is_written = await known.compare_and_set(answer, term=known.state.term)
        except Invalid:
            if is_cut:
                raise
            is_cut = True
            continue
        if is_written and known.state.answer is not None:  # as above
            _log_written(answer)
            await abort_request(bus, known.state, str(reason), trace.carrier)
            if not has_workflow:
                export_workflow(bus, delivery, trace, known.state)
            await acknowledge(callbacks, delivery, known.state)
            return None
    return found, known.state


def _refusal(state: RequestState, invalid: Invalid, around: Circumstances, draft: Draft) -> Answer:
    """What is done by now, merged, and why there will not be more."""
    status = AnswerStatus.CANCELLED if state.cancelled is not None else AnswerStatus.FAILED
    reason = str(invalid)
    answer = final_answer(state, GiveAnswer(status, reason, cause=error_type(invalid)), draft, around)
    if state.plan_entry is not None:
        return answer
    return answer.model_copy(update={"text": f"The request is invalid. {reason}"})


async def _compose(owner: Owner, step: GiveAnswer) -> Draft:
    """The text, with the model if it is needed and there is time; otherwise the plain merge."""
    seconds = owner.deadline - owner.now() - WRITE_SECONDS
    with step_span(owner, names.COMPOSE):
        model = paying(owner, COMPOSE)
        plain = replace(merge(owner.state, step.reason), usage=model.usage)
        if seconds <= 0 or step.is_plain or not model.is_llm or not needs_model(owner.state, plain):
            return plain  # nothing for a model to do: no slot is waited for
        try:
            async with asyncio.timeout(seconds):
                composed = await while_wanted(owner, _composed(owner, model, step.reason, seconds))
            return replace(composed, usage=model.usage)
        except Unwanted:
            return replace(plain, usage=model.usage)
        except Exception as error:  # noqa: BLE001 - whatever a model raises, finished results are not lost
            log.warning("… answer  %s: composed without the model, which failed: %r", owner.request_id, error)
            return replace(merge(owner.state, step.reason), usage=model.usage)


async def _composed(owner: Owner, model: Model, reason: str, seconds: float) -> Draft:
    async with owner.model_slot():
        findings = await look_for(owner.state, seconds)
        return await compose(owner.state, model, reason, findings)


def _fitted(draft: Draft, state: RequestState) -> Draft:
    schema = state.plan_entry.answer_schema if state.plan_entry is not None else None
    return draft if schema is None else fitted(draft, schema)


async def _count_conflicts(owner: Owner) -> None:
    """How many are listed by now; a broker that does not answer at once must not delay the answer.

    Read only if there may be one: somebody wrote a record while we had the request, or another owner had it before.
    """
    if not owner.may_have_conflicts and owner.delivery.number == 1:
        return
    within = min(COUNT_SECONDS, owner.deadline - owner.now() - WRITE_SECONDS)
    owner.conflicts = await count_of_request(owner.bus, owner.request_id, within) if within > 0 else 0


def _final(owner: Owner, step: GiveAnswer, draft: Draft) -> Answer:
    around = Circumstances(
        seconds=owner.now() - owner.delivery.time,
        trace_id=owner.trace.trace_id,
        request_hash=owner.request_hash,
        model=owner.resources.model.name,
        spent=owner.spent,
        conflicts=owner.conflicts,
    )
    return final_answer(owner.state, step, draft, around)


def _log_written(answer: Answer) -> None:
    fields, said = {"status": answer.status.value}, (answer.request_id, answer.status, answer.seconds)
    if answer.status in (AnswerStatus.FAILED, AnswerStatus.PARTIAL):
        reason = next(iter(answer.gaps), "no task finished")
        log.warning("✗ answer  %s  %s  %.2f s: %s", *said, reason, extra=fields)
    else:
        log.info("✓ answer  %s  %s  %.2f s", *said, extra=fields)

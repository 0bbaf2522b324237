"""The spans of a request as its owner writes them: the workflow span once, everything else directly under it.

The workflow span is exported when the request is first taken, before anything can hang under it. Its ids are computed
from the request's id, so that a supervisor that takes over goes on under the same span. What is known only at the end
(status, duration, cost) stands in its child `answer <status>`, which whoever acknowledges the request writes: it is
made of the log, and its ids are computed too.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from opentelemetry.trace import Span, SpanKind

from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_bus.publish import Outgoing
from muster_bus.tracing import names
from muster_bus.tracing.computed import ComputedSpan
from muster_bus.tracing.context import RequestTrace, answer_id_of, wait_id_of
from muster_bus.tracing.tracing import MAX_REASON, Value, event, fail
from muster_protocol.fold import RequestState
from muster_protocol.messages import AnswerStatus, Extended
from muster_protocol.subjects import last_token
from muster_supervisor.decide import Refine, TryAgain
from muster_supervisor.owner import Owner

CHOSEN_SHOWN = 16  # roles that were chosen, on the span of a batch


def is_workflow_exported(state: RequestState) -> bool:
    """Whether the log shows that an earlier owner has exported the workflow span.

    Tasks are reserved after that, and a hand-back ends in an orderly exit. Whoever died before did it or did it not:
    then it is exported again, with the same ids and the same content.
    """
    has_handed_back = state.term > 0 and state.owner is None
    return has_handed_back or any(task.attempts for task in state.tasks.values())


def export_workflow(bus: Bus, delivery: Delivery, request: RequestTrace, state: RequestState) -> None:
    """Export the span that everything about this request hangs under; its end is the time of the first entry."""
    if not bus.tracing.is_on:
        return
    team = last_token(delivery.subject)
    attributes = {
        names.OPERATION: names.INVOKE_WORKFLOW,
        names.WORKFLOW: team,
        **names.messaging("process", delivery.subject, state.request_id),
        names.DESTINATION: delivery.subject,
        names.CONSUMER_GROUP: delivery.consumer,
        names.MESSAGE_ID: state.request_id,
        **bus.server,
    }
    name, times = f"{names.INVOKE_WORKFLOW} {team}", (delivery.time, state.started_at)
    span = ComputedSpan(name, attributes, *times, SpanKind.CONSUMER)
    bus.tracing.export_workflow(request, span)


def step_span(owner: Owner, name: str, **more: str | int) -> AbstractContextManager[Span | None]:
    """One step of the owner, such as `compose`."""
    return owner.bus.tracing.span(name, {names.REQUEST_ID: owner.request_id, **more})


def plan_span(owner: Owner) -> AbstractContextManager[Span | None]:
    team = owner.resources.team.team
    attributes = {names.OPERATION: names.PLAN, names.AGENT: team, names.REQUEST_ID: owner.request_id}
    return owner.bus.tracing.span(f"{names.PLAN} {team}", attributes)


def back_off_span(owner: Owner, step: Refine | TryAgain) -> AbstractContextManager[Span | None]:
    """What precedes the next attempt of a failed task, such as a new description; it waits for its back-off."""

    @contextmanager
    def opened() -> Generator[Span | None]:
        request_id, task_id, attempt = step.attempt_id
        attributes = {names.REQUEST_ID: request_id, names.TASK_ID: task_id, names.ATTEMPT: attempt}
        name = names.REFINE if isinstance(step, Refine) else names.TRY_AGAIN
        role = owner.state.tasks[task_id].outcome()["role"]
        with owner.bus.tracing.span(f"{name} {role}", attributes) as span:
            event(names.BACK_OFF, {names.SECONDS: round(step.not_before - owner.now(), 3)})
            yield span

    return opened()


def grow_span(owner: Owner, cause: str) -> AbstractContextManager[Span | None]:
    """The plan grows, or is kept from it."""
    return step_span(owner, f"{names.GROW} {cause.partition(':')[0]}", **{names.CAUSE: cause})


def shown_growth(span: Span | None, extended: Extended) -> None:
    """What came of it."""
    if span is not None:
        span.set_attribute(names.TASKS, len(extended.add))
    if extended.refused is not None:
        fail(span, extended.refused.error_class, extended.refused.message[:MAX_REASON])


def publish_span(
    owner: Owner, outgoing: list[Outgoing], chosen: Callable[[], list[str]]
) -> AbstractContextManager[Span | None]:
    """From sending a batch of tasks to the broker's last acknowledgement; preparing them is not in it."""
    if not owner.bus.tracing.is_on:
        return owner.bus.tracing.span("", {})
    subjects = {subject for subject, _, _ in outgoing}
    attributes: dict[str, Value] = {
        **names.messaging("publish", next(iter(subjects)), owner.request_id),
        names.BATCH_COUNT: len(outgoing),
        **owner.bus.server,
    }
    if len(subjects) == 1:
        attributes[names.DESTINATION] = subjects.pop()
    if choices := chosen():
        attributes[names.CHOSEN] = choices[:CHOSEN_SHOWN]
    return owner.bus.tracing.span(names.PUBLISH_TASKS, attributes, SpanKind.PRODUCER)


def take_over_span(owner: Owner, lost_seconds: float) -> AbstractContextManager[Span | None]:
    """The request goes on here after an earlier owner, which may be this process itself after a pause."""

    @contextmanager
    def opened() -> Generator[Span | None]:
        previous = {names.DELIVERY: owner.delivery.number, names.PREVIOUS_OWNER: owner.state.owner or "handed back"}
        with step_span(owner, names.TAKE_OVER, **previous) as span:
            if lost_seconds:
                event(names.LEASE_LOST, {names.SECONDS: round(lost_seconds, 3)})
            yield span

    return opened()


def export_answer(bus: Bus, delivery: Delivery, request: RequestTrace, state: RequestState) -> None:
    """What the request came to, from the time at which it was stored until it was answered; all of it from the log."""
    answer = state.answer
    if answer is None or not bus.tracing.is_on:
        return
    attributes: dict[str, Value] = {
        names.REQUEST_ID: answer.request_id,
        names.STATUS: answer.status.value,
        names.SECONDS: answer.seconds,
        names.INPUT_TOKENS: answer.usage.input_tokens,
        names.OUTPUT_TOKENS: answer.usage.output_tokens,
        names.USD: answer.usage.usd,
    }
    if answer.confidence is not None:
        attributes[names.CONFIDENCE] = answer.confidence
    for name, found in ((names.CONTRADICTIONS, answer.contradictions), (names.UNSUPPORTED, answer.unsupported)):
        if found:
            attributes[name] = len(found)
    is_failed = answer.status is AnswerStatus.FAILED
    if answer.error_class and not is_failed:
        attributes[names.REASON] = answer.error_class
    span = ComputedSpan(
        f"{names.ANSWER} {answer.status.value}",
        attributes,
        delivery.time,
        state.answered_at,
        error_class=(answer.error_class or "logic") if is_failed else "",
        reason=bus.tracing.shown(next(iter(answer.gaps), ""))[:MAX_REASON] if is_failed else "",
    )
    bus.tracing.export_below(request, answer_id_of(answer.request_id), span)


def export_waits(bus: Bus, request: RequestTrace, state: RequestState) -> None:
    """For how long people were waited for, from each question to its decision or to the answer; all from the log."""
    for asked in state.questions.values() if bus.tracing.is_on else ():
        about = "task" if asked.question.task_id else "plan"
        attributes: dict[str, Value] = {names.REQUEST_ID: state.request_id, names.QUESTION: asked.question.id}
        if asked.question.task_id:
            attributes[names.TASK_ID] = asked.question.task_id
        if asked.decision is not None:
            attributes[names.CHOICE] = asked.decision.choice or asked.decision.decision
        end = state.answered_at if asked.ended_at is None else asked.ended_at
        span = ComputedSpan(f"{names.WAIT_FOR_PERSON} {about}", attributes, asked.asked_at, end)
        bus.tracing.export_below(request, wait_id_of(state.request_id, asked.question.id), span)

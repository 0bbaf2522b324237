"""The span of one attempt: what was asked of whom, what it waited for, how it ended.

It hangs directly under the request's workflow span, which the task message names. A worker that dies leaves none, and
the next delivery of the same attempt is a span beside it.
"""

import json
from contextlib import AbstractContextManager

from opentelemetry.trace import Span, SpanKind

from muster_agent.models.port import as_text
from muster_bus.connection import Bus
from muster_bus.lease import Delivery, Lease
from muster_bus.tracing import names
from muster_bus.tracing.content import one_line
from muster_bus.tracing.context import TRACEPARENT, is_sampled, parent_named
from muster_bus.tracing.tracing import Value, current, event, fail
from muster_protocol import headers as h
from muster_protocol.messages import Task
from muster_worker.outcome import Outcome

QUEUED_SECONDS = 0.1  # less is no wait that anybody would ask about, and an event costs a fifth of its span


def is_traced(bus: Bus, delivery: Delivery) -> bool:
    """Whether this attempt is recorded; if not, nothing about its span is computed."""
    return bus.tracing.is_on and is_sampled(delivery.headers)


def task_span(bus: Bus, task: Task, delivery: Delivery, role: str) -> AbstractContextManager[Span | None]:
    """An attempt, from the moment at which its role begins until its result is stored."""
    parent = parent_named((delivery.headers or {}).get(TRACEPARENT, ""))
    if parent is None:  # the supervisor does not trace: the request's id names the span that it would be
        parent = bus.tracing.request(task.request_id, None).workflow
    attributes = _attributes(bus, task, delivery, role)
    return bus.tracing.span(f"{names.INVOKE_AGENT} {role}", attributes, SpanKind.CONSUMER, parent=parent)


def _attributes(bus: Bus, task: Task, delivery: Delivery, role: str) -> dict[str, Value]:
    """All at once: a span takes a dictionary at its start for a fraction of what single attributes cost."""
    attributes: dict[str, Value] = {
        names.OPERATION: names.INVOKE_AGENT,
        names.AGENT: role,
        **names.messaging("process", delivery.subject, task.request_id),
        names.DESTINATION: delivery.subject,
        names.CONSUMER_GROUP: delivery.consumer,
        names.MESSAGE_ID: (delivery.headers or {}).get(h.MESSAGE_ID, ""),
        **bus.server,
        names.TASK_ID: task.task_id,
        names.ATTEMPT: task.attempt,
        names.DELIVERY: delivery.number,
        names.DESCRIPTION: one_line(task.description),
        names.TAG: task.tag,
    }
    if task.context:
        attributes[names.DEPENDENCIES] = tuple(task.context)
    if task.attempt > 1 or task.context:
        attributes[names.WAITED_FOR] = (f"attempt {task.attempt - 1}",) if task.attempt > 1 else tuple(task.context)
    return attributes


def note_start(span: Span | None, task: Task, delivery: Delivery, now: float) -> None:
    """What happened before the role began: the wait for a free slot, and deliveries that came to nothing."""
    if span is None:
        return
    waited = now - task.reserved_at
    if waited >= QUEUED_SECONDS:
        span.add_event(names.QUEUED, {names.SECONDS: round(waited, 3)})
    if delivery.number > 1:
        note_redelivery(span, delivery)


def note_redelivery(span: Span | None, delivery: Delivery) -> None:
    """The broker has given the task out once more."""
    if span is not None:
        span.add_event(names.REDELIVERED, {names.DELIVERY: delivery.number})


def note_lease(lease: Lease) -> None:
    """Say so if the broker may have given the task to another worker meanwhile."""
    if not lease.is_held:
        event(names.LEASE_LOST, {})


def record_outcome(span: Span | None, outcome: Outcome) -> None:
    """What the attempt used, and why it failed if it did."""
    if span is None:
        return
    if outcome.usage.model_calls:
        used = outcome.usage
        tokens = {names.INPUT_TOKENS: used.input_tokens, names.OUTPUT_TOKENS: used.output_tokens}
        span.set_attributes({**tokens, names.USD: used.usd})
    if (content := current().content) is not None and outcome.error is None:
        said = {"role": "assistant", "parts": [{"type": "text", "content": content(as_text(outcome.output))}]}
        span.set_attribute(names.OUTPUT_MESSAGES, json.dumps([said], ensure_ascii=False))
    if outcome.error is not None:
        fail(span, outcome.error.error_class, current().shown(outcome.error.message))


def record_cancelled(span: Span | None, *, is_aborted: bool, handed_back: str) -> None:
    """An attempt that did not come to its end: stopped by an abort, handed back, or cancelled by its own role."""
    if span is None:
        return
    if handed_back and not is_aborted:
        span.add_event(names.HANDED_BACK, {names.REASON: handed_back})
        return
    if is_aborted:
        span.add_event(names.STOPPED)
    fail(span, "cancelled" if is_aborted else "logic")

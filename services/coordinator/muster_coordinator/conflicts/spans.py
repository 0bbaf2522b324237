"""A conflict as a span of its request's trace, with an event for each side."""

from muster_bus.tracing import names
from muster_bus.tracing.context import TRACEPARENT, workflow_id_of
from muster_bus.tracing.tracing import Attributes, Tracing
from muster_protocol.conflict import Conflict, Side


def record_conflict(tracing: Tracing, record: Conflict) -> None:
    """Export what was found and decided, where the request is traced."""
    trace_id = next((side.trace_id for side in record.sides if side.trace_id), None)
    if trace_id is None or not tracing.is_on:
        return
    # Only the trace is known, not who asked; the workflow span, under which this belongs, has a computed id.
    parent = {TRACEPARENT: f"00-{trace_id}-{workflow_id_of(record.request_id)}-01"}
    with (
        tracing.under(tracing.request(record.request_id, parent)),
        tracing.span(names.CONFLICT, _attributes(record), began=record.found_at) as span,
    ):
        for side in record.sides:
            if span is not None:
                span.add_event(names.CONFLICT_SIDE, _side(record, side))


def _attributes(record: Conflict) -> Attributes:
    return {
        names.REQUEST_ID: record.request_id,
        names.TASK_ID: record.task_id,
        names.ATTEMPT: record.attempt,
        names.CONFLICT_KINDS: [kind.value for kind in record.kinds],
        names.REASON: record.why,
    }


def _side(record: Conflict, side: Side) -> Attributes:
    return {
        names.WORKER: side.worker,
        names.DELIVERY: side.delivery,
        names.MESSAGE: side.task_sequence,
        names.STATUS: "told to stop" if side.id in record.stops else side.ended.value if side.ended else "running",
    }

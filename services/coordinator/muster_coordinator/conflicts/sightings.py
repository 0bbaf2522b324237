"""Makes sightings of what a log says about attempts: of a result, by its headers, and of what was dispatched. Pure."""

from collections.abc import Iterator, Mapping

from muster_bus.tracing.context import TRACEPARENT, is_sampled, parsed
from muster_coordinator.conflicts.trails import Sighting, What
from muster_coordinator.header_numbers import number, real
from muster_protocol import headers as h
from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages import Dispatched, ResultStatus
from muster_protocol.subjects import is_id


def result_seen(
    request_id: str, sender: str, at: float, headers: Mapping[str, str], *, is_counted: bool
) -> Sighting | None:
    """What a worker's result says; None: it is not a worker's, or it names no attempt that can be."""
    worker, task_id, attempt = worker_of(sender), headers.get(h.TASK, ""), number(headers.get(h.ATTEMPT, ""))
    if not worker or attempt < 1 or not is_id(task_id):
        return None
    status = headers.get(h.STATUS)
    what = What.STOPPED if status == ResultStatus.CANCELLED else What.FINISHED
    if is_counted and status == ResultStatus.DONE:
        what = What.SUCCEEDED
    return Sighting(
        AttemptId(request_id, task_id, attempt),
        what,
        at,
        worker,
        number(headers.get(h.DELIVERY, "")),
        number(headers.get(h.TASK_SEQUENCE, "")),
        sender,
        trace_id_of(headers),
        number(headers.get(h.TOKENS, "0")),
        real(headers.get(h.USD, "0")),
    )


def dispatched_seen(request_id: str, sender: str, at: float, entry: Dispatched) -> Iterator[Sighting]:
    """The messages that an owner notes in the log."""
    for stored in entry.attempts:
        key = AttemptId(request_id, stored.task_id, stored.attempt)
        yield Sighting(key, What.DISPATCHED, at, "", 0, stored.sequence, sender)


def worker_of(sender: str) -> str:
    """The name of the worker that sent something; empty for anybody else."""
    return sender.split("/")[1] if sender.startswith("worker/") else ""


def trace_id_of(headers: Mapping[str, str]) -> str | None:
    """The trace in which a message was sent, if that is recorded."""
    given = headers.get(TRACEPARENT)
    if given is None or not is_sampled(headers):
        return None
    span = parsed(given)
    return f"{span.trace_id:032x}" if span is not None else None

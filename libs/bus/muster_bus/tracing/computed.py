"""Spans whose ids are computed from the request's id: whoever writes one once more writes the same span.

Only its writer knows whether a span left a process that died. So whoever comes after it writes such a span again, with
the values that the log has; a collector that gets it twice has one span.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode

from muster_bus.tracing import names

if TYPE_CHECKING:
    from muster_bus.tracing.provider import Exporting
    from muster_bus.tracing.tracing import Attributes

preset_ids: ContextVar[tuple[int | None, int | None]] = ContextVar("preset_ids", default=(None, None))


@dataclass(frozen=True, slots=True)
class ComputedSpan:
    """All that is said about such a span, before it is begun."""

    name: str
    attributes: "Attributes"
    begin: float  # seconds since 1970
    end: float
    kind: SpanKind = SpanKind.INTERNAL
    error_class: str = field(default="", kw_only=True)  # that of a failed one …
    reason: str = field(default="", kw_only=True)  # … and its words, if they may be shown


def export_at_once(exporting: "Exporting", span: ComputedSpan, ids: tuple[int | None, int], parent: Context) -> None:
    """Write the span and send it, in the background; `ids` are its trace, if it is the root, and its own."""
    token = preset_ids.set(ids)
    try:
        tracer = exporting.provider.get_tracer("muster")
        begun = tracer.start_span(span.name, parent, span.kind, span.attributes, start_time=int(span.begin * 1e9))
    finally:
        preset_ids.reset(token)
    if span.error_class:
        begun.set_attribute(names.ERROR_TYPE, span.error_class)
        begun.set_status(StatusCode.ERROR, span.reason)
    if begun.is_recording():
        exporting.hold.mark_urgent(ids[1])
    begun.end(int(max(span.begin, span.end) * 1e9))

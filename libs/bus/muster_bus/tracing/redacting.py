"""The edge of spans: whatever put text into one, it leaves without the secrets that the process knows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Status

from muster_bus.redact import KNOWN

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue


class RedactingExporter(SpanExporter):
    """Exports through another; only a span that holds a secret is made anew."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([redacted(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def redacted(span: ReadableSpan) -> ReadableSpan:
    """The span itself, or one without the secrets in its attributes, its events and its status."""
    if not KNOWN.is_in("\n".join(_texts(span)).encode(errors="backslashreplace")):
        return span
    description = span.status.description
    return ReadableSpan(
        name=KNOWN(span.name),
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_clean(span.attributes),
        events=[Event(event.name, _clean(event.attributes), event.timestamp) for event in span.events],
        links=span.links,
        kind=span.kind,
        instrumentation_scope=span.instrumentation_scope,
        status=Status(span.status.status_code, None if description is None else KNOWN(description)),
        start_time=span.start_time,
        end_time=span.end_time,
    )


def _texts(span: ReadableSpan) -> list[str]:
    found = [span.name, span.status.description or ""]
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        for value in (attributes or {}).values():
            if isinstance(value, str):
                found.append(value)
            elif isinstance(value, Sequence):
                found += [part for part in value if isinstance(part, str)]
    return found


def _clean(attributes: "Mapping[str, AttributeValue] | None") -> "dict[str, AttributeValue]":
    return {name: _clean_value(value) for name, value in (attributes or {}).items()}


def _clean_value(value: "AttributeValue") -> "AttributeValue":
    if isinstance(value, str):
        return KNOWN(value)
    if isinstance(value, Sequence) and all(isinstance(part, str) for part in value):
        return [KNOWN(str(part)) for part in value]
    return value

"""A collector for tests: it takes real OTLP exports over HTTP and keeps the decoded spans."""

import asyncio
import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

STATUS_ERROR = 2  # OTLP's code


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened to a span."""

    name: str
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExportedSpan:
    """One exported span."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    kind: int
    attributes: dict[str, Any]
    events: tuple[SpanEvent, ...]
    is_failed: bool
    reason: str  # why it failed, in words
    start: float  # seconds since 1970
    end: float

    @property
    def error_type(self) -> str:
        return self.attributes.get("error.type", "")


class Collector:
    """An OTLP/HTTP endpoint on loopback."""

    def __init__(self) -> None:
        self.spans: list[ExportedSpan] = []
        self._server: asyncio.Server | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What makes a service export its spans here, and soon."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_BSP_SCHEDULE_DELAY": "100"}

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if ": " in line)
                body = await reader.readexactly(int(headers["content-length"]))
                self._keep(gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _keep(self, body: bytes) -> None:
        # Imported here: every process of a scripted role imports this package, and none of them decodes spans.
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        export = ExportTraceServiceRequest.FromString(body)
        for resource in export.resource_spans:
            service = _attributes(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [_exported(service, span) for span in scope.spans]


def _exported(service: str, span: "Span") -> ExportedSpan:
    return ExportedSpan(
        service=service,
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        kind=span.kind,
        attributes=_attributes(span.attributes),
        events=tuple(SpanEvent(event.name, _attributes(event.attributes)) for event in span.events),
        is_failed=span.status.code == STATUS_ERROR,
        reason=span.status.message,
        start=span.start_time_unix_nano / 1e9,
        end=span.end_time_unix_nano / 1e9,
    )


def _attributes(given: "Iterable[KeyValue]") -> dict[str, Any]:
    return {attribute.key: _value(attribute.value) for attribute in given}


def _value(value: "AnyValue") -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return None if kind is None else getattr(value, kind)

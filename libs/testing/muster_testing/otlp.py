"""A collector for tests: it takes real OTLP exports over HTTP and keeps the decoded spans."""

import asyncio
import gzip
from dataclasses import dataclass
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True)
class ExportedSpan:
    """One exported span."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    kind: int
    links: tuple[str, ...]


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
            attributes = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.append(
                        ExportedSpan(
                            attributes["service.name"],
                            span.name,
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            span.kind,
                            tuple(link.span_id.hex() for link in span.links),
                        )
                    )

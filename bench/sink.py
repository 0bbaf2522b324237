"""A collector of spans that says yes to everything, so that exporters have somewhere to send them."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Self, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class _Yes(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        cast("_Counting", self.server).bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's names
        """Nothing to say."""


class _Counting(ThreadingHTTPServer):
    """Keeps what it got until somebody counts it: decoding costs more than taking."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Yes)
        self.bodies: list[bytes] = []


class Sink:
    """An OTLP/HTTP endpoint in a thread of this process."""

    def __init__(self) -> None:
        self._server = _Counting()
        self._spans = 0
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def spans(self) -> int:
        """How many have come so far."""
        bodies, self._server.bodies = self._server.bodies, []
        for body in bodies:
            export = ExportTraceServiceRequest.FromString(body)
            self._spans += sum(len(scope.spans) for one in export.resource_spans for scope in one.scope_spans)
        return self._spans

    def environment(self, share: float) -> dict[str, str]:
        """Export this share of the traces here."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}",
            "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": str(share),
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

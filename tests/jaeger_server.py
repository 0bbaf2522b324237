"""A small HTTP server that answers as Jaeger's `/api/v3` does, with the traces that a test gives it."""

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from muster_testing.otlp import ExportedSpan

NOT_FOUND = {"error": {"httpCode": 404, "message": "No traces found"}}


class SpanOf(NamedTuple):
    """A span of a test."""

    name: str
    id: str
    parent: str = ""
    service: str = "muster-supervisor"
    attributes: Mapping[str, str | int] = {}

    @classmethod
    def exported(cls, span: ExportedSpan) -> "SpanOf":
        """What was really exported; values that no comparison reads are written as texts."""
        values = {key: value if isinstance(value, int) else str(value) for key, value in span.attributes.items()}
        return cls(span.name, span.id, span.parent, span.service, values)


class Reply(NamedTuple):
    """What the server answers about one trace."""

    status: int
    body: bytes


def trace_of(*spans: SpanOf) -> Reply:
    """A trace as Jaeger writes it: OTLP's JSON, one block for each service, whole numbers as texts."""
    services = dict.fromkeys(span.service for span in spans)
    blocks: list[dict[str, Any]] = [
        {
            "resource": {"attributes": [_attribute("service.name", service)]},
            "scopeSpans": [{"scope": {}, "spans": [_span(span) for span in spans if span.service == service]}],
        }
        for service in services
    ]
    return Reply(200, json.dumps({"result": {"resourceSpans": blocks}}).encode())


def _span(span: SpanOf) -> dict[str, Any]:
    return {
        "spanId": span.id,
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
        "attributes": [_attribute(key, value) for key, value in span.attributes.items()],
        **({"parentSpanId": span.parent} if span.parent else {}),
    }


def _attribute(key: str, value: str | int) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}


@contextmanager
def jaeger(traces: Mapping[str, Reply]) -> Generator[str]:
    """The address of a running server; a trace that it was not given is unknown."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            unknown = Reply(404, json.dumps(NOT_FOUND).encode())
            reply = traces.get(self.path.removeprefix("/api/v3/traces/"), unknown)
            self.send_response(reply.status)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server has
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

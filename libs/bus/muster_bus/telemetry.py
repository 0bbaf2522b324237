"""Traces: context in headers, spans around what matters, exported by OTLP when an endpoint is set.

Without an endpoint nothing of the SDK is imported and a span costs nothing; the context of the caller still travels.
"""

import hashlib
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from muster_protocol.errors import Misconfigured
from muster_protocol.subjects import template_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

TRACEPARENT = "traceparent"
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
DEFAULTS = {
    "OTEL_EXPORTER_OTLP_TIMEOUT": "3",  # seconds: a dead collector must not hold up a stop
    "OTEL_BSP_SCHEDULE_DELAY": "1000",  # milliseconds
    "OTEL_BSP_MAX_QUEUE_SIZE": "8192",  # four times the SDK's: a burst of tasks is not a reason to lose spans
}
_PROPAGATOR = TraceContextTextMapPropagator()
_TRACER = trace.get_tracer("muster")
_provider: "TracerProvider | None" = None
_root_trace_id: ContextVar[int | None] = ContextVar("root_trace_id", default=None)


def start(service: str, instance: str, otel_env: Mapping[str, str]) -> None:
    """Export spans when OTEL_EXPORTER_OTLP_ENDPOINT says where to; OTEL_TRACES_SAMPLER says how many.

    `otel_env` are the variables that Muster looks at itself; the SDK reads all of its own from the process.
    """
    global _provider
    has_endpoint = otel_env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or otel_env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    if not has_endpoint or _provider is not None:
        return
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class RequestIds(RandomIdGenerator):
        """A request without a trace gets the one that its id names, also from a second supervisor."""

        def generate_trace_id(self) -> int:
            return _root_trace_id.get() or super().generate_trace_id()

    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    exporter = _exporter(otel_env)
    ours = {
        "service.name": f"muster-{service}",
        "service.namespace": "muster",
        "service.instance.id": instance,
        "service.version": "0.1.0",
    }
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over ours; `Resource.create` alone would have it the other way.
    resource = Resource.create({**ours, **OTELResourceDetector().detect().attributes})
    _provider = TracerProvider(resource=resource, id_generator=RequestIds())
    _provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(_provider)


def _exporter(otel_env: Mapping[str, str]) -> "SpanExporter":
    """The exporter of the protocol that is set. One that is not there would lose every span, so it is an error."""
    of_traces, of_all = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    variable = of_traces if otel_env.get(of_traces) else of_all
    protocol = otel_env.get(variable) or "http/protobuf"
    if protocol == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    if protocol != "grpc":
        raise Misconfigured(f"{variable}: {protocol!r} is not supported; use http/protobuf or grpc")
    try:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
    except ImportError as error:
        raise Misconfigured(
            f"{variable}: grpc needs the extra `pip install 'muster-cli[otlp-grpc]'` ({error}); or set it to "
            "http/protobuf and the endpoint to the collector's HTTP port, usually 4318"
        ) from None
    return GrpcSpanExporter()


def stop() -> None:
    """Export what is left. Blocks up to the exporter's timeout: call it in a thread."""
    if _provider is not None:
        _provider.shutdown()


def trace_id_of(request_id: str) -> str:
    """The trace of a request that brought none."""
    return hashlib.sha256(request_id.encode()).hexdigest()[:32]


def inject(headers: dict[str, str], carrier: Mapping[str, str] | None) -> None:
    """Write `traceparent`: of the current span, else of the carrier, else none: then whoever traces first decides."""
    if _provider is not None:
        current = trace.get_current_span().get_span_context()
        if current.is_valid:
            headers[TRACEPARENT] = f"00-{current.trace_id:032x}-{current.span_id:016x}-{current.trace_flags:02x}"
            return
    given = (carrier or {}).get(TRACEPARENT, "")
    if _TRACEPARENT.fullmatch(given):  # it goes into every message of the request: nothing else may
        headers[TRACEPARENT] = given


def is_recording() -> bool:
    """Whether a span opened here would be exported; if not, nothing of it needs to be computed."""
    return _provider is not None and trace.get_current_span().is_recording()


def is_sampled(carrier: Mapping[str, str]) -> bool:
    """Whether a span about a message would be exported. Of a message without a trace the sampler decides."""
    if _provider is None:
        return False
    given = carrier.get(TRACEPARENT)
    return given is None or given[-1:] not in "02468ace"  # the last bit of the flags, without the cost of a parse


def current_trace_id(carrier: Mapping[str, str] | None, request_id: str) -> str:
    """The trace that an answer names."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        return f"{context.trace_id:032x}"
    given = _TRACEPARENT.fullmatch((carrier or {}).get(TRACEPARENT, ""))
    return given[1] if given else trace_id_of(request_id)


@contextmanager
def span(
    name: str,
    kind: SpanKind,
    attributes: Mapping[str, str | int | float | bool],
    *,
    carrier: Mapping[str, str] | None = None,
    root: str | None = None,
) -> Generator[Span | None]:
    """A span under the carrier's context, or under the current one; `root` names the request of a first span.

    The sampler decides by the trace's id, which the request's id names: every service comes to the same decision.
    """
    is_wanted = is_recording() if carrier is None else is_sampled(carrier)
    if _provider is None or not (is_wanted or (root is not None and carrier is None)):
        yield None
        return
    context = _PROPAGATOR.extract(carrier) if carrier is not None else None
    remote = trace.get_current_span(context).get_span_context() if context is not None else None
    links = [Link(remote)] if remote is not None and remote.is_valid else None
    token = None
    if root is not None and links is None:
        token = _root_trace_id.set(int(trace_id_of(root), 16))
    try:
        started = _TRACER.start_span(name, context=context, kind=kind, attributes=dict(attributes), links=links)
    finally:
        if token is not None:
            _root_trace_id.reset(token)
    with trace.use_span(started, end_on_exit=True):
        yield started


def name_of(operation: str, subject: str) -> str:
    """The name of a span about a message, such as `publish tasks.{tag}`."""
    return f"{operation} {template_of(subject)}"


def failed(current: Span | None, reason: str) -> None:
    if current is not None:
        current.set_status(StatusCode.ERROR, reason)


def attributes_of(operation: str, subject: str, request_id: str, **more: Any) -> dict[str, Any]:
    """The messaging conventions, in one place."""
    return {
        "messaging.system": "nats",
        "messaging.operation.name": operation,
        "messaging.operation.type": {"publish": "send", "process": "process"}[operation],
        "messaging.destination.name": subject,
        "messaging.destination.template": template_of(subject),
        "messaging.message.conversation_id": request_id,
        **more,
    }


__all__ = ["SpanKind", "attributes_of", "current_trace_id", "failed", "inject", "is_recording", "span", "start", "stop"]

"""The spans of one connection: opened under the request that they belong to, exported under the service's own name.

There is no global state: each bus has its `Tracing`, so that three services in one process are three services in the
trace. A context variable of OpenTelemetry remembers whose span is open, so that models and tools open theirs under it
without being passed anything. Without an endpoint nothing of the SDK is imported and a span costs nothing; the
context of whoever asked still travels.
"""

import asyncio
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context, attach, create_key, detach, get_value, set_value
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context

from muster_bus.tracing import names
from muster_bus.tracing.computed import ComputedSpan, export_at_once, preset_ids
from muster_bus.tracing.content import content
from muster_bus.tracing.context import (
    TRACEPARENT,
    RequestTrace,
    parent_of,
    parsed,
    trace_id_of,
    valid,
    workflow_context,
    written,
)
from muster_protocol.errors import Invalid, error_class_of

if TYPE_CHECKING:
    from muster_bus.process.settings import TraceSettings
    from muster_bus.tracing.provider import Exporting

Value = str | int | float | bool | Sequence[str]
Attributes = Mapping[str, Value]

_OWNER = create_key("muster.tracing")
EXPORT_SECONDS = 0.25  # how long the first reservation of a request, and its end, wait until its span is out
MAX_REASON = 200
LOOK_SECONDS = 0.5
PAUSE_SECONDS = 1.0  # beyond the look: a process that stood still for longer says so in its open spans


class Tracing:
    """Opens spans for one service. `Tracing()` opens none."""

    def __init__(self, exporting: "Exporting | None" = None, *, has_content: bool = False) -> None:
        self._exporting = exporting
        self._tracer = exporting.provider.get_tracer("muster") if exporting else None
        self._open: set[Span] = set()
        self._watch: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self.content = content if has_content else None  # None: prompts, arguments and outputs are not recorded

    @classmethod
    def start(cls, service: str, instance: str, settings: "TraceSettings") -> "Tracing":
        """Export spans if the environment says where to; raises Misconfigured if it cannot be done as it says."""
        if not settings.has_endpoint:
            return cls()
        from muster_bus.tracing.provider import make_provider

        return cls(make_provider(service, instance, settings.otel_env), has_content=settings.has_content)

    @property
    def provider(self) -> "trace.TracerProvider | None":
        """For a library that opens spans of its own, such as the web framework."""
        return self._exporting.provider if self._exporting else None

    @property
    def is_on(self) -> bool:
        return self._tracer is not None

    def request(self, request_id: str, headers: Mapping[str, str] | None) -> RequestTrace:
        """The trace of a request that was delivered with these headers."""
        carrier = valid(headers)
        parent = parsed(carrier.get(TRACEPARENT, ""))
        trace_id = f"{parent.trace_id:032x}" if parent else trace_id_of(request_id)
        if self._exporting is None:
            return RequestTrace(trace_id, carrier, parent)
        is_sampled = self._is_sampled(int(trace_id, 16), parent)
        workflow = workflow_context(request_id, parent, is_sampled)
        return RequestTrace(trace_id, {TRACEPARENT: written(workflow)}, parent, parent_of(workflow))

    @contextmanager
    def under(self, request: RequestTrace) -> Generator[None]:
        """What is opened or logged in here belongs to the request."""
        if request.workflow is None:
            yield
            return
        token = attach(set_value(_OWNER, self, request.workflow))
        try:
            yield
        finally:
            detach(token)

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
        *,
        parent: Context | None = None,
        began: float | None = None,
    ) -> Generator[Span | None]:
        """A span under `parent`, or under what is open here; None where nothing is recorded.

        `began` is in seconds since 1970. Whatever is raised makes it a failed span.
        """
        if self._tracer is None or not _is_recorded(parent):
            yield None
            return
        span = self._tracer.start_span(name, parent, kind, attributes, start_time=_nanoseconds(began))
        token = attach(set_value(_OWNER, self, set_span_in_context(span, parent)))
        self._open.add(span)
        try:
            yield span
        except BaseException as error:
            fail(span, error_type(error), self.shown(str(error)))
            raise
        finally:
            detach(token)
            self._open.discard(span)
            span.end()

    @contextmanager
    def publishing(self, name: str, attributes: Attributes, request_id: str) -> Generator[Span | None]:
        """The span in which a client publishes a request: the application's if it traces by itself, else ours.

        Ours is exported at once: whoever takes the request hangs its spans under it.
        """
        theirs = application_tracer()
        if theirs is not None:
            with theirs.start_as_current_span(name, kind=SpanKind.PRODUCER, attributes=attributes) as span:
                yield span
            return
        if self._exporting is None:
            yield None
            return
        token = preset_ids.set((int(trace_id_of(request_id), 16), None))
        try:
            tracer = self._exporting.provider.get_tracer("muster")
            started = tracer.start_span(name, kind=SpanKind.PRODUCER, attributes=attributes)
        finally:
            preset_ids.reset(token)
        if started.is_recording():
            self._exporting.hold.mark_urgent(started.get_span_context().span_id)
        try:
            with trace.use_span(started, record_exception=False, set_status_on_exception=False):
                yield started
        except BaseException as error:
            fail(started, error_type(error), self.shown(str(error)))
            raise
        finally:
            started.end()

    def export_workflow(self, request: RequestTrace, span: ComputedSpan) -> None:
        """Write the workflow span of a request, under whoever asked, and export it at once."""
        workflow = _span_context(request.workflow)
        if self._exporting is not None and workflow is not None and workflow.trace_flags.sampled:
            above = parent_of(request.parent) if request.parent else Context()
            export_at_once(self._exporting, span, (workflow.trace_id, workflow.span_id), above)

    def export_below(self, request: RequestTrace, span_id: str, span: ComputedSpan) -> None:
        """Write something under the workflow span of a request, and export it at once."""
        workflow = _span_context(request.workflow)
        if self._exporting is not None and workflow is not None and workflow.trace_flags.sampled:
            export_at_once(self._exporting, span, (None, int(span_id, 16)), parent_of(workflow))

    async def exported(self) -> None:
        """Wait a moment until what is urgent is out; not at all while the collector is known to be away."""
        express = self._exporting.express if self._exporting else None
        if express is None or express.is_away:
            return
        settled = express.settled()
        if settled.done():
            return
        try:
            async with asyncio.timeout(EXPORT_SECONDS):
                await asyncio.wrap_future(settled)
        except TimeoutError:
            express.is_away = True

    def shown(self, text: str) -> str:
        """A text that somebody else wrote, if spans may show such texts. An error may quote what a model said."""
        return "" if self.content is None else self.content(text)

    def note(self, event: str, attributes: Attributes) -> None:
        """Add an event to every span that is open here: something happened to the whole service."""
        for span in list(self._open):
            span.add_event(event, attributes)

    def watch(self) -> None:
        """Note from now on when the event loop, or the whole process, stood still."""
        if self._tracer is None:
            return
        now = time.monotonic()
        stood = now - self._looked_at - LOOK_SECONDS if self._looked_at else 0.0
        if stood > PAUSE_SECONDS:
            self.note(names.PAUSED, {names.SECONDS: round(stood, 3)})
        self._looked_at = now
        self._watch = asyncio.get_running_loop().call_later(LOOK_SECONDS, self.watch)

    async def stop(self) -> None:
        """Export what is left, within the exporter's limit; nothing is opened any more."""
        if self._watch is not None:
            self._watch.cancel()
        exporting, self._exporting, self._tracer = self._exporting, None, None
        if exporting is not None:
            await asyncio.to_thread(exporting.provider.shutdown)

    def _is_sampled(self, trace_id: int, parent: "trace.SpanContext | None") -> bool:
        """What the sampler says of a request's spans: the same in every service, since it goes by the trace's id."""
        assert self._exporting is not None
        context = parent_of(parent) if parent else None
        decision = self._exporting.provider.sampler.should_sample(context, trace_id, names.INVOKE_WORKFLOW).decision
        return decision.is_sampled()


OFF = Tracing()


def current() -> Tracing:
    """Whoever has opened the span, or entered the request, that is open here."""
    found = get_value(_OWNER)
    return found if isinstance(found, Tracing) else OFF


def application_tracer() -> trace.Tracer | None:
    """The tracer of an application that has set up tracing by itself; Muster sets nothing globally."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return provider.get_tracer("muster")


def inject(headers: dict[str, str], carrier: Mapping[str, str] | None) -> None:
    """Write `traceparent`: the carrier's if there is one, else that of what is open here.

    Who does not trace writes none: one that says "not sampled" would switch tracing off for everybody behind it.
    """
    if carrier is not None:
        headers.update(valid(carrier))
        return
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        headers[TRACEPARENT] = written(context)


def event(name: str, attributes: Attributes) -> None:
    """Add an event to the span that is open here, if there is one."""
    trace.get_current_span().add_event(name, attributes)


def fail(span: Span | None, error_class: str, reason: str = "") -> None:
    """Mark a span as failed, with the class of the error; the reason is `shown()` unless it is all our own."""
    if span is not None:
        span.set_attribute(names.ERROR_TYPE, error_class)
        span.set_status(StatusCode.ERROR, reason[:MAX_REASON])


def error_type(error: BaseException) -> str:
    """The class of an error, as `error.type` names it."""
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    found = error_class_of(error)
    return "invalid" if isinstance(error, Invalid) and found == Invalid.error_class else found


def _is_recorded(parent: Context | None) -> bool:
    """Whether a span under this context would be exported."""
    above = trace.get_current_span(parent)
    context = above.get_span_context()
    return above.is_recording() or (context.is_remote and context.trace_flags.sampled)


def _span_context(context: Context | None) -> "trace.SpanContext | None":
    return None if context is None else trace.get_current_span(context).get_span_context()


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1e9)

"""Holds spans back until the one that they hang under has ended, so that a crash leaves no orphan.

A span whose parent is in this process is kept until its local root ends, and is passed on with it. If the process dies
before, all of them are lost together, and nothing that was exported names a parent that was not. A service that runs
two requests at once has two local roots; what they keep is bounded together.
"""

import logging
import threading

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanKind, get_current_span

from muster_bus.tracing.express import Express

log = logging.getLogger("muster.bus")

MAX_HELD = 8192  # spans of all local roots together: some 8 MB


class Hold(SpanProcessor):
    """Passes local trees on as a whole: at once where a span is urgent, else with the next batch."""

    def __init__(self, batch: SpanProcessor, express: Express) -> None:
        self._batch = batch
        self._express = express
        self._lock = threading.Lock()  # a role's thread may open spans too
        self._roots: dict[int, int] = {}  # of each open span that has a local parent, its local root
        self._held: dict[int, list[ReadableSpan]] = {}  # by local root: what ended under it
        self._count = 0
        self._urgent: set[int] = set()
        self.dropped = 0

    def mark_urgent(self, span_id: int) -> None:
        """Export this span when it has ended, without the delay of a batch."""
        self._urgent.add(span_id)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        parent = span.parent
        if parent is None or parent.is_remote or not get_current_span(parent_context).is_recording():
            return  # a local root, or under a span that has ended and was exported
        with self._lock:
            root = self._roots.get(parent.span_id)
            if root is None:  # the parent is a root itself, and open
                root = parent.span_id
                self._held.setdefault(root, [])
            elif root not in self._held:
                return  # under a span that outlived its root
            self._roots[span.get_span_context().span_id] = root

    def on_end(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        if context is None:
            return
        if self._roots or self._held:
            with self._lock:
                root = self._roots.pop(context.span_id, None)
                if root is not None and (held := self._held.get(root)) is not None:
                    if context.trace_flags.sampled:
                        self._keep(held, span)
                    return
                under = self._held.pop(context.span_id, [])
                self._count -= len(under)
        else:
            under = []
        if context.trace_flags.sampled:
            self._pass_on([*under, span], span.kind)

    def shutdown(self) -> None:
        """Export what was passed on; what is still held is dropped with its root, which did not end."""
        self._batch.shutdown()
        self._express.close()
        if self.dropped:
            log.warning("%d spans were dropped: more than %d waited for their roots", self.dropped, MAX_HELD)

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._batch.force_flush(timeout_millis)

    def _keep(self, held: list[ReadableSpan], span: ReadableSpan) -> None:
        if self._count >= MAX_HELD:
            self.dropped += 1
            return
        held.append(span)
        self._count += 1

    def _pass_on(self, spans: list[ReadableSpan], kind: SpanKind) -> None:
        """A caller acts on an HTTP response as on a stored message: its span is out by then, or soon after."""
        urgent = self._urgent
        is_urgent = kind is SpanKind.SERVER
        if urgent:
            is_urgent = is_urgent or any(_id(span) in urgent for span in spans)
            urgent.difference_update(map(_id, spans))
        if is_urgent:
            self._express.send(spans)
            return
        for span in spans:
            self._batch.on_end(span)


def _id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    return context.span_id if context else 0

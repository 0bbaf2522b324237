"""Where a request's trace is: in the `traceparent` of its message, else where the request's own id says.

The ids of the workflow span, under which everything about a request hangs, are computed and not drawn: whoever takes
the request over knows them without having been told.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

TRACEPARENT = "traceparent"
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_UNSAMPLED = frozenset("02468ace")  # the last digit of the flags
LENGTH = 55  # characters of a `traceparent`
MAX_KNOWN = 1024  # all tasks of a request name the same parent


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """One request's trace, as its owner sees it."""

    trace_id: str
    carrier: Mapping[str, str]  # goes into every message about the request
    parent: SpanContext | None = None  # whoever asked
    workflow: Context | None = None  # the workflow span as a parent; None: this service does not trace


def trace_id_of(request_id: str) -> str:
    """The trace of a request that brought none."""
    return hashlib.sha256(request_id.encode()).hexdigest()[:32]


def workflow_id_of(request_id: str) -> str:
    """The id of a request's workflow span, also in a trace that somebody else began."""
    return hashlib.sha256(f"workflow {request_id}".encode()).hexdigest()[:16]


def answer_id_of(request_id: str) -> str:
    """The id of the span that says what a request came to: whoever answers, and whoever comes after it."""
    return hashlib.sha256(f"answer {request_id}".encode()).hexdigest()[:16]


def wait_id_of(request_id: str, question: str) -> str:
    """The id of the span of a wait for a person: whoever answers the request writes it, and whoever comes after."""
    return hashlib.sha256(f"wait {request_id} {question}".encode()).hexdigest()[:16]


def valid(carrier: Mapping[str, str] | None) -> dict[str, str]:
    """The trace context of a carrier, alone. It goes into every message of the request: nothing else may."""
    given = carrier.get(TRACEPARENT, "") if carrier else ""
    return {TRACEPARENT: given} if len(given) == LENGTH and _is_traceparent(given) else {}


@lru_cache(MAX_KNOWN)
def _is_traceparent(text: str) -> bool:
    return _TRACEPARENT.fullmatch(text) is not None


def is_sampled(carrier: Mapping[str, str] | None) -> bool:
    """Whether a span about a message may be exported, by the last bit of its flags, without the cost of a parse."""
    given = carrier.get(TRACEPARENT) if carrier else None
    return given is None or given[-1:] not in _UNSAMPLED


def parsed(traceparent: str) -> SpanContext | None:
    """The span that a `traceparent` names; None if it names none."""
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    context = SpanContext(int(found[1], 16), int(found[2], 16), True, TraceFlags(int(found[3], 16)))
    return context if context.is_valid else None


def written(span: SpanContext) -> str:
    """A span as a `traceparent`."""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


def workflow_context(request_id: str, parent: SpanContext | None, is_sampled: bool) -> SpanContext:
    """The workflow span of a request, in the trace of whoever asked or in its own."""
    trace_id = parent.trace_id if parent else int(trace_id_of(request_id), 16)
    flags = TraceFlags(TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT)
    return SpanContext(trace_id, int(workflow_id_of(request_id), 16), True, flags)


def parent_of(span: SpanContext) -> Context:
    """A context in which this span, of another process, is the parent of what is opened."""
    return set_span_in_context(NonRecordingSpan(span), Context())


@lru_cache(MAX_KNOWN)
def parent_named(traceparent: str) -> Context | None:
    """The same for a span that a `traceparent` names; None if it names none."""
    span = parsed(traceparent)
    return parent_of(span) if span else None

"""Reads the spans of a trace from Jaeger's `/api/v3`, which answers in OTLP's JSON."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, cast

from muster_bus.tracing import names
from muster_protocol.errors import Retryable

SECONDS = 10.0  # a trace of a thousand tasks is megabytes
MAX_BYTES = 256 * 1024 * 1024


class JaegerAway(Retryable):
    """No Jaeger answers there, or something else does."""


@dataclass(frozen=True, slots=True)
class Span:
    """As much of a span as is compared."""

    id: str
    parent: str
    name: str
    service: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])


async def fetch_spans(url: str, trace_id: str) -> list[Span] | None:
    """The spans that Jaeger has of a trace; None when it does not know the trace."""
    address = f"{url.rstrip('/')}/api/v3/traces/{trace_id}"
    try:
        body = await asyncio.to_thread(_get, address)
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND and _is_jaegers(error):
            return None
        raise JaegerAway(f"{address} answers {error.code} {error.reason}; {_WAY_OUT}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise JaegerAway(f"no Jaeger answers at {url} ({reason}); {_WAY_OUT}") from None
    try:
        return list(_spans(json.loads(body)))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise JaegerAway(f"what answers at {address} is not Jaeger's API; {_WAY_OUT}") from None


_WAY_OUT = "start one, or give its address, where people see its page: --jaeger http://localhost:16686"


def _get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=SECONDS) as reply:
        return reply.read(MAX_BYTES)


def _is_jaegers(error: urllib.error.HTTPError) -> bool:
    """Whether it says in Jaeger's words that there is no such trace; any server has a 404 for what it does not know."""
    try:
        return "error" in json.loads(error.read(MAX_BYTES))
    except (ValueError, TypeError, OSError):
        return False


def _spans(document: Any) -> Iterator[Span]:
    for resource in document["result"].get("resourceSpans", []):
        service = _attributes(resource.get("resource", {})).get(names.SERVICE, "")
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                yield Span(
                    str(span["spanId"]),
                    _parent(span),
                    str(span.get("name", "")),
                    service,
                    _attributes(span),
                )


def _parent(span: Any) -> str:
    parent = str(span.get("parentSpanId") or "")
    return parent if parent.strip("0") else ""  # zeros mean that there is none


def _attributes(holder: Any) -> dict[str, str]:
    """Attributes as texts: a whole number is a string in JSON of Protobuf, and a number in JSON of others."""
    found: dict[str, str] = {}
    for attribute in holder.get("attributes", []):
        values = cast("dict[str, Any]", attribute.get("value", {}))
        found[str(attribute["key"])] = str(next(iter(values.values()), ""))
    return found

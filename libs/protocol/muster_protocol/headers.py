"""The headers that every message carries, and those that let a watcher count without reading bodies."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from muster_protocol.errors import Invalid
from muster_protocol.messages import Answer, Message, Result, Started
from muster_protocol.plan import Frozen
from muster_protocol.subjects import request_id

M = TypeVar("M", bound=Message)

SENDER = "sender"
KIND = "kind"
SCHEMA = "schema"
REQUEST_ID = "request-id"
MESSAGE_ID = "Nats-Msg-Id"
TERM = "term"
BODY_REF = "body-ref"  # "<sha256>.<bytes>": the body lies in the object store

_SENDER = re.compile(r"[a-z][a-z0-9_-]{0,31}(/[A-Za-z0-9_.-]{1,64}){1,2}")


@dataclass(frozen=True, slots=True)
class Sender:
    """Who speaks: `<service>/<instance>`, and the role for workers."""

    service: str
    instance: str
    role: str = ""

    def __str__(self) -> str:
        return f"{self.service}/{self.instance}/{self.role}" if self.role else f"{self.service}/{self.instance}"


def require_sender(headers: Mapping[str, str] | None) -> str:
    """The sender that a message claims, or the reason why it has none."""
    sender = (headers or {}).get(SENDER)
    if not sender:
        raise Invalid("the message has no sender header", SENDER)
    if not _SENDER.fullmatch(sender):
        raise Invalid(f"{sender[:80]!r} is not <service>/<instance>[/<role>]", SENDER)
    return sender


def request_hash(subject: str, headers: Mapping[str, str] | None, body: bytes) -> str:
    """Of the team and the body, so that the same id for another team or text is noticed."""
    stands_for = (headers or {}).get(BODY_REF, "").encode() or body
    return hashlib.sha256(subject.encode() + b"\n" + stands_for).hexdigest()


def is_owner(sender: str) -> bool:
    """Whether it speaks for a request: only supervisors own one."""
    return sender.startswith("supervisor/")


def require_kind(headers: Mapping[str, str] | None, known: Mapping[str, type[M]]) -> type[M]:
    kind = (headers or {}).get(KIND, "")
    if kind not in known:
        raise Invalid(f"unknown kind {kind[:80]!r}; known here: {', '.join(sorted(known))}", KIND)
    return known[kind]


class _Named(Frozen):
    """As much of a request as is needed to answer it when the rest is invalid."""

    id: str | None = None


def request_id_of(headers: Mapping[str, str] | None, sequence: int, body: bytes) -> str:
    """The id of a stored request: every reader finds the same, also when the body is broken or lies elsewhere."""
    named = headers or {}
    body_id: str | None = None
    if BODY_REF in named:
        body_id = named.get(REQUEST_ID)
    elif MESSAGE_ID not in named:
        try:
            body_id = _Named.model_validate_json(body).id
        except ValueError:
            body_id = None  # its place in the stream names it
    return request_id(named.get(MESSAGE_ID), body_id, sequence, body)


def summary_headers(message: Message) -> dict[str, str]:
    """The few fields that watchers count, as headers."""
    match message:
        case Result():
            counted = {
                "task": message.task_id,
                "attempt": str(message.attempt),
                "status": message.status.value,
                "worker": message.worker,
                "role": message.role,
                "delivery": str(message.delivery),
                "seconds": str(message.seconds),
            }
            if message.usage.model_calls:  # absent means nothing was spent
                counted["tokens"] = str(message.usage.tokens)
                counted["usd"] = f"{message.usage.usd:.6f}"
            return counted
        case Answer():
            return {"status": message.status.value, "seconds": f"{message.seconds:.3f}"}
        case Started():
            return {
                "task": message.task_id,
                "attempt": str(message.attempt),
                "worker": message.worker,
                "role": message.role,
                "delivery": str(message.delivery),
                "task-sequence": str(message.task_sequence),
            }
        case _:
            return {}


def headers_of(
    message: Message, sender: Sender, request_id: str, message_id: str, term: int | None = None
) -> dict[str, str]:
    """All that the bus writes beside a body; the trace context is added where the span is."""
    headers = {
        SENDER: str(sender),
        KIND: message.kind,
        SCHEMA: str(message.schema_version),
        REQUEST_ID: request_id,
        MESSAGE_ID: message_id,
        **summary_headers(message),
    }
    if term is not None:
        headers[TERM] = str(term)
    return headers

"""The headers that every message carries, and those that let a watcher count without reading bodies."""

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from muster_protocol.errors import Invalid
from muster_protocol.plan import Frozen
from muster_protocol.sender import Origin
from muster_protocol.subjects import request_id

if TYPE_CHECKING:
    from muster_protocol.messages.base import Message

M = TypeVar("M", bound="Message")

SENDER = "sender"
KIND = "kind"
SCHEMA = "schema"
REQUEST_ID = "request-id"
MESSAGE_ID = "Nats-Msg-Id"
TERM = "term"
BODY_REF = "body-ref"  # "<sha256>.<bytes>": the body lies in the object store

# What a result, an answer and a start repeat from their bodies, for `summary_headers`.
TASK = "task"
ATTEMPT = "attempt"
STATUS = "status"
ERROR_CLASS = "error-class"  # of a result that failed
WORKER = "worker"
ROLE = "role"
DELIVERY = "delivery"
TASK_SEQUENCE = "task-sequence"
SECONDS = "seconds"
TOKENS = "tokens"
USD = "usd"
QUESTION = "question"
APPROVAL = "approval"  # of a question: it is about the plan
DECISION = "decision"
REJECTED = "rejected"  # of a decision: its choice
SAME_WORK = "same-work"  # of a plan that has such tasks: how many groups

_SENDER = re.compile(r"[a-z][a-z0-9_-]{0,31}(/[A-Za-z0-9_.-]{1,64}){1,2}")


def require_sender(headers: Mapping[str, str] | None) -> str:
    """The sender that a message claims, or the reason why it has none."""
    sender = (headers or {}).get(SENDER)
    if not sender:
        raise Invalid("the message has no sender header", SENDER)
    if not _SENDER.fullmatch(sender):
        raise Invalid(f"{sender[:80]!r} is not <service>/<instance>[/<role>]", SENDER)
    return sender


def sender_of(headers: Mapping[str, str] | None) -> str:
    """The sender that a message claims; empty when it claims none, or something that is no sender."""
    sender = (headers or {}).get(SENDER, "")
    return sender if _SENDER.fullmatch(sender) else ""


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


def headers_of(message: "Message", origin: Origin) -> dict[str, str]:
    """All that the bus writes beside a body; the trace context is added where the span is."""
    headers = {
        SENDER: str(origin.sender),
        KIND: message.kind,
        SCHEMA: str(message.schema_version),
        REQUEST_ID: origin.request_id,
        **message.summary_headers(),
    }
    if message_id := message.id_for(origin):
        headers[MESSAGE_ID] = message_id
    if origin.term is not None:
        headers[TERM] = str(origin.term)
    return headers

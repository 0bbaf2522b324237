"""On `errors`: what arrived and cannot be used."""

from typing import ClassVar

from muster_protocol.messages.base import Message


class ErrorReport(Message):
    """Something arrived that cannot be used, or something broke; never retried."""

    kind: ClassVar[str] = "error"

    reason: str
    subject: str = ""
    stream: str = ""
    sequence: int = 0
    claimed_sender: str = ""
    request_id: str | None = None
    excerpt: str = ""

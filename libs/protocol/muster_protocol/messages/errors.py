"""On `errors`: what arrived and cannot be used."""

from typing import ClassVar

from muster_protocol import subjects
from muster_protocol.messages.base import Message
from muster_protocol.sender import Origin


class ErrorReport(Message):
    """Something arrived that cannot be used, or something broke; never retried."""

    kind: ClassVar[str] = "error"
    free_text: ClassVar[tuple[str, ...]] = ("reason", "excerpt", "claimed_sender")

    reason: str
    subject: str = ""
    stream: str = ""
    sequence: int = 0
    claimed_sender: str = ""
    request_id: str | None = None
    excerpt: str = ""

    def subject_for(self, origin: Origin) -> str:
        return subjects.ERRORS

    def id_for(self, origin: Origin) -> str:
        """That of the message it is about, so that several readers report it once."""
        return f"{self.stream}.{self.sequence}"

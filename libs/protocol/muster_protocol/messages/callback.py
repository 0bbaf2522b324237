"""On `callbacks.<team>`: that somebody is to be told of an answer, and on `events.<request_id>`: what came of it."""

from typing import ClassVar, Literal

from pydantic import Field

from muster_protocol import subjects
from muster_protocol.messages.base import MOST, Message
from muster_protocol.sender import Origin
from muster_protocol.subjects import RequestId


class Callback(Message):
    """The answer of a request is to be sent to its `callback_url`; the answer itself stands in the log."""

    kind: ClassVar[str] = "callback"

    request_id: RequestId
    callback_url: str

    def subject_for(self, origin: Origin) -> str:
        return subjects.callbacks(origin.team)

    def id_for(self, origin: Origin) -> str:
        return self.request_id


class CalledBack(Message):
    """What came of one try to call back. Of the address it names the host alone: the rest may hold a token."""

    kind: ClassVar[str] = "called_back"
    free_text: ClassVar[tuple[str, ...]] = ("reason",)

    request_id: RequestId
    host: str
    outcome: Literal["delivered", "waits", "given_up"]
    tries: int
    next_try_seconds: float = Field(default=0.0, ge=0, le=MOST)
    reason: str = ""

    def subject_for(self, origin: Origin) -> str:
        return subjects.events(self.request_id)

    def id_for(self, origin: Origin) -> str:
        """Two supervisors may have the same try, if the first one hung: both say so."""
        return f"{self.request_id}.{self.kind}.{origin.sender.instance}.{origin.nonce}"

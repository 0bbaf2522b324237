"""On `control.<request_id>`: what people and owners say about a running request."""

from typing import ClassVar

from muster_protocol.messages.base import Message
from muster_protocol.subjects import RequestId, TaskId


class Cancel(Message):
    """Somebody wants the request to end now."""

    kind: ClassVar[str] = "cancel"

    request_id: RequestId
    reason: str = ""


class Abort(Message):
    """The owner tells workers to stop: these attempts, or all of the request."""

    kind: ClassVar[str] = "abort"

    request_id: RequestId
    attempts: tuple[tuple[TaskId, int], ...] = ()
    reason: str = ""

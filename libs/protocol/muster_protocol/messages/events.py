"""On `events.<request_id>`: what happens to an attempt between the entries of the log."""

from typing import ClassVar, Literal

from muster_protocol.messages.base import Message
from muster_protocol.subjects import RequestId, TaskId


class Started(Message):
    """A worker runs an attempt."""

    kind: ClassVar[str] = "started"

    request_id: RequestId
    task_id: TaskId
    attempt: int
    worker: str
    role: str
    delivery: int
    task_sequence: int


class HandedBack(Message):
    """A worker that stops gives an attempt back unharmed."""

    kind: ClassVar[str] = "handed_back"

    request_id: RequestId
    task_id: TaskId
    attempt: int
    worker: str
    delivery: int


class Progress(Message):
    """What a role says while it works."""

    kind: ClassVar[str] = "progress"

    request_id: RequestId
    task_id: TaskId
    attempt: int
    text: str


class ToolUsed(Message):
    """A role called one of its tools."""

    kind: ClassVar[str] = "tool"

    request_id: RequestId
    task_id: TaskId
    attempt: int
    tool: str
    seconds: float
    error: str | None = None


class ConflictFound(Message):
    """The same attempt was started or finished more than once."""

    kind: ClassVar[str] = "conflict"

    request_id: RequestId
    task_id: TaskId
    attempt: int
    what: Literal["started twice", "finished twice"]
    first: str
    second: str
    at: float

    @property
    def message_id(self) -> str:
        sides = "+".join(sorted((self.first, self.second)))
        return f"conflict.{self.request_id}.{self.task_id}.{self.attempt}.{self.what.split()[0]}.{sides}"

"""On `events.<request_id>`: what happens to an attempt between the entries of the log."""

from typing import ClassVar, Literal

from muster_protocol import subjects
from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages.base import Message
from muster_protocol.sender import Origin
from muster_protocol.subjects import RequestId, TaskId


class AttemptEvent(Message):
    """What happened to one attempt."""

    request_id: RequestId
    task_id: TaskId
    attempt: int

    @property
    def attempt_id(self) -> AttemptId:
        return AttemptId(self.request_id, self.task_id, self.attempt)

    def subject_for(self, origin: Origin) -> str:
        return subjects.events(self.request_id)

    def id_for(self, origin: Origin) -> str:
        """Unique to one publish: events are never repeated by their sender."""
        return f"{self.attempt_id}.{self.kind}.{origin.sender.instance}.{origin.nonce}"


class Started(AttemptEvent):
    """A worker runs an attempt."""

    kind: ClassVar[str] = "started"

    worker: str
    role: str
    delivery: int
    task_sequence: int

    def summary_headers(self) -> dict[str, str]:
        return {
            "task": self.task_id,
            "attempt": str(self.attempt),
            "worker": self.worker,
            "role": self.role,
            "delivery": str(self.delivery),
            "task-sequence": str(self.task_sequence),
        }


class HandedBack(AttemptEvent):
    """A worker that stops gives an attempt back unharmed."""

    kind: ClassVar[str] = "handed_back"

    worker: str
    delivery: int

    def id_for(self, origin: Origin) -> str:
        return f"{self.attempt_id}.back.{self.worker}.{self.delivery}"


class Progress(AttemptEvent):
    """What a role says while it works."""

    kind: ClassVar[str] = "progress"

    text: str


class ToolUsed(AttemptEvent):
    """A role called one of its tools."""

    kind: ClassVar[str] = "tool"

    tool: str
    seconds: float
    error: str | None = None


class ConflictFound(AttemptEvent):
    """The same attempt was started or finished more than once."""

    kind: ClassVar[str] = "conflict"

    what: Literal["started twice", "finished twice"]
    first: str
    second: str
    at: float

    @property
    def key(self) -> str:
        """The same for every coordinator that sees the same two sides."""
        sides = "+".join(sorted((self.first, self.second)))
        return f"conflict.{self.attempt_id}.{self.what.split()[0]}.{sides}"

    def id_for(self, origin: Origin) -> str:
        return self.key

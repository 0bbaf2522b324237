"""On `events.<request_id>`: what happens to an attempt between the entries of the log."""

from typing import ClassVar

from pydantic import Field

from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import Conflict, ConflictKind, SideId
from muster_protocol.messages.base import MOST, Message
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
    """A worker runs an attempt. It says so once, and again when the coordinator asks."""

    kind: ClassVar[str] = "started"

    worker: str
    role: str
    delivery: int
    task_sequence: int
    at: float = 0.0  # broker time by the worker's clock; 0: not known

    def id_for(self, origin: Origin) -> str:
        nonce = f".{origin.nonce}" if origin.nonce else ""
        return f"{self.attempt_id}.{self.kind}.{self.worker}.{self.delivery}.{self.task_sequence}{nonce}"

    def summary_headers(self) -> dict[str, str]:
        return {
            h.TASK: self.task_id,
            h.ATTEMPT: str(self.attempt),
            h.WORKER: self.worker,
            h.ROLE: self.role,
            h.DELIVERY: str(self.delivery),
            h.TASK_SEQUENCE: str(self.task_sequence),
        }


class HandedBack(AttemptEvent):
    """A worker that stops, or that stops this attempt, gives a message of it back unharmed."""

    kind: ClassVar[str] = "handed_back"
    free_text: ClassVar[tuple[str, ...]] = ("why",)

    worker: str
    delivery: int
    task_sequence: int = 0  # 0: not known
    why: str = ""  # empty: the worker stops

    def id_for(self, origin: Origin) -> str:
        """With the message: two of one attempt may each be at their first delivery."""
        message = f".{self.task_sequence}" if self.task_sequence else ""
        return f"{self.attempt_id}.back.{self.worker}.{self.delivery}{message}"


class Refused(AttemptEvent):
    """A worker did not run a task message: it runs or is done already, or nobody waits for it."""

    kind: ClassVar[str] = "refused"
    free_text: ClassVar[tuple[str, ...]] = ("why",)

    worker: str
    delivery: int
    task_sequence: int
    why: str = ""

    def id_for(self, origin: Origin) -> str:
        return f"{self.attempt_id}.{self.kind}.{self.worker}.{self.delivery}.{self.task_sequence}"


class Progress(AttemptEvent):
    """What a role says while it works."""

    kind: ClassVar[str] = "progress"
    free_text: ClassVar[tuple[str, ...]] = ("text", "waits_for")

    text: str
    is_part: bool = False  # of what its model writes: it goes on from the part before
    waits_for: str = ""  # the limit of a provider of models; empty: it goes on
    waits_until: float = Field(default=0.0, ge=0, le=MOST)  # about, in broker time; 0: that depends on others


class ToolUsed(AttemptEvent):
    """A role called one of its tools."""

    kind: ClassVar[str] = "tool"
    free_text: ClassVar[tuple[str, ...]] = ("tool", "error")

    tool: str
    seconds: float
    error: str | None = None
    error_class: str | None = None  # such as `network`


class ConflictFound(AttemptEvent):
    """The same attempt was assigned, started or finished more than once: the record as it was when it was found."""

    kind: ClassVar[str] = "conflict"
    free_text: ClassVar[tuple[str, ...]] = ("why",)

    what: str
    first: str
    second: str
    at: float
    kinds: tuple[ConflictKind, ...] = ()
    keep: SideId | None = None
    stops: tuple[SideId, ...] = ()
    tasks: tuple[TaskId, ...] = ()
    why: str = ""

    @classmethod
    def of_record(cls, record: Conflict) -> "ConflictFound":
        sides = [str(side.id) for side in record.sides] or list(record.tasks)
        return cls(
            **record.attempt_id._asdict(),
            what=", ".join(kind.replace("_", " ") for kind in record.kinds),
            first=sides[0] if sides else "",
            second=sides[1] if len(sides) > 1 else "",
            at=record.found_at,
            kinds=record.kinds,
            keep=record.keep,
            stops=record.stops,
            tasks=record.tasks,
            why=record.why,
        )

    def id_for(self, origin: Origin) -> str:
        return f"conflict.{self.attempt_id}"

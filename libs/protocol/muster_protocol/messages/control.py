"""On `control.<request_id>`: what people and owners say about a running request."""

from typing import ClassVar

from pydantic import Field

from muster_protocol import subjects
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import SideId
from muster_protocol.messages.base import Message, Output
from muster_protocol.messages.people import QuestionId
from muster_protocol.plan import Plan
from muster_protocol.sender import Origin
from muster_protocol.subjects import RequestId, Tag, TaskId


class ControlMessage(Message):
    """What is to happen to one request."""

    request_id: RequestId

    def subject_for(self, origin: Origin) -> str:
        return subjects.control(self.request_id)

    def id_for(self, origin: Origin) -> str:
        return f"{self.request_id}.{self.kind}.{origin.nonce}"


class Cancel(ControlMessage):
    """Somebody wants the request to end now."""

    kind: ClassVar[str] = "cancel"
    free_text: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Reply(ControlMessage):
    """Somebody replies to a question: with one of its choices, or with a value where it has none."""

    kind: ClassVar[str] = "reply"
    free_text: ClassVar[tuple[str, ...]] = (
        "reason",
        "value",
        "plan.goal",
        "plan.tasks.description",
        "plan.tasks.expected_output",
        "plan.final_instruction",
        "plan.tasks.inputs",
        "plan.tasks.label",
    )

    question: QuestionId
    choice: str = ""
    value: Output = None
    plan: Plan | None = None  # with `edit`: the one that is to be carried out
    reason: str = ""


class Note(ControlMessage):
    """Somebody says something about a request that goes on."""

    kind: ClassVar[str] = "note"
    free_text: ClassVar[tuple[str, ...]] = ("text",)

    text: str = Field(min_length=1)


class RetryTask(ControlMessage):
    """Somebody wants a task to be tried again now: one that failed, or what failed before one that was skipped."""

    kind: ClassVar[str] = "retry"
    free_text: ClassVar[tuple[str, ...]] = ("reason",)

    task_id: TaskId
    reason: str = ""


class ReassignTask(ControlMessage):
    """Somebody gives a task to another role, or to the worker that has this name."""

    kind: ClassVar[str] = "reassign"
    free_text: ClassVar[tuple[str, ...]] = ("reason",)

    task_id: TaskId
    role: Tag | None = None
    worker: Tag | None = None
    reason: str = ""


class Abort(ControlMessage):
    """The owner tells workers to stop: these attempts, or all of the request.

    With a side it is the coordinator's: of an attempt that runs more than once, this one is to stop.
    """

    kind: ClassVar[str] = "abort"
    free_text: ClassVar[tuple[str, ...]] = ("reason",)

    attempts: tuple[tuple[TaskId, int], ...] = ()
    reason: str = ""
    side: SideId | None = None
    keeps: int = 0  # the task message that goes on; a worker that stops must not ack it

    @property
    def attempt_ids(self) -> frozenset[AttemptId]:
        return frozenset(AttemptId(self.request_id, *attempt) for attempt in self.attempts)

    def id_for(self, origin: Origin) -> str:
        which = "-".join(f"{task_id}.{attempt}" for task_id, attempt in self.attempts) or "all"
        if self.side is not None:  # sent again as long as it has no effect
            return f"{self.request_id}.{self.kind}.{which}.{origin.nonce}"
        return f"{self.request_id}.{self.kind}.{origin.term}.{which}"


class Check(ControlMessage):
    """The coordinator asks who runs these attempts: whoever does says `started` again, at once."""

    kind: ClassVar[str] = "check"

    attempts: tuple[tuple[TaskId, int], ...]
    at: float = 0.0  # later than everything that the coordinator knows of them; an answer is never earlier

    @property
    def attempt_ids(self) -> frozenset[AttemptId]:
        return frozenset(AttemptId(self.request_id, *attempt) for attempt in self.attempts)

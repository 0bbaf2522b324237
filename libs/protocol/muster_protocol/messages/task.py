"""On `tasks.<tag>`: one attempt of one task, for a worker that has the tag."""

from typing import Any, ClassVar

from pydantic import Field

from muster_protocol import subjects
from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages.base import Message, Output
from muster_protocol.sender import Origin
from muster_protocol.subjects import Priority, RequestId, Tag, TaskId, TeamName


class Task(Message):
    """Do one task, once. Any worker that has the tag may take it."""

    kind: ClassVar[str] = "task"
    free_text: ClassVar[tuple[str, ...]] = ("description", "inputs", "expected_output", "context", "notes")

    request_id: RequestId
    task_id: TaskId
    attempt: int = Field(ge=1)
    tag: Tag
    worker: Tag | None = None  # the one that is to do it; None: any that has the tag
    team: TeamName
    priority: Priority = "normal"  # its lane
    description: str
    inputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    expected_output: str | dict[str, Any] | None = None
    context: dict[TaskId, Output] = Field(default_factory=dict[TaskId, Output])
    model: str | None = None
    notes: tuple[str, ...] = ()  # of people, about the request
    resumes: bool = False  # the attempt before failed of something else than its work: go on with its turns
    timeout_seconds: float = Field(gt=0)
    deadline: float  # broker time, seconds since 1970: after it nobody waits for this attempt
    work_ends: float | None = None  # broker time: after it nobody begins another attempt; None: that is not known
    tokens: int | None = None  # set aside for this attempt; no limit when absent
    usd: float | None = None
    reserved_at: float  # broker time of the log entry that reserved this attempt …
    reserved_sequence: int  # … and its place in the log: a second copy is recognised from there on

    @property
    def attempt_id(self) -> AttemptId:
        return AttemptId(self.request_id, self.task_id, self.attempt)

    def subject_for(self, origin: Origin) -> str:
        return subjects.tasks(self.worker or self.tag, self.priority)

    @property
    def message_id(self) -> str:
        """Its attempt's id as text, written out: it is compared for every task that arrives."""
        return f"{self.request_id}.{self.task_id}.{self.attempt}"

    def id_for(self, origin: Origin) -> str:
        return self.message_id

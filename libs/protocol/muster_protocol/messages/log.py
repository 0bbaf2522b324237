"""On `results.<request_id>`: the entries of a request's log."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from muster_protocol.messages.base import MOST, Message, Output, Usage
from muster_protocol.messages.request import Budget
from muster_protocol.plan import Frozen, Plan
from muster_protocol.status import AnswerStatus, ResultStatus
from muster_protocol.subjects import RequestId, TaskId, TeamName


class Taken(Message):
    """A supervisor has taken the request, or hands it back; the entry's sequence is its term."""

    kind: ClassVar[str] = "taken"

    instance: str
    delivery: int
    team: TeamName
    deadline: float
    request_hash: str
    request_sequence: int  # of the message in REQUESTS that is the lease
    handed_back: bool = False


class PlanRecorded(Message):
    """The plan. The first valid one in the log is the plan."""

    kind: ClassVar[str] = "plan"

    plan: Plan
    text: str = ""
    team: TeamName
    request_hash: str
    deadline: float
    in_flight: int = Field(ge=1)
    max_attempts: int = Field(default=3, ge=1)  # three strikes end a task that says nothing else
    timeout_seconds: float = Field(default=300.0, gt=0)
    budget: Budget = Budget()
    planner: str = ""
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()


class Reservation(Frozen):
    """One attempt that is about to be dispatched, and what is set aside for it."""

    task_id: TaskId
    attempt: int
    timeout_seconds: float
    tokens: int | None = None
    usd: float | None = None


class Reserved(Message):
    """These attempts are about to be dispatched."""

    kind: ClassVar[str] = "reserved"

    attempts: tuple[Reservation, ...]


class Dispatch(Frozen):
    """Where the task message of an attempt is stored."""

    task_id: TaskId
    attempt: int
    sequence: int


class Dispatched(Message):
    """These attempts are stored in TASKS."""

    kind: ClassVar[str] = "dispatched"

    attempts: tuple[Dispatch, ...]


class Revision(Message):
    """The next attempt of a failed task gets this description."""

    kind: ClassVar[str] = "revision"

    task_id: TaskId
    attempt: int
    description: str
    not_before: float
    reason: str = ""
    usage: Usage = Usage()


class Decision(Message):
    """What somebody said on `control`, copied into the log before it is acted upon."""

    kind: ClassVar[str] = "decision"

    decision: Literal["cancel"]
    control_sequence: int
    by: str
    reason: str = ""


class Failure(Frozen):
    """Why an attempt failed. `is_final` means that trying again cannot help."""

    error_class: Literal[
        "network", "timeout", "resource", "logic", "refusal", "bad_output", "poison", "expired", "cancelled"
    ] = Field(validation_alias="class", serialization_alias="class")
    message: str
    stack: str | None = None
    is_final: bool = False


class Result(Message):
    """What an attempt came to."""

    kind: ClassVar[str] = "result"

    request_id: RequestId
    task_id: TaskId
    attempt: int
    status: ResultStatus
    output: Output = None
    error: Failure | None = None
    worker: str
    role: str
    delivery: int = 1
    usage: Usage = Usage()
    seconds: float = Field(default=0.0, ge=0, le=MOST)
    tool_calls: tuple[dict[str, Any], ...] = ()

    @property
    def message_id(self) -> str:
        """With worker and delivery, so that a second finisher is seen instead of swallowed."""
        return f"{self.request_id}.{self.task_id}.{self.attempt}.{self.worker}.{self.delivery}"


class TaskOutcome(Frozen):
    """One row of the answer's table."""

    id: TaskId
    role: str
    status: str
    seconds: float
    attempts: int
    reason: str | None = None


class Answer(Message):
    """What the request came to."""

    kind: ClassVar[str] = "answer"

    request_id: RequestId
    status: AnswerStatus
    text: str
    output: Output = None
    tasks: tuple[TaskOutcome, ...] = ()
    contradictions: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    confidence: float | None = None
    sources: tuple[str, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    sequential_seconds: float = 0.0
    trace_id: str | None = None
    model: str = ""
    request_hash: str = ""

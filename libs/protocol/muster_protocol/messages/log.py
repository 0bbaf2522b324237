"""On `results.<request_id>`: the entries of a request's log."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages.base import MOST, Message, Output, Usage
from muster_protocol.messages.request import Budget
from muster_protocol.plan import Frozen, Plan, Retry
from muster_protocol.sender import Origin
from muster_protocol.status_words import AnswerStatus, ResultStatus, TaskStatus
from muster_protocol.subjects import RequestId, Tag, TaskId, TeamName

ErrorClass = Literal[
    "network",
    "timeout",
    "resource",
    "logic",
    "bad_output",
    "refusal",
    "input",
    "budget",
    "poison",
    "cancelled",
    "expired",
    "unknown_outcome",
]


class LogEntry(Message):
    """What stands in a request's log. Where it is written with compare-and-set, its id is unique to that write."""

    def subject_for(self, origin: Origin) -> str:
        return subjects.results(origin.request_id)

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.sender.instance}.{origin.nonce}"


class Taken(LogEntry):
    """A supervisor has taken the request, or hands it back; the entry's sequence is its term."""

    kind: ClassVar[str] = "taken"
    free_text: ClassVar[tuple[str, ...]] = ("asked",)

    instance: str
    delivery: int
    team: TeamName
    deadline: float
    request_hash: str
    request_sequence: int  # of the message in REQUESTS that is the lease
    stored_at: float = 0.0  # when the broker stored that message; 0: not known
    handed_back: bool = False
    asked: str = ""  # the beginning of what was asked, for lists: the request is gone once it is answered
    asked_by: str = ""  # the sender of the request; empty when somebody published it without headers

    def id_for(self, origin: Origin) -> str:
        what = f"back.{origin.term or 0}" if self.handed_back else self.kind
        nonce = f".{origin.nonce}" if origin.nonce else ""
        return f"{origin.request_id}.{what}.{self.instance}.{self.request_sequence}.{self.delivery}{nonce}"


class PlanRecorded(LogEntry):
    """The plan. The first valid one in the log is the plan."""

    kind: ClassVar[str] = "plan"
    free_text: ClassVar[tuple[str, ...]] = (
        "plan.goal",
        "plan.tasks.description",
        "plan.tasks.expected_output",
        "plan.final_instruction",
        "text",
        "plan.tasks.inputs",
        "plan.tasks.label",
        "warnings",
    )

    plan: Plan
    text: str = ""
    team: TeamName
    request_hash: str
    deadline: float
    in_flight: int = Field(ge=1)
    max_attempts: int = Field(default=3, ge=1)  # three failed attempts end a task that says nothing else
    retry: dict[Tag, Retry] = Field(default_factory=dict[Tag, Retry])  # what holds for the tasks of a tag
    timeout_seconds: float = Field(default=300.0, gt=0)
    budget: Budget = Budget()
    planner: str = ""
    warnings: tuple[str, ...] = ()
    same_work: tuple[tuple[TaskId, ...], ...] = ()  # groups of tasks that say the same
    usage: Usage = Usage()

    def summary_headers(self) -> dict[str, str]:
        """Whether there is something in the body for whoever lists conflicts."""
        return {h.SAME_WORK: str(len(self.same_work))} if self.same_work else {}


class Reservation(Frozen):
    """One attempt that is about to be dispatched, and what is set aside for it."""

    task_id: TaskId
    attempt: int
    timeout_seconds: float
    tokens: int | None = None
    usd: float | None = None


class Reserved(LogEntry):
    """These attempts are about to be dispatched."""

    kind: ClassVar[str] = "reserved"

    attempts: tuple[Reservation, ...]

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.term}{_first_of(self.attempts)}"


class Dispatch(Frozen):
    """Where the task message of an attempt is stored."""

    task_id: TaskId
    attempt: int
    sequence: int


class Dispatched(LogEntry):
    """These attempts are stored in TASKS."""

    kind: ClassVar[str] = "dispatched"

    attempts: tuple[Dispatch, ...]

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.term}{_first_of(self.attempts)}"


class Revision(LogEntry):
    """The next attempt of a failed task gets this description."""

    kind: ClassVar[str] = "revision"
    free_text: ClassVar[tuple[str, ...]] = ("description", "reason")

    task_id: TaskId
    attempt: int
    description: str
    not_before: float
    reason: str = ""
    usage: Usage = Usage()

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.term}{_first_of((self,))}"


class Decision(LogEntry):
    """What somebody said on `control`, copied into the log before it is acted upon."""

    kind: ClassVar[str] = "decision"
    free_text: ClassVar[tuple[str, ...]] = ("reason",)

    decision: Literal["cancel"]
    control_sequence: int
    by: str
    reason: str = ""

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.term}.{self.control_sequence}"


class Failure(Frozen):
    """Why an attempt failed. `is_final` means that trying again cannot help."""

    error_class: ErrorClass = Field(validation_alias="class", serialization_alias="class")
    message: str
    stack: str | None = None
    is_final: bool = False


class Result(LogEntry):
    """What an attempt came to."""

    kind: ClassVar[str] = "result"
    free_text: ClassVar[tuple[str, ...]] = ("output", "error.message", "error.stack", "tool_calls")

    request_id: RequestId
    task_id: TaskId
    attempt: int
    status: ResultStatus
    output: Output = None
    error: Failure | None = None
    worker: str
    role: str
    delivery: int = 1
    task_sequence: int = 0  # of the task's message in TASKS; 0: not known
    usage: Usage = Usage()
    seconds: float = Field(default=0.0, ge=0, le=MOST)
    tool_calls: tuple[dict[str, Any], ...] = ()

    @property
    def attempt_id(self) -> AttemptId:
        return AttemptId(self.request_id, self.task_id, self.attempt)

    def id_for(self, origin: Origin) -> str:
        """With worker and delivery, so that a second finisher is seen; with the term of an owner who failed it."""
        by_owner = "" if origin.term is None else f".{origin.term}"
        message = f".{self.task_sequence}" if self.task_sequence else ""
        return f"{self.request_id}.{self.task_id}.{self.attempt}.{self.worker}.{self.delivery}{message}{by_owner}"

    def summary_headers(self) -> dict[str, str]:
        counted = {
            h.TASK: self.task_id,
            h.ATTEMPT: str(self.attempt),
            h.STATUS: self.status.value,
            h.DELIVERY: str(self.delivery),
            h.SECONDS: str(self.seconds),
        }
        if self.task_sequence:
            counted[h.TASK_SEQUENCE] = str(self.task_sequence)
        if self.usage.model_calls:  # absent means that nothing was spent
            counted[h.TOKENS] = str(self.usage.tokens)
            counted[h.USD] = f"{self.usage.usd:.6f}"
        return counted


class TaskOutcome(Frozen):
    """One row of the answer's table."""

    id: TaskId
    label: str = ""  # what people call it; its id if it has none
    role: str
    status: TaskStatus
    seconds: float
    attempts: int
    reason: str | None = None


class Answer(LogEntry):
    """What the request came to."""

    kind: ClassVar[str] = "answer"
    free_text: ClassVar[tuple[str, ...]] = (
        "text",
        "output",
        "tasks.label",
        "tasks.reason",
        "reason",
        "contradictions",
        "gaps",
        "unsupported",
        "sources",
    )

    request_id: RequestId
    status: AnswerStatus
    text: str
    output: Output = None
    tasks: tuple[TaskOutcome, ...] = ()
    reason: str = ""  # why it ended before all tasks did; it stands first in `gaps` too
    error_class: str = ""  # of what ended it early, such as `deadline`, or of the first task that failed for good
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
    conflicts: int = 0  # attempts of the request that were found to be assigned twice, when it was answered

    def summary_headers(self) -> dict[str, str]:
        return {h.STATUS: self.status.value, h.SECONDS: f"{self.seconds:.3f}"}


def _first_of(attempts: Sequence[Reservation | Dispatch | Revision]) -> str:
    """The attempt that names an entry: an owner reserves, dispatches and revises each once in a term."""
    return f".{attempts[0].task_id}.{attempts[0].attempt}" if attempts else ""

"""On `results.<request_id>`: what the request came to."""

from typing import ClassVar, TypedDict

from muster_protocol import headers as h
from muster_protocol.messages.base import Output, Usage
from muster_protocol.messages.entry import LogEntry
from muster_protocol.plan import Frozen
from muster_protocol.status_words import AnswerStatus, TaskStatus
from muster_protocol.subjects import RequestId, TaskId


class TaskOutcome(Frozen):
    """One row of the answer's table."""

    id: TaskId
    label: str = ""  # what people call it; its id if it has none
    role: str
    status: TaskStatus
    seconds: float
    attempts: int
    reason: str | None = None
    grown_by: str = ""  # the cause by which the plan grew by it; empty: the plan began with it


class OutcomeFields(TypedDict):
    """The fields of a `TaskOutcome`, not validated yet."""

    id: str
    label: str
    role: str
    status: TaskStatus
    seconds: float
    attempts: int
    reason: str | None
    grown_by: str


class Selected(Frozen):
    """Which task's output the answer is, where the plan says `select`."""

    task_id: TaskId
    reason: str


class ConfidenceParts(Frozen):
    """What a confidence is the product of: the part of the tasks, of their results, and of the figures of the text."""

    done: float  # of the tasks
    agreeing: float = 1.0  # of the results: they contradict no other
    supported: float = 1.0  # of the figures and addresses of a composed text: some result has them

    @property
    def product(self) -> float:
        return round(self.done * self.agreeing * self.supported, 3)


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
        "growth",
        "unsupported",
        "sources",
        "selected.reason",
    )

    request_id: RequestId
    status: AnswerStatus
    text: str
    output: Output = None
    tasks: tuple[TaskOutcome, ...] = ()
    reason: str = ""  # why it ended before all tasks did; it stands first in `gaps` too
    error_class: str = ""  # of what ended it early, such as `deadline`, or of the first task that failed for good
    contradictions: tuple[str, ...] = ()  # between results: the figures, the tasks and what they say
    gaps: tuple[str, ...] = ()
    growth: tuple[str, ...] = ()  # what a review added and what took the place of a failed task, each with the reason
    unsupported: tuple[str, ...] = ()  # figures and addresses of a composed text that no result has
    confidence: float | None = None
    confidence_parts: ConfidenceParts | None = None  # what it is the product of
    sources: tuple[str, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    sequential_seconds: float = 0.0
    trace_id: str | None = None
    model: str = ""
    request_hash: str = ""
    selected: Selected | None = None
    conflicts: int = 0  # attempts of the request that were found to be assigned twice, when it was answered

    def summary_headers(self) -> dict[str, str]:
        return {h.STATUS: self.status.value, h.SECONDS: f"{self.seconds:.3f}"}

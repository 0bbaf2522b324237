"""On `results.<request_id>`: what an attempt came to."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from muster_protocol import headers as h
from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages.base import MOST, Output, Usage
from muster_protocol.messages.entry import LogEntry
from muster_protocol.plan import Frozen, TaskSpec
from muster_protocol.sender import Origin
from muster_protocol.status_words import ResultStatus
from muster_protocol.subjects import RequestId, TaskId

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

MAX_SPAWNED = 1_000  # tasks that one result may ask for


ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,32}$")]


class Failure(Frozen):
    """Why an attempt failed. `is_final` means that trying again cannot help."""

    error_class: ErrorClass = Field(validation_alias="class", serialization_alias="class")
    message: str
    stack: str | None = None
    is_final: bool = False
    limited_until: float | None = Field(default=None, ge=0, le=MOST)  # broker time; nobody failed: it was not its turn
    provider: ProviderName | None = None  # of the model that gave no reply; None: it was nobody's model


class Result(LogEntry):
    """What an attempt came to."""

    kind: ClassVar[str] = "result"
    free_text: ClassVar[tuple[str, ...]] = (
        "output",
        "error.message",
        "error.stack",
        "tool_calls",
        "tasks.description",
        "tasks.expected_output",
        "tasks.inputs",
        "tasks.label",
    )

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
    spent: Usage | None = None  # of the whole task up to here, if turns of it are stored: what is not charged yet, is
    model: str = ""  # that was asked, as provider/model; empty: none was
    seconds: float = Field(default=0.0, ge=0, le=MOST)
    tool_calls: tuple[dict[str, Any], ...] = ()
    tasks: tuple[TaskSpec, ...] = Field(default=(), max_length=MAX_SPAWNED)  # that it wants to be done, too

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
        if self.error is not None:
            counted[h.ERROR_CLASS] = self.error.error_class
        if self.task_sequence:
            counted[h.TASK_SEQUENCE] = str(self.task_sequence)
        if self.usage.model_calls:  # absent means that nothing was spent
            counted[h.TOKENS] = str(self.usage.tokens)
            counted[h.USD] = f"{self.usage.usd:.6f}"
        return counted

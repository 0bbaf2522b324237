"""Every message of the wire, grouped by the subject that it travels on."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from muster_protocol.errors import Invalid
from muster_protocol.plan import Frozen, MapOver, Plan
from muster_protocol.subjects import RequestId, Tag, TaskId, TeamName

Output = Any  # what a role returned: JSON
MOST = 10**12  # of anything that is added up: no sum of them is more than a number can say


class Message(Frozen):
    """What travels. Where a message has a natural id, `once` is it: the broker stores that at most once per window."""

    kind: ClassVar[str]
    schema_version: ClassVar[int] = 1

    def body(self) -> bytes:
        """As it travels: JSON, without what a reader supplies, so that a long plan or answer stays short."""
        return self.__pydantic_serializer__.to_json(self, by_alias=True, exclude_defaults=True)

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Parse a body, or say which field is wrong."""
        try:
            return cls.__pydantic_validator__.validate_json(body)
        except ValidationError as error:
            raise invalid(error) from None

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Self:
        """The message with these fields, or the field that is wrong."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise invalid(error) from None


def invalid(error: ValidationError) -> Invalid:
    """What pydantic found first, in our words."""
    first = error.errors(include_url=False, include_input=False)[0]
    return Invalid(first["msg"].removeprefix("Value error, "), ".".join(str(part) for part in first["loc"]))


class Usage(Frozen):
    """What work cost."""

    input_tokens: int = Field(default=0, ge=0, le=MOST)
    output_tokens: int = Field(default=0, ge=0, le=MOST)
    usd: float = Field(default=0.0, ge=0, le=MOST)
    model_calls: int = Field(default=0, ge=0, le=MOST)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        if not (other.input_tokens or other.output_tokens or other.usd or other.model_calls):
            return self  # most results of plain functions cost nothing, and the fold adds every one of them
        return Usage(
            input_tokens=min(MOST, self.input_tokens + other.input_tokens),
            output_tokens=min(MOST, self.output_tokens + other.output_tokens),
            usd=min(MOST, self.usd + other.usd),
            model_calls=min(MOST, self.model_calls + other.model_calls),
        )


# --- requests.<team> -------------------------------------------------------------------------------------------------


class Budget(Frozen):
    """The most that a request may spend, over all its workers."""

    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    tasks: int | None = Field(default=None, ge=1)
    depth: int | None = Field(default=None, ge=0)


class Request(Message):
    """What a user asks of a team: exactly one of text, plan or map."""

    kind: ClassVar[str] = "request"

    id: str | None = None
    text: str | None = None
    plan: Plan | None = None
    map: MapOver | None = None
    priority: Literal["high", "normal", "low"] = "normal"
    deadline_seconds: float | None = Field(default=None, gt=0)
    in_flight: int | None = Field(default=None, ge=1)
    budget: Budget = Budget()
    approve: bool = False
    num_tasks: int | None = Field(default=None, ge=1)
    answer_schema: dict[str, Any] | None = None
    conversation: str | None = None
    callback_url: str | None = None
    replay_of: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        given = [name for name in ("text", "plan", "map") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a request has exactly one of text, plan or map; this one has {given or 'none'}")
        if self.text is not None and not self.text.strip():
            raise ValueError("text is empty")
        return self


# --- tasks.<tag> -----------------------------------------------------------------------------------------------------


class Task(Message):
    """Do one task, once. Any worker that has the tag may take it."""

    kind: ClassVar[str] = "task"

    request_id: RequestId
    task_id: TaskId
    attempt: int = Field(ge=1)
    tag: Tag
    team: TeamName
    description: str
    expected_output: str | dict[str, Any] | None = None
    context: dict[TaskId, Output] = Field(default_factory=dict[TaskId, Output])
    model: str | None = None
    timeout_seconds: float = Field(gt=0)
    deadline: float  # broker time, seconds since 1970: after it nobody waits for this attempt
    tokens: int | None = None  # set aside for this attempt; no limit when absent
    usd: float | None = None
    reserved_at: float  # broker time of the log entry that reserved this attempt …
    reserved_sequence: int  # … and its place in the log: a second copy is recognised from there on

    @property
    def once(self) -> str:
        return f"{self.request_id}.{self.task_id}.{self.attempt}"


# --- results.<request_id>: the log -----------------------------------------------------------------------------------


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


class PlanMade(Message):
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


class ResultStatus(StrEnum):
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


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
    def once(self) -> str:
        """With worker and delivery, so that a second finisher is seen instead of swallowed."""
        return f"{self.request_id}.{self.task_id}.{self.attempt}.{self.worker}.{self.delivery}"


class AnswerStatus(StrEnum):
    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


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


# --- errors, events.<request_id>, control.<request_id> ---------------------------------------------------------------


class ErrorReport(Message):
    """Something arrived that cannot be used, or something broke; never retried."""

    kind: ClassVar[str] = "error"

    reason: str
    subject: str = ""
    stream: str = ""
    sequence: int = 0
    claimed_sender: str = ""
    request_id: str | None = None
    excerpt: str = ""


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
    def once(self) -> str:
        sides = "+".join(sorted((self.first, self.second)))
        return f"conflict.{self.request_id}.{self.task_id}.{self.attempt}.{self.what.split()[0]}.{sides}"


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


LogBody = Taken | PlanMade | Reserved | Dispatched | Revision | Decision | Result | Answer
Event = Started | HandedBack | Progress | ToolUsed | ConflictFound
Control = Cancel | Abort

LOG_KINDS: dict[str, type[LogBody]] = {
    cls.kind: cls for cls in (Taken, PlanMade, Reserved, Dispatched, Revision, Decision, Result, Answer)
}
EVENT_KINDS: dict[str, type[Event]] = {
    cls.kind: cls for cls in (Started, HandedBack, Progress, ToolUsed, ConflictFound)
}
CONTROL_KINDS: dict[str, type[Control]] = {cls.kind: cls for cls in (Cancel, Abort)}
MESSAGES: tuple[type[Message], ...] = (
    Request,
    Task,
    *LOG_KINDS.values(),
    ErrorReport,
    *EVENT_KINDS.values(),
    *CONTROL_KINDS.values(),
)

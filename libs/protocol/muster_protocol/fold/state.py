"""What is known about a request: its tasks, their attempts, its owner, its costs."""

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

from pydantic import TypeAdapter

from muster_protocol.attempt_id import AttemptId
from muster_protocol.fold.questions import Asked
from muster_protocol.messages import (
    Answer,
    Decision,
    Extended,
    Failure,
    LogBody,
    Output,
    PlanRecorded,
    Result,
    TaskOutcome,
    Usage,
)
from muster_protocol.messages.answer import OutcomeFields
from muster_protocol.plan import Plan, TaskSpec
from muster_protocol.status_words import TaskStatus

MAX_SUPERSEDED = 8  # results of one task that are remembered although they do not count
NOT_ADDED = "what it spawned was not added: {}"  # of a task that is done all the same
EXPIRY_GRACE_SECONDS = 1.0  # the worker's own report of a timeout comes first, if it can


class TaskPhase(StrEnum):
    """Where a task stands by its log alone; `TaskStatus` is what people see."""

    WAITING = "waiting"  # for its dependencies
    READY = "ready"  # to be dispatched
    RESERVED = "reserved"  # an attempt was dispatched or is about to be
    AWAITING_RETRY = "awaiting_retry"  # an attempt failed, its revision is to be written
    DELAYED = "delayed"  # the revision says: not before
    GROWING = "growing"  # the tasks that the plan grows by because of it are to be recorded
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


FINAL = frozenset({TaskPhase.DONE, TaskPhase.FAILED, TaskPhase.SKIPPED})
_OUTCOMES = TypeAdapter(tuple[TaskOutcome, ...])  # the whole table at once: quicker than row by row
_AT_THE_END = {  # what becomes of a task when the request is answered before the task has ended
    TaskPhase.DONE: (TaskStatus.DONE, None),
    TaskPhase.FAILED: (TaskStatus.FAILED, None),
    TaskPhase.SKIPPED: (TaskStatus.SKIPPED, None),
    TaskPhase.RESERVED: (TaskStatus.CANCELLED, "the request ended before it gave a result"),
    TaskPhase.AWAITING_RETRY: (TaskStatus.FAILED, "the request ended before it was tried again"),
    TaskPhase.DELAYED: (TaskStatus.FAILED, "the request ended before it was tried again"),
    TaskPhase.WAITING: (TaskStatus.SKIPPED, "the request ended before it was started"),
    TaskPhase.READY: (TaskStatus.SKIPPED, "the request ended before it was started"),
    TaskPhase.GROWING: (TaskStatus.SKIPPED, "the request ended before it was started"),
}


class Entry(NamedTuple):
    """One message of the log."""

    sequence: int
    time: float  # broker time, seconds since 1970
    sender: str
    term: int  # of the owner who wrote it; 0 for workers
    body: LogBody


@dataclass(slots=True)
class Attempt:
    """One try at a task."""

    number: int
    reserved_at: float
    reserved_sequence: int
    timeout_seconds: float
    tokens: int | None
    usd: float | None
    role: str | None = None  # that was chosen of several; None: whoever has the task's tag
    why: str | None = None
    model: str | None = None  # another than the one that refused
    wanted_seconds: float | None = None  # its timeout, if the end of the request did not come before it
    task_sequence: int | None = None  # where its message is stored, once that is noted
    result: Result | None = None  # the one that counts

    @property
    def deadline(self) -> float:
        return self.reserved_at + self.timeout_seconds

    @property
    def expiry(self) -> float:
        """When its owner gives it up."""
        return self.deadline + EXPIRY_GRACE_SECONDS


class SetAside(NamedTuple):
    """What the owner's calls of a model for one purpose may cost; None where the request has no limit."""

    tokens: int | None
    usd: float | None


class Superseded(NamedTuple):
    """A result of a task that came second, or that of a worker that was stopped: only its cost counts."""

    attempt: int
    worker: str
    status: str
    seconds: float
    tokens: int
    usd: float

    @classmethod
    def of(cls, result: Result) -> Self:
        usage = result.usage
        return cls(result.attempt, result.worker, result.status.value, result.seconds, usage.tokens, usage.usd)


@dataclass(slots=True)
class TaskState:
    """What is known about one task."""

    spec: TaskSpec
    description: str
    max_attempts: int
    missing: int  # dependencies that are not done
    lost: int = 0  # of these, ones that failed or were skipped and that it may lack
    may_lose: int = 0  # the most of them that it can do without
    dependents: list[str] = field(default_factory=list[str])
    phase: TaskPhase = TaskPhase.WAITING
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    success: Result | None = None  # of whichever attempt
    unfolded: int | None = None  # over how many items it went; what it gave is what they gave
    refused: Failure | None = None  # why the plan did not grow by what it was to give
    moved_at: int = 0  # how many attempts it had when a person last gave it to somebody else
    not_before: float = 0.0
    reason: str | None = None
    spent: Usage = field(default_factory=Usage)  # by what its turns say; all of it is in the request's usage
    superseded: list[Superseded] = field(default_factory=list[Superseded])  # the first few
    grown_by: str = ""  # the cause by which the plan grew by it; empty: the plan began with it
    depth: int = 0  # how many that were spawned are behind it
    is_cause: bool = False  # its failure was one to look for others, which it is once
    is_spawning: bool = False  # done, but what it spawned is still to be recorded
    also: frozenset[str] = frozenset()  # of its dependencies, those that it waits for because others spawned them

    @property
    def is_given(self) -> bool:
        """Whether nobody has to wait for it any more."""
        return self.phase is TaskPhase.DONE and not self.is_spawning

    @property
    def not_added(self) -> str | None:
        """Why what it spawned is missing, although it is done itself."""
        if self.phase is not TaskPhase.DONE or not (self.refused or self.is_spawning):
            return None
        return NOT_ADDED.format(self.refused.message if self.refused else "the request ended before")

    @property
    def result(self) -> Result | None:
        """What it came to, or its newest attempt did."""
        return self.success or (self.attempts[-1].result if self.attempts else None)

    @property
    def output(self) -> Output:
        """What it gave; of a list that was unfolded, nothing but what its tasks gave."""
        if self.success is not None:
            return self.success.output
        return None if self.unfolded is None else []

    @property
    def role(self) -> str:
        """Who does it or did it, as far as that is known."""
        is_new_here = self.success is None and self.moved_at == len(self.attempts)
        return self.result.role if self.result and self.result.role and not is_new_here else self.tag

    @property
    def tag(self) -> str:
        """The tag of its newest attempt: that of the role that was chosen, or its own."""
        chosen = self.attempts[-1].role if len(self.attempts) > self.moved_at else None
        return chosen or self.spec.tag or ""

    @property
    def queue(self) -> str:
        """The tag on which its newest attempt was given out: that of its worker, if it names one."""
        return self.spec.worker or self.tag

    @property
    def tried(self) -> tuple[str, ...]:
        """The roles that were chosen for its attempts."""
        return tuple(attempt.role for attempt in self.attempts if attempt.role is not None)

    @property
    def seconds(self) -> float:
        """What its attempts took, all together."""
        return round(sum([one.result.seconds for one in self.attempts if one.result is not None]), 3)

    def outcome(self) -> OutcomeFields:
        """Its row in the answer's table."""
        result = self.result
        status, reason = _AT_THE_END[self.phase]
        return {
            "id": self.spec.id,
            "label": self.spec.label,
            "role": result.role if result else self.tag,
            "status": status,
            "seconds": self.seconds,
            "attempts": len(self.attempts),
            "reason": self.reason or self.not_added or reason,
            "grown_by": self.grown_by,
        }


@dataclass(slots=True)
class RequestState:
    """All that is known about a request. Only the fold changes it."""

    request_id: str
    last_sequence: int = 0
    started_at: float = 0.0
    term: int = 0
    owner: str | None = None
    delivery: int = 0
    last_productive_delivery: int = 0  # the last one that made progress or was handed back cleanly
    lone_takes: frozenset[int] = frozenset()  # deliveries since then that were taken alone
    team: str = ""
    request_hash: str = ""
    request_sequence: int = 0  # of the message that is the lease
    stored_at: float = 0.0  # the first copy of the request that is known; 0: not known
    base_deadline: float | None = None  # without what waiting for people adds
    paused_seconds: float = 0.0  # what it adds
    plan_entry: PlanRecorded | None = None
    is_held: bool = False  # the plan waits for approval
    tasks: dict[str, TaskState] = field(default_factory=dict[str, TaskState])
    growing: dict[str, str] = field(default_factory=dict[str, str])  # causes of growth, each with its task, if any
    rounds: int = 0  # reviews that have ended
    is_reviewed: bool = False  # no further review: the last one added nothing
    replacements: int = 0  # failures for which the plan grew or is to grow
    grown: tuple[Extended, ...] = ()  # what came of reviews and failures, the only causes that models are asked about
    dropped: dict[str, str] = field(default_factory=dict[str, str])  # tasks that left the plan, each with the cause
    ready: OrderedDict[str, None] = field(default_factory=OrderedDict[str, None])  # a set that knows its first
    awaiting_retry: dict[str, None] = field(default_factory=dict[str, None])
    expired: dict[str, None] = field(default_factory=dict[str, None])
    dispatch_unconfirmed: dict[str, None] = field(default_factory=dict[str, None])  # reserved, perhaps not stored
    overtaken: dict[str, None] = field(default_factory=dict[str, None])  # done while a further attempt was open
    withdrawn: dict[tuple[str, int], None] = field(default_factory=dict[tuple[str, int], None])  # attempts taken away
    timers: list[tuple[float, str, int]] = field(default_factory=list[tuple[float, str, int]])
    in_flight: int = 0
    open_tasks: int = 0
    tokens_set_aside: int = 0
    usd_set_aside: float = 0.0
    purposes: dict[str, SetAside] = field(default_factory=dict[str, SetAside])  # of the owner's own model calls
    usage: Usage = field(default_factory=Usage)
    cancelled: Decision | None = None
    controls_seen: int = 0
    questions: dict[str, Asked] = field(default_factory=dict[str, Asked])
    open_questions: dict[str, None] = field(default_factory=dict[str, None])
    refused_replies: int = 0
    refusals: tuple[Decision, ...] = ()  # the last few
    notes: tuple[Decision, ...] = ()  # of people, the last few
    orders: tuple[Decision, ...] = ()  # of people about single tasks, the last few that were carried out
    answer: Answer | None = None
    answered_at: float = 0.0
    uncounted: int = 0  # results that came second, or of workers that were stopped

    @property
    def deadline(self) -> float | None:
        """The time of the request, its seconds, and those in which it waited for people.

        A question that is open counts as if it were open up to its limit, so a deadline never passes before a reply
        may come; the reply moves it back.
        """
        return None if self.base_deadline is None else self.base_deadline + self.paused_seconds

    @property
    def plan(self) -> Plan | None:
        return self.plan_entry.plan if self.plan_entry else None

    def attempt_id(self, task_id: str, attempt: int) -> AttemptId:
        return AttemptId(self.request_id, task_id, attempt)

    def is_counted(self, result: Result) -> bool:
        """Whether this very result is the one of its attempt that counts."""
        task = self.tasks.get(result.task_id)
        return task is not None and any(attempt.result is result for attempt in task.attempts)

    def unproductive_takes(self, delivery: int) -> int:
        """Deliveries before this one, since the last that made progress or was handed back cleanly."""
        return max(0, delivery - self.last_productive_delivery - 1)

    def lone_takes_in_vain(self, delivery: int) -> int:
        """Of those, how many were taken with no other such request beside: only these say that it was this request."""
        return sum(number < delivery for number in self.lone_takes)

    def outcomes(self) -> tuple[TaskOutcome, ...]:
        """The answer's table."""
        return _OUTCOMES.validate_python([task.outcome() for task in self.tasks.values()])

"""The fold: a request's log, entry by entry, into its state.

Rules, all decided by the order of the log and nothing else:
  taken       the last one names the owner; its sequence is the owner's term
  plan        the first valid one of the current owner counts
  reserved    an attempt of a task that is ready and was not reserved before
  result      the first of an attempt counts, so the first success of a task does
  revision    the first for the next attempt of a task that was struck
  answer      the first of the current owner counts; afterwards only costs are added
What an owner writes after a later owner's `taken` is ignored. `apply` is constant time per entry (a plan costs its
size, a failed task its dependents) and an entry that means nothing changes nothing but the last sequence.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, assert_never

from pydantic import TypeAdapter

from muster_protocol.headers import is_owner
from muster_protocol.messages import (
    Answer,
    Decision,
    Dispatched,
    LogBody,
    PlanRecorded,
    Reserved,
    Result,
    ResultStatus,
    Revision,
    Taken,
    TaskOutcome,
    Usage,
)
from muster_protocol.plan import Plan, TaskSpec, is_acyclic

EXPIRY_GRACE_SECONDS = 1.0  # the worker's own report of a timeout comes first, if it can
MAX_CAUSE = 300  # characters of an error that each skipped task repeats


class TaskStatus(StrEnum):
    WAITING = "waiting"  # for its dependencies
    READY = "ready"  # to be dispatched
    DELAYED = "delayed"  # a revision says: not before
    RUNNING = "running"  # reserved, no result yet
    STRUCK = "struck"  # failed, to be tried again
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


_OUTCOMES = TypeAdapter(tuple[TaskOutcome, ...])  # the whole table at once: quicker than row by row
TERMINAL = frozenset({TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.SKIPPED})


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
    task_sequence: int | None = None  # noted: the message is stored there
    result: Result | None = None

    @property
    def deadline(self) -> float:
        return self.reserved_at + self.timeout_seconds

    @property
    def expiry(self) -> float:
        """When its owner gives it up."""
        return self.deadline + EXPIRY_GRACE_SECONDS


@dataclass(slots=True)
class TaskState:
    """What is known about one task."""

    spec: TaskSpec
    description: str
    max_attempts: int
    missing: int  # dependencies that are not done
    dependents: list[str] = field(default_factory=list[str])
    status: TaskStatus = TaskStatus.WAITING
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    not_before: float = 0.0
    reason: str | None = None

    @property
    def result(self) -> Result | None:
        return self.attempts[-1].result if self.attempts else None

    def outcome(self) -> dict[str, object]:
        """Its row in the answer's table."""
        result = self.result
        return {
            "id": self.spec.id,
            "role": result.role if result else self.spec.tag or "",
            "status": self.status.value,
            "seconds": round(sum([attempt.result.seconds for attempt in self.attempts if attempt.result]), 3),
            "attempts": len(self.attempts),
            "reason": self.reason,
        }


@dataclass(slots=True)
class RequestState:
    """All that is known about a request. Change it only by `apply` and `advance`."""

    request_id: str
    last_sequence: int = 0
    started_at: float = 0.0
    term: int = 0
    owner: str | None = None
    delivery: int = 0
    last_productive_delivery: int = 0  # the last delivery that made progress or was handed back cleanly
    team: str = ""
    request_hash: str = ""
    request_sequence: int = 0
    deadline: float | None = None
    plan_entry: PlanRecorded | None = None
    tasks: dict[str, TaskState] = field(default_factory=dict[str, TaskState])
    ready: OrderedDict[str, None] = field(default_factory=OrderedDict[str, None])  # a set that knows its first
    awaiting_retry: dict[str, None] = field(default_factory=dict[str, None])
    expired: dict[str, None] = field(default_factory=dict[str, None])
    dispatch_unconfirmed: dict[str, None] = field(default_factory=dict[str, None])  # reserved, not known to be stored
    timers: list[tuple[float, str, int]] = field(default_factory=list[tuple[float, str, int]])
    in_flight: int = 0
    open_tasks: int = 0
    tokens_set_aside: int = 0
    usd_set_aside: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cancelled: Decision | None = None
    controls_seen: int = 0
    answer: Answer | None = None
    uncounted: int = 0  # results that came second

    @property
    def plan(self) -> Plan | None:
        return self.plan_entry.plan if self.plan_entry else None

    def apply(self, entry: Entry) -> None:
        """Take one entry in; older ones than the last change nothing."""
        if entry.sequence <= self.last_sequence:
            return
        self.last_sequence = entry.sequence
        self.started_at = self.started_at or entry.time
        body = entry.body
        if isinstance(body, Taken):
            self._taken(entry, body)
            return
        if isinstance(body, Result) and not is_owner(entry.sender):
            self._result(body)
            self.last_productive_delivery = max(self.last_productive_delivery, self.delivery)
            return
        if not is_owner(entry.sender) or entry.term != self.term or self.answer is not None:
            return
        self._owner_entry(entry, body)

    def _owner_entry(self, entry: Entry, body: LogBody) -> None:
        match body:
            case PlanRecorded():
                self._plan(body)
            case Reserved():
                self._reserved(entry, body)
            case Dispatched():
                self._dispatched(body)
            case Result():
                self._result(body)
            case Revision():
                self._revision(body)
            case Decision():
                self._decision(body)
            case Answer():
                self.answer = body
            case Taken():
                return
            case _:
                assert_never(body)
        self.last_productive_delivery = max(self.last_productive_delivery, self.delivery)

    def advance(self, now: float) -> None:
        """Move what time has made due: delayed tasks become ready, attempts without a result become expired."""
        while self.timers and self.timers[0][0] <= now:
            timer = heapq.heappop(self.timers)
            task_id = timer[1]
            if not self._is_live(timer):
                continue
            if self.tasks[task_id].status is TaskStatus.DELAYED:
                self._make_ready(task_id)
            else:
                self.expired[task_id] = None

    def next_timer(self) -> float | None:
        """When `advance` will next move something; timers that lost their meaning are dropped on the way."""
        while self.timers and not self._is_live(self.timers[0]):
            heapq.heappop(self.timers)
        return self.timers[0][0] if self.timers else None

    def _is_live(self, timer: tuple[float, str, int]) -> bool:
        """Whether it still ends a delay or an attempt; an attempt may have begun while its delay's timer is there."""
        at, task_id, attempt = timer
        task = self.tasks[task_id]
        if task.status is TaskStatus.DELAYED:
            return attempt == len(task.attempts) + 1
        return task.status is TaskStatus.RUNNING and attempt == len(task.attempts) and at >= task.attempts[-1].expiry

    def is_counted(self, result: Result) -> bool:
        """Whether this very result is the one of its attempt that counts."""
        task = self.tasks.get(result.task_id)
        if task is None or not 1 <= result.attempt <= len(task.attempts):
            return False
        return task.attempts[result.attempt - 1].result is result

    def unproductive_takes(self, delivery: int) -> int:
        """Deliveries before this one, since the last that made progress or was handed back cleanly."""
        return max(0, delivery - self.last_productive_delivery - 1)

    def outcomes(self) -> tuple[TaskOutcome, ...]:
        """The answer's table."""
        return _OUTCOMES.validate_python([task.outcome() for task in self.tasks.values()])

    def _taken(self, entry: Entry, body: Taken) -> None:
        if not is_owner(entry.sender) or self.answer is not None:
            return
        if body.handed_back:
            self.owner = None if entry.term == self.term else self.owner
            if entry.term in (self.term, 0):  # 0: nobody's, handed back before it was taken
                self.last_productive_delivery = max(self.last_productive_delivery, body.delivery)
            return
        self.term = entry.sequence
        self.owner = body.instance
        self.request_hash = body.request_hash
        self.request_sequence = body.request_sequence
        self.delivery = body.delivery
        self.team = body.team
        self.deadline = self.deadline or body.deadline

    def _plan(self, body: PlanRecorded) -> None:
        if self.plan_entry is not None or not is_acyclic(body.plan):
            return
        self.plan_entry = body
        self.team = body.team
        self.request_hash = body.request_hash
        self.deadline = body.deadline
        self.usage += body.usage
        for spec in body.plan.tasks:
            needs = set(spec.dependencies)
            self.tasks[spec.id] = TaskState(
                spec, spec.description, spec.max_attempts or body.max_attempts, missing=len(needs)
            )
        for spec in body.plan.tasks:
            if not spec.dependencies:
                self._make_ready(spec.id)
                continue
            for dependency in dict.fromkeys(spec.dependencies):
                self.tasks[dependency].dependents.append(spec.id)
        self.open_tasks = len(self.tasks)

    def _make_ready(self, task_id: str) -> None:
        self.tasks[task_id].status = TaskStatus.READY
        self.ready[task_id] = None

    def _reserved(self, entry: Entry, body: Reserved) -> None:
        for reservation in body.attempts:
            task = self.tasks.get(reservation.task_id)
            if task is None or reservation.attempt != len(task.attempts) + 1:
                continue
            if task.status not in (TaskStatus.READY, TaskStatus.DELAYED):
                continue
            attempt = Attempt(
                reservation.attempt,
                entry.time,
                entry.sequence,
                reservation.timeout_seconds,
                reservation.tokens,
                reservation.usd,
            )
            task.attempts.append(attempt)
            task.status = TaskStatus.RUNNING
            self.ready.pop(reservation.task_id, None)
            self.dispatch_unconfirmed[reservation.task_id] = None
            self.in_flight += 1
            self.tokens_set_aside += reservation.tokens or 0
            self.usd_set_aside += reservation.usd or 0.0
            heapq.heappush(self.timers, (attempt.expiry, reservation.task_id, attempt.number))

    def _dispatched(self, body: Dispatched) -> None:
        for note in body.attempts:
            task = self.tasks.get(note.task_id)
            if task is not None and task.attempts and task.attempts[-1].number == note.attempt:
                task.attempts[-1].task_sequence = note.sequence
                self.dispatch_unconfirmed.pop(note.task_id, None)

    def _result(self, body: Result) -> None:
        self.usage += body.usage
        task = self.tasks.get(body.task_id)
        if self.answer is not None or task is None or not 1 <= body.attempt <= len(task.attempts):
            return
        attempt = task.attempts[body.attempt - 1]
        if attempt.result is not None:
            self.uncounted += 1
            return
        attempt.result = body
        self.in_flight -= 1
        self.tokens_set_aside -= attempt.tokens or 0
        self.usd_set_aside -= attempt.usd or 0.0
        self.expired.pop(body.task_id, None)
        self.dispatch_unconfirmed.pop(body.task_id, None)
        if body.status is ResultStatus.DONE:
            self._done(task)
        else:
            self._strike_failed(task, body)

    def _done(self, task: TaskState) -> None:
        task.status = TaskStatus.DONE
        task.reason = None
        self.open_tasks -= 1
        for dependent_id in task.dependents:
            dependent = self.tasks[dependent_id]
            dependent.missing -= 1
            if dependent.missing == 0 and dependent.status is TaskStatus.WAITING:
                self._make_ready(dependent_id)

    def _strike_failed(self, task: TaskState, body: Result) -> None:
        task.reason = body.error.message if body.error else body.status.value
        is_final = body.status is ResultStatus.CANCELLED or (body.error is not None and body.error.is_final)
        if not is_final and len(task.attempts) < task.max_attempts:
            task.status = TaskStatus.STRUCK
            self.awaiting_retry[task.spec.id] = None
            return
        task.status = TaskStatus.FAILED
        self.open_tasks -= 1
        self._skip_dependents(task)

    def _skip_dependents(self, failed: TaskState) -> None:
        # The next one up and the cause, not the whole chain: over ten thousand tasks that would be gigabytes.
        cause = f"{failed.spec.id} failed: {(failed.reason or '')[:MAX_CAUSE]}"
        reached = [failed]
        while reached:
            task = reached.pop()
            for dependent_id in task.dependents:
                dependent = self.tasks[dependent_id]
                if dependent.status is TaskStatus.WAITING:
                    dependent.status = TaskStatus.SKIPPED
                    dependent.reason = cause if task is failed else f"{task.spec.id} skipped: {cause}"
                    self.open_tasks -= 1
                    reached.append(dependent)

    def _revision(self, body: Revision) -> None:
        task = self.tasks.get(body.task_id)
        if task is None or task.status is not TaskStatus.STRUCK or body.attempt != len(task.attempts) + 1:
            return
        self.usage += body.usage
        self.awaiting_retry.pop(body.task_id, None)
        task.description = body.description
        task.not_before = body.not_before
        task.status = TaskStatus.DELAYED
        heapq.heappush(self.timers, (body.not_before, body.task_id, body.attempt))

    def _decision(self, body: Decision) -> None:
        self.controls_seen = max(self.controls_seen, body.control_sequence)
        self.cancelled = self.cancelled or body


def fold(request_id: str, entries: Iterable[Entry]) -> RequestState:
    state = RequestState(request_id)
    for entry in entries:
        state.apply(entry)
    return state

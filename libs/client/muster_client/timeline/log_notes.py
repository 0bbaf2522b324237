"""When the entries of a log took effect. The fold says which of them count; this only notes the times."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from muster_protocol.fold import Entry, RequestState, TaskPhase, apply, is_stopped
from muster_protocol.headers import is_owner
from muster_protocol.messages import (
    Answer,
    Decision,
    Dispatched,
    Extended,
    PlanRecorded,
    Question,
    Reserved,
    Result,
    Revision,
    Taken,
    Usage,
)

SECOND = "a second result of this attempt"
TOLD_TO_STOP = "it was told to stop; another worker had the same attempt, or the request had ended"
LATE = "it came after the answer"
OVERRULED = "it was given up, and then its worker stored a success"
STRAY = "nobody dispatched this attempt"


class Ending(NamedTuple):
    """A result with its time, and why it does not count if it does not."""

    time: float
    result: Result
    uncounted: str = ""


class Take(NamedTuple):
    """A supervisor has the request from now on."""

    time: float
    body: Taken
    before: str | None  # whose it was
    tokens: int = 0  # that the owner before it may have spent on calls of which nothing came into the log
    usd: float = 0.0


class Before(NamedTuple):
    """What an entry may change, as it was before the entry was folded."""

    owner: str | None
    usage: Usage
    uncounted: int
    is_answered: bool
    is_awaiting_retry: bool
    is_growing: bool  # the entry is about a cause that was pending
    is_held: bool


@dataclass(slots=True)
class AttemptNotes:
    """When an attempt was dispatched, with which description, and what came back."""

    description: str
    dispatched_at: float | None = None
    endings: list[Ending] = field(default_factory=list[Ending])

    @property
    def counted(self) -> Ending | None:
        return next((ending for ending in self.endings if not ending.uncounted), None)

    @property
    def ended_at(self) -> float | None:
        """When it was first known to be over: a success that came later does not change that."""
        return next((ending.time for ending in self.endings if ending.uncounted in ("", OVERRULED)), None)

    def count(self, ending: Ending) -> None:
        """This one counts, and none before it."""
        self.endings = [before if before.uncounted else before._replace(uncounted=OVERRULED) for before in self.endings]
        self.endings.append(ending)


@dataclass(slots=True)
class TaskNotes:
    """When a task could begin and was done, its attempts, and the revisions by the attempt that they are for."""

    ready_at: float | None = None
    done_at: float | None = None
    attempts: list[AttemptNotes] = field(default_factory=list[AttemptNotes])
    revisions: dict[int, tuple[float, Revision]] = field(default_factory=dict[int, tuple[float, Revision]])


@dataclass(slots=True)
class LogNotes:
    """The folded state of a log and the times of what counted."""

    state: RequestState
    last_time: float = 0.0
    first_time: float | None = None
    takes: list[Take] = field(default_factory=list[Take])
    hand_backs: list[tuple[float, Taken]] = field(default_factory=list[tuple[float, Taken]])
    planned_at: float | None = None
    completed_at: float | None = None  # no task was left to wait for
    decided: tuple[float, Decision] | None = None
    answered_at: float | None = None
    usage_before_answer: Usage = field(default_factory=Usage)
    tasks: dict[str, TaskNotes] = field(default_factory=dict[str, TaskNotes])
    growths: list[tuple[float, Extended]] = field(default_factory=list[tuple[float, Extended]])
    strays: list[Ending] = field(default_factory=list[Ending])

    def add(self, entry: Entry) -> None:
        """Fold an entry and note what it changed."""
        state, body = self.state, entry.body
        if entry.sequence <= state.last_sequence:
            return
        is_awaiting = isinstance(body, Revision) and body.task_id in state.awaiting_retry
        is_growing = isinstance(body, Extended) and body.cause in state.growing
        is_answered, is_held = state.answer is not None, state.is_held
        before = Before(state.owner, state.usage, state.uncounted, is_answered, is_awaiting, is_growing, is_held)
        apply(state, entry)
        self.first_time = entry.time if self.first_time is None else min(self.first_time, entry.time)
        self.last_time = max(self.last_time, entry.time)
        self._note(entry, before)

    def _note(self, entry: Entry, before: Before) -> None:
        body = entry.body
        match body:
            case Taken():
                self._taken(entry, body, before)
            case PlanRecorded():
                self._planned(entry.time, body)
            case Reserved():
                self._reserved(entry, body)
            case Dispatched():
                self._dispatched(entry.time, body)
            case Result():
                self._result(entry, body, before)
            case Revision():
                self._revised(entry.time, body, before)
            case Question() | Decision():
                self._of_people(entry.time, body, before)
            case Extended():
                self._extended(entry.time, body, before)
            case Answer():
                self._answered(entry.time, body, before)
            case _:
                assert_never(body)

    def _taken(self, entry: Entry, body: Taken, before: Before) -> None:
        if body.handed_back:
            if before.owner is not None and self.state.owner is None:
                self.hand_backs.append((entry.time, body))
        elif self.state.term == entry.sequence:
            usage = self.state.usage
            tokens, usd = usage.tokens - before.usage.tokens, usage.usd - before.usage.usd
            self.takes.append(Take(entry.time, body, before.owner, tokens, usd))

    def _of_people(self, time: float, body: Question | Decision, before: Before) -> None:
        if isinstance(body, Question):
            return  # the state has it, with its times
        self.decided = (time, body) if self.state.cancelled is body else self.decided
        if before.is_held and not self.state.is_held:
            self._approved(time)

    def _planned(self, time: float, body: PlanRecorded) -> None:
        if self.state.plan_entry is not body:
            return
        self.planned_at = time
        self._approved(time)

    def _approved(self, time: float) -> None:
        """These are the tasks, until somebody replaces a plan that waits for approval."""
        self.tasks = {task_id: TaskNotes() for task_id in self.state.tasks}
        for task_id in self.state.ready:
            self.tasks[task_id].ready_at = time

    def _extended(self, time: float, body: Extended, before: Before) -> None:
        """The tasks that came, those that left, and those that need not wait any more."""
        is_ended = before.is_growing and body.cause not in self.state.growing
        if is_ended or self.state.usage is not before.usage:
            self.growths.append((time, body))
        for task_id in self.tasks.keys() & self.state.dropped.keys():
            del self.tasks[task_id]
        for task_id, task in self.state.tasks.items():
            notes = self.tasks.setdefault(task_id, TaskNotes())
            if task.phase is TaskPhase.READY and notes.ready_at is None:
                notes.ready_at = time
        self._completed(time)

    def _reserved(self, entry: Entry, body: Reserved) -> None:
        for reservation in body.attempts:
            task, notes = self.state.tasks.get(reservation.task_id), self.tasks.get(reservation.task_id)
            if task is None or notes is None or len(task.attempts) == len(notes.attempts):
                continue
            if task.attempts[-1].reserved_sequence == entry.sequence:
                notes.attempts.append(AttemptNotes(task.description))

    def _dispatched(self, time: float, body: Dispatched) -> None:
        for stored in body.attempts:
            task = self.state.tasks.get(stored.task_id)
            if task is None or not task.attempts or task.attempts[-1].number != stored.attempt:
                continue
            if task.attempts[-1].task_sequence == stored.sequence:
                notes = self.tasks[stored.task_id].attempts[-1]
                notes.dispatched_at = time if notes.dispatched_at is None else notes.dispatched_at

    def _result(self, entry: Entry, body: Result, before: Before) -> None:
        """A result that counts ends its attempt; of any other the cost counts, unless the fold ignored it."""
        task, time = self.tasks.get(body.task_id), entry.time
        has_cost = self.state.uncounted > before.uncounted or self.state.usage is not before.usage
        if task is not None and self.state.is_counted(body):
            task.attempts[body.attempt - 1].count(Ending(time, body))
            task.done_at = time if self.state.tasks[body.task_id].success is body else task.done_at
            self._released(body.task_id, time)
        elif not has_cost and is_owner(entry.sender):
            return
        elif task is None or not 1 <= body.attempt <= len(task.attempts):
            self.strays.append(Ending(time, body, LATE if before.is_answered else STRAY))
        else:
            why = TOLD_TO_STOP if is_stopped(entry.sender, body) else LATE if before.is_answered else SECOND
            ending = Ending(time, body, why)
            task.attempts[body.attempt - 1].endings.append(ending)

    def _revised(self, time: float, body: Revision, before: Before) -> None:
        if before.is_awaiting_retry and body.task_id not in self.state.awaiting_retry:
            self.tasks[body.task_id].revisions[body.attempt] = (time, body)

    def _answered(self, time: float, body: Answer, before: Before) -> None:
        if self.state.answer is body:
            self.answered_at, self.usage_before_answer = time, before.usage

    def _released(self, task_id: str, time: float) -> None:
        """Note which tasks became ready by this one, and whether it was the last of all."""
        for dependent in self.state.tasks[task_id].dependents:
            if self.state.tasks[dependent].phase is TaskPhase.READY and self.tasks[dependent].ready_at is None:
                self.tasks[dependent].ready_at = time
        self._completed(time)

    def _completed(self, time: float) -> None:
        if self.state.open_tasks:
            self.completed_at = None  # a late success may have let others wait again
        elif self.completed_at is None:
            self.completed_at = time


def noted(request_id: str, entries: Iterable[Entry]) -> LogNotes:
    """Fold a log, noting when what counted happened."""
    notes = LogNotes(RequestState(request_id))
    for entry in entries:
        notes.add(entry)
    return notes

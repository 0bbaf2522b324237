"""What each entry of a log means: the transition tables, and `apply`.

A request's log is the only thing that services share about it, and everybody folds it with these rules: the owner to
decide, the coordinator to show, the command line to print. So the rules depend on the order of the log and on nothing
else: no clock, no sender's intention, no second source. Three tables say it all.

WRITERS (writers.py): whose entry of a kind counts. A `taken` begins a term: its sequence is the term, its writer the
owner, and what an earlier owner writes afterwards is ignored, because every entry of an owner carries its term. Results
of workers carry none: they count whoever owns the request. After the answer nothing counts any more; results still add
their cost.

ENTRIES: what an entry that counts does to the request.
  taken       begins a term, or ends it (handed back); the first one says whose body counts, and the deadline runs
              from the first copy of it that any of them names
  plan        the first valid one is the plan; its tasks without dependencies become ready
  reserved    begins attempts, each once: of a task that may be dispatched, with the next number
  dispatched  notes where the messages of attempts are stored
  result      the first of an attempt counts, and a worker's first success of the task whichever attempt it is of
              (counting.py); any other adds its cost alone, and so does that of a worker that was stopped (cancelled)
  revision    the first for the next attempt of a task that awaits its retry
  decision    what a person said; a cancel ends the request
  answer      the first one counts and ends the log

TRANSITIONS (moves.py): how a task moves. A cause that a task's phase does not know changes nothing, so an entry that
comes twice, too late or out of turn is never half applied. A task whose dependencies are done is ready at that moment
(there is no barrier between layers), and one whose dependency failed is skipped with the cause, unless it gathers what
there is (gathering.py); if that one is done after all, because an attempt that was given up succeeds late, it waits
again.

`apply` takes constant time per entry (a plan costs its size, a failed task its dependents): a log of 10,000 tasks is
folded as cheaply per entry as one of ten. Decisions: 1 (one log, one fold), 2 (terms as the fence), 6 (first `taken`).
"""

import heapq
from collections.abc import Callable, Iterable
from typing import Any

from muster_protocol.fold.counting import is_counted
from muster_protocol.fold.gathering import may_lack, most_lacking
from muster_protocol.fold.moves import Cause, move, revive_dependents
from muster_protocol.fold.state import MAX_SUPERSEDED, Attempt, Entry, RequestState, Superseded, TaskPhase, TaskState
from muster_protocol.fold.terms import take
from muster_protocol.fold.writers import WRITERS, may_write
from muster_protocol.headers import is_owner
from muster_protocol.messages import (
    Answer,
    Decision,
    Dispatched,
    LogBody,
    PlanRecorded,
    Reserved,
    Result,
    Revision,
    Taken,
)
from muster_protocol.plan import is_acyclic
from muster_protocol.retry import is_retried, max_attempts_of
from muster_protocol.status_words import ResultStatus


def fold(request_id: str, entries: Iterable[Entry]) -> RequestState:
    state = RequestState(request_id)
    for entry in entries:
        apply(state, entry)
    return state


def apply(state: RequestState, entry: Entry) -> None:
    """Take one entry in. One that was taken in before changes nothing."""
    if entry.sequence <= state.last_sequence:
        return
    state.last_sequence = entry.sequence
    state.started_at = state.started_at or entry.time
    kind = type(entry.body)
    if may_write(state, entry, WRITERS[kind]):
        ENTRIES[kind](state, entry, entry.body)
        if kind is not Taken:
            state.last_productive_delivery = max(state.last_productive_delivery, state.delivery)


def _plan(state: RequestState, _: Entry, body: PlanRecorded) -> None:
    if state.plan_entry is not None or not is_acyclic(body.plan):
        return
    state.plan_entry = body
    state.team = body.team
    state.request_hash = body.request_hash
    state.deadline = body.deadline if state.deadline is None else min(state.deadline, body.deadline)
    state.usage += body.usage
    for spec in body.plan.tasks:
        missing = len(set(spec.dependencies))
        most = max_attempts_of(spec, body.retry, body.max_attempts)
        state.tasks[spec.id] = TaskState(spec, spec.description, most, missing)
    state.open_tasks = len(state.tasks)
    for spec in body.plan.tasks:
        if not spec.dependencies:
            move(state, state.tasks[spec.id], Cause.DEPENDENCIES_DONE)
        if spec.dependencies:
            _connect(state, state.tasks[spec.id])


def _connect(state: RequestState, task: TaskState) -> None:
    """Tell those that a task depends on, and count how many of them it can do without."""
    parts = 0
    for name in dict.fromkeys(task.spec.dependencies):
        needed = state.tasks[name]
        needed.dependents.append(task.spec.id)
        parts += may_lack(task, needed)
    task.may_lose = most_lacking(task, parts)


def _reserved(state: RequestState, entry: Entry, body: Reserved) -> None:
    for reservation in body.attempts:
        task = state.tasks.get(reservation.task_id)
        if task is None or reservation.attempt != len(task.attempts) + 1 or not move(state, task, Cause.RESERVED):
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
        state.dispatch_unconfirmed[reservation.task_id] = None
        state.in_flight += 1
        state.tokens_set_aside += reservation.tokens or 0
        state.usd_set_aside += reservation.usd or 0.0
        heapq.heappush(state.timers, (attempt.expiry, reservation.task_id, attempt.number))


def _dispatched(state: RequestState, _: Entry, body: Dispatched) -> None:
    for stored in body.attempts:
        task = state.tasks.get(stored.task_id)
        if task is not None and task.attempts and task.attempts[-1].number == stored.attempt:
            task.attempts[-1].task_sequence = stored.sequence
            state.dispatch_unconfirmed.pop(stored.task_id, None)


def _result(state: RequestState, entry: Entry, body: Result) -> None:
    state.usage += body.usage
    task = state.tasks.get(body.task_id)
    if state.answer is not None or task is None or not 1 <= body.attempt <= len(task.attempts):
        return
    attempt = task.attempts[body.attempt - 1]
    before, by_owner = attempt.result and attempt.result.status, is_owner(entry.sender)
    if not is_counted(body.status, by_owner=by_owner, before=before, is_done=task.success is not None):
        state.uncounted += 1
        if len(task.superseded) < MAX_SUPERSEDED:
            task.superseded.append(Superseded.of(body))
        return
    attempt.result = body
    if before is not None:
        _succeed_late(state, task, body)
        return
    _close(state, attempt, body.task_id)
    if body.status is ResultStatus.DONE:
        task.success, task.reason = body, None
        move(state, task, Cause.SUCCEEDED)
        return
    task.reason = body.error.message if body.error else body.status.value
    move(state, task, Cause.FAILED_FOR_NOW if is_retried(body, task.max_attempts) else Cause.FAILED_FOR_GOOD)


def _close(state: RequestState, attempt: Attempt, task_id: str) -> None:
    """Nothing more is expected of an attempt."""
    state.in_flight -= 1
    state.tokens_set_aside -= attempt.tokens or 0
    state.usd_set_aside -= attempt.usd or 0.0
    state.expired.pop(task_id, None)
    state.dispatch_unconfirmed.pop(task_id, None)


def _succeed_late(state: RequestState, task: TaskState, success: Result) -> None:
    """An attempt that was given up has succeeded: what was begun or planned in its place is not needed any more."""
    task_id, has_failed = task.spec.id, task.phase is TaskPhase.FAILED
    if task.phase is TaskPhase.RESERVED:
        _close(state, task.attempts[-1], task_id)
        state.overtaken[task_id] = None
    state.ready.pop(task_id, None)
    state.awaiting_retry.pop(task_id, None)
    task.success, task.reason = success, None
    if has_failed:
        state.open_tasks += 1  # it was counted as ended
        revive_dependents(state, task)
    move(state, task, Cause.SUCCEEDED_LATE)


def _revision(state: RequestState, _: Entry, body: Revision) -> None:
    task = state.tasks.get(body.task_id)
    if task is None or body.attempt != len(task.attempts) + 1 or not move(state, task, Cause.REVISED):
        return
    state.usage += body.usage
    task.description = body.description
    task.not_before = body.not_before
    heapq.heappush(state.timers, (body.not_before, body.task_id, body.attempt))


def _decision(state: RequestState, _: Entry, body: Decision) -> None:
    state.controls_seen = max(state.controls_seen, body.control_sequence)
    state.cancelled = state.cancelled or body


def _answer(state: RequestState, entry: Entry, body: Answer) -> None:
    state.answer, state.answered_at = body, entry.time


ENTRIES: dict[type[LogBody], Callable[[RequestState, Entry, Any], None]] = {  # each with the body of its kind
    Taken: take,
    PlanRecorded: _plan,
    Reserved: _reserved,
    Dispatched: _dispatched,
    Result: _result,
    Revision: _revision,
    Decision: _decision,
    Answer: _answer,
}

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
  plan        the first valid one is the plan; its tasks without dependencies become ready, once it is approved if it
              has to be
  reserved    begins attempts, each once: of a task that may be dispatched, with the next number; or sets aside what
              the owner's calls of a model may cost, until they are settled (budget.py)
  dispatched  notes where the messages of attempts are stored
  result      the first of an attempt counts, and a worker's first success of the task whichever attempt it is of
              (counting.py); any other adds its cost alone, and so does that of a worker that was stopped (cancelled)
  revision    the first for the next attempt of a task that awaits its retry; or it gives the task up
  question    the first with an id opens it; while one is open the deadline moves (people.py)
  decision    what a person said: a cancel ends the request, the first reply to a question counts, or its default;
              a plan that waits for approval is carried out, replaced or given up; a task is tried again, or given to
              somebody else (orders.py)
  extended    the first of a cause says what it came to: new tasks, fewer, none, or why not (growth.py)
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

from muster_protocol.fold.budget import UNLIMITED, left_of, set_aside, settle
from muster_protocol.fold.growth import await_review, extend
from muster_protocol.fold.moves import Cause, move
from muster_protocol.fold.people import ask, decide
from muster_protocol.fold.plans import plan
from muster_protocol.fold.results import take_result
from muster_protocol.fold.state import Attempt, Entry, RequestState, TaskPhase, TaskState
from muster_protocol.fold.terms import note_progress, take
from muster_protocol.fold.writers import WRITERS, may_write
from muster_protocol.messages import (
    Answer,
    Decision,
    Dispatched,
    Extended,
    LogBody,
    PlanRecorded,
    Question,
    Reservation,
    Reserved,
    Result,
    Revision,
    Taken,
    refining,
)


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
        if not state.open_tasks:
            await_review(state)
        if kind is not Taken:
            note_progress(state, state.delivery)


def _reserved(state: RequestState, entry: Entry, body: Reserved) -> None:
    if body.purpose and state.term:  # before it is taken nobody has calls to make
        set_aside(state, body)
    for reservation in body.attempts:
        task = state.tasks.get(reservation.task_id)
        if task is None or reservation.attempt != len(task.attempts) + 1:
            continue
        left, tokens, usd = left_of(state), reservation.tokens, reservation.usd
        if left is not UNLIMITED:
            tokens, usd = left.grant(tokens, usd)
        if left.is_used_up or _is_outdated(task, reservation) or not move(state, task, Cause.RESERVED):
            continue
        attempt = Attempt(
            reservation.attempt,
            entry.time,
            entry.sequence,
            reservation.timeout_seconds,
            tokens,
            usd,
            reservation.role,
            reservation.why,
            reservation.model,
            reservation.wanted_seconds,
        )
        task.attempts.append(attempt)
        state.dispatch_unconfirmed[reservation.task_id] = None
        state.in_flight += 1
        state.tokens_set_aside += tokens or 0
        state.usd_set_aside += usd or 0.0
        heapq.heappush(state.timers, (attempt.expiry, reservation.task_id, attempt.number))


def _is_outdated(task: TaskState, reservation: Reservation) -> bool:
    """Whether its role was chosen before a person gave the task to another one."""
    is_moved = task.moved_at == len(task.attempts) and not task.spec.roles
    return is_moved and reservation.role is not None and reservation.role != task.spec.tag


def _dispatched(state: RequestState, _: Entry, body: Dispatched) -> None:
    for stored in body.attempts:
        task = state.tasks.get(stored.task_id)
        if task is None or not 1 <= stored.attempt <= len(task.attempts):
            continue
        task.attempts[stored.attempt - 1].task_sequence = stored.sequence
        if stored.attempt == len(task.attempts):
            state.dispatch_unconfirmed.pop(stored.task_id, None)


def _revision(state: RequestState, _: Entry, body: Revision) -> None:
    was_set_aside = settle(state, refining(body.task_id, body.attempt))
    task = state.tasks.get(body.task_id)
    is_next = task is not None and body.attempt == len(task.attempts) + 1 and task.phase is TaskPhase.AWAITING_RETRY
    if is_next or was_set_aside:
        state.usage += body.usage  # also of one that comes too late: its model was paid
    if task is None or not is_next:
        return
    if body.gives_up:
        task.reason = body.reason
        move(state, task, Cause.GIVEN_UP)
        return
    move(state, task, Cause.REVISED)
    task.description = body.description
    task.not_before = body.not_before
    heapq.heappush(state.timers, (body.not_before, body.task_id, body.attempt))


def _answer(state: RequestState, entry: Entry, body: Answer) -> None:
    state.answer, state.answered_at = body, entry.time


ENTRIES: dict[type[LogBody], Callable[[RequestState, Entry, Any], None]] = {  # each with the body of its kind
    Taken: take,
    PlanRecorded: plan,
    Reserved: _reserved,
    Dispatched: _dispatched,
    Result: take_result,
    Revision: _revision,
    Question: ask,
    Decision: decide,
    Extended: extend,
    Answer: _answer,
}

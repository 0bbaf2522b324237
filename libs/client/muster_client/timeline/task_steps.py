"""The steps of one task, from being ready to its last attempt."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from muster_client.timeline.event_notes import EventNotes
from muster_client.timeline.log_notes import AttemptNotes, LogNotes, TaskNotes
from muster_client.timeline.runs import AttemptPlace, run_steps, runs_of
from muster_client.timeline.steps import Step, StepStatus, What
from muster_protocol.fold import Attempt, TaskPhase, TaskState

Events = dict[tuple[str, int], EventNotes]
_NOTHING_SAID = EventNotes()


@dataclass(frozen=True, slots=True)
class _Task:
    """One task with all that is known about it."""

    state: TaskState
    notes: TaskNotes
    closed_at: float | None  # when the task was done, or the request was answered

    def step(
        self, what: What, begin: float, end: float | None, attempt: int, details: dict[str, Any] | None = None
    ) -> Step:
        """A step that a later one ended; or it goes on; or the answer ended it."""
        status = StepStatus.DONE
        if end is None:
            end = self.closed_at
            status = StepStatus.OPEN if end is None else StepStatus.CANCELLED
        end = None if end is None else max(begin, end)
        return Step(what, begin, end, status, task=self.state.spec.id, attempt=attempt, details=details or {})


def task_steps(notes: LogNotes, task_id: str, events: Events) -> Iterator[Step]:
    """Every step of a task: waits, dispatches, runs, tool calls, revisions, conflicts."""
    done_at = notes.tasks[task_id].done_at
    closed_at = notes.answered_at if done_at is None else done_at
    task = _Task(notes.state.tasks[task_id], notes.tasks[task_id], closed_at)
    for attempt, noted in zip(task.state.attempts, task.notes.attempts, strict=True):
        said = events.get((task_id, attempt.number), _NOTHING_SAID)
        yield from _before(task, attempt.number, attempt.reserved_at)
        yield from _attempt_steps(task, attempt, noted, said)
        yield from (_conflict(task, attempt.number, time, details) for time, details in said.conflicts)
    awaited = len(task.state.attempts) + 1
    if task.state.phase in (TaskPhase.READY, TaskPhase.AWAITING_RETRY, TaskPhase.DELAYED):
        yield from _before(task, awaited, None)


def _before(task: _Task, number: int, reserved_at: float | None) -> Iterator[Step]:
    """What comes before an attempt is reserved: room for the first one, a revision and a wait for a further one."""
    if number == 1:
        ready_at = task.notes.ready_at
        if ready_at is not None and (reserved_at is None or reserved_at > ready_at):
            yield task.step(What.READY, ready_at, reserved_at, number)
        return
    if number in task.notes.ordered:  # a person did not wait for what usually comes before it
        yield task.step(What.READY, task.notes.ordered[number], reserved_at, number)
        return
    failed_at = task.notes.attempts[number - 2].ended_at
    if failed_at is None:
        return
    revised = task.notes.revisions.get(number)
    if revised is None:
        yield task.step(What.REVISION, failed_at, reserved_at, number)
        return
    time, body = revised
    step = task.step(What.REVISION, failed_at, time, number, {"description": body.description, "reason": body.reason})
    yield replace(step, tokens=body.usage.tokens, usd=body.usage.usd)
    yield task.step(What.RETRY_WAIT, max(failed_at, time), reserved_at, number, {"not_before": body.not_before})


def _attempt_steps(task: _Task, attempt: Attempt, noted: AttemptNotes, said: EventNotes) -> Iterator[Step]:
    """Dispatch, queue and runs; what follows ends what came before."""
    runs = runs_of(noted.endings, said)
    begun = max(attempt.reserved_at, runs[0].begin) if runs else None
    spec, counted = task.state.spec, noted.counted
    stored_at = noted.dispatched_at
    if begun is not None:
        stored_at = attempt.reserved_at if stored_at is None else min(stored_at, begun)
    details = {
        "tag": attempt.role or spec.tag,
        "why": attempt.why,
        "description": noted.description,
        "dependencies": list(spec.dependencies),
        "timeout_seconds": attempt.timeout_seconds,
        "tokens": attempt.tokens,
        "usd": attempt.usd,
        "log_sequence": attempt.reserved_sequence,
        "task_sequence": attempt.task_sequence,
    }
    yield task.step(What.DISPATCH, attempt.reserved_at, stored_at, attempt.number, details)
    if stored_at is not None:
        by_then = begun if begun is not None else counted.time if counted else None
        yield task.step(What.QUEUED, max(attempt.reserved_at, stored_at), by_then, attempt.number)
    yield from run_steps(AttemptPlace(spec.id, attempt.number, attempt.reserved_at, task.closed_at), runs)


def _conflict(task: _Task, number: int, time: float, details: dict[str, Any]) -> Step:
    return Step(
        What.CONFLICT,
        time,
        time,
        StepStatus.FAILED,
        task=task.state.spec.id,
        attempt=number,
        error=str(details.get("what", "")),
        details=details,
    )

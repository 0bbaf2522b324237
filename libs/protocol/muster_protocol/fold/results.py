"""What a result means for its attempt and its task; `counting.py` says which one counts."""

from dataclasses import dataclass

from muster_protocol.fold.counting import is_counted
from muster_protocol.fold.moves import Cause, move, revive_dependents
from muster_protocol.fold.state import MAX_SUPERSEDED, Attempt, Entry, RequestState, Superseded, TaskPhase, TaskState
from muster_protocol.headers import is_owner
from muster_protocol.messages import Result
from muster_protocol.messages.growth import SPAWNED
from muster_protocol.retry import POLICIES, is_no_strike, is_retried
from muster_protocol.status_words import ResultStatus


def take_result(state: RequestState, entry: Entry, body: Result) -> None:
    task = state.tasks.get(body.task_id)
    _charge(state, task, body)
    if state.answer is not None or task is None or not 1 <= body.attempt <= len(task.attempts):
        return
    attempt = task.attempts[body.attempt - 1]
    before, by_owner = attempt.result.status if attempt.result else None, is_owner(entry.sender)
    if not is_counted(body.status, by_owner=by_owner, before=before, is_done=task.success is not None):
        state.uncounted += 1
        if len(task.superseded) < MAX_SUPERSEDED:
            task.superseded.append(Superseded.of(body))
        return
    attempt.result = body
    if before is not None:
        _succeed_late(state, task, body)
        return
    close(state, attempt, body.task_id)
    if body.status is ResultStatus.DONE:
        _succeed(state, task, body)
        move(state, task, Cause.SUCCEEDED)
        return
    task.reason = body.error.message if body.error else body.status.value
    if is_no_strike(body):
        task.max_attempts += 1
    is_again = is_retried(body, task.max_attempts, has_elsewhere=elsewhere(state, task) is not None)
    move(state, task, Cause.FAILED_FOR_NOW if is_again else Cause.FAILED_FOR_GOOD)


def _charge(state: RequestState, task: TaskState | None, body: Result) -> None:
    """Add what was spent. Results of one task that count the same turns add them once, in whatever order they come."""
    if body.spent is None or task is None:
        state.usage += body.usage
        return
    state.usage += body.spent.beyond(task.spent)
    task.spent = body.spent.at_least(task.spent)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where what was refused gets its one other try: at another role, or at the role's other model."""

    model: str | None = None


def elsewhere(state: RequestState, task: TaskState) -> Elsewhere | None:
    """Where a task that was refused can be tried once more; None: it was refused before, or there is nobody else."""
    if sum(is_refusal(attempt.result) for attempt in task.attempts[task.moved_at :]) != 1:
        return None
    if set(task.spec.roles) - set(task.tried):
        return Elsewhere()
    assert state.plan_entry is not None
    model = state.plan_entry.other_models.get(task.tag)
    return None if model is None else Elsewhere(model)


def is_refusal(result: Result | None) -> bool:
    """Whether an attempt was declined by whoever was to do it."""
    return result is not None and result.error is not None and POLICIES[result.error.error_class].elsewhere


def close(state: RequestState, attempt: Attempt, task_id: str) -> None:
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
        close(state, task.attempts[-1], task_id)
        state.overtaken[task_id] = None
    state.ready.pop(task_id, None)
    state.awaiting_retry.pop(task_id, None)
    _succeed(state, task, success)
    if has_failed:
        state.open_tasks += 1  # it was counted as ended
        revive_dependents(state, task)
    move(state, task, Cause.SUCCEEDED_LATE)


def _succeed(state: RequestState, task: TaskState, success: Result) -> None:
    """Who waits for a task that spawned others waits until they are recorded, and then for them too."""
    task.success, task.reason, task.refused = success, None, None
    if success.tasks:
        task.is_spawning = True
        state.growing[f"{SPAWNED}:{task.spec.id}"] = task.spec.id

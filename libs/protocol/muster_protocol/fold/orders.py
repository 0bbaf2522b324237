"""What people say about single tasks: try it again now, or give it to somebody else.

The owner asks `fault_of_retry` and `fault_of_move` before it copies what was said into the log, and the fold asks
again: something may have come in between. A decision names the next attempt of its task, so what was said before
another attempt began changes nothing any more, and saying it twice does it once.
"""

from muster_protocol.fields import nearest
from muster_protocol.fold.budget import left_of
from muster_protocol.fold.moves import Cause, move, revive_dependents
from muster_protocol.fold.results import close
from muster_protocol.fold.state import RequestState, TaskPhase, TaskState
from muster_protocol.messages import Decision, Failure, Result
from muster_protocol.status_words import ResultStatus

MAX_NAMED = 5  # tasks that one reason names
MAX_SEARCHED = 100  # tasks among which the nearest name is looked for
TOO_LATE = "something else has happened to it meanwhile"


def next_attempt(task: TaskState) -> int:
    return len(task.attempts) + 1


def fault_of_retry(state: RequestState, task_id: str) -> str:
    """Why a task cannot be tried now; empty: it can."""
    task = state.tasks.get(task_id)
    if task is None:
        return _unknown(state, task_id)
    match task.phase:
        case TaskPhase.AWAITING_RETRY | TaskPhase.DELAYED:
            return _fault_of_budget(state)
        case TaskPhase.FAILED | TaskPhase.SKIPPED:
            never = [failed for failed in failures_behind(state, task) if not failed.attempts]
            refused = "; ".join(f"{one.spec.id} was never begun: {one.reason}" for one in never[:MAX_NAMED])
            return refused or _fault_of_budget(state)
        case TaskPhase.RESERVED:
            return f"attempt {len(task.attempts)} of {task_id} has not ended; `reassign` gives it to somebody else"
        case TaskPhase.READY:
            return f"attempt {next_attempt(task)} of {task_id} is about to begin"
        case TaskPhase.WAITING | TaskPhase.GROWING | TaskPhase.DONE:
            return _stands(state, task)


def fault_of_move(state: RequestState, task_id: str) -> str:
    """Why a task cannot be given to somebody else; empty: it can. Who that is, only a team can judge."""
    task = state.tasks.get(task_id)
    if task is None:
        return _unknown(state, task_id)
    match task.phase:
        case TaskPhase.WAITING | TaskPhase.READY | TaskPhase.RESERVED | TaskPhase.AWAITING_RETRY | TaskPhase.DELAYED:
            return ""
        case TaskPhase.FAILED:
            refused = f"{task_id} was never begun: {task.reason}"
            return refused if not task.attempts else _fault_of_budget(state)
        case TaskPhase.SKIPPED | TaskPhase.GROWING | TaskPhase.DONE:
            return _stands(state, task)


def failures_behind(state: RequestState, task: TaskState) -> list[TaskState]:
    """The task itself if it failed; of one that was skipped all failures because of which it may have been."""
    reached = {task.spec.id: task}
    for needed in (walk := [task]):  # grows while it is read
        for name in needed.spec.dependencies if needed.phase is TaskPhase.SKIPPED else ():
            if name not in reached:
                reached[name] = state.tasks[name]
                walk.append(state.tasks[name])
    return [found for found in reached.values() if found.phase is TaskPhase.FAILED]


def carry_out(state: RequestState, body: Decision, *, is_repeated: bool) -> str:
    """Do what a person said about a task; why not, if it cannot be done any more."""
    task_id, is_move = body.task_id or "", body.decision == "reassign"
    if fault := (fault_of_move if is_move else fault_of_retry)(state, task_id):
        return fault
    task = state.tasks[task_id]
    # What takes a running attempt away is known by its number alone: a worker that looks it up sees no more.
    if body.attempt != next_attempt(task) or (is_repeated and task.phase is not TaskPhase.RESERVED):
        return TOO_LATE
    if is_move:
        _move(state, task, body)
        return ""
    for failed in failures_behind(state, task) or [task]:
        _again(state, failed, Cause.RETRIED)
    return ""


def _move(state: RequestState, task: TaskState, body: Decision) -> None:
    """From now on somebody else does it; what runs is taken away, which is no strike."""
    if task.phase is TaskPhase.RESERVED:
        _withdraw(state, task, body)
    task.moved_at = len(task.attempts)
    update = {
        "tag": body.worker or body.role,
        "worker": body.worker,
        "roles": (),
        "match_all": (),
        "match_some": (),
        "timeout_seconds": body.timeout_seconds,
    }
    task.spec = task.spec.model_copy(update=update)
    _again(state, task, Cause.REASSIGNED)


def _withdraw(state: RequestState, task: TaskState, body: Decision) -> None:
    """End the attempt that is out; its worker is told to stop, and if it is done all the same, that counts."""
    attempt = task.attempts[-1]
    attempt.result = Result(
        request_id=state.request_id,
        task_id=task.spec.id,
        attempt=attempt.number,
        status=ResultStatus.CANCELLED,
        error=Failure(error_class="cancelled", message=f"given to {body.worker or body.role} by {body.by}"),
        worker="",  # no worker reported it
        role=task.tag,
    )
    close(state, attempt, task.spec.id)
    task.max_attempts += 1
    state.withdrawn[task.spec.id, attempt.number] = None


def _again(state: RequestState, task: TaskState, cause: Cause) -> None:
    """It may begin now, once more than it was allowed if need be; what was skipped for it waits again."""
    has_failed = task.phase is TaskPhase.FAILED
    if not move(state, task, cause):
        return  # one that has not begun yet begins in its turn
    task.max_attempts = max(task.max_attempts, next_attempt(task))
    if has_failed:
        task.reason = None
        state.open_tasks += 1  # it was counted as ended
        revive_dependents(state, task)


def _fault_of_budget(state: RequestState) -> str:
    return "the budget of the request is used up" if left_of(state).is_used_up else ""


def _unknown(state: RequestState, task_id: str) -> str:
    if not state.tasks:
        return f"{state.request_id} has no tasks yet"
    count = len(state.tasks)
    known = nearest(task_id, state.tasks) if count <= MAX_SEARCHED else f"; it has {count:,} others"
    return f"{state.request_id} has no task {task_id!r}{known}"


def _stands(state: RequestState, task: TaskState) -> str:
    """How a task stands of which that cannot be asked, and the way out."""
    match task.phase:
        case TaskPhase.DONE:
            return f"{task.spec.id} is done"
        case TaskPhase.SKIPPED:
            failed = ", ".join(one.spec.id for one in failures_behind(state, task)[:MAX_NAMED])
            return f"{task.spec.id} was skipped because {failed} failed: try that again, or give that to somebody else"
        case TaskPhase.GROWING:
            return f"{task.spec.id} is about to become other tasks"
        case _:
            open_ones = [name for name in task.spec.dependencies if state.tasks[name].phase is not TaskPhase.DONE]
            awaited = ", ".join(open_ones[:MAX_NAMED]) or "the approval of the plan"
            return f"{task.spec.id} waits for {awaited}, and begins after that"

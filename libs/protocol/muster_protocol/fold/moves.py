"""How a task moves from phase to phase, what its dependents do then, and what time alone changes.

TRANSITIONS is the table. Timers are a heap of (time, task, attempt): of delays, and of attempts without a result. One
that lost its meaning (its attempt has a result, or began before its delay was over) stays in the heap until its time
and is dropped then: removing it at once would cost a scan.
"""

import heapq
from enum import StrEnum

from muster_protocol.fold.gathering import may_lack
from muster_protocol.fold.state import RequestState, TaskPhase, TaskState
from muster_protocol.messages.growth import FAILURE, OVER

MAX_CAUSE = 300  # characters of an error that each skipped task repeats
MAX_RESERVE_SECONDS = 5.0  # the most that is kept back before a deadline to compose the answer
LEAST_SECONDS = 0.001  # that an attempt gets
LOST = (TaskPhase.FAILED, TaskPhase.SKIPPED)  # nothing comes of these


class Cause(StrEnum):
    """Why a task moves."""

    DEPENDENCIES_DONE = "its dependencies are done"
    ENOUGH_DONE = "enough of its dependencies are done, the others failed or were skipped"
    DEPENDENCY_FAILED = "a dependency failed or was skipped"
    DEPENDENCY_RECOVERED = "what failed before it is done after all"
    RESERVED = "reserved"
    SUCCEEDED = "result: done"
    SUCCEEDED_LATE = "result: done, of an attempt that was given up"
    FAILED_FOR_NOW = "result: failed, attempts are left"
    FAILED_FOR_GOOD = "result: failed for good, or cancelled"
    REVISED = "revision"
    GIVEN_UP = "revision, which gives the task up"
    DELAY_OVER = "the delay is over"
    LIST_GIVEN = "the list that it goes over is given"
    EXTENDED = "extended"
    GROWTH_REFUSED = "extended: refused"
    RETRIED = "a person wants it tried now"
    REASSIGNED = "a person gave it to somebody else"


TRANSITIONS: dict[tuple[TaskPhase, Cause], TaskPhase] = {
    (TaskPhase.WAITING, Cause.DEPENDENCIES_DONE): TaskPhase.READY,
    (TaskPhase.WAITING, Cause.ENOUGH_DONE): TaskPhase.READY,
    (TaskPhase.WAITING, Cause.DEPENDENCY_FAILED): TaskPhase.SKIPPED,
    (TaskPhase.SKIPPED, Cause.DEPENDENCY_RECOVERED): TaskPhase.WAITING,
    (TaskPhase.READY, Cause.RESERVED): TaskPhase.RESERVED,
    (TaskPhase.RESERVED, Cause.SUCCEEDED): TaskPhase.DONE,
    (TaskPhase.RESERVED, Cause.FAILED_FOR_NOW): TaskPhase.AWAITING_RETRY,
    (TaskPhase.RESERVED, Cause.FAILED_FOR_GOOD): TaskPhase.FAILED,
    (TaskPhase.AWAITING_RETRY, Cause.REVISED): TaskPhase.DELAYED,
    (TaskPhase.AWAITING_RETRY, Cause.GIVEN_UP): TaskPhase.FAILED,
    (TaskPhase.DELAYED, Cause.DELAY_OVER): TaskPhase.READY,
    (TaskPhase.DELAYED, Cause.RESERVED): TaskPhase.RESERVED,  # its owner's clock said that the delay was over
    (TaskPhase.WAITING, Cause.LIST_GIVEN): TaskPhase.GROWING,
    (TaskPhase.GROWING, Cause.EXTENDED): TaskPhase.DONE,
    (TaskPhase.GROWING, Cause.GROWTH_REFUSED): TaskPhase.FAILED,
    (TaskPhase.READY, Cause.SUCCEEDED_LATE): TaskPhase.DONE,
    (TaskPhase.RESERVED, Cause.SUCCEEDED_LATE): TaskPhase.DONE,
    (TaskPhase.AWAITING_RETRY, Cause.SUCCEEDED_LATE): TaskPhase.DONE,
    (TaskPhase.DELAYED, Cause.SUCCEEDED_LATE): TaskPhase.DONE,
    (TaskPhase.FAILED, Cause.SUCCEEDED_LATE): TaskPhase.DONE,
    (TaskPhase.AWAITING_RETRY, Cause.RETRIED): TaskPhase.READY,
    (TaskPhase.DELAYED, Cause.RETRIED): TaskPhase.READY,
    (TaskPhase.FAILED, Cause.RETRIED): TaskPhase.READY,
    (TaskPhase.RESERVED, Cause.REASSIGNED): TaskPhase.READY,
    (TaskPhase.AWAITING_RETRY, Cause.REASSIGNED): TaskPhase.READY,
    (TaskPhase.DELAYED, Cause.REASSIGNED): TaskPhase.READY,
    (TaskPhase.FAILED, Cause.REASSIGNED): TaskPhase.READY,
}


def move(state: RequestState, task: TaskState, cause: Cause) -> bool:
    """Move a task as TRANSITIONS says; False when its phase does not know the cause."""
    phase = TRANSITIONS.get((task.phase, cause))
    if phase is None:
        return False
    task_id, task.phase = task.spec.id, phase
    match phase:
        case TaskPhase.READY:
            state.awaiting_retry.pop(task_id, None)
            state.ready[task_id] = None
        case TaskPhase.RESERVED:
            state.ready.pop(task_id, None)
        case TaskPhase.AWAITING_RETRY:
            state.awaiting_retry[task_id] = None
        case TaskPhase.DELAYED | TaskPhase.GROWING:
            state.awaiting_retry.pop(task_id, None)
        case TaskPhase.DONE:
            state.open_tasks -= 1
            release_dependents(state, task)
        case TaskPhase.FAILED:
            state.awaiting_retry.pop(task_id, None)
            state.open_tasks -= 1
            _fail(state, task)
        case TaskPhase.SKIPPED:
            state.open_tasks -= 1
        case TaskPhase.WAITING:
            state.open_tasks += 1
    return True


def release_dependents(state: RequestState, done: TaskState) -> None:
    """Nobody waits any more for a task that is done, unless what it spawned is still to be recorded."""
    for dependent_id in () if done.is_spawning else done.dependents:
        dependent = state.tasks[dependent_id]
        dependent.missing -= 1
        begin(state, dependent)


def begin(state: RequestState, task: TaskState) -> None:
    """A task is ready when nothing is left to wait for: all that is not done is lost, and may be."""
    if task.missing == task.lost:
        if task.spec.over is None:
            move(state, task, Cause.ENOUGH_DONE if task.lost else Cause.DEPENDENCIES_DONE)
        elif move(state, task, Cause.LIST_GIVEN):
            state.growing[f"{OVER}:{task.spec.id}"] = task.spec.id


def _fail(state: RequestState, task: TaskState) -> None:
    """A task has failed for good: if others are skipped for it, the plan may grow by what is to replace them."""
    assert state.plan_entry is not None
    if _lose(state, task) and not task.is_cause and state.replacements < state.plan_entry.growth.replacements:
        task.is_cause = True
        state.replacements += 1
        state.growing[f"{FAILURE}:{task.spec.id}"] = task.spec.id


def _lose(state: RequestState, ended: TaskState) -> bool:
    """What waits for a task that failed or was itself skipped goes on without it if it may, and else is skipped.

    Says whether anything was.
    """
    # The next one up and the cause, not the whole chain: over ten thousand tasks that would be gigabytes.
    cause, is_any_skipped = _cause_of(state, ended), False
    reached = [ended]
    while reached:
        task = reached.pop()
        for dependent_id in task.dependents:
            dependent = state.tasks[dependent_id]
            if may_lack(dependent, task):
                dependent.lost += 1
                if dependent.lost <= dependent.may_lose:
                    begin(state, dependent)
                    continue
            if move(state, dependent, Cause.DEPENDENCY_FAILED):
                dependent.reason, is_any_skipped = _reason(task, cause), True
                reached.append(dependent)
    return is_any_skipped


def _reason(lost: TaskState, cause: str) -> str:
    """Why what waits for a lost task is skipped."""
    return cause if lost.phase is TaskPhase.FAILED else f"{lost.spec.name} skipped: {cause}"


def _cause_of(state: RequestState, ended: TaskState) -> str:
    """Which failure is behind a task that failed or was skipped, without what lies between."""
    reason = ended.reason or ""
    if ended.phase is TaskPhase.FAILED:
        return f"{ended.spec.name} failed: {reason[:MAX_CAUSE]}"
    next_up, _, cause = reason.partition(" skipped: ")
    return cause if next_up in {state.tasks[name].spec.name for name in ended.spec.dependencies} else reason


def revive_dependents(state: RequestState, recovered: TaskState) -> None:
    """Let what was skipped behind a task wait again; skip once more what another failure stands before.

    Nothing has to take the place of the task any more.
    """
    if state.growing.pop(f"{FAILURE}:{recovered.spec.id}", None):
        state.replacements -= 1
    reached, revived = [recovered], list[TaskState]()
    while reached:
        task = reached.pop()
        for dependent_id in task.dependents:
            dependent = state.tasks[dependent_id]
            dependent.lost -= may_lack(dependent, task)
            if move(state, dependent, Cause.DEPENDENCY_RECOVERED):
                dependent.reason = None
                reached.append(dependent)
                revived.append(dependent)
    for task in revived:
        skip_if_lost(state, task, recovered)


def skip_if_lost(state: RequestState, task: TaskState, recovered: TaskState | None = None) -> None:
    """Skip a task if too much of what it waits for is lost."""
    for name in task.spec.dependencies:
        needed = state.tasks[name]
        is_lost = needed is not recovered and needed.phase in LOST
        if not is_lost or (may_lack(task, needed) and task.lost <= task.may_lose):
            continue
        if move(state, task, Cause.DEPENDENCY_FAILED):
            task.reason = _reason(needed, _cause_of(state, needed))
            _lose(state, task)
        return


def last_moment(state: RequestState) -> float | None:
    """When work must end so that an answer can be composed: a tenth of the time is kept back, within bounds."""
    if state.deadline is None:
        return None
    return state.deadline - min(MAX_RESERVE_SECONDS, max(0.0, state.deadline - state.started_at) * 0.1)


def move_ends(state: RequestState) -> None:
    """The deadline has moved: attempts that it had cut short may take as long as it allows now."""
    moment = last_moment(state)
    if moment is None:
        return
    for task_id, task in state.tasks.items():
        if task.phase is not TaskPhase.RESERVED or (wanted := task.attempts[-1].wanted_seconds) is None:
            continue
        attempt = task.attempts[-1]
        attempt.timeout_seconds = max(LEAST_SECONDS, min(wanted, moment - attempt.reserved_at))
        state.expired.pop(task_id, None)
        heapq.heappush(state.timers, (attempt.expiry, task_id, attempt.number))


def advance(state: RequestState, now: float) -> None:
    """Change what is due by now."""
    while state.timers and state.timers[0][0] <= now:
        timer = heapq.heappop(state.timers)
        task_id = timer[1]
        if not _is_live(state, timer):
            continue
        if not move(state, state.tasks[task_id], Cause.DELAY_OVER):
            state.expired[task_id] = None


def next_timer(state: RequestState) -> float | None:
    """When `advance` will next change something."""
    while state.timers and not _is_live(state, state.timers[0]):
        heapq.heappop(state.timers)
    return state.timers[0][0] if state.timers else None


def _is_live(state: RequestState, timer: tuple[float, str, int]) -> bool:
    """Whether it still ends a delay or an attempt."""
    at, task_id, attempt = timer
    task = state.tasks[task_id]
    if task.phase is TaskPhase.DELAYED:
        return attempt == len(task.attempts) + 1
    return task.phase is TaskPhase.RESERVED and attempt == len(task.attempts) and at >= task.attempts[-1].expiry

"""What time alone changes: a delayed task becomes ready, an attempt without a result expires, all work ends.

Timers are a heap of (time, task, attempt). One that lost its meaning (its attempt has a result, or began before its
delay was over) stays in the heap until its time and is dropped then: removing it at once would cost a scan.
"""

import heapq

from muster_protocol.fold.moves import Cause, move
from muster_protocol.fold.state import RequestState, TaskPhase

MAX_RESERVE_SECONDS = 5.0  # the most that is kept back before a deadline to compose the answer
LEAST_SECONDS = 0.001  # that an attempt gets


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

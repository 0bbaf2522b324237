"""What time alone changes: a delayed task becomes ready, an attempt without a result expires.

Timers are a heap of (time, task, attempt). One that lost its meaning (its attempt has a result, or began before its
delay was over) stays in the heap until its time and is dropped then: removing it at once would cost a scan.
"""

import heapq

from muster_protocol.fold.moves import Cause, move
from muster_protocol.fold.state import RequestState, TaskPhase


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

"""When a request is poison: it was taken several times without progress, so it may crash its supervisor. Pure.

A supervisor that dies has many requests in hand, and most of them are innocent. So a request that was taken in vain is
suspect, suspects are taken one at a time, and only the takes with no other suspect beside count against it (45).
"""

from collections.abc import Iterable

from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState, TaskPhase, TaskState
from muster_protocol.workers.card import WorkerCard

MAX_INNOCENT_TAKES = 1  # without progress, before a request is suspect
MAX_LONE_TAKES = 5  # without progress: whoever kills supervisors every second hits an innocent one three times
MAX_DOUBTFUL_TAKES = 12  # the same while its workers may only be silent: after these it is given up all the same
_RETRIED = (TaskPhase.AWAITING_RETRY, TaskPhase.DELAYED)


class Poison(Invalid):
    """The request is given up unread: reading it may be what kills."""

    error_class = "poison"


def may_be_suspect(delivery: int) -> bool:
    """Whether this delivery number is high enough that the log is worth reading before the request's body is."""
    return delivery > 1 + MAX_INNOCENT_TAKES


def is_suspect(state: RequestState, delivery: int) -> bool:
    """Whether the request may be what ended its supervisors."""
    return state.unproductive_takes(delivery) > MAX_INNOCENT_TAKES


def poison_reason(state: RequestState, delivery: int, *, is_read: bool) -> str:
    """Why a request is given up as poison at this delivery; empty when it is not.

    Reading the body may be what crashes the supervisor, so takes are counted before it is read and once more when
    it was taken. The first count allows one more take if somebody took the request before: that owner got past the
    body, so the next one probably does too, and can answer with what is done by then.
    """
    unproductive = state.unproductive_takes(delivery)
    most = MAX_LONE_TAKES if is_read else MAX_LONE_TAKES + bool(state.term)
    if state.answer is not None or state.lone_takes_in_vain(delivery) < most:
        return ""
    return f"the request was taken {unproductive} times without any progress: poison"


def may_be_worked_on(state: RequestState, delivery: int, now: float) -> bool:
    """Whether others may be at work for the request, unseen: then takes without progress prove nothing against it.

    An attempt is out whose time is not over, or a task is to be tried again. It holds for a number of takes: else a
    request could crash its supervisors for as long as its attempts may take.
    """
    if any(state.questions[name].question.until > now for name in state.open_questions):
        return True  # whoever has it only waits, and for a person that may take a day
    is_over = state.deadline is not None and now >= state.deadline
    if is_over or state.lone_takes_in_vain(delivery) >= MAX_DOUBTFUL_TAKES:
        return False
    return any(task.phase in _RETRIED or _is_out(task, now) for task in state.tasks.values())


def waits_in_queue(state: RequestState, workers: Iterable[WorkerCard], now: float) -> bool:
    """Whether workers that its tasks wait for are here, and busy with others."""
    tags = {task.queue for task in state.tasks.values() if _is_out(task, now)}
    return any(worker.busy >= worker.slots > 0 and tags.intersection(worker.tags) for worker in workers)


def _is_out(task: TaskState, now: float) -> bool:
    return task.phase is TaskPhase.RESERVED and task.attempts[-1].expiry > now

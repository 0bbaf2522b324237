"""When a request is poison: it was taken several times without progress, so it may crash its supervisor. Pure."""

from collections.abc import Iterable

from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState, TaskPhase, TaskState
from muster_protocol.retry import MAX_TAKES
from muster_protocol.workers.card import WorkerCard

MAX_DOUBTFUL_TAKES = 4 * MAX_TAKES  # while its workers may only be silent: after these it is given up all the same
_RETRIED = (TaskPhase.AWAITING_RETRY, TaskPhase.DELAYED)


class Poison(Invalid):
    """The request is given up unread: reading it may be what kills."""

    error_class = "poison"


def may_be_poison(delivery: int) -> bool:
    """Whether this delivery number is high enough that the log is worth reading before the request's body is."""
    return delivery > MAX_TAKES


def poison_reason(state: RequestState, delivery: int, *, is_read: bool) -> str:
    """Why a request is given up as poison at this delivery; empty when it is not.

    Reading the body may be what crashes the supervisor, so takes are counted before it is read and once more when
    it was taken. The first count allows one more take if somebody took the request before: that owner got past the
    body, so the next one probably does too, and can answer with what is done by then.
    """
    unproductive = state.unproductive_takes(delivery)
    most = MAX_TAKES if is_read else MAX_TAKES + bool(state.term)
    if state.answer is not None or unproductive < most:
        return ""
    return f"the request was taken {unproductive} times without any progress: poison"


def may_be_worked_on(state: RequestState, delivery: int, now: float) -> bool:
    """Whether others may be at work for the request, unseen: then takes without progress prove nothing against it.

    An attempt is out whose time is not over, or a task is to be tried again. It holds for a number of takes: else a
    request could crash its supervisors for as long as its attempts may take.
    """
    is_over = state.deadline is not None and now >= state.deadline
    if is_over or state.unproductive_takes(delivery) >= MAX_DOUBTFUL_TAKES:
        return False
    return any(task.phase in _RETRIED or _is_out(task, now) for task in state.tasks.values())


def waits_in_queue(state: RequestState, workers: Iterable[WorkerCard], now: float) -> bool:
    """Whether workers that its tasks wait for are here, and busy with others."""
    tags = {task.tag for task in state.tasks.values() if _is_out(task, now)}
    return any(worker.busy >= worker.slots > 0 and tags.intersection(worker.tags) for worker in workers)


def _is_out(task: TaskState, now: float) -> bool:
    return task.phase is TaskPhase.RESERVED and task.attempts[-1].expiry > now

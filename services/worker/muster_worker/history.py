"""Looks up whether a task still has to be run: it may be cancelled, late, done already, or poison. It only reads."""

import math
from collections.abc import Callable, Mapping
from enum import Enum

from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_bus.log import read_log
from muster_protocol import headers as h
from muster_protocol.fold import Entry, is_stopped
from muster_protocol.messages import Answer, Result, ResultStatus, Task
from muster_worker.poison import is_poison

LOOK_UP_AFTER_SECONDS = 3.0  # a task that arrives later than this after its reservation is looked up


class Verdict(Enum):
    """Whether a task has to be run; each other value says why not."""

    RUN = "it has to be run"
    CANCELLED = "its request was cancelled"
    LATE = "its deadline has passed"
    DONE_ALREADY = "the log already has its result"
    DONE_FROM_HERE = "the log already has the result of this very message"
    POISON = "it was taken too often without a result"


class History:
    """Judges the tasks that one worker takes."""

    def __init__(self, bus: Bus, is_cancelled: Callable[[str], bool]) -> None:
        self._bus = bus
        self._is_cancelled = is_cancelled
        self.ack_wait = math.inf
        self.connected_at = 0.0  # broker time

    async def judge(self, task: Task, delivery: Delivery) -> Verdict:
        """The verdict on this delivery; what costs a read of the broker is asked last."""
        now = self._bus.clock.now()
        if self._is_cancelled(task.request_id):
            return Verdict.CANCELLED
        if now >= task.deadline:
            return Verdict.LATE
        is_suspect = has_other_id(task, delivery.headers) or may_be_copy(
            task, delivery.number, now, self.connected_at, self.ack_wait
        )
        if is_suspect and (settled := await settling(self._bus, task)):
            is_from_here = any(is_result_of(entry, task, delivery.sequence) for entry in settled)
            return Verdict.DONE_FROM_HERE if is_from_here else Verdict.DONE_ALREADY
        if await is_poison(self._bus, task, delivery):
            return Verdict.POISON
        return Verdict.RUN


def has_other_id(task: Task, headers: Mapping[str, str] | None) -> bool:
    """Whether the message is not the one that an owner publishes: then the broker could not tell it from the first."""
    return (headers or {}).get(h.MESSAGE_ID) != task.message_id


def may_be_copy(task: Task, delivery: int, now: float, connected_at: float, ack_wait: float) -> bool:
    """Whether this may be a second copy of a task that another worker has done; all times are the broker's."""
    is_again = delivery > 1
    is_forgotten = task.reserved_at < connected_at  # a restarted broker may not know what it delivered before
    is_old = now - task.reserved_at > min(LOOK_UP_AFTER_SECONDS, ack_wait)  # it waited here; a peer may have got it
    return is_again or is_forgotten or is_old


async def settling(bus: Bus, task: Task) -> list[Entry]:
    """The entries that settle the task, from the log, read at its leader from the task's reservation on."""
    entries = await read_log(bus, task.request_id, task.reserved_sequence, from_leader=True)
    return [entry for entry in entries if settles(entry, task)]


def is_result_of(entry: Entry, task: Task, task_sequence: int) -> bool:
    """Whether it is the result of this message: then the message is no copy, its ack was lost."""
    match entry.body:
        case Result() as result:
            return (result.task_id, result.attempt, result.task_sequence) == (task.task_id, task.attempt, task_sequence)
        case _:
            return False


def settles(entry: Entry, task: Task) -> bool:
    """Whether this entry leaves nothing to do: the answer, a result of the attempt, or a success of the task.

    A worker that was stopped leaves the task to another.
    """
    match entry.body:
        case Answer():
            return h.is_owner(entry.sender)
        case Result() as result if result.task_id == task.task_id:
            is_for_it = result.attempt == task.attempt or result.status is ResultStatus.DONE
            return is_for_it and not is_stopped(entry.sender, result)
        case _:
            return False

"""Looks up whether a task still has to be run: it may be cancelled, late, done already, or poison. It only reads."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum

from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_bus.log import read_log
from muster_protocol import headers as h
from muster_protocol.fold import Entry, RequestState, fold, settled_by
from muster_protocol.messages import Result, Task
from muster_worker.poison import is_poison

STALE_SECONDS = 0.1  # after a look that took longer a peer may have stored a result since
MAX_STALE_SECONDS = 3.0  # what a delivery may come to that was handed back again and again: a broker may be far away
MAX_LOOKS = 3  # of one delivery; if all were slow it is handed back
MAX_ANSWERED = 1_000  # requests of which late tasks came
FOLDED_SECONDS = 1.0  # for which a log that was read holds
LOOK_UP_AFTER_SECONDS = 3.0  # a task that arrives later than this after its reservation is looked up


class Verdict(Enum):
    """Whether a task has to be run; each other value says why not."""

    RUN = "it has to be run"
    CANCELLED = "its request was cancelled"
    LATE = "its deadline has passed"
    UNSURE = "the broker was too slow to say whether it is done"
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
        self._answered: OrderedDict[str, None] = OrderedDict()  # requests whose answer was seen here
        self._folded: tuple[float, RequestState] = -math.inf, RequestState("")  # what was last read, and when

    async def judge(self, task: Task, delivery: Delivery) -> Verdict:
        """The verdict on this delivery; what costs a read of the broker is asked last."""
        now = self._bus.clock.now()
        if self._is_cancelled(task.request_id):
            return Verdict.CANCELLED
        if now >= task.deadline and now >= await self._end_of(task):
            return Verdict.LATE
        is_suspect = has_other_id(task, delivery.headers) or may_be_copy(
            task, delivery.number, now, self.connected_at, self.ack_wait
        )
        return await self._look_up(task, delivery) if is_suspect else Verdict.RUN

    async def _end_of(self, task: Task) -> float:
        """When an attempt ends by its log: the deadline in its message may have moved, since people were waited for.

        Of many late tasks of one request the first one of each second pays for the read.
        """
        request_id = task.request_id
        if request_id in self._answered:
            return 0.0
        read_at, state = self._folded
        if state.request_id != request_id or time.monotonic() - read_at > FOLDED_SECONDS:
            state = fold(request_id, await read_log(self._bus, request_id, from_leader=True))
            self._folded = time.monotonic(), state
        if state.answer is not None:
            self._answered[request_id] = None
            if len(self._answered) > MAX_ANSWERED:
                self._answered.popitem(last=False)
            return 0.0
        found = state.tasks.get(task.task_id)
        if found is None or not 1 <= task.attempt <= len(found.attempts):
            return 0.0
        return found.attempts[task.attempt - 1].deadline

    async def _look_up(self, task: Task, delivery: Delivery) -> Verdict:
        """The verdict by the log, which is looked at again if this process or the broker was slow to say `run`."""
        for _ in range(MAX_LOOKS):
            asked_at = time.monotonic()
            entries = await read_from_reservation(self._bus, task)
            if settled_by(entries, task.attempt_id) is not None:
                is_from_here = any(is_result_of(entry, task, delivery.sequence) for entry in entries)
                return Verdict.DONE_FROM_HERE if is_from_here else Verdict.DONE_ALREADY
            if await is_poison(self._bus, task, delivery):
                return Verdict.POISON
            if time.monotonic() - asked_at < fresh_seconds(delivery.number):
                return Verdict.RUN
        return Verdict.UNSURE


def fresh_seconds(delivery: int) -> float:
    """How long a look may take for its answer to hold: twice as long each time that the task had to be handed back."""
    return min(MAX_STALE_SECONDS, STALE_SECONDS * 2 ** min(delivery - 1, 10))


def has_other_id(task: Task, headers: Mapping[str, str] | None) -> bool:
    """Whether the message is not the one that an owner publishes: then the broker could not tell it from the first."""
    return (headers or {}).get(h.MESSAGE_ID) != task.message_id


def may_be_copy(task: Task, delivery: int, now: float, connected_at: float, ack_wait: float) -> bool:
    """Whether this may be a second copy of a task that another worker has done; all times are the broker's."""
    is_again = delivery > 1
    is_forgotten = task.reserved_at < connected_at  # a restarted broker may not know what it delivered before
    is_old = now - task.reserved_at > min(LOOK_UP_AFTER_SECONDS, ack_wait)  # it waited here; a peer may have got it
    is_retry = task.attempt > 1  # the attempt before, which was given up, may have succeeded after all
    return is_again or is_forgotten or is_old or is_retry


async def read_from_reservation(bus: Bus, task: Task) -> list[Entry]:
    """The log from the entry on that reserved the task, read at its leader: a replica may lag."""
    return await read_log(bus, task.request_id, max(0, task.reserved_sequence - 1), from_leader=True)


def is_result_of(entry: Entry, task: Task, task_sequence: int) -> bool:
    """Whether it is the result of this message: then the message is no copy, its ack was lost."""
    match entry.body:
        case Result() as result:
            return (result.task_id, result.attempt, result.task_sequence) == (task.task_id, task.attempt, task_sequence)
        case _:
            return False

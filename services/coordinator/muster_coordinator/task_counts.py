"""How many tasks of a request are done, failed and cancelled. Pure.

A task counts once, by the first result of its newest attempt, and not at all while that attempt runs or before the
first one. What a worker writes that was stopped (`cancelled`) is no result of its attempt. So a second result of an
attempt changes nothing, and a failed task that is tried again is not failed any more. There are two
sources for the same numbers:
  TaskTally   follows a log as it grows: which attempts there are is read from the bodies of the owner's `reserved`
              entries, what they came to from the headers `task`, `attempt` and `status` of results
  counts_of   asks the fold
Both agree, because an owner reserves nothing that the fold would refuse.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Self

from muster_protocol.fold import RequestState
from muster_protocol.messages import Reserved, ResultStatus

_STATUSES = {status.value: status for status in ResultStatus}


class TaskCounts(NamedTuple):
    """Tasks by the result of their newest attempt."""

    done: int = 0
    failed: int = 0
    cancelled: int = 0

    @classmethod
    def of(cls, statuses: Iterable[ResultStatus]) -> Self:
        found = Counter(statuses)
        return cls(found[ResultStatus.DONE], found[ResultStatus.FAILED], found[ResultStatus.CANCELLED])


NO_TASKS = TaskCounts()


class TaskTally:
    """The newest attempt of each task that was reserved, and its result."""

    __slots__ = ("_attempts", "_results")

    def __init__(self) -> None:
        self._attempts: dict[str, int] = {}
        self._results: dict[str, ResultStatus] = {}  # of the newest attempts; none while they run

    def __len__(self) -> int:
        return len(self._attempts)

    def reserve(self, body: Reserved) -> None:
        """The owner is about to dispatch these attempts."""
        for reservation in body.attempts:
            task_id = reservation.task_id
            if reservation.attempt == self._attempts.get(task_id, 0) + 1:  # else it was reserved before
                self._attempts[task_id] = reservation.attempt
                self._results.pop(task_id, None)

    def add_result(self, task_id: str, attempt: int, status: str) -> bool:
        """An attempt came to this, unless it was never reserved or has a result already: whether it counts."""
        if task_id in self._results or self._attempts.get(task_id) != attempt or status not in _STATUSES:
            return False
        self._results[task_id] = _STATUSES[status]
        return True

    def counts(self) -> TaskCounts:
        return TaskCounts.of(self._results.values())


def counts_of(state: RequestState) -> TaskCounts:
    """The same numbers from the fold."""
    return TaskCounts.of(task.result.status for task in state.tasks.values() if task.result is not None)

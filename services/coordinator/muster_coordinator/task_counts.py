"""How many tasks of a request are done, failed and cancelled. Pure.

A task counts once: as done if it has a success, else by the result of its newest attempt, and not at all while that
attempt runs or before the first one. Which result counts is the fold's rule (`is_counted`). So a second result of an
attempt changes nothing, a failed task that is tried again is not failed any more, and neither is one whose success
comes late. There are two sources for the same numbers:
  TaskTally   follows a log as it grows: which attempts there are is read from the bodies of the owner's `reserved`
              entries, what they came to from the headers `task`, `attempt` and `status` of results; which of them a
              person gave to somebody else, from the headers of decisions
  counts_of   asks the fold
Both agree, because an owner reserves nothing that the fold would refuse, but for a task that is just done.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Self

from muster_protocol.fold import RequestState, is_counted
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
            is_next = reservation.attempt == self._attempts.get(task_id, 0) + 1  # else it was reserved before
            if is_next and self._results.get(task_id) is not ResultStatus.DONE:
                self._attempts[task_id] = reservation.attempt
                self._results.pop(task_id, None)

    def withdraw(self, task_id: str, following: int) -> None:
        """Somebody else gets the task with this attempt: the one before it, if it still runs, came to nothing."""
        newest = self._attempts.get(task_id, 0)
        if newest and following == newest + 1 and task_id not in self._results:
            self._results[task_id] = ResultStatus.CANCELLED

    def add_result(self, task_id: str, attempt: int, status: str, *, by_owner: bool) -> bool:
        """An attempt came to this; whether it counts."""
        newest, found = self._attempts.get(task_id, 0), _STATUSES.get(status)
        if found is None or not 1 <= attempt <= newest:
            return False
        last = self._results.get(task_id)
        before = last if attempt == newest else ResultStatus.FAILED  # else none would have followed it
        if not is_counted(found, by_owner=by_owner, before=before, is_done=last is ResultStatus.DONE):
            return False
        self._results[task_id] = found
        return True

    def counts(self) -> TaskCounts:
        return TaskCounts.of(self._results.values())


def counts_of(state: RequestState) -> TaskCounts:
    """The same numbers from the fold."""
    return TaskCounts.of(task.result.status for task in state.tasks.values() if task.result is not None)

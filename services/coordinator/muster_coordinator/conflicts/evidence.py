"""What is seen of each attempt, kept compactly: at most eight sides, in constant time for each sighting. Pure.

Every sighting names a side: a delivery of a task message at a worker, or the message alone. Sightings of one side are
joined: the earliest start, the last sign of life, the strongest end. So their order and repetition change nothing. Of
more than eight sides those are kept whose worker is registered, then those that the log speaks of; one of these that
was not kept is back with its next sign.
An attempt that has a second side, or whose side
started after a success or an answer, becomes a suspect; `conflicts` judges those.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from muster_coordinator.conflicts.trails import Sighting, Trail, What, join, kept, trail_of
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import Ended

MAX_ATTEMPTS = 50_000  # about twenty megabytes; older ones are forgotten first
MAX_ANSWERS = 10_000
MAX_SUSPECTS = 10_000
MAX_WORKERS = 10_000
_QUIET = frozenset({What.DISPATCHED, What.FINISHED, What.SUCCEEDED})
NEAR_ATTEMPTS = 10  # a task has at most ten; beyond it somebody made the number up


class Success(NamedTuple):
    """The success of a task that counts: the first is the smallest."""

    at: float
    task_sequence: int
    delivery: int
    worker: str


@dataclass(slots=True)
class Case:
    """What is known of one attempt."""

    trails: tuple[Trail, ...] = ()
    has_more: bool = False  # sides that are not kept
    success: Success | None = None  # of the task


class Evidence:
    """The cases of the attempts that were seen last, and those that are to be judged."""

    def __init__(self, max_attempts: int = MAX_ATTEMPTS) -> None:
        self._max_attempts = max_attempts
        self._cases: OrderedDict[AttemptId, Case] = OrderedDict()  # a dict is slow to find its first again
        self._quiet: OrderedDict[AttemptId, tuple[Sighting, bool]] = OrderedDict()  # all that was seen; if dispatched
        self._answers: OrderedDict[str, float] = OrderedDict()
        self._started: dict[str, set[AttemptId]] = {}  # by request, as long as the case is kept
        self._workers: OrderedDict[str, None] = OrderedDict()  # those that were seen in the registry
        self.suspects: OrderedDict[AttemptId, None] = OrderedDict()
        self.given_up = 0  # suspects that were never judged

    def case(self, key: AttemptId) -> Case:
        quiet = self._quiet.get(key)
        return _case_of(*quiet) if quiet is not None else self._cases.get(key) or Case()

    def answered_at(self, request_id: str) -> float | None:
        return self._answers.get(request_id)

    def has_log_of(self, key: AttemptId) -> bool:
        """Whether something of this attempt was seen in its log."""
        case = self._cases.get(key)
        if case is None:
            return key in self._quiet  # a message that is noted, or a result
        return any(not trail.worker or trail.ended in (Ended.FINISHED, Ended.STOPPED) for trail in case.trails)

    def see(self, seen: Sighting) -> None:
        """Take a sighting in; an attempt that changed and may be a conflict becomes a suspect."""
        if self._stays_quiet(seen):
            return
        key, case = seen.key, self._open(seen.key)
        if not self._add(case, seen):
            return
        if seen.what is What.STARTED:
            self._started.setdefault(key.request_id, set()).add(key)
            for _, other in self._of_task(key):
                case.success = _first(case.success, other.success)
        elif seen.what is What.SUCCEEDED:
            self._succeeded(key, case, seen)
        if len(case.trails) > 1 or (case.success is not None and case.success[1:] not in map(_identity, case.trails)):
            self.suspect(key)

    def see_answer(self, request_id: str, at: float) -> None:
        """The request is answered: the first answer is the one."""
        before = self._answers.get(request_id)
        if before is not None and before <= at:
            return
        self._answers[request_id] = at
        if len(self._answers) > MAX_ANSWERS:
            self._answers.popitem(last=False)
        for key in self._started.get(request_id, ()):
            if len(self.case(key).trails) > 1:
                self.suspect(key)

    def see_worker(self, worker: str) -> None:
        """It is in the registry: what it says outweighs what is said by workers that nobody knows."""
        self._workers[worker] = None
        self._workers.move_to_end(worker)
        if len(self._workers) > MAX_WORKERS:
            self._workers.popitem(last=False)

    def suspect(self, key: AttemptId) -> None:
        """It is to be judged; beyond the bound the one that has waited longest is given up, and counted."""
        self.suspects[key] = None
        if len(self.suspects) > MAX_SUSPECTS:
            self.suspects.popitem(last=False)
            self.given_up += 1

    def _stays_quiet(self, seen: Sighting) -> bool:
        """Keep a message, or the first result of one, as it is: nearly all attempts come to no more than these two."""
        key, before = seen.key, self._quiet.get(seen.key)
        if seen.what not in _QUIET or key in self._cases:
            return False
        if before is not None:
            first = before[0]
            if first.what is not What.DISPATCHED or first.task_sequence != seen.task_sequence or not seen.worker:
                return False
        if seen.what is What.SUCCEEDED and (
            key.attempt > 1 or self._known(AttemptId(key.request_id, key.task_id, 2)) is not None
        ):
            return False  # another attempt may have been started after it
        self._quiet[key] = (seen, before is not None)
        if len(self._quiet) > self._max_attempts:
            self._quiet.popitem(last=False)
        return True

    def _open(self, key: AttemptId) -> Case:
        case = self._known(key)
        if case is None:
            case = self._cases[key] = Case()
            if len(self._cases) > self._max_attempts:
                self._forget(self._cases.popitem(last=False)[0])
        return case

    def _known(self, key: AttemptId) -> Case | None:
        """The case of an attempt, if anything was seen of it."""
        quiet = self._quiet.pop(key, None)
        if quiet is None:
            return self._cases.get(key)
        self._cases[key] = case = _case_of(*quiet)
        return case

    def _forget(self, key: AttemptId) -> None:
        started = self._started.get(key.request_id)
        if started is not None:
            started.discard(key)
            if not started:
                del self._started[key.request_id]

    def _add(self, case: Case, seen: Sighting) -> bool:
        """Join the sighting into the case; whether that changed it."""
        trail = self._weighed(trail_of(seen))
        if not case.trails:
            case.trails = (trail,)
            return True
        if trail.worker and not trail.task_sequence:  # an older worker does not say which message it had
            trail = _with_message(trail, case.trails)
        before = case.trails, case.has_more
        if len(case.trails) == 1 and case.trails[0][:3] == trail[:3]:
            case.trails, has_more = (join(case.trails[0], trail),), False
        else:
            case.trails, has_more = kept((*map(self._weighed, case.trails), trail))
        case.has_more = case.has_more or has_more
        return (case.trails, case.has_more) != before or seen.what is What.SUCCEEDED

    def _weighed(self, trail: Trail) -> Trail:
        is_new = trail.worker in self._workers and not trail.is_registered
        return trail._replace(is_registered=True) if is_new else trail

    def _succeeded(self, key: AttemptId, case: Case, seen: Sighting) -> None:
        success = Success(seen.at, seen.task_sequence, seen.delivery, seen.worker)
        case.success = _first(case.success, success)
        for other_key, other in self._of_task(key):
            other.success = _first(other.success, case.success)
            if any(trail.started_at is not None and trail.started_at > success.at for trail in other.trails):
                self.suspect(other_key)

    def _of_task(self, key: AttemptId) -> list[tuple[AttemptId, Case]]:
        """The other attempts of the same task; of the later ones the next is asked first: mostly there is none."""
        found: list[tuple[AttemptId, Case]] = []
        request_id, task_id, attempt = key
        for number in range(max(1, attempt - NEAR_ATTEMPTS), attempt):
            other = AttemptId(request_id, task_id, number)
            if (case := self._known(other)) is not None:
                found.append((other, case))
        for number in range(attempt + 1, attempt + 1 + NEAR_ATTEMPTS):
            other = AttemptId(request_id, task_id, number)
            if (case := self._known(other)) is None:
                break
            found.append((other, case))
        return found


def _case_of(seen: Sighting, is_dispatched: bool) -> Case:
    is_success = seen.what is What.SUCCEEDED
    success = Success(seen.at, seen.task_sequence, seen.delivery, seen.worker) if is_success else None
    return Case((trail_of(seen, is_dispatched=is_dispatched),), success=success)


def _with_message(trail: Trail, known: tuple[Trail, ...]) -> Trail:
    sequences = [other.task_sequence for other in known if other[:2] == trail[:2] and other.task_sequence]
    return trail._replace(task_sequence=min(sequences)) if sequences else trail


def _identity(trail: Trail) -> tuple[int, int, str]:
    return trail.task_sequence, trail.delivery, trail.worker


def _first(one: Success | None, other: Success | None) -> Success | None:
    return other if one is None else one if other is None else min(one, other)

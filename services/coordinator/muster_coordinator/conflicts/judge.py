"""Judges attempts that were assigned more than once: evidence in, one record with a decision out. Pure.

Kinds:
  dispatched_twice       two task messages of one attempt were seen: dispatched, started, refused or finished
  started_twice          two messages were started; or two workers started one message, and each gave a sign of life
                         after the other's start. If one was silent by then, or handed the attempt back, this is a
                         handover. One worker with two deliveries of one message is none either.
  finished_twice         two results by different workers, deliveries or messages; what the owner wrote is no side
  started_after_success  another side started after the task's success that counts …
  started_after_answer   … or after the answer; a side that is alone only if that is beyond doubt (CLOCK_SECONDS)
Decision: of sides that run and live, the message that started first is kept, within it the latest delivery; the others
are told to stop. If one has finished, whoever runs is told to stop. The only live side is never told to stop. What was
decided earlier stands.

`merge` is commutative, associative and idempotent in all evidence, so every coordinator comes to the same record. A
decision is no evidence: only the one that is stored counts.
"""

from collections.abc import Collection, Iterable
from itertools import combinations
from typing import NamedTuple

from muster_coordinator.conflicts.evidence import Case
from muster_coordinator.conflicts.trails import Trail, earliest, kept
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import Conflict, ConflictKind, Ended, Side, SideId

CLOCK_SECONDS = 1.0  # by which a start may seem to be later than the answer: clocks differ, and it is said afterwards
FRESH_SECONDS = 2.0  # signs of life this far apart do not show that two sides live at the same time

MAX_ASKED_AGAIN = 3  # after one, two and four seconds


def conflict_of(key: AttemptId, case: Case, answered_at: float | None) -> Conflict:
    """What one coordinator has seen of an attempt, as an undecided record."""
    success = case.success
    return Conflict(
        request_id=key.request_id,
        task_id=key.task_id,
        attempt=key.attempt,
        sides=tuple(Side(**trail._asdict()) for trail in case.trails),
        more_sides=case.has_more,
        succeeded=None
        if success is None
        else SideId(worker=success.worker, delivery=success.delivery, task_sequence=success.task_sequence),
        succeeded_at=None if success is None else success.at,
        answered_at=answered_at,
    )


def merge(stored: Conflict, ours: Conflict) -> Conflict:
    """The evidence of both, and the decision of the first: what is not stored decides nothing."""
    trails, has_more = kept(_trail(side) for side in (*stored.sides, *ours.sides))
    first = min(stored, ours, key=_success)
    return stored.model_copy(
        update={
            "kinds": _ordered({*stored.kinds, *ours.kinds}),
            "sides": tuple(Side(**trail._asdict()) for trail in trails),
            "more_sides": stored.more_sides or ours.more_sides or has_more,
            "tasks": tuple(sorted({*stored.tasks, *ours.tasks})),
            "succeeded": first.succeeded,
            "succeeded_at": first.succeeded_at,
            "answered_at": earliest(stored.answered_at, ours.answered_at),
            "found_at": earliest(stored.found_at or None, ours.found_at or None) or 0.0,
            "updated_at": max(stored.updated_at, ours.updated_at),
        }
    )


def undecided(record: Conflict) -> Conflict:
    """Its evidence alone: somebody wants to write it, and the broker may refuse."""
    return record.model_copy(update={"keep": None, "stops": (), "why": "", "found_at": 0.0})


def judge(record: Conflict, now: float, real: Collection[SideId] | None = None) -> Conflict | None:
    """The record with its kinds and the decision that its evidence allows; None when there is no conflict.

    `real` are the sides whose worker is in the registry and whose message is stored (None: not looked up): nobody is
    stopped for the sake of any other.
    """
    kinds = {*record.kinds, *_kinds(record)}
    if not kinds:
        return None
    judged = record.model_copy(update={"kinds": _ordered(kinds), "found_at": record.found_at or round(now, 3)})
    stops = [side.id for side in _to_stop(judged, real) if side.id not in record.stops]
    keep = _kept_side(judged, real) if stops else record.keep
    decided = judged.model_copy(update={"keep": keep, "stops": (*record.stops, *stops)})
    return decided.model_copy(update={"why": _why(decided), "updated_at": round(now, 3)})


def is_news(judged: Conflict, stored: Conflict) -> bool:
    """Whether the record differs from the stored one in more than its time."""
    return judged.model_copy(update={"updated_at": stored.updated_at}) != stored


def contenders(record: Conflict) -> list[Side]:
    """The sides that have started and not ended, if some may run beside each other: who lives is to be asked.

    A message that nobody was seen to take may run, too: its start may be older than what a coordinator reads again.
    """
    running = [side for side in record.sides if _runs(side)]
    untaken = [side for side in record.sides if not side.worker]
    has_rivals = any(_are_rivals(one, other) for one, other in combinations([*running, *untaken], 2))
    return running if has_rivals else []


class Asked(NamedTuple):
    """A roll call: whom it is for, and how often it was repeated."""

    sides: frozenset[SideId]
    at: float  # later than every sign of life until then: the clocks of workers differ, an answer must be the latest
    asked_at: float
    repeats: int = 0

    @property
    def again_at(self) -> float | None:
        """When to ask once more if nothing is decided by then; None: that was often enough."""
        return self.asked_at + 2.0**self.repeats if self.repeats < MAX_ASKED_AGAIN else None


def roll_call(record: Conflict, before: Asked | None, now: float) -> Asked | None:
    """Whom to ask now, if anybody: when the sides change, when one shows up that was silent, and while none answers."""
    running = contenders(record)
    if not running:
        return None
    ids, newest = frozenset(side.id for side in running), last_sign(running)
    at = round(max(newest + 0.001, now), 6)
    if before is None or before.sides != ids or newest - before.at >= FRESH_SECONDS:
        return Asked(ids, at, now)
    is_due = before.again_at is not None and before.again_at <= now and not record.stops
    return Asked(ids, at, now, before.repeats + 1) if is_due else None


def last_sign(sides: Iterable[Side]) -> float:
    return max((side.last_sign_at or 0.0 for side in sides), default=0.0)


def _kinds(record: Conflict) -> set[ConflictKind]:
    sides = record.sides
    found: set[ConflictKind] = set()
    if len({side.task_sequence for side in sides if side.task_sequence}) > 1:
        found.add(ConflictKind.DISPATCHED_TWICE)
    started = [side for side in sides if _has_started(side)]
    if any(_started_twice(one, other) for one, other in combinations(started, 2)):
        found.add(ConflictKind.STARTED_TWICE)
    finished = [side for side in sides if side.ended is Ended.FINISHED]
    if any(not _is_same(one.id, other.id) for one, other in combinations(finished, 2)):
        found.add(ConflictKind.FINISHED_TWICE)
    if any(_is_after_success(record, side) for side in sides):
        found.add(ConflictKind.STARTED_AFTER_SUCCESS)
    if any(_is_after_answer(record, side) for side in sides):
        found.add(ConflictKind.STARTED_AFTER_ANSWER)
    return found


def _has_started(side: Side) -> bool:
    return side.started_at is not None and side.ended not in (Ended.REFUSED, Ended.HANDED_BACK)


def _runs(side: Side) -> bool:
    return side.started_at is not None and side.ended is None


def _is_same(one: SideId, other: SideId) -> bool:
    """The same side, also where an older worker did not say which message it had."""
    is_message = one.task_sequence == other.task_sequence or not (one.task_sequence and other.task_sequence)
    return (one.worker, one.delivery) == (other.worker, other.delivery) and is_message


def _are_rivals(one: Side, other: Side) -> bool:
    """Not the same worker with two deliveries of one message."""
    return one.task_sequence != other.task_sequence or one.worker != other.worker


def _started_twice(one: Side, other: Side) -> bool:
    if one.task_sequence != other.task_sequence:
        return True
    if one.worker == other.worker:
        return False
    # By start, not by delivery: a worker that hung may start the earlier one after the later one began and died.
    earlier, later = sorted((one, other), key=lambda side: (side.started_at, side.delivery, side.worker))
    ended_at = earlier.ended_at or 0.0  # a result is a sign of life, too
    return max(earlier.last_sign_at or 0.0, ended_at) > (later.started_at or 0.0)


def _is_after_success(record: Conflict, side: Side) -> bool:
    success = record.succeeded
    if success is None or record.succeeded_at is None:
        return False
    is_own = side.worker == success.worker and side.task_sequence == success.task_sequence
    return not is_own and not _is_same(side.id, success) and (side.started_at or 0.0) > record.succeeded_at


def _is_after_answer(record: Conflict, side: Side) -> bool:
    if record.answered_at is None:
        return False
    late = (side.started_at or 0.0) - record.answered_at
    has_rival = any(_are_rivals(side, other) for other in record.sides if other.id != side.id)
    return late > (0.0 if has_rival else CLOCK_SECONDS)


def _to_stop(record: Conflict, real: Collection[SideId] | None) -> list[Side]:
    """Who is to stop now: never the only side that lives."""
    running = [side for side in record.sides if _runs(side) and side.id not in record.stops]
    if any(side.ended is Ended.FINISHED for side in record.sides):
        latest_start = max((side.started_at or 0.0 for side in record.sides), default=0.0)
        return [side for side in running if (side.last_sign_at or 0.0) >= latest_start]
    late = [side for side in running if _is_after_success(record, side) or _is_after_answer(record, side)]
    if late:
        return late
    live = live_sides(record, real)
    if len(live) < 2:
        return []
    keep = _keeper(record, live)
    return [side for side in live if side.id != keep]


def live_sides(record: Conflict, real: Collection[SideId] | None) -> list[Side]:
    """The sides that run, were not told to stop, and gave a sign of life after the latest start, at about one time."""
    running = [side for side in record.sides if _runs(side)]
    since = max(max((side.started_at or 0.0 for side in running), default=0.0), last_sign(running) - FRESH_SECONDS)
    return [
        side
        for side in running
        if side.id not in record.stops and (side.last_sign_at or 0.0) > since and (real is None or side.id in real)
    ]


def _keeper(record: Conflict, live: list[Side]) -> SideId:
    """Of the live sides: who was kept before, else the message that started first, within it the latest delivery."""
    if any(side.id == record.keep for side in live) and record.keep is not None:
        return record.keep

    def rank(side: Side) -> tuple[float, int, int, str]:
        starts = [s.started_at for s in record.sides if s.task_sequence == side.task_sequence and s.started_at]
        return min(starts), side.task_sequence, -side.delivery, side.worker

    return min(live, key=rank).id


def _kept_side(record: Conflict, real: Collection[SideId] | None) -> SideId | None:
    finished = [side for side in record.sides if side.ended is Ended.FINISHED]
    if record.succeeded is not None:
        return record.succeeded
    if finished:
        return min(finished, key=lambda side: (side.ended_at, side.id.worker)).id
    live = live_sides(record, real)
    return _keeper(record, live) if len(live) > 1 else record.keep


def _why(record: Conflict) -> str:
    if ConflictKind.SAME_WORK in record.kinds:
        return f"{', '.join(record.tasks)} say the same; each is done, nobody is stopped"
    if record.stops:
        return f"{' and '.join(str(stop) for stop in record.stops)} was told to stop: {_reason_to_stop(record)}"
    refused = [str(side.id) for side in record.sides if side.ended is Ended.REFUSED]
    if refused:
        return f"nobody had to stop: {' and '.join(refused)} was refused"
    if ConflictKind.FINISHED_TWICE in record.kinds:
        return "nobody could be stopped any more: the first result in the log counts, the other is superseded"
    return "nobody was told to stop: no two sides are known to be running"


def _reason_to_stop(record: Conflict) -> str:
    keep = record.keep
    if keep is None:
        return "it started after the request was answered"
    if record.succeeded == keep or (side := record.side(keep)) is None or side.ended is Ended.FINISHED:
        return f"{keep} has finished it"
    if any(stop.task_sequence == keep.task_sequence for stop in record.stops):
        return f"{keep} has the later delivery of the same message"
    return f"{keep} has the message that was started first"


def _success(record: Conflict) -> tuple[float, int, int, str]:
    side = record.succeeded
    if side is None or record.succeeded_at is None:
        return float("inf"), 0, 0, ""
    return record.succeeded_at, side.task_sequence, side.delivery, side.worker


def _trail(side: Side) -> Trail:
    return Trail(**dict(side))


def _ordered(kinds: Iterable[ConflictKind]) -> tuple[ConflictKind, ...]:
    found = set(kinds)
    return tuple(kind for kind in ConflictKind if kind in found)

"""A side's trail: what was seen of one delivery of a task message at a worker, joined in any order. Pure.

Sightings of one side are joined: the earliest start, the last sign of life, the strongest end. So their order and
repetition change nothing. Of more than eight sides the same eight are kept.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import MAX_SIDES, Ended

_STRENGTH = {None: 0, Ended.REFUSED: 1, Ended.HANDED_BACK: 2, Ended.STOPPED: 3, Ended.FINISHED: 4}


class What(Enum):
    """What was seen of a side."""

    DISPATCHED = "its message is noted in the log"
    STARTED = "its worker says that it runs it: the first time is the start, each a sign of life"
    REFUSED = "its worker did not run it"
    HANDED_BACK = "its worker gave it back"
    STOPPED = "its worker was stopped: a cancelled result is in the log"
    FINISHED = "its result is in the log"
    SUCCEEDED = "its result is in the log and is the success of the task that counts"


_ENDS = {
    What.REFUSED: Ended.REFUSED,
    What.HANDED_BACK: Ended.HANDED_BACK,
    What.STOPPED: Ended.STOPPED,
    What.FINISHED: Ended.FINISHED,
    What.SUCCEEDED: Ended.FINISHED,
}


class Sighting(NamedTuple):
    """Something was seen of one side of an attempt."""

    key: AttemptId
    what: What
    at: float  # broker time
    worker: str = ""
    delivery: int = 0
    task_sequence: int = 0
    sender: str = ""
    trace_id: str | None = None
    tokens: int = 0
    usd: float = 0.0


class Trail(NamedTuple):
    """All that is known of one side; the fields are those of `Side`."""

    worker: str
    delivery: int
    task_sequence: int
    sender: str = ""
    started_at: float | None = None
    last_sign_at: float | None = None
    ended: Ended | None = None
    ended_at: float | None = None
    trace_id: str | None = None
    tokens: int = 0
    usd: float = 0.0
    is_dispatched: bool = False
    is_registered: bool = False


def trail_of(seen: Sighting, *, is_dispatched: bool = False) -> Trail:
    is_start, ended = seen.what is What.STARTED, _ENDS.get(seen.what)
    return Trail(
        seen.worker,
        seen.delivery,
        seen.task_sequence,
        seen.sender,
        seen.at if is_start else None,
        seen.at if is_start else None,
        ended,
        None if ended is None else seen.at,
        seen.trace_id,
        seen.tokens,
        seen.usd,
        is_dispatched or seen.what is What.DISPATCHED,
    )


def join(one: Trail, other: Trail) -> Trail:
    """What both know of the same side."""
    if one == other:
        return one
    end = max(one, other, key=_end)
    return Trail(
        one.worker,
        one.delivery,
        one.task_sequence,
        max(one.sender, other.sender),
        earliest(one.started_at, other.started_at),
        latest(one.last_sign_at, other.last_sign_at),
        end.ended,
        end.ended_at,
        max(one.trace_id or "", other.trace_id or "") or None,
        max(one.tokens, other.tokens),
        max(one.usd, other.usd),
        one.is_dispatched or other.is_dispatched,
        one.is_registered or other.is_registered,
    )


def kept(trails: Iterable[Trail]) -> tuple[tuple[Trail, ...], bool]:
    """Joined by side and in order, without messages whose taker is known; and whether there are more than are kept."""
    joined: dict[tuple[object, ...], Trail] = {}
    for trail in trails:
        before = joined.get(trail[:3])
        joined[trail[:3]] = trail if before is None else join(before, trail)
    dispatched = {trail.task_sequence for trail in joined.values() if trail.is_dispatched}
    taken = {trail.task_sequence for trail in joined.values() if trail.worker}
    found = [trail for trail in joined.values() if trail.worker or trail.task_sequence not in taken]
    found = [trail._replace(is_dispatched=True) if trail.task_sequence in dispatched else trail for trail in found]
    found.sort(key=_order)
    return tuple(found[:MAX_SIDES]), len(found) > MAX_SIDES


def earliest(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else min(one, other)


def latest(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


def _order(trail: Trail) -> tuple[object, ...]:
    """Whose worker is real comes first, then what an owner dispatched: made-up sides never push those out."""
    has_result = trail.ended in (Ended.FINISHED, Ended.STOPPED)
    weight = trail.is_registered, trail.is_dispatched, has_result, trail.started_at is not None, trail.task_sequence > 0
    return tuple(not heavy for heavy in weight), trail.task_sequence, trail.delivery, trail.worker


def _end(trail: Trail) -> tuple[int, float]:
    return _STRENGTH[trail.ended], -(trail.ended_at or 0.0)

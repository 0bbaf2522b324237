"""Finds attempts that were started or finished twice: sightings in, conflicts out.

Pure: no clock, no bus; times come with the sightings.
Rules:
  finished twice  two results of one attempt by different workers or deliveries; what the owner wrote is no side
  started twice   two task messages of one attempt were started; or one message by two workers, and the worker of the
                  earlier delivery gave a sign of life after the later start. If it gave none, or handed the attempt
                  back, there is no conflict.
Any order and repetition of sightings gives the same conflicts, except that a hand-back must come before what would
be held against it.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, assert_never

from muster_protocol.attempt_id import AttemptId

MAX_ATTEMPTS = 50_000  # about twenty megabytes; older ones are forgotten first
MAX_WORKERS = 10_000


class Start(NamedTuple):
    """A worker has published that it started an attempt."""

    key: AttemptId
    worker: str
    delivery: int
    task_sequence: int
    at: float


class Finish(NamedTuple):
    """A worker's result of an attempt is in the log."""

    key: AttemptId
    worker: str
    delivery: int
    at: float


class HandBack(NamedTuple):
    """A worker gave an attempt back."""

    key: AttemptId
    worker: str
    delivery: int


class Sign(NamedTuple):
    """A worker lives: it published something about an attempt, or renewed its card in the registry (no attempt)."""

    key: AttemptId | None
    worker: str
    at: float


Sighting = Start | Finish | HandBack | Sign


@dataclass(frozen=True, slots=True)
class Conflict:
    """The same attempt was started or finished more than once, by these two."""

    key: AttemptId
    what: Literal["started twice", "finished twice"]
    first: str
    second: str


@dataclass(slots=True)
class _Attempt:
    starts: list[Start] = field(default_factory=list[Start])
    finishes: list[Finish] = field(default_factory=list[Finish])
    handed_back: set[tuple[str, int]] | None = None
    signs: dict[str, float] | None = None
    found: set[Conflict] | None = None


class ConflictDetector:
    """Remembers sightings, within bounds, and returns each conflict once."""

    def __init__(self, max_attempts: int = MAX_ATTEMPTS) -> None:
        self._max_attempts = max_attempts
        self._attempts: OrderedDict[AttemptId, _Attempt] = OrderedDict()  # a dict is slow to find its first again
        self._renewals: dict[str, float] = {}
        self._contested: dict[str, set[AttemptId]] = {}  # worker → attempts that somebody else started after it

    def see(self, sighting: Sighting) -> list[Conflict]:
        match sighting:
            case Start():
                return self._start(sighting)
            case Finish():
                return self._finish(sighting)
            case HandBack():
                seen = self._attempt(sighting.key)
                seen.handed_back = (seen.handed_back or set()) | {(sighting.worker, sighting.delivery)}
                return []
            case Sign():
                return self._renewal(sighting) if sighting.key is None else self._sign(sighting.key, sighting)
            case _:
                assert_never(sighting)

    def _attempt(self, key: AttemptId) -> _Attempt:
        seen = self._attempts.get(key)
        if seen is None:
            if len(self._attempts) >= self._max_attempts:
                self._forget(*self._attempts.popitem(last=False))
            seen = self._attempts[key] = _Attempt()
        return seen

    def _forget(self, key: AttemptId, seen: _Attempt) -> None:
        for start in seen.starts:
            contested = self._contested.get(start.worker)
            if contested is not None:
                contested.discard(key)
                if not contested:
                    del self._contested[start.worker]

    def _start(self, start: Start) -> list[Conflict]:
        seen = self._attempt(start.key)
        if any(_is_same(start, other) for other in seen.starts):
            return []
        seen.starts.append(start)
        if len(seen.starts) == 1:
            return []
        for other in seen.starts:
            self._contested.setdefault(other.worker, set()).add(start.key)
        return self._judge_starts(start.key, seen)

    def _finish(self, finish: Finish) -> list[Conflict]:
        seen = self._attempt(finish.key)
        if any((finish.worker, finish.delivery) == (other.worker, other.delivery) for other in seen.finishes):
            return []
        seen.finishes.append(finish)
        conflicts = self._judge_starts(finish.key, seen) if len(seen.starts) > 1 else []
        if len(seen.finishes) > 1:
            others = seen.finishes[:-1]
            conflicts += _new(seen, (_finished_twice(finish.key, other, finish) for other in others))
        return conflicts

    def _sign(self, key: AttemptId, sign: Sign) -> list[Conflict]:
        seen = self._attempt(key)
        signs = seen.signs = seen.signs if seen.signs is not None else {}
        signs[sign.worker] = max(sign.at, signs.get(sign.worker, sign.at))
        return self._judge_starts(key, seen) if len(seen.starts) > 1 else []

    def _renewal(self, sign: Sign) -> list[Conflict]:
        worker = sign.worker
        if worker not in self._renewals and len(self._renewals) >= MAX_WORKERS:
            del self._renewals[next(iter(self._renewals))]
        self._renewals[worker] = max(sign.at, self._renewals.get(worker, sign.at))
        return [
            conflict
            for key in sorted(self._contested.get(worker, ()))
            for conflict in self._judge_starts(key, self._attempts[key])
        ]

    def _judge_starts(self, key: AttemptId, seen: _Attempt) -> list[Conflict]:
        live = [start for start in seen.starts if (start.worker, start.delivery) not in (seen.handed_back or ())]
        live.sort(key=lambda start: (start.task_sequence, start.delivery, start.at, start.worker))
        return _new(seen, (_started_twice(key, a, b) for a, b in _pairs(live) if self._is_conflict(seen, a, b)))

    def _is_conflict(self, seen: _Attempt, earlier: Start, later: Start) -> bool:
        if earlier.task_sequence != later.task_sequence:
            return True
        if earlier.worker == later.worker:
            return False
        return self._last_sign(seen, earlier.worker) > later.at

    def _last_sign(self, seen: _Attempt, worker: str) -> float:
        finished = (finish.at for finish in seen.finishes if finish.worker == worker)
        signed = (seen.signs or {}).get(worker, 0.0)
        return max(signed, self._renewals.get(worker, 0.0), *finished)


def _is_same(one: Start, other: Start) -> bool:
    return one[:4] == other[:4]


def _pairs(starts: list[Start]) -> Iterator[tuple[Start, Start]]:
    for index, earlier in enumerate(starts):
        for later in starts[index + 1 :]:
            yield earlier, later


def _started_twice(key: AttemptId, earlier: Start, later: Start) -> Conflict:
    if earlier.worker != later.worker:
        return Conflict(key, "started twice", earlier.worker, later.worker)
    sides = [f"{start.worker}@{start.task_sequence}" for start in (earlier, later)]
    return Conflict(key, "started twice", *sides)


def _finished_twice(key: AttemptId, one: Finish, other: Finish) -> Conflict:
    first, second = sorted((one, other), key=lambda finish: (finish.at, finish.worker, finish.delivery))
    if first.worker != second.worker:
        return Conflict(key, "finished twice", first.worker, second.worker)
    sides = [f"{finish.worker}#{finish.delivery}" for finish in (first, second)]
    return Conflict(key, "finished twice", *sides)


def _new(seen: _Attempt, conflicts: Iterable[Conflict]) -> list[Conflict]:
    new: list[Conflict] = []
    for conflict in conflicts:
        seen.found = seen.found if seen.found is not None else set()
        if conflict not in seen.found:
            seen.found.add(conflict)
            new.append(conflict)
    return new

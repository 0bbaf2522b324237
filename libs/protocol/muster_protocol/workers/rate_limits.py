"""How many calls of a provider's models may start, over all processes that share a record of what they started. Pure.

Each start is counted in a short cell of time. A cell counts until a whole window has passed since the last moment at
which a start of it may have reached the provider, so that no window of that length, wherever it begins, has more than
the limit: nothing is refilled meanwhile. Who is granted a start makes it before `start_by`, or asks again.
Tokens are counted by an estimate, and corrected when the reply says what they were. What is under way at once is
counted by process, each with a lease: of a process that dies it is free when the lease ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from pydantic import Field

from muster_protocol.messages.base import MOST
from muster_protocol.plan import Frozen

WINDOW_SECONDS = 60.0
CELLS = 60  # of a window
LEEWAY_SECONDS = 1.0  # half to make the start, half for the way to the provider and for clocks that differ
LEASE_SECONDS = 10.0  # of the calls that a process has under way: a model may think for longer, its process renews it
FIRST_HOLD_SECONDS = 1.0  # after a refusal that says no time; doubles with each that follows a hold
MAX_BACKOFF_SECONDS = 60.0
MOST_BEYOND_SECONDS = 8.0  # what a provider asks for is waited for, or as long as this where it refuses again and again
MAX_HOLD_SECONDS = 3600.0  # whatever a provider asks for: then it is asked once more
FORGET_SECONDS = 60.0  # without a refusal, and the next hold is short again


class Bound(StrEnum):
    """What a call waits for."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    CONCURRENT = "concurrent"
    REFUSED = "refused"  # the provider said that it is asked too often


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may start in any window of so many seconds, and be under way at once. None: no limit."""

    requests: int | None = None
    tokens: int | None = None
    concurrent: int | None = None
    window: float = WINDOW_SECONDS

    @property
    def leeway(self) -> float:
        return min(LEEWAY_SECONDS, self.window / 10)

    def cell_end(self, now: float) -> float:
        width = self.window / CELLS
        return (now // width + 1) * width

    def cost(self, tokens: int) -> int:
        """What a call counts; one that is larger than the limit goes alone."""
        return tokens if self.tokens is None else min(tokens, self.tokens)


class Cell(Frozen):
    """What was granted in a short time. `ends` is its name as well."""

    ends: float = Field(ge=0, le=MOST)
    starts: int = 0
    tokens: int = 0

    def gone_at(self, limits: Limits) -> float:
        """When it counts no more."""
        return self.ends + limits.leeway + limits.window


class Holding(Frozen):
    """The calls that a process has under way, until it says so again."""

    calls: int = Field(ge=0)
    until: float = Field(ge=0, le=MOST)


class RateRecord(Frozen):
    """What the processes that ask one provider know together."""

    cells: tuple[Cell, ...] = ()  # by time
    holders: dict[str, Holding] = Field(default_factory=dict[str, Holding])
    held_until: float = Field(default=0.0, ge=0, le=MOST)  # nobody asks before
    refusals: int = Field(default=0, ge=0, le=1_000)  # holds in a row


EMPTY = RateRecord()


class Change(NamedTuple):
    """What is added to a cell; less than nothing is given back."""

    cell_end: float
    starts: int = 0
    tokens: int = 0


class Asker(NamedTuple):
    """A process, and how many calls it has under way."""

    name: str
    running: int = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """So many calls, the first of those that were asked for, may start until `start_by`; `spare` ones beside them."""

    record: RateRecord
    calls: int
    spare: int
    cell_end: float
    start_by: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing may start before `until`; None: it depends on others."""

    until: float | None
    bound: Bound


def granted(
    record: RateRecord, limits: Limits, asker: Asker, costs: Sequence[int], now: float, *, spare: int = 0
) -> Grant | Wait:
    """The first calls of these costs that may start now, or what the first waits for."""
    if record.held_until > now:
        return Wait(record.held_until, Bound.REFUSED)
    record = without_the_past(record, limits, now)
    room = _places(record, limits, asker)
    if room is not None and room <= 0 and costs:
        return Wait(_next_place(record, asker), Bound.CONCURRENT)
    starts, tokens = _counted(record)
    most = len(costs) if room is None else min(room, len(costs))
    most = most if limits.requests is None else max(0, min(most, limits.requests - starts))
    calls = spent = 0
    while calls < most:
        cost = limits.cost(costs[calls])
        if limits.tokens is not None and tokens + spent + cost > limits.tokens:
            break
        calls, spent = calls + 1, spent + cost
    if calls == 0 and costs:
        return expected(record, limits, costs[:1], now)[0]
    if limits.requests is not None:
        spare = max(0, min(spare, limits.requests - starts - calls))
    ends = limits.cell_end(now)
    after = changed(record, [Change(ends, calls + spare, spent)])
    if limits.concurrent is not None:
        after = renewed(after, asker.name, asker.running + calls, now)
    return Grant(after, calls, spare, ends, ends + limits.leeway / 2)


def expected(record: RateRecord, limits: Limits, costs: Sequence[int], now: float) -> list[Wait]:
    """When each of these calls may start at the earliest, one after the other, and what it waits for."""
    leaving = [(cell.gone_at(limits), cell.starts, cell.tokens) for cell in record.cells]
    heapify(leaving)
    starts, tokens = _counted(record)
    at, bound, waits = max(now, record.held_until), Bound.REFUSED, list[Wait]()
    for asked in costs:
        cost = limits.cost(asked)
        while leaving:
            lacks_requests = limits.requests is not None and starts + 1 > limits.requests
            lacks_tokens = limits.tokens is not None and tokens + cost > limits.tokens
            if not lacks_requests and not lacks_tokens and leaving[0][0] > at:
                break
            gone_at, gone_starts, gone_tokens = heappop(leaving)
            if gone_at > at:
                at, bound = gone_at, Bound.REQUESTS if lacks_requests else Bound.TOKENS
            starts, tokens = starts - gone_starts, tokens - gone_tokens
        starts, tokens = starts + 1, tokens + cost
        heappush(leaving, (limits.cell_end(at) + limits.leeway + limits.window, 1, cost))
        waits.append(Wait(at, bound))
    return waits


def changed(record: RateRecord, changes: Iterable[Change]) -> RateRecord:
    """With what was started, given back or corrected; a cell that is past takes nothing any more."""
    cells = {cell.ends: cell for cell in record.cells}
    for change in changes:
        before = cells.get(change.cell_end, Cell(ends=change.cell_end))
        starts, tokens = max(0, before.starts + change.starts), max(0, before.tokens + change.tokens)
        if change.cell_end in cells or starts or tokens:
            cells[change.cell_end] = Cell(ends=change.cell_end, starts=starts, tokens=tokens)
    return record.model_copy(update={"cells": tuple(cells[ends] for ends in sorted(cells))})


def renewed(record: RateRecord, holder: str, calls: int, now: float) -> RateRecord:
    """A process has so many calls under way."""
    others = {name: holding for name, holding in record.holders.items() if name != holder}
    own = {holder: Holding(calls=calls, until=now + LEASE_SECONDS)} if calls else {}
    return record.model_copy(update={"holders": {**others, **own}})


def refused(record: RateRecord, now: float, seconds: float | None) -> RateRecord:
    """The provider says that it is asked too often: nobody asks it for so long; None: it did not say for how long.

    Several calls that it refuses at once are one refusal. One that follows a hold makes the next hold longer.
    """
    if now < record.held_until:
        until = 0.0 if seconds is None else now + seconds
        return _held(record, min(until, now + MAX_HOLD_SECONDS), max(1, record.refusals))
    refusals = 1 if now > record.held_until + FORGET_SECONDS else min(1_000, record.refusals + 1)
    backoff = min(MAX_BACKOFF_SECONDS, FIRST_HOLD_SECONDS * 2 ** min(12, refusals - 1))
    if seconds is None:
        wait = backoff
    else:
        wait = seconds if refusals == 1 else max(seconds, min(backoff / 2, MOST_BEYOND_SECONDS))
    return _held(record, now + min(wait, MAX_HOLD_SECONDS), refusals)


def _held(record: RateRecord, until: float, refusals: int) -> RateRecord:
    return record.model_copy(update={"held_until": max(record.held_until, until), "refusals": refusals})


def corrected(record: RateRecord, limits: Limits, left: Mapping[str, int], now: float) -> list[Change]:
    """What others have started with the same key, if the provider has less left than the record says. Nothing is
    counted less for what a provider says: it may refill what is to be counted for a whole window."""
    starts, tokens = _counted(without_the_past(record, limits, now))
    unknown = Change(limits.cell_end(now))
    if limits.requests is not None and "requests" in left:
        unknown = unknown._replace(starts=max(0, limits.requests - starts - left["requests"]))
    if limits.tokens is not None and "tokens" in left:
        unknown = unknown._replace(tokens=max(0, limits.tokens - tokens - left["tokens"]))
    return [unknown] if unknown.starts or unknown.tokens else []


def without_the_past(record: RateRecord, limits: Limits, now: float) -> RateRecord:
    """What still counts."""
    cells = tuple(cell for cell in record.cells if cell.gone_at(limits) > now)
    holders = {name: holding for name, holding in record.holders.items() if holding.until > now}
    if len(cells) == len(record.cells) and len(holders) == len(record.holders):
        return record
    return record.model_copy(update={"cells": cells, "holders": holders})


def scaled(limits: Limits, window: float) -> Limits:
    """The same rate in windows of another length."""

    def share(number: int | None) -> int | None:
        return None if number is None else int(number * window / limits.window)

    return replace(limits, requests=share(limits.requests), tokens=share(limits.tokens), window=window)


def _counted(record: RateRecord) -> tuple[int, int]:
    return sum(cell.starts for cell in record.cells), sum(cell.tokens for cell in record.cells)


def _places(record: RateRecord, limits: Limits, asker: Asker) -> int | None:
    if limits.concurrent is None:
        return None
    others = sum(holding.calls for name, holding in record.holders.items() if name != asker.name)
    return limits.concurrent - others - asker.running


def _next_place(record: RateRecord, asker: Asker) -> float | None:
    """When a place is free at the latest, if its process is dead: it may be much earlier."""
    return min((holding.until for name, holding in record.holders.items() if name != asker.name), default=None)

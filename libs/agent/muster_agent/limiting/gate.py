"""The calls of one provider's models by this process: each waits here until it may start.

One loop writes for all calls of the process: what they asked for, gave back and learnt since its last write goes into
one compare-and-set. It runs only while there is something to write or somebody waits. While the limits are wide it
takes some starts in advance, for the calls of the next half second, and gives back what was not used.

Where the team file sets no limit nothing is counted or written: only the record is listened to, which says so when
a call of anybody was refused.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from muster_agent.limiting.news import News
from muster_agent.limiting.spare import Spare
from muster_agent.limiting.waiter import Caller, Permit, Waiter, Waiting
from muster_agent.limiting.words import bound_text
from muster_bus.background import supervised
from muster_bus.buckets.limits import LimitStore
from muster_protocol.errors import MusterError
from muster_protocol.workers.rate_limits import (
    EMPTY,
    LEASE_SECONDS,
    Asker,
    Bound,
    Change,
    Grant,
    Limits,
    RateRecord,
    Wait,
    expected,
    granted,
    renewed,
)

log = logging.getLogger("muster.limits")

WAY_OUT = "if the broker is there, it may lack the bucket `limits`: run `muster provision`"
LOOK_SECONDS = 1.0  # what is pushed may be lost, or of a write that was refused: so often a waiting process reads
AGAIN_SECONDS = 0.5  # while the broker is away
MOST_JITTER_SECONDS = 0.3  # after others wrote first
NO_LIMITS = Limits()


class Gate:
    """The gate of one provider."""

    def __init__(self, store: LimitStore, provider: str, limits: Limits | None = None) -> None:
        self.provider = provider
        self.limits = limits or NO_LIMITS
        self._counts = limits is not None
        self._store = store
        self._news = News()
        self._known: RateRecord = EMPTY
        self._queue: deque[Waiter] = deque()
        self._spare = Spare()
        self._running = 0
        self._renewed_at = 0.0
        self._looked_at, self._lost = 0.0, 0
        self._wake, self._is_new_hold = asyncio.Event(), asyncio.Event()
        self._opening = asyncio.Lock()
        self._serving: asyncio.Task[None] | None = None
        self._is_silent = False

    @property
    def now(self) -> float:
        return self._store.now

    async def enter(self, tokens: int, caller: Caller) -> Permit:
        """Wait until a call of so many tokens may start; an error at once if that is after the caller's time."""
        await self._open()
        if not self._counts:
            await self._pass_hold(caller)
            return Permit()
        if (permit := self._from_spare()) is not None:
            return permit
        while True:
            permit = await self._granted(self.limits.cost(tokens), caller)
            if self.now <= permit.start_by:
                return permit
            self._give_back(permit)  # the process stood still meanwhile

    def leave(self, permit: Permit, tokens: int | None, left: Mapping[str, int]) -> None:
        """A call has ended; `left` is what the provider says is left."""
        if not self._counts:
            return
        self._running -= 1
        changes: list[Change] = []
        if self.limits.tokens is not None and tokens is not None and tokens != permit.cost:
            changes.append(Change(permit.cell_end, 0, tokens - permit.cost))
        self._known = self._news.learn(self._known, self.limits, changes, left, self.now)
        self._news.is_running_new |= self.limits.concurrent is not None
        if self._news:
            self._serve_soon()

    def refuse(self, seconds: float | None) -> float:
        """The provider has refused a call: all processes wait. Returns until when."""
        self._known = self._news.refused(self._known, self.now, seconds)
        self._serve_soon()
        return self._known.held_until

    async def close(self) -> None:
        """Give back what is held."""
        self._news.changes += self._spare.replaced(0, Permit())
        self._running = 0
        self._news.is_running_new |= self.limits.concurrent is not None
        if self._serving is not None:
            self._serving.cancel()
        if self._news and self._store.is_open and not self._store.is_away:
            with suppress(MusterError):
                await self._turn()
        await self._store.close()

    async def _open(self) -> None:
        """Listen, once. Without limits nobody waits for a broker that is away: the next call tries again."""
        if self._store.is_open or (not self._counts and self._store.is_away):
            return
        async with self._opening:
            if not self._store.is_open:
                await self._store.open(self._on_written)

    def _on_written(self, record: RateRecord) -> None:
        self._known = self._news.over(record)
        self._wake.set()
        self._is_new_hold.set()

    async def _pass_hold(self, caller: Caller) -> None:
        while (until := self._known.held_until) > self.now:
            waiting = Waiting(bound_text(self.provider, Bound.REFUSED, self.limits), until)
            if until > caller.gives_up_at:
                raise caller.too_late(waiting.what, until, self.now)
            caller.tell(waiting)
            self._is_new_hold.clear()
            await _sleep(until - self.now, self._is_new_hold)

    async def _granted(self, cost: int, caller: Caller) -> Permit:
        waiter = Waiter(cost, caller, asyncio.get_running_loop().create_future())
        self._queue.append(waiter)
        self._serve_soon()
        try:
            async with asyncio.timeout(min(1e9, caller.gives_up_at - self.now)):
                return await self._taken(waiter)
        except TimeoutError:
            what = waiter.told.what if waiter.told else "the broker, which keeps the limits"
            raise caller.too_late(what, None, self.now) from None
        finally:
            if waiter in self._queue:
                self._queue.remove(waiter)

    async def _taken(self, waiter: Waiter) -> Permit:
        try:
            return await waiter.done
        except asyncio.CancelledError:
            if not waiter.done.cancelled():  # it was granted at the same moment
                self._give_back(waiter.done.result())
            raise

    def _from_spare(self) -> Permit | None:
        now = self.now
        if self._queue or self._known.held_until > now or (permit := self._spare.take(now)) is None:
            return None
        self._running += 1
        return permit

    def _give_back(self, permit: Permit) -> None:
        self._running -= 1
        self._news.is_running_new |= self.limits.concurrent is not None
        self._news.changes.append(Change(permit.cell_end, -1, -permit.cost))
        self._serve_soon()

    def _serve_soon(self) -> None:
        self._wake.set()
        if self._serving is None or self._serving.done():
            self._serving = supervised(self._serve(), f"the limits of {self.provider}")

    async def _serve(self) -> None:
        while self._queue or self._news or self._spare or (self._running and self.limits.concurrent is not None):
            self._wake.clear()
            try:
                seconds = await self._turn()
                self._is_silent = False
            except MusterError as error:
                self._say_away(error)
                if not self._counts and self._known.held_until <= self.now:
                    self._news = News()  # it is over before anybody was told
                seconds = AGAIN_SECONDS
            if seconds > 0:
                await _sleep(seconds, self._wake)

    async def _turn(self) -> float:
        """Do what is due; returns the seconds until something is due again."""
        now = self.now
        if self._spare and now > self._spare.start_by:
            self._news.changes += self._spare.replaced(0, Permit())
        if not (self._queue or self._news or self._is_renewal_due(now)):
            return self._next_due(self._known, now)
        if self._is_glance_enough(now):
            return min(LOOK_SECONDS, self._tell_waiting(self._known, now))
        before = await self._store.read()
        self._looked_at = now = self.now
        record = self._news.over(before)
        waiters = [waiter for waiter in self._queue if not waiter.done.done()]
        outcome = self._judged(record, waiters, now) if waiters else None
        if isinstance(outcome, Grant):
            record = outcome.record
        elif self._is_renewal_due(now):
            record = renewed(record, self._store.name, self._running, now)
        if record is not before and not await self._write(record):
            return random.uniform(0, min(MOST_JITTER_SECONDS, 0.01 * 2 ** min(10, self._lost)))
        self._known = self._news.over(record)
        if isinstance(outcome, Grant):
            self._hand_out(outcome, waiters[: outcome.calls])
        return self._next_due(record, now)

    def _judged(self, record: RateRecord, waiters: list[Waiter], now: float) -> Grant | Wait:
        costs, spare = [waiter.cost for waiter in waiters], self._spare.wanted(self.limits, now)
        return granted(record, self.limits, Asker(self._store.name, self._running), costs, now, spare=spare)

    async def _write(self, record: RateRecord) -> bool:
        sent, now = self._news.sent(), self.now
        try:
            is_written = await self._store.write(record)
        except MusterError:
            self._news.in_doubt(sent)
            raise
        if not is_written:
            self._lost += 1
            self._news.not_written(sent)
            return False
        self._lost, self._renewed_at = 0, now
        self._news.written(sent)
        return True

    def _is_glance_enough(self, now: float) -> bool:
        """Whether what was pushed says already that nobody may start, so that nothing need be read."""
        if self._news or not self._queue or now - self._looked_at > LOOK_SECONDS or self._is_renewal_due(now):
            return False
        return isinstance(self._judged(self._known, [self._queue[0]], now), Wait)

    def _is_renewal_due(self, now: float) -> bool:
        if self.limits.concurrent is None:
            return False
        return self._news.is_running_new or (self._running > 0 and now - self._renewed_at > LEASE_SECONDS / 3)

    def _hand_out(self, grant: Grant, waiters: list[Waiter]) -> None:
        self._news.changes += self._spare.replaced(grant.spare, Permit(grant.cell_end, grant.start_by))
        for waiter in waiters:
            if waiter in self._queue:
                self._queue.remove(waiter)
            self._running += 1
            permit = Permit(grant.cell_end, grant.start_by, waiter.cost)
            if waiter.done.done():  # who waited has gone
                self._give_back(permit)
                continue
            self._spare.note_start(self.now)
            waiter.done.set_result(permit)

    def _next_due(self, record: RateRecord, now: float) -> float:
        seconds = self._tell_waiting(record, now) if self._queue else LEASE_SECONDS / 3
        if self._spare:
            seconds = min(seconds, max(0.01, self._spare.start_by - now))
        return min(LOOK_SECONDS, seconds) if self._queue else seconds

    def _tell_waiting(self, record: RateRecord, now: float) -> float:
        """Say to each who waits for what, or that it is of no use; returns the seconds until the first may start."""
        waiters = list(self._queue)
        first = self._judged(record, waiters[:1], now)
        if isinstance(first, Grant):
            return 0.0
        costs, is_place = [waiter.cost for waiter in waiters], first.bound is Bound.CONCURRENT
        waits = [Wait(None, first.bound)] * len(costs) if is_place else expected(record, self.limits, costs, now)
        for waiter, wait in zip(waiters, waits, strict=True):
            what = bound_text(self.provider, wait.bound, self.limits)
            if wait.until is not None and wait.until > waiter.caller.gives_up_at:
                waiter.fail(waiter.caller.too_late(what, wait.until, now))
            else:
                waiter.tell(Waiting(what, wait.until))
        return LOOK_SECONDS if first.until is None else max(0.001, first.until - now)

    def _say_away(self, error: MusterError) -> None:
        if not self._is_silent:
            log.warning(
                "… %s  calls wait, since its limits cannot be read or written: %s; %s", self.provider, error, WAY_OUT
            )
        self._is_silent = True


async def _sleep(seconds: float, wake: asyncio.Event) -> None:
    """Until then, or until something is new."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wake.wait()

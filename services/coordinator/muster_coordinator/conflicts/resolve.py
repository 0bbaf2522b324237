"""Writes down the conflicts that the evidence shows, and tells one side to stop.

The record is changed by compare-and-set before anything is said, so that several coordinators come to one decision,
and whoever takes over after a crash finds it. Only what is read from the bucket, or was acknowledged to us, is a
decision: what others are heard to write may be refused, and is evidence. Who lives is asked with a `check`; what a
worker answers is evidence. An abort that shows no effect is sent again for a while, and a record without its event gets
one, by any coordinator: the one that wrote it may be gone.
"""

import heapq
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Collection
from typing import TypeVar

from pydantic import ValidationError

from muster_bus.broker.queues import attempt_of_task
from muster_bus.buckets.conflicts import Revision, page_of_conflicts, read_conflict, write_conflict
from muster_bus.buckets.workers import live_workers
from muster_bus.connection import Bus
from muster_coordinator.conflicts.evidence import Evidence
from muster_coordinator.conflicts.judge import (
    Asked,
    conflict_of,
    contenders,
    is_news,
    judge,
    live_sides,
    merge,
    roll_call,
    undecided,
)
from muster_coordinator.conflicts.orders import announce, ask_who_runs, tell_to_stop, without_effect
from muster_coordinator.conflicts.spans import record_conflict
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import Conflict, SideId
from muster_protocol.errors import MusterError

log = logging.getLogger("muster.coordinator")

V = TypeVar("V")

MAX_KNOWN = 10_000
LOADED = 1000  # of the newest records, after a start: an older abort would come too late
PAUSE_SECONDS = 2.0  # after a failure, so that the other duties are not held up
LOST_SECONDS = 0.2  # before a record is written again that somebody else has just written
REPEAT_SECONDS = 1.0  # before an abort without effect is sent again; doubles each time
MAX_REPEATS = 5
MAX_AGE_SECONDS = 300.0
MAX_WITHOUT_CARD = 1000
MAX_AWAITING = 100  # attempts that are judged again when one worker shows its card
YOUNG_SECONDS = 60.0  # the broker recognises an event for twice as long
ANNOUNCE_SECONDS = 1.0  # for the one that wrote a record to publish its event


class Resolver:
    """What one coordinator does about conflicts. Only the loop of the coordinator calls what is async."""

    def __init__(self, bus: Bus, evidence: Evidence) -> None:
        self._bus = bus
        self._evidence = evidence
        self._heard: OrderedDict[AttemptId, Conflict] = OrderedDict()  # evidence of others, stored or not; undecided
        self._asked: OrderedDict[AttemptId, Asked] = OrderedDict()
        self._writing: Conflict | None = None  # we hear our own writes, too
        self._unannounced: OrderedDict[AttemptId, float] = OrderedDict()  # stored, or perhaps: when to say so
        self._repeats: OrderedDict[AttemptId, tuple[float, int]] = OrderedDict()  # when to send again, how often it was
        self._later: list[tuple[float, AttemptId]] = []  # a heap: what to judge again, and when
        self._unreadable: OrderedDict[AttemptId, None] = OrderedDict()  # those that were logged
        self._without_card: dict[str, set[AttemptId]] = {}
        self._not_before = 0.0
        self._is_loaded = False
        self._has_warned = False

    def add(self, record: Conflict) -> None:
        """List a record that needs no evidence: tasks that are the same work."""
        if record.attempt_id not in self._heard:
            _put(self._heard, record.attempt_id, record)
            self._evidence.suspect(record.attempt_id)

    def on_record(self, record: Conflict) -> None:
        """Somebody writes a record, which may be refused: its evidence counts, what it decides is read later."""
        if record == self._writing:
            return
        key = record.attempt_id
        if key not in self._heard and self._now() - record.found_at < YOUNG_SECONDS:
            _put(self._unannounced, key, time.monotonic() + ANNOUNCE_SECONDS)
            self._judge_later(key, ANNOUNCE_SECONDS)
        self._hear(record)
        self._evidence.suspect(key)

    def on_event(self, key: AttemptId, sender: str) -> None:
        """A coordinator publishes the event of a conflict; our own we hear also when the broker refuses it."""
        if sender != str(self._bus.sender):
            self._unannounced.pop(key, None)

    def on_worker_card(self, worker: str) -> None:
        """A worker is in the registry: what was undecided for want of its card can be decided."""
        for key in self._without_card.pop(worker, ()):
            self._evidence.suspect(key)

    def load_again(self) -> None:
        """We were away: others may have decided meanwhile."""
        self._is_loaded = False

    async def load(self) -> bool:
        """Read what was decided while we were away; False when that is done."""
        if self._is_loaded or time.monotonic() < self._not_before:
            return False
        try:
            page = await page_of_conflicts(self._bus, LOADED, None)
        except (MusterError, TimeoutError):
            self._not_before = time.monotonic() + PAUSE_SECONDS
            raise
        for record in reversed(page.records):
            self._load(record)
        self._is_loaded = True
        return True

    async def resolve_next(self) -> bool:
        """Judge one suspect, and act on it; False: there is none, or the last one failed a moment ago."""
        now = time.monotonic()
        if now < self._not_before:
            return False
        while self._later and self._later[0][0] <= now:
            self._evidence.suspect(heapq.heappop(self._later)[1])
        self._warn_of_given_up()
        if not self._evidence.suspects:
            return False
        key, _ = self._evidence.suspects.popitem(last=False)
        try:
            await self._resolve(key)
        except ValidationError as error:
            log.debug("%s: a conflict was ignored, because its ids are impossible: %s", key, error)
        except BaseException as error:
            self._evidence.suspect(key)
            if isinstance(error, MusterError | TimeoutError):
                self._not_before = time.monotonic() + PAUSE_SECONDS
            raise
        return True

    async def repeat_abort(self) -> bool:
        """Send one abort again that is due and still stands; False: none is due."""
        now = time.monotonic()
        key = next((key for key, (due_at, _) in self._repeats.items() if due_at <= now), None)
        if key is None:
            return False
        _, count = self._repeats[key]
        _put(self._repeats, key, (now + REPEAT_SECONDS * 2**count, count + 1))
        stored = await read_conflict(self._bus, key)
        record = None if stored is None else stored.record
        is_old = record is None or self._now() - record.updated_at > MAX_AGE_SECONDS
        stops = [] if record is None else without_effect(merge(record, self._seen(key)))
        if record is None or is_old or not stops or count > MAX_REPEATS:
            del self._repeats[key]
            return True
        for stop in stops:
            await tell_to_stop(self._bus, record, stop)
        return True

    def _load(self, record: Conflict) -> None:
        """Take in a record as it is stored."""
        key, now = record.attempt_id, self._now()
        self._hear(record)
        self._expect_effect(record)
        if now - record.found_at < YOUNG_SECONDS:
            _put(self._unannounced, key, 0.0)
        judged = judge(merge(record, self._seen(key)), record.updated_at)
        if key in self._unannounced or (judged is not None and is_news(judged, record)):
            self._evidence.suspect(key)

    def _hear(self, record: Conflict) -> None:
        before, heard = self._heard.get(record.attempt_id), undecided(record)
        _put(self._heard, record.attempt_id, heard if before is None else merge(before, heard))

    def _seen(self, key: AttemptId) -> Conflict:
        """All evidence, ours and that of others; undecided."""
        seen = conflict_of(key, self._evidence.case(key), self._evidence.answered_at(key.request_id))
        heard = self._heard.get(key)
        return seen if heard is None else merge(heard, seen)

    async def _resolve(self, key: AttemptId) -> None:
        ours = self._seen(key)
        if key not in self._unannounced and not contenders(ours) and judge(ours, self._now()) is None:
            return
        stored = await read_conflict(self._bus, key)
        if stored is not None and stored.record is None and not stored.is_deleted:
            self._leave(key)
            return
        before = None if stored is None else stored.record
        record = ours if before is None else merge(before, ours)
        await self._ask_who_lives(key, record)
        judged = judge(record, self._now(), await self._real_sides(key, record))
        if judged is None:
            return
        if before is not None and not is_news(judged, before):
            await self._act(before)
        else:
            await self._write(key, judged, stored)

    async def _write(self, key: AttemptId, record: Conflict, over: Revision | None) -> None:
        before = None if over is None else over.record
        if before is None:
            _put(self._unannounced, key, 0.0)  # from now on it may be stored, also if we never hear so
        self._writing = record
        if not await write_conflict(self._bus, record, over):
            self._judge_later(key, LOST_SECONDS)  # somebody was faster: judge again with what that one wrote
            return
        for stop in record.stops:
            if before is None or stop not in before.stops:
                _put(self._repeats, key, (time.monotonic() + REPEAT_SECONDS, 1))
                await tell_to_stop(self._bus, record, stop)
        if before is not None and len(record.stops) > len(before.stops):
            record_conflict(self._bus.tracing, record)  # the decision; what was found is in the trace already
        await self._act(record)

    async def _act(self, stored: Conflict) -> None:
        """What a stored record asks for, whoever wrote it."""
        self._expect_effect(stored)
        if self._unannounced.get(stored.attempt_id, math.inf) <= time.monotonic():
            await announce(self._bus, stored)
            self._unannounced.pop(stored.attempt_id, None)

    def _expect_effect(self, stored: Conflict) -> None:
        if without_effect(stored) and stored.attempt_id not in self._repeats:
            is_old = self._now() - stored.updated_at > MAX_AGE_SECONDS
            if not is_old:
                _put(self._repeats, stored.attempt_id, (time.monotonic() + REPEAT_SECONDS, 1))

    async def _ask_who_lives(self, key: AttemptId, record: Conflict) -> None:
        asked = roll_call(record, self._asked.get(key), self._now())
        if asked is None:
            return
        await ask_who_runs(self._bus, key, asked.at)
        _put(self._asked, key, asked)
        if asked.again_at is not None:
            self._judge_later(key, asked.again_at - asked.asked_at + 0.05)  # the two clocks differ a little

    async def _real_sides(self, key: AttemptId, record: Conflict) -> Collection[SideId] | None:
        """Those that can run, if somebody may have to stop for the sake of another: what a worker says may be forged.

        The worker of a real side is in the registry, and its message is stored until it is done.
        """
        live = live_sides(record, None)
        if len(live) < 2:
            return None
        names = {card.name for card in await live_workers(self._bus)}
        for side in live:
            if side.worker not in names:
                self._await_card(side.worker, key)
        sequences = {side.task_sequence for side in live if side.worker in names}
        stored = [number for number in sequences if await attempt_of_task(self._bus, number) == key]
        return {side.id for side in live if side.worker in names and side.task_sequence in stored}

    def _await_card(self, worker: str, key: AttemptId) -> None:
        """Within bounds: anybody can name workers that there are not."""
        if worker in self._without_card or len(self._without_card) < MAX_WITHOUT_CARD:
            keys = self._without_card.setdefault(worker, set())
            if len(keys) < MAX_AWAITING:
                keys.add(key)

    def _warn_of_given_up(self) -> None:
        if self._evidence.given_up and not self._has_warned:
            self._has_warned = True
            log.warning("… more attempts look like conflicts than can be judged; the oldest are given up")

    def _leave(self, key: AttemptId) -> None:
        """A newer coordinator wrote what we cannot read: it decides."""
        if key not in self._unreadable:
            log.warning("%s: its conflict is left to a newer coordinator, which wrote a record unknown here", key)
            _put(self._unreadable, key, None)

    def _judge_later(self, key: AttemptId, seconds: float) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, key))
        if len(self._later) > MAX_KNOWN:
            self._evidence.suspect(heapq.heappop(self._later)[1])

    def _now(self) -> float:
        return self._bus.clock.now()


def _put(known: OrderedDict[AttemptId, V], key: AttemptId, value: V) -> None:
    """Keep it, within the bound: the oldest goes."""
    known[key] = value
    if len(known) > MAX_KNOWN:
        known.popitem(last=False)

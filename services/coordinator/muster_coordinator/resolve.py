"""Writes down the conflicts that the evidence shows, and tells one side to stop.

The record is changed by compare-and-set before anything is said, so that several coordinators come to one decision,
and whoever takes over after a crash finds it. Who lives is asked with a `check`; what a worker answers is evidence. An
abort that shows no effect is sent again for a while, by any coordinator: the one that decided may be gone.
"""

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Collection

from pydantic import ValidationError

from muster_bus.buckets.conflicts import Revision, page_of_conflicts, read_conflict, write_conflict
from muster_bus.buckets.workers import live_workers
from muster_bus.connection import Bus
from muster_coordinator.conflicts import (
    FRESH_SECONDS,
    conflict_of,
    contenders,
    is_news,
    judge,
    last_sign,
    live_sides,
    merge,
)
from muster_coordinator.evidence import Evidence
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import Conflict, SideId
from muster_protocol.errors import MusterError
from muster_protocol.messages import Abort, Check, ConflictFound

log = logging.getLogger("muster.coordinator")

MAX_KNOWN = 10_000
LOADED = 1000  # of the newest records, after a start: an older abort would come too late
WRITE_SECONDS = 3.0
PAUSE_SECONDS = 2.0  # after a failure, so that the other duties are not held up
REPEAT_SECONDS = 1.0  # before an abort without effect is sent again; doubles each time
MAX_REPEATS = 5
MAX_AGE_SECONDS = 300.0


class Resolver:
    """What one coordinator does about conflicts. Only the loop of the coordinator calls what is async."""

    def __init__(self, bus: Bus, evidence: Evidence) -> None:
        self._bus = bus
        self._evidence = evidence
        self._known: OrderedDict[AttemptId, Conflict] = OrderedDict()  # as they are stored, as far as we have heard
        self._checked: OrderedDict[AttemptId, tuple[frozenset[SideId], float]] = OrderedDict()
        self._writing: dict[AttemptId, Conflict] = {}  # what we tried to write: it may have been stored after all
        self._repeats: OrderedDict[AttemptId, tuple[float, int]] = OrderedDict()  # when to send again, how often it was
        self._without_card: dict[str, set[AttemptId]] = {}
        self._not_before = 0.0
        self._is_loaded = False

    def add(self, record: Conflict) -> None:
        """List a record that needs no evidence: tasks that are the same work."""
        key = record.attempt_id
        if key not in self._known:
            self._remember(record)
            self._evidence.suspect(key)

    def on_record(self, record: Conflict) -> None:
        """Somebody writes a record; it may have less evidence than we have."""
        key = record.attempt_id
        self._remember(record)
        if record.stops and key not in self._repeats:
            self._repeats[key] = (time.monotonic() + REPEAT_SECONDS, 1)
        judged = judge(merge(record, self._seen(key)), record.updated_at)
        if judged is not None and is_news(judged, record):
            self._evidence.suspect(key)

    def on_worker_card(self, worker: str) -> None:
        """A worker is in the registry: what was undecided for want of its card can be decided."""
        for key in self._without_card.pop(worker, ()):
            self._evidence.suspect(key)

    async def load(self) -> bool:
        """Read what was decided before we started; False when that is done."""
        if self._is_loaded or time.monotonic() < self._not_before:
            return False
        with self._pausing():
            for record in reversed((await page_of_conflicts(self._bus, LOADED, None)).records):
                self.on_record(record)
        self._is_loaded = True
        return True

    async def resolve_next(self) -> bool:
        """Judge one suspect, and act on it; False: there is none, or the last one failed a moment ago."""
        if not self._evidence.suspects or time.monotonic() < self._not_before:
            return False
        key, _ = self._evidence.suspects.popitem(last=False)
        try:
            with self._pausing():
                await self._resolve(key)
        except ValidationError as error:
            log.debug("%s: a conflict was ignored, because its ids are impossible: %s", key, error)
        except BaseException:
            self._evidence.suspect(key)
            raise
        return True

    async def repeat_abort(self) -> bool:
        """Send one abort again that is due; False: none is."""
        now = time.monotonic()
        key = next((key for key, (due_at, _) in self._repeats.items() if due_at <= now), None)
        if key is None:
            return False
        _, count = self._repeats.pop(key)
        record = self._known.get(key)
        is_old = record is None or self._bus.clock.now() - record.updated_at > MAX_AGE_SECONDS
        open_stops = [] if record is None else _without_effect(record)
        if record is None or is_old or not open_stops or count > MAX_REPEATS:
            return True
        self._repeats[key] = (now + REPEAT_SECONDS * 2**count, count + 1)
        for stop in open_stops:
            await self._abort(record, stop)
        return True

    def _pausing(self) -> "_Pause":
        return _Pause(self)

    def hold(self) -> None:
        self._not_before = time.monotonic() + PAUSE_SECONDS

    def _seen(self, key: AttemptId) -> Conflict:
        return conflict_of(key, self._evidence.case(key), self._evidence.answered_at(key.request_id))

    async def _resolve(self, key: AttemptId) -> None:
        known, ours = self._known.get(key), self._seen(key)
        ours = ours if known is None else merge(known, ours)
        await self._ask_who_lives(key, ours)
        if judge(ours, self._now()) is None:
            return
        stored = await read_conflict(self._bus, key)
        record = ours if stored is None else merge(stored.record, ours)
        judged = judge(record, self._now(), await self._live_workers(key, record))
        if judged is None:
            return
        if stored is not None and not is_news(judged, stored.record):
            self._remember(stored.record)
            if stored.record == self._writing.pop(key, None):  # its acknowledgement was lost
                await self._announce(stored.record, None)
            return
        await self._write(key, judged, stored)

    async def _write(self, key: AttemptId, record: Conflict, over: Revision | None) -> None:
        self._writing[key] = record
        if len(self._writing) > MAX_KNOWN:
            del self._writing[next(iter(self._writing))]
        if not await write_conflict(self._bus, record, over):
            self._evidence.suspect(key)  # somebody was faster: judge again with what that one wrote
            return
        del self._writing[key]
        self._remember(record)
        await self._announce(record, None if over is None else over.record)

    async def _announce(self, record: Conflict, before: Conflict | None) -> None:
        """Tell who is to stop, and, if the record is new, everybody else."""
        told = () if before is None else before.stops
        for stop in record.stops:
            if stop not in told:
                self._repeats[record.attempt_id] = (time.monotonic() + REPEAT_SECONDS, 1)
                await self._abort(record, stop)
        if before is None:
            found = ConflictFound.of_record(record)
            log.warning("! %s/%s attempt %d: %s: %s", *record.attempt_id, found.what, record.why)
            await self._bus.store(found, self._bus.origin(record.request_id), give_up_after=WRITE_SECONDS)

    async def _abort(self, record: Conflict, stop: SideId) -> None:
        abort = Abort(
            request_id=record.request_id,
            attempts=((record.task_id, record.attempt),),
            reason=record.why,
            side=stop,
            keeps=0 if record.keep is None else record.keep.task_sequence,
        )
        origin = self._bus.origin(record.request_id, nonce=secrets.token_hex(4))
        await self._bus.store(abort, origin, give_up_after=WRITE_SECONDS)
        log.info("■ abort   %s  %s", record.attempt_id, stop)

    async def _ask_who_lives(self, key: AttemptId, record: Conflict) -> None:
        """Once when the sides change, and again when one shows up that was silent."""
        sides = contenders(record)
        if not sides:
            return
        ids, newest = frozenset(side.id for side in sides), last_sign(sides)
        before = self._checked.get(key)
        if before is not None and before[0] == ids and newest - before[1] < FRESH_SECONDS:
            return
        at = round(max(newest + 0.001, self._now()), 6)  # the clocks of workers differ: an answer must be the latest
        self._checked[key] = (ids, at)
        if len(self._checked) > MAX_KNOWN:
            self._checked.popitem(last=False)
        check = Check(request_id=key.request_id, attempts=((key.task_id, key.attempt),), at=at)
        origin = self._bus.origin(key.request_id, nonce=secrets.token_hex(4))
        await self._bus.store(check, origin, give_up_after=WRITE_SECONDS)

    async def _live_workers(self, key: AttemptId, record: Conflict) -> Collection[str] | None:
        """Those in the registry, if somebody may have to stop for the sake of another."""
        live = live_sides(record, None)
        if len(live) < 2:
            return None
        names = {card.name for card in await live_workers(self._bus)}
        for side in live:
            if side.worker not in names and len(self._without_card) < MAX_KNOWN:
                self._without_card.setdefault(side.worker, set()).add(key)
        return names

    def _remember(self, record: Conflict) -> None:
        self._known[record.attempt_id] = record
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def _now(self) -> float:
        return self._bus.clock.now()


class _Pause:
    """After an error of the broker nothing is tried for a moment."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, MusterError | TimeoutError):
            self._resolver.hold()


def _without_effect(record: Conflict) -> list[SideId]:
    """The sides that were told to stop and have not ended."""
    return [stop for stop in record.stops if (side := record.side(stop)) is not None and side.ended is None]

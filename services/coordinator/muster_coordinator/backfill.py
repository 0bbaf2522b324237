"""Reads from the streams what was missed: after a start, after a reconnect, and wherever a gap shows."""

import time
from collections.abc import Awaitable, Callable

from muster_bus.broker.queues import last_sequence
from muster_bus.buckets.workers import live_workers
from muster_bus.connection import Bus
from muster_bus.read_stream import Raw
from muster_bus.receive import opened
from muster_client.queue import queued
from muster_coordinator.conflicts.evidence import Evidence
from muster_coordinator.observe import MESSAGE_KINDS, Observer
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid

RESULTS_TAIL = 5_000  # entries back from the newest in which ended requests are looked for
TAIL = 10_000  # of events and control messages
WHOLE_STREAM = 10**18
MAX_CHECKED = 10_000


class StreamTail:
    """The newest part of a stream, read page by page: what was taken is not read again when a later page fails."""

    def __init__(self, bus: Bus, subject: str, length: int, take: Callable[[Raw], Awaitable[None]]) -> None:
        self._bus, self._subject, self._length, self._take = bus, subject, length, take
        self._after: int | None = None
        self._end = 0  # of the stream when the reading began: what comes later is heard live

    async def read_on(self) -> bool:
        """Take the next page; False when all that was there at the beginning is taken."""
        if self._after is None:
            self._end = await last_sequence(self._bus, self._subject)
            self._after = max(0, self._end - self._length)
        page = await self._bus.next_page(self._subject, self._after)
        for raw in page:
            await self._take(raw)
            self._after = raw.sequence
        return bool(page) and self._after < self._end


class Registry:
    """The workers that are registered now; those that come later are heard live."""

    def __init__(self, bus: Bus, evidence: Evidence) -> None:
        self._bus, self._evidence = bus, evidence

    async def read_on(self) -> bool:
        """Take all of them: there is no next page."""
        for card in await live_workers(self._bus):
            self._evidence.see_worker(card.name)
        return False


class Backfill:
    """Passes what the subscriptions have missed to the observer."""

    def __init__(self, bus: Bus, observer: Observer) -> None:
        self._bus = bus
        self._observer = observer
        self._checked: dict[str, int] = {}  # by subject: up to here every message was checked

    def everything(self) -> list[StreamTail | Registry]:
        """Events first: an attempt that was handed back is then known as such before its results are judged."""
        return [
            Registry(self._bus, self._observer.evidence),
            StreamTail(self._bus, subjects.ALL_EVENTS, TAIL, self._take_message),
            StreamTail(self._bus, subjects.ALL_CONTROL, TAIL, self._take_message),
            StreamTail(self._bus, subjects.ALL_REQUESTS, WHOLE_STREAM, self._take_request),
            StreamTail(self._bus, subjects.ALL_RESULTS, RESULTS_TAIL, self._take_result),
        ]

    async def waiting_requests(self) -> None:
        """Every request in the queue is submitted and not answered, whether it is taken or not."""
        async for request in queued(self._bus):
            self._observer.overview.expect(request.id, request.team)

    async def unread_log(self) -> None:
        """Read on in the log that has waited longest."""
        overview = self._observer.overview
        request_id, wanted = next(iter(overview.unread.items()))
        overview.unread[request_id] = overview.unread.pop(request_id)  # if this fails, the others come first
        subject, after = subjects.results(request_id), overview.last_of(request_id)
        while page := await self._bus.read(subject, after, is_page=True):
            await self._take_entries(page)
            after = page[-1].sequence
        if after < wanted:  # a replica that lags; the leader has it, or it is gone
            await self._take_entries(await self._bus.read(subject, after, from_leader=True))
        if overview.unread.get(request_id, 0) <= max(wanted, overview.last_of(request_id)):
            overview.unread.pop(request_id, None)

    async def recheck(self) -> bool:
        """Find what could not be used on a subject: only the stream knows its sequence. False: no check is due."""
        began_at = time.monotonic()
        subject = self._observer.recheck.take_due(began_at)
        if subject is None:
            return False
        if subject not in self._checked and len(self._checked) >= MAX_CHECKED:
            del self._checked[next(iter(self._checked))]
        after = self._checked.get(subject, 0)
        while page := await self._bus.next_page(subject, after):
            for raw in page:
                await self._take_message(raw)
                self._checked[subject] = after = raw.sequence
        self._observer.recheck.mark_checked(subject, began_at)
        return True

    async def _take_message(self, raw: Raw) -> None:
        """An event or a control message, whose body may be in the object store."""
        try:
            message = await opened(self._bus, raw, MESSAGE_KINDS, subjects.last_token(raw.subject))
        except Invalid:
            return  # the gate has reported it
        self._observer.apply_message(message, raw.time, raw.headers)

    async def _take_request(self, raw: Raw) -> None:
        request_id = h.request_id_of(raw.headers, raw.sequence, raw.data)
        self._observer.overview.expect(request_id, subjects.last_token(raw.subject))

    async def _take_result(self, raw: Raw) -> None:
        """The newest entries name the requests that were worked on lately."""
        self._observer.overview.note_unread(subjects.last_token(raw.subject), raw.sequence)

    async def _take_entries(self, entries: list[Raw]) -> None:
        for raw in entries:
            request_id = subjects.last_token(raw.subject)
            if not self._observer.needs_stored_body(request_id, raw.headers):
                self._observer.apply_entry(raw)
            elif (body := await self._observer.gate.body(self._bus, raw)) is not None:
                self._observer.apply_entry(raw._replace(data=body))
            else:
                self._observer.overview.skip(request_id, raw.sequence)

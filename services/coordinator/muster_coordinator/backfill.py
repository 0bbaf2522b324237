"""What was missed is read from the streams: after a start, after a reconnect, and wherever something shows a gap."""

import time
from collections.abc import Awaitable, Callable

from muster_bus.connection import Bus
from muster_bus.read import Raw, next_page, read_subject
from muster_bus.reports import Source
from muster_bus.topology import last_sequence
from muster_client.queue import queued
from muster_coordinator.observe import Observer
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid

RESULTS_TAIL = 5_000  # entries back from the newest in which ended requests are looked for
TAIL = 10_000  # of events, control messages and errors
MAX_AUDITED = 10_000
STREAMS = {"events": "EVENTS", "control": "CONTROL"}


class StreamTail:
    """The newest part of a stream, read page by page: what was taken is not read again when a later page fails."""

    def __init__(self, bus: Bus, stream: str, subject: str, tail: int, take: Callable[[Raw], Awaitable[None]]) -> None:
        self._bus, self._stream, self._subject, self._tail, self._take = bus, stream, subject, tail, take
        self._after: int | None = None

    async def read_on(self) -> bool:
        """Take the next page; False when the stream's leader has no more."""
        if self._after is None:
            self._after = max(0, await last_sequence(self._bus, self._stream) - self._tail)
        page = await next_page(self._bus.nc, self._stream, self._subject, self._after)
        for raw in page:
            await self._take(raw)
            self._after = raw.sequence
        return bool(page)


class Backfill:
    """Reads what the hearing has missed."""

    def __init__(self, bus: Bus, observer: Observer) -> None:
        self._bus = bus
        self._observer = observer
        self._audited: dict[str, int] = {}  # by subject: up to here everything was judged
        self._errors = StreamTail(bus, "ERRORS", subjects.ERRORS, TAIL, self._take_error)

    def everything(self) -> list[StreamTail]:
        """Events first: a conflict that was told already is then known, and not told again."""
        return [
            StreamTail(self._bus, "EVENTS", subjects.ALL_EVENTS, TAIL, self._take),
            StreamTail(self._bus, "CONTROL", subjects.ALL_CONTROL, TAIL, self._take),
            StreamTail(self._bus, "REQUESTS", "requests.*", 10**18, self._take_request),
            StreamTail(self._bus, "RESULTS", "results.*", RESULTS_TAIL, self._take_result),
        ]

    async def waiting_requests(self) -> None:
        """What lies in REQUESTS is asked and not answered, taken or not."""
        async for request in queued(self._bus):
            self._observer.overview.expect(request.id, request.team)

    async def unread_log(self) -> None:
        """Read on in the log that has waited longest."""
        overview = self._observer.overview
        request_id, wanted = next(iter(overview.unread.items()))
        overview.unread[request_id] = overview.unread.pop(request_id)  # if this fails, the others come first
        subject, after = subjects.results(request_id), overview.last_of(request_id)
        while page := await read_subject(self._bus.nc, "RESULTS", subject, after, is_page=True):
            await self._take_entries(request_id, page)
            after = page[-1].sequence
        if after < wanted:  # a replica that lags; the leader has it, or it is gone
            await self._take_entries(
                request_id, await read_subject(self._bus.nc, "RESULTS", subject, after, from_leader=True)
            )
        if overview.unread.get(request_id, 0) <= max(wanted, overview.last_of(request_id)):
            overview.unread.pop(request_id, None)

    async def recheck(self) -> bool:
        """Find what could not be used on a subject: only the stream knows its sequence. False: no look is due."""
        began_at = time.monotonic()
        subject = self._observer.recheck.next(began_at)
        if subject is None:
            return False
        if subject not in self._audited and len(self._audited) >= MAX_AUDITED:
            del self._audited[next(iter(self._audited))]
        stream, after = STREAMS[subject.partition(".")[0]], self._audited.get(subject, 0)
        while page := await next_page(self._bus.nc, stream, subject, after):
            for raw in page:
                await self._take(raw)
                self._audited[subject] = after = raw.sequence
        self._observer.recheck.looked(subject, began_at)
        return True

    async def told_errors(self) -> None:
        """Learn what is on `errors` by now, whoever reported it."""
        while await self._errors.read_on():
            pass

    async def _take(self, raw: Raw) -> None:
        """An event or a control message; what it says may lie elsewhere."""
        try:
            body = await self._bus.body_of(raw.headers, raw.data)
            self._observer.judge(raw.subject, raw.headers, body, raw.time)
        except Invalid as reason:
            stream = STREAMS[raw.subject.partition(".")[0]]
            source = Source(stream, raw.sequence, raw.subject, raw.headers, raw.data)
            self._observer.refuse(str(reason), source, raw.time)

    async def _take_request(self, raw: Raw) -> None:
        request_id = h.request_id_of(raw.headers, raw.sequence, raw.data)
        self._observer.overview.expect(request_id, subjects.last_token(raw.subject))

    async def _take_result(self, raw: Raw) -> None:
        """The newest entries name the requests that were worked on of late."""
        self._observer.overview.note_unread(subjects.last_token(raw.subject), raw.sequence)

    async def _take_entries(self, request_id: str, entries: list[Raw]) -> None:
        observer = self._observer
        for raw in entries:
            body = raw.data
            if h.BODY_REF in raw.headers and request_id not in observer.overview.open:
                try:
                    body = await self._bus.body_of(raw.headers, raw.data)
                except Invalid as reason:
                    observer.refuse_entry(str(reason), request_id, raw.sequence, raw.headers, raw.data, raw.time)
                    continue
            observer.entry(request_id, raw.sequence, raw.headers, body, raw.time)

    async def _take_error(self, raw: Raw) -> None:
        if message_id := raw.headers.get(h.MESSAGE_ID):
            self._observer.pending_reports.told(message_id)

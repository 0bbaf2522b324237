"""Reports to `errors` of what cannot be used: each stored message once, whoever reads it, and nobody waits for them.

The broker drops a second report of the same message for two minutes. A log is read for days: by the next owner, by a
status, by whoever follows it. So before something older is reported, `errors` is read for a report of it.
"""

import asyncio
import logging
import re
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

from nats.aio.client import Client

from muster_bus.background import supervised
from muster_bus.read_stream import read_subject
from muster_bus.receive import Stored
from muster_bus.redact import KNOWN
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway, MusterError
from muster_protocol.messages import ErrorReport

if TYPE_CHECKING:
    from muster_bus.connection import Bus

log = logging.getLogger("muster.bus")

EXCERPT = 200  # bytes of the message that a report repeats
RECENT_SECONDS = 60.0  # half the broker's window: what came later than that ago is dropped by it
REPORT_SECONDS = 2.0  # what a full ERRORS may hold up whoever reports …
MAX_LATE = 10_000  # … and how many reports wait in the background until there is room
MAX_REPORTED = 50_000  # ids: about five megabytes


_CALLBACK_URL = re.compile(r'("callback_url"\s*:\s*")[^"]*')  # it may hold a token


class ReportedIds:
    """The messages that `errors` has a report of, read on from where the last look ended."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._last = 0

    async def has(self, message_id: str) -> bool:
        while page := await read_subject(self._nc, subjects.ERRORS, self._last, is_page=True):
            self._last = page[-1].sequence
            for raw in page:
                self._ids[raw.headers.get(h.MESSAGE_ID, "")] = None
            while len(self._ids) > MAX_REPORTED:
                self._ids.popitem(last=False)
        return message_id in self._ids


class _Late(NamedTuple):
    report: ErrorReport
    stored_at: float  # broker time of the message that it is about


class Reports:
    """What one connection reports."""

    def __init__(self, bus: "Bus") -> None:
        self._bus = bus
        self._reported = ReportedIds(bus.nc)
        self._late: deque[_Late] = deque()
        self._reporting: asyncio.Task[None] | None = None

    async def add(self, reason: str, message: Stored, request_id: str | None) -> None:
        """Report a message, unless somebody has. A full ERRORS holds this up for a moment, never longer."""
        report = _report(reason, message, request_id)
        if self._late:  # ERRORS takes nothing now: one reader waits for it once, not once for each message
            self._add_late(report, message.time)
            return
        try:
            await self._store(report, message.time, REPORT_SECONDS)
        except BrokerAway as error:
            if not self._bus.connected.is_set():
                raise
            log.debug("report of %s #%s not stored yet: %s", report.subject, report.sequence, error)
            self._add_late(report, message.time)  # it is full or has no leader: no answer may depend on it

    def add_later(self, reason: str, message: Stored, request_id: str | None) -> None:
        """Report a message in the background: for listeners, which may not wait."""
        self._add_late(_report(reason, message, request_id), message.time)

    @property
    def waiting(self) -> int:
        """How many reports are still to be stored."""
        return len(self._late)

    def close(self) -> None:
        if self._reporting is not None:
            self._reporting.cancel()

    def _add_late(self, report: ErrorReport, stored_at: float) -> None:
        if len(self._late) >= MAX_LATE:
            self._drop(report, f"{MAX_LATE} others wait")
            return
        self._late.append(_Late(report, stored_at))
        if self._reporting is None or self._reporting.done():
            self._reporting = supervised(self._store_late(), "reporting errors")

    async def _store_late(self) -> None:
        """One after the other, for as long as it takes."""
        while self._late:
            try:
                await self._store(*self._late[0], None)
            except MusterError as error:
                self._drop(self._late[0].report, str(error))
            self._late.popleft()

    async def _store(self, report: ErrorReport, stored_at: float, give_up_after: float | None) -> None:
        origin = self._bus.origin(report.request_id or "")
        is_old = self._bus.clock.now() - stored_at > RECENT_SECONDS
        if is_old and await self._reported.has(report.id_for(origin)):
            return
        self._bus.counters["errors reported"] += 1
        log.warning("✗ refused  %s #%s: %s", report.subject, report.sequence, report.reason)
        await self._bus.store(report, origin, give_up_after=give_up_after)

    def _drop(self, report: ErrorReport, reason: str) -> None:
        self._bus.counters["reports dropped"] += 1
        log.error("✗ report of %s #%s dropped: %s", report.subject, report.sequence, reason)


def _report(reason: str, message: Stored, request_id: str | None) -> ErrorReport:
    return ErrorReport(
        reason=KNOWN(reason),
        subject=message.subject,
        stream=message.stream,
        sequence=message.sequence,
        claimed_sender=((message.headers or {}).get(h.SENDER) or "")[:200],
        request_id=subjects.as_id(request_id) if request_id else None,  # what a bad message claims goes into a header
        excerpt=_excerpt(message.data),
    )


def _excerpt(body: bytes) -> str:
    """How a body begins; secrets are looked for in all of it, so that none is cut in two."""
    looked_at = body if KNOWN.is_in(body) else body[:EXCERPT]
    return _CALLBACK_URL.sub(r"\1…", KNOWN(looked_at.decode(errors="replace")))[:EXCERPT]

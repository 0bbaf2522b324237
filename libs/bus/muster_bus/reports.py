"""Reports of what cannot be used: each message once, and without holding up whoever reports."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Self

from muster_bus.background import supervised
from muster_bus.lease import Delivery
from muster_bus.read import Raw
from muster_bus.reported_ids import RECENT_SECONDS, ReportedIds
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway, MusterError
from muster_protocol.messages import ErrorReport

if TYPE_CHECKING:
    from muster_bus.connection import Bus

log = logging.getLogger("muster.bus")

EXCERPT = 200
REPORT_SECONDS = 2.0  # what a full ERRORS may hold up whoever reports …
MAX_LATE = 1000  # … and how many reports wait beside the work until there is room


class Source:
    """Where a message came from."""

    __slots__ = ("data", "headers", "sequence", "stream", "subject", "time")

    def __init__(
        self,
        stream: str,
        sequence: int,
        subject: str,
        headers: Mapping[str, str] | None,
        data: bytes,
        time: float = inf,  # when it was stored; known of what can be read more than once
    ) -> None:
        self.stream, self.sequence, self.subject = stream, sequence, subject
        self.headers, self.data, self.time = headers, data, time

    @classmethod
    def of(cls, delivery: Delivery) -> Self:
        return cls(delivery.stream, delivery.sequence, delivery.subject, delivery.headers, delivery.data)

    @classmethod
    def of_raw(cls, stream: str, raw: Raw) -> Self:
        return cls(stream, raw.sequence, raw.subject, raw.headers, raw.data, raw.time)

    @property
    def message_id(self) -> str:
        """The message id of its report, so that several readers report it once."""
        return f"{self.stream}.{self.sequence}"


class Reports:
    """What one connection puts on `errors`."""

    def __init__(self, bus: "Bus") -> None:
        self._bus = bus
        self._reported = ReportedIds(bus.nc)
        self._late: deque[tuple[ErrorReport, str]] = deque()
        self._reporting: asyncio.Task[None] | None = None

    async def add(self, reason: str, source: Source, request_id: str | None) -> None:
        """Report it, unless somebody has."""
        if self._bus.clock.now() - source.time > RECENT_SECONDS and await self._reported.has(source.message_id):
            return
        self._bus.counters["errors reported"] += 1
        log.warning("✗ refused  %s #%s: %s", source.subject, source.sequence, reason)
        report = _report(reason, source, request_id)
        if self._late:  # ERRORS takes nothing now: one reader waits for it once, not once for each message
            self._add_later(report, source.message_id, BrokerAway("earlier reports wait"))
            return
        try:
            await self._store(report, source.message_id, REPORT_SECONDS)
        except BrokerAway as error:
            if not self._bus.connected.is_set():
                raise
            self._add_later(report, source.message_id, error)  # it is full or has no leader: no answer may depend on it

    def close(self) -> None:
        if self._reporting is not None:
            self._reporting.cancel()

    def _add_later(self, report: ErrorReport, message_id: str, reason: BrokerAway) -> None:
        if len(self._late) >= MAX_LATE:
            self._drop(reason)
            return
        self._late.append((report, message_id))
        if self._reporting is None or self._reporting.done():
            self._reporting = supervised(self._add_late(), "the reporting of errors")

    async def _add_late(self) -> None:
        """One after the other, for as long as it takes."""
        while self._late:
            try:
                await self._store(*self._late[0])
            except MusterError as error:
                self._drop(error)
            self._late.popleft()

    async def _store(self, report: ErrorReport, message_id: str, give_up_after: float | None = None) -> None:
        request_id = report.request_id or ""
        await self._bus.store(
            subjects.ERRORS, report, request_id=request_id, message_id=message_id, give_up_after=give_up_after
        )

    def _drop(self, reason: MusterError) -> None:
        self._bus.counters["reports dropped"] += 1
        log.error("✗ a report was dropped: %s", reason)


def _report(reason: str, source: Source, request_id: str | None) -> ErrorReport:
    return ErrorReport(
        reason=reason,
        subject=source.subject,
        stream=source.stream,
        sequence=source.sequence,
        claimed_sender=((source.headers or {}).get(h.SENDER) or "")[:200],
        request_id=subjects.as_id(request_id) if request_id else None,  # what a bad message claims goes into a header
        excerpt=source.data[:EXCERPT].decode(errors="replace"),
    )

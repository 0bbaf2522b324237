"""Turns every message that the coordinator sees into counts and sightings, from headers wherever they are enough.

The callbacks only take note; whatever needs the broker (reading a log, reporting) is left to the coordinator's loop.
"""

import asyncio
import logging
import time
from collections.abc import Mapping

from pydantic import ValidationError

from muster_bus.bodies import check_size, inline
from muster_bus.clock import BrokerClock
from muster_bus.connection import Incoming
from muster_bus.read import Raw, timestamp
from muster_bus.reports import Source
from muster_coordinator.conflicts import AttemptKey, Conflict, ConflictDetector, Finish, HandBack, Sighting, Sign, Start
from muster_coordinator.overview import READ_KINDS, Overview, number
from muster_coordinator.pending_reports import PendingReports
from muster_coordinator.recheck import Recheck
from muster_coordinator.streams import IS_DELETION, source_of
from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.headers import require_kind, require_sender
from muster_protocol.messages import (
    CONTROL_KINDS,
    EVENT_KINDS,
    LOG_KINDS,
    ConflictFound,
    Event,
    HandedBack,
    Progress,
    Result,
    ResultStatus,
    Started,
    ToolUsed,
)
from muster_protocol.subjects import last_token, results

log = logging.getLogger("muster.coordinator")

MAX_CONFLICTS = 1000
SYNC_CLOCK_SECONDS = 1.0  # reading a timestamp costs as much as everything else here


class Observer:
    """Every message, live or read afterwards, passes here; the same message twice changes nothing."""

    def __init__(self, clock: BrokerClock) -> None:
        self._clock = clock
        self._clock_synced_at = 0.0
        self._detector = ConflictDetector()
        self.overview = Overview()
        self.conflicts: dict[str, ConflictFound] = {}  # by message id, oldest first
        self.unpublished: dict[str, ConflictFound] = {}  # those to be published as events, by the same id
        self.pending_reports = PendingReports()
        self.recheck = Recheck()
        self.has_work = asyncio.Event()

    def on_live_entry(self, message: Incoming) -> None:
        """An entry of some log, as the broker repeats it."""
        headers = message.headers or {}
        sequence, previous = number(headers.get("Nats-Sequence", "")), number(headers.get("Nats-Last-Sequence", ""))
        if sequence == 0:
            return  # not from the broker: somebody published on its subject
        request_id = last_token(message.subject)
        if self.needs_stored_body(request_id, headers):
            self.overview.note_unread(request_id, sequence)
        elif self.overview.is_next(request_id, sequence, previous):
            self._sync_clock(headers)
            self.apply_entry(Raw(sequence, self._clock.now(), results(request_id), headers, message.data))
        if self.overview.unread:
            self.has_work.set()

    def on_message(self, message: Incoming) -> None:
        """An event of some request, or a control message."""
        try:
            body = inline(message.headers, message.data)
            self.apply_message(message.subject, message.headers, body, self._clock.now())
        except Invalid:
            self.recheck.add(message.subject, time.monotonic())
            self.has_work.set()

    def on_worker_card(self, message: Incoming) -> None:
        """A worker renews its card in the registry."""
        if IS_DELETION not in (message.headers or {}):
            self._see(Sign(None, last_token(message.subject), self._clock.now()))

    def needs_stored_body(self, request_id: str, headers: Mapping[str, str]) -> bool:
        """Whether an entry cannot be applied before its body is fetched from the object store."""
        if h.BODY_REF not in headers:
            return False
        return request_id not in self.overview.open or headers.get(h.KIND) in READ_KINDS

    def apply_entry(self, raw: Raw) -> None:
        """An entry of a log, live or read. While the request is open its owner checks the body: headers are enough."""
        request_id, headers = last_token(raw.subject), raw.headers
        try:
            sender = require_sender(headers)
            if headers.get(h.KIND) not in LOG_KINDS:
                require_kind(headers, LOG_KINDS)
            check_size(headers, raw.data)
            if request_id not in self.overview.open:
                LOG_KINDS[headers[h.KIND]].read(raw.data)
        except Invalid as reason:
            self.refuse_entry(str(reason), raw)
            return
        if headers[h.KIND] == Result.kind and not h.is_owner(sender):
            self._finish(request_id, headers, raw.time)
        self.overview.count(request_id, raw.sequence, headers, raw.data)

    def apply_message(self, subject: str, headers: Mapping[str, str] | None, body: bytes, at: float) -> None:
        """An event or a control message with its body, live or read; raises Invalid."""
        sender = require_sender(headers)
        kinds = CONTROL_KINDS if subject.startswith("control.") else EVENT_KINDS
        message = require_kind(headers, kinds).read(body)
        if message.request_id != last_token(subject):
            raise Invalid(f"the message is about {message.request_id}", "request_id")
        if isinstance(message, Event):
            self._apply_event(message, sender, at)

    def refuse(self, reason: str, source: Source, at: float) -> None:
        """Note a message that cannot be used, to be reported."""
        self.pending_reports.add(reason, source, at)
        self.has_work.set()

    def refuse_entry(self, reason: str, raw: Raw) -> None:
        """Note a log entry that cannot be used, and go on after it."""
        self.refuse(reason, source_of(raw.subject, raw.sequence, raw.headers, raw.data), raw.time)
        self.overview.skip(last_token(raw.subject), raw.sequence)

    def _apply_event(self, event: Event, sender: str, at: float) -> None:
        key = AttemptKey(event.request_id, event.task_id, event.attempt)
        match event:
            case Started():
                self._see(Start(key, event.worker, event.delivery, event.task_sequence, at))
            case HandedBack():
                self._see(HandBack(key, event.worker, event.delivery))
            case Progress() | ToolUsed():
                if sender.startswith("worker/"):
                    self._see(Sign(key, sender.split("/")[1], at))
            case ConflictFound():
                self._remember(event)
                self.unpublished.pop(event.message_id, None)  # somebody has published it, perhaps we before a restart

    def _finish(self, request_id: str, headers: Mapping[str, str], at: float) -> None:
        worker, task_id = headers.get("worker"), headers.get("task")
        if not worker or not task_id or headers.get("status") == ResultStatus.CANCELLED:
            return  # a worker that was stopped has not finished
        key = AttemptKey(request_id, task_id, number(headers.get("attempt", "")))
        self._see(Finish(key, worker, number(headers.get("delivery", "")), at))

    def _see(self, sighting: Sighting) -> None:
        for conflict in self._detector.see(sighting):
            self._add_conflict(conflict)

    def _add_conflict(self, conflict: Conflict) -> None:
        try:
            found = ConflictFound(
                request_id=conflict.key.request_id,
                task_id=conflict.key.task_id,
                attempt=conflict.key.attempt,
                what=conflict.what,
                first=_printable(conflict.first),
                second=_printable(conflict.second),
                at=round(self._clock.now(), 3),
            )
        except ValidationError as error:
            log.debug("a conflict was ignored, because its headers have an impossible id: %s", error)
            return
        if self._remember(found):
            log.warning("! %s/%s attempt %d was %s: by %s and %s", *conflict.key, found.what, found.first, found.second)
            if len(self.unpublished) >= MAX_CONFLICTS:
                del self.unpublished[next(iter(self.unpublished))]
            self.unpublished[found.message_id] = found
            self.has_work.set()

    def _remember(self, found: ConflictFound) -> bool:
        """Keep a conflict to be listed; False if it is known."""
        if found.message_id in self.conflicts:
            return False
        if len(self.conflicts) >= MAX_CONFLICTS:
            del self.conflicts[next(iter(self.conflicts))]
        self.conflicts[found.message_id] = found
        return True

    def _sync_clock(self, headers: Mapping[str, str]) -> None:
        now = time.monotonic()
        if now - self._clock_synced_at > SYNC_CLOCK_SECONDS:
            self._clock_synced_at = now
            try:
                self._clock.observe(timestamp(headers.get("Nats-Time-Stamp", "")))
            except ValueError:
                log.debug("a live entry has no readable Nats-Time-Stamp")


def _printable(name: str) -> str:
    """Names come from headers and go into headers."""
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in name[:80])

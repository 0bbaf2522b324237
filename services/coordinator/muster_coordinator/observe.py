"""Turns every message that the coordinator sees into counts and sightings, from headers wherever they are enough.

The callbacks only take note; whatever needs the broker (reading a log, reporting) is left to the coordinator's loop.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from pydantic import ValidationError

from muster_bus.clock import BrokerClock
from muster_bus.connection import Incoming
from muster_bus.read import Raw
from muster_bus.receive import Opened, check_headers, open_live
from muster_bus.tail import Live
from muster_coordinator.conflicts import Conflict, ConflictDetector, Finish, HandBack, Sighting, Sign, Start
from muster_coordinator.overview import READ_KINDS, Overview, number
from muster_coordinator.recheck import Recheck
from muster_protocol import headers as h
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import Invalid
from muster_protocol.messages import (
    CONTROL_KINDS,
    EVENT_KINDS,
    LOG_KINDS,
    ConflictFound,
    Control,
    Event,
    HandedBack,
    Progress,
    Result,
    ResultStatus,
    Started,
    ToolUsed,
)
from muster_protocol.subjects import last_token

log = logging.getLogger("muster.coordinator")

MAX_CONFLICTS = 1000
MESSAGE_KINDS: Mapping[str, type[Event | Control]] = {**EVENT_KINDS, **CONTROL_KINDS}


class Observer:
    """Every message, live or read afterwards, passes here; the same message twice changes nothing."""

    def __init__(self, clock: BrokerClock, report: Callable[[str, Raw], None]) -> None:
        self._clock = clock
        self._report = report
        self._detector = ConflictDetector()
        self.overview = Overview()
        self.conflicts: dict[str, ConflictFound] = {}  # by message id, oldest first
        self.unpublished: dict[str, ConflictFound] = {}  # those to be published as events, by the same id
        self.recheck = Recheck()
        self.has_work = asyncio.Event()

    def on_live_entry(self, live: Live) -> None:
        """An entry of some log, as the broker repeats it."""
        raw, request_id = live.raw, last_token(live.raw.subject)
        if self.needs_stored_body(request_id, raw.headers):
            self.overview.note_unread(request_id, raw.sequence)
        elif self.overview.is_next(request_id, raw.sequence, live.previous):
            self.apply_entry(raw)
        if self.overview.unread:
            self.has_work.set()

    def on_message(self, message: Incoming) -> None:
        """An event of some request, or a control message."""
        try:
            self.apply_message(open_live(message, MESSAGE_KINDS), self._clock.now())
        except Invalid:
            self.recheck.add(message.subject, time.monotonic())
            self.has_work.set()

    def on_worker_card(self, worker: str) -> None:
        """A worker renews its card in the registry."""
        self._see(Sign(None, worker, self._clock.now()))

    def needs_stored_body(self, request_id: str, headers: Mapping[str, str]) -> bool:
        """Whether an entry cannot be applied before its body is fetched from the object store."""
        if h.BODY_REF not in headers:
            return False
        return request_id not in self.overview.open or headers.get(h.KIND) in READ_KINDS

    def apply_entry(self, raw: Raw) -> None:
        """An entry of a log, live or read. While the request is open its owner checks the body: headers are enough."""
        request_id, headers = last_token(raw.subject), raw.headers
        try:
            sender, kind = check_headers(raw, LOG_KINDS)
            if request_id not in self.overview.open:
                kind.read(raw.data)
        except Invalid as reason:
            self.refuse_entry(str(reason), raw)
            return
        if kind is Result and not h.is_owner(sender):
            self._finish(request_id, headers, raw.time)
        self.overview.count(request_id, raw.sequence, headers, raw.data)

    def apply_message(self, message: Opened[Event | Control], at: float) -> None:
        """An event or a control message, live or read."""
        if isinstance(message.body, Event):
            self._apply_event(message.body, message.sender, at)

    def refuse_entry(self, reason: str, raw: Raw) -> None:
        """Report a log entry that cannot be used, and go on after it."""
        self._report(reason, raw)
        self.overview.skip(last_token(raw.subject), raw.sequence)

    def _apply_event(self, event: Event, sender: str, at: float) -> None:
        key = event.attempt_id
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
                self.unpublished.pop(event.key, None)  # somebody has published it, perhaps we before a restart

    def _finish(self, request_id: str, headers: Mapping[str, str], at: float) -> None:
        worker, task_id = headers.get("worker"), headers.get("task")
        if not worker or not task_id or headers.get("status") == ResultStatus.CANCELLED:
            return  # a worker that was stopped has not finished
        key = AttemptId(request_id, task_id, number(headers.get("attempt", "")))
        self._see(Finish(key, worker, number(headers.get("delivery", "")), at))

    def _see(self, sighting: Sighting) -> None:
        for conflict in self._detector.see(sighting):
            self._add_conflict(conflict)

    def _add_conflict(self, conflict: Conflict) -> None:
        try:
            found = ConflictFound(
                **conflict.key._asdict(),
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
            self.unpublished[found.key] = found
            self.has_work.set()

    def _remember(self, found: ConflictFound) -> bool:
        """Keep a conflict to be listed; False if it is known."""
        if found.key in self.conflicts:
            return False
        if len(self.conflicts) >= MAX_CONFLICTS:
            del self.conflicts[next(iter(self.conflicts))]
        self.conflicts[found.key] = found
        return True


def _printable(name: str) -> str:
    """Names come from headers and go into headers."""
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in name[:80])

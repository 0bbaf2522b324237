"""What is heard becomes counts and sightings: from headers alone wherever that is enough.

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
from muster_bus.read import timestamp
from muster_bus.reports import Source
from muster_coordinator.conflicts import AttemptKey, Conflict, ConflictDetector, Finish, HandBack, Sighting, Sign, Start
from muster_coordinator.overview import Overview, number
from muster_coordinator.pending_reports import PendingReports
from muster_coordinator.recheck import Recheck
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
    Started,
    ToolUsed,
)
from muster_protocol.subjects import last_token, results

log = logging.getLogger("muster.coordinator")

MAX_CONFLICTS = 1000
LOOK_AT_CLOCK_SECONDS = 1.0
DELETED = "KV-Operation"


class Observer:
    """Everything that reaches the coordinator, live or read afterwards, passes here; twice changes nothing."""

    def __init__(self, clock: BrokerClock) -> None:
        self._clock = clock
        self._looked_at = 0.0
        self._detector = ConflictDetector()
        self.overview = Overview()
        self.conflicts: dict[str, ConflictFound] = {}  # by their once-only id, oldest first
        self.found: dict[str, ConflictFound] = {}  # to be told to the others, by the same id
        self.pending_reports = PendingReports()
        self.recheck = Recheck()
        self.news = asyncio.Event()

    def on_live(self, message: Incoming) -> None:
        """An entry of some log, as the broker repeats it."""
        headers = message.headers or {}
        sequence, previous = number(headers.get("Nats-Sequence", "")), number(headers.get("Nats-Last-Sequence", ""))
        if sequence == 0:
            return  # somebody's own message on this subject, not the broker's
        request_id = last_token(message.subject)
        if request_id not in self.overview.open and h.BODY_REF in headers:
            self.overview.note_unread(request_id, sequence)  # nobody else may read what lies elsewhere
        elif self.overview.is_next(request_id, sequence, previous):
            self._look_at_clock(headers)
            self.entry(request_id, sequence, headers, message.data, self._clock.now())
        if self.overview.unread:
            self.news.set()

    def on_said(self, message: Incoming) -> None:
        """An event of some request, or a control message."""
        try:
            body = inline(message.headers, message.data)
            self.judge(message.subject, message.headers, body, self._clock.now())
        except Invalid:
            self.recheck.hear(message.subject, time.monotonic())
            self.news.set()

    def on_beat(self, message: Incoming) -> None:
        """A worker renews its place in the registry."""
        if DELETED not in (message.headers or {}):
            self._see(Sign(None, last_token(message.subject), self._clock.now()))

    def entry(self, request_id: str, sequence: int, headers: Mapping[str, str], body: bytes, at: float) -> None:
        """An entry of a log, live or read. While the request is open its owner reads the body: headers are enough."""
        try:
            sender = require_sender(headers)
            if headers.get(h.KIND) not in LOG_KINDS:
                require_kind(headers, LOG_KINDS)
            check_size(headers, body)
            if request_id not in self.overview.open:
                LOG_KINDS[headers[h.KIND]].read(body)
        except Invalid as reason:
            self.refuse_entry(str(reason), request_id, sequence, headers, body, at)
            return
        if headers[h.KIND] == Result.kind and not h.is_owner(sender):
            self._result(request_id, headers, at)
        self.overview.count(request_id, sequence, headers, body)

    def judge(self, subject: str, headers: Mapping[str, str] | None, body: bytes, at: float) -> None:
        """An event or a control message with its body, live or read; raises Invalid."""
        sender = require_sender(headers)
        kinds = CONTROL_KINDS if subject.startswith("control.") else EVENT_KINDS
        said = require_kind(headers, kinds).read(body)
        request_id = last_token(subject)
        if said.request_id != request_id:
            raise Invalid(f"the message is about {said.request_id}", "request_id")
        if isinstance(said, Event):
            self._event(said, sender, at)

    def _event(self, said: Event, sender: str, at: float) -> None:
        key = AttemptKey(said.request_id, said.task_id, said.attempt)
        match said:
            case Started():
                self._see(Start(key, said.worker, said.delivery, said.task_sequence, at))
            case HandedBack():
                self._see(HandBack(key, said.worker, said.delivery))
            case Progress() | ToolUsed():
                if sender.startswith("worker/"):
                    self._see(Sign(key, sender.split("/")[1], at))
            case ConflictFound():
                self._told(said)

    def refuse(self, reason: str, source: Source, at: float) -> None:
        self.pending_reports.add(reason, source, at)
        self.news.set()

    def refuse_entry(
        self, reason: str, request_id: str, sequence: int, headers: Mapping[str, str], body: bytes, at: float
    ) -> None:
        self.refuse(reason, Source("RESULTS", sequence, results(request_id), headers, body), at)
        self.overview.skip(request_id, sequence)

    def _result(self, request_id: str, headers: Mapping[str, str], at: float) -> None:
        worker, task_id = headers.get("worker"), headers.get("task")
        if not worker or not task_id or headers.get("status") == "cancelled":
            return  # who was told to stop has not finished
        key = AttemptKey(request_id, task_id, number(headers.get("attempt", "")))
        self._see(Finish(key, worker, number(headers.get("delivery", "")), at))

    def _see(self, sighting: Sighting) -> None:
        for conflict in self._detector.see(sighting):
            self._found(conflict)

    def _found(self, conflict: Conflict) -> None:
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
            log.debug("a conflict with an impossible id: %s", error)
            return
        if self._keep(found):
            log.warning("! %s  %s/%s  attempt %d: %s and %s", found.what, *conflict.key, found.first, found.second)
            if len(self.found) >= MAX_CONFLICTS:
                del self.found[next(iter(self.found))]
            self.found[found.message_id] = found
            self.news.set()

    def _told(self, told: ConflictFound) -> None:
        """Somebody, or this coordinator before it was started anew, has told this conflict already."""
        self._keep(told)
        self.found.pop(told.message_id, None)

    def _keep(self, found: ConflictFound) -> bool:
        if found.message_id in self.conflicts:
            return False
        if len(self.conflicts) >= MAX_CONFLICTS:
            del self.conflicts[next(iter(self.conflicts))]
        self.conflicts[found.message_id] = found
        return True

    def _look_at_clock(self, headers: Mapping[str, str]) -> None:
        """Now and then is enough: reading a timestamp costs as much as everything else here."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_AT_CLOCK_SECONDS:
            self._looked_at = now
            try:
                self._clock.observe(timestamp(headers.get("Nats-Time-Stamp", "")))
            except ValueError:
                log.debug("an entry without a readable time")


def _printable(name: str) -> str:
    """Names come from headers and go into headers."""
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in name[:80])

"""Turns every message that the coordinator sees into counts and evidence, from headers wherever they are enough.

The callbacks only take note; whatever needs the broker (reading a log, reporting) is left to the coordinator's loop.
"""

import asyncio
import time
from collections.abc import Mapping

from muster_bus.clock import BrokerClock
from muster_bus.connection import Incoming
from muster_bus.read_stream import Raw
from muster_bus.receive import HeaderGate, Opened, open_live
from muster_bus.tail import Live
from muster_coordinator.conflicts.evidence import Evidence
from muster_coordinator.conflicts.sightings import dispatched_seen, result_seen, trace_id_of, worker_of
from muster_coordinator.conflicts.trails import Sighting, What
from muster_coordinator.overview import READ_KINDS, Overview
from muster_coordinator.recheck import Recheck
from muster_protocol import headers as h
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import Conflict, ConflictKind
from muster_protocol.errors import Invalid
from muster_protocol.messages import (
    CONTROL_KINDS,
    EVENT_KINDS,
    LOG_KINDS,
    Answer,
    ConflictFound,
    Control,
    Dispatched,
    Event,
    HandedBack,
    PlanRecorded,
    Progress,
    Refused,
    Result,
    Started,
)
from muster_protocol.subjects import is_id, last_token

MESSAGE_KINDS: Mapping[str, type[Event | Control]] = {**EVENT_KINDS, **CONTROL_KINDS}
MAX_GROUPS = 100
MAX_AHEAD_SECONDS = 5.0  # that the clock of a worker may be ahead
MAX_BEHIND_SECONDS = 5.0  # that a start may be older than its live event: nobody is first by saying so
MAX_UNFOLLOWED = 1000
_NO_HEADERS: Mapping[str, str] = {}


class Observer:
    """Every message, live or read afterwards, passes here; the same message twice changes nothing."""

    def __init__(self, clock: BrokerClock, gate: HeaderGate) -> None:
        self._clock = clock
        self.gate = gate
        self.evidence = Evidence()
        self.same_work: list[Conflict] = []  # to be listed
        self.announced: dict[AttemptId, str] = {}  # conflicts whose event was seen, and of whom
        self.unfollowed: dict[str, None] = {}  # requests of which news came and nothing is known
        self.overview = Overview()
        self.recheck = Recheck()
        self.has_work = asyncio.Event()

    def on_live_entry(self, live: Live) -> None:
        """An entry of some log, as the broker repeats it."""
        raw, request_id = live.raw, last_token(live.raw.subject)
        if live.follows(self.overview.last_of(request_id)) and not self.needs_stored_body(request_id, raw.headers):
            self.apply_entry(raw)
        else:
            self.overview.note_unread(request_id, raw.sequence)
        if self.overview.unread:
            self.has_work.set()

    def on_message(self, message: Incoming) -> None:
        """An event of some request, or a control message."""
        try:
            opened, headers = open_live(message, MESSAGE_KINDS), message.headers or _NO_HEADERS
            if isinstance(opened.body, Progress) and opened.body.waits_for:
                self.overview.numbers.add_wait(opened.body.waits_for)
            self.apply_message(opened, self._clock.now(), headers, is_live=True)
        except Invalid:
            self.recheck.add(message.subject, time.monotonic())
            self.has_work.set()

    def needs_stored_body(self, request_id: str, headers: Mapping[str, str]) -> bool:
        """Whether an entry cannot be applied before its body is fetched from the object store."""
        if h.BODY_REF not in headers:
            return False
        is_read = headers.get(h.KIND) in READ_KINDS or h.SAME_WORK in headers
        return request_id not in self.overview.open or is_read

    def apply_entry(self, raw: Raw) -> None:
        """An entry of a log, live or read. While the request is open its owner checks the body: headers are enough."""
        request_id, headers = last_token(raw.subject), raw.headers
        found = self.gate.open(raw, LOG_KINDS, checks_body=request_id not in self.overview.open)
        if found is None:
            self.overview.skip(request_id, raw.sequence)
            return
        sender, kind = found
        is_counted = self.overview.count(request_id, raw.sequence, headers, raw.data)
        is_owner = h.is_owner(sender)
        if kind is Result and not is_owner:
            self._see_result(request_id, sender, raw, is_counted=is_counted)
        elif kind is Dispatched and is_owner:
            self._see_dispatched(request_id, sender, raw)
        elif kind is Answer and request_id in self.overview.ended:
            self.evidence.see_answer(request_id, raw.time)
        elif kind is PlanRecorded and is_owner and h.SAME_WORK in headers:
            self._list_same_work(request_id, raw)
        if self.evidence.suspects:
            self.has_work.set()

    def apply_message(
        self, message: Opened[Event | Control], at: float, headers: Mapping[str, str], *, is_live: bool = False
    ) -> None:
        """An event or a control message, live or read. What a worker says counts for itself alone."""
        event, sender = message.body, message.sender
        if isinstance(event, ConflictFound) and sender.startswith("coordinator/"):
            if len(self.announced) < MAX_UNFOLLOWED:
                self.announced[event.attempt_id] = sender
            return
        if not isinstance(event, Started | HandedBack | Refused) or worker_of(sender) != event.worker:
            return
        match event:
            case Started():
                what = What.STARTED
                at = _said_at(event.at, at, is_live=is_live)
            case HandedBack():
                what = What.HANDED_BACK
            case Refused():
                what = What.REFUSED
        key = event.attempt_id
        trace_id = trace_id_of(headers)
        self.evidence.see(Sighting(key, what, at, event.worker, event.delivery, event.task_sequence, sender, trace_id))
        if key.request_id not in self.overview.open and not self.evidence.has_log_of(key):
            if len(self.unfollowed) < MAX_UNFOLLOWED:
                self.unfollowed[key.request_id] = None
            self.has_work.set()
        if self.evidence.suspects:
            self.has_work.set()

    def _see_result(self, request_id: str, sender: str, raw: Raw, *, is_counted: bool) -> None:
        seen = result_seen(request_id, sender, raw.time, raw.headers, is_counted=is_counted)
        if seen is not None:
            self.evidence.see(seen)

    def _see_dispatched(self, request_id: str, sender: str, raw: Raw) -> None:
        try:
            entry = Dispatched.read(raw.data)
        except Invalid:
            return  # its owner reports it, or it is so large that it lies in the object store
        for seen in dispatched_seen(request_id, sender, raw.time, entry):
            self.evidence.see(seen)

    def _list_same_work(self, request_id: str, raw: Raw) -> None:
        try:
            groups = PlanRecorded.read(raw.data).same_work[:MAX_GROUPS]
        except Invalid:
            return  # its owner reports it
        at = round(raw.time, 3)
        for tasks in groups:
            if tasks and is_id(request_id) and len(self.same_work) < MAX_UNFOLLOWED:
                same = Conflict(
                    request_id=request_id,
                    task_id=tasks[0],
                    attempt=0,
                    kinds=(ConflictKind.SAME_WORK,),
                    tasks=tuple(sorted(tasks)),
                    found_at=at,
                    updated_at=at,
                )
                self.same_work.append(same)
                self.has_work.set()


def _said_at(said: float, received_at: float, *, is_live: bool) -> float:
    """When a worker says that it was, as far as that can be; one that was stored may have waited for the broker."""
    if not 0 < said < received_at + MAX_AHEAD_SECONDS:
        return received_at
    return max(said, received_at - MAX_BEHIND_SECONDS) if is_live else said

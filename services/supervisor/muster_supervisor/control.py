"""Copies what people say on `control` into the request's log, where it gets its place among everything else."""

import time

from muster_bus.read import Raw, read_subject
from muster_bus.reported_ids import RECENT_SECONDS
from muster_bus.reports import Source
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.messages import CONTROL_KINDS, Cancel, Control, Decision
from muster_supervisor.owner import Owner

MAX_REASON = 2000  # characters: it is repeated in the log, the answer and the abort
POLL_SECONDS = 5.0  # in a cluster a message can be announced before it can be read


class Controls:
    """The control messages of one request, read in the background by one reader at a time."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._polled_at = 0.0
        self._has_news = self._is_reading = False
        self._read_up_to = 0

    def read_soon(self) -> None:
        """Start reading, or let the reader that is at work read once more."""
        self._polled_at = time.monotonic()
        self._has_news = True
        if not self._is_reading:
            self._is_reading = True
            self._owner.in_background(self._read)

    def poll(self) -> None:
        """Read if that was not done for a while, also without an announcement."""
        if time.monotonic() - self._polled_at > POLL_SECONDS:
            self.read_soon()

    def start_over(self) -> None:
        """Read from the last recorded decision on: what was decided under an earlier term may not count."""
        self._read_up_to = 0

    async def _read(self) -> None:
        try:
            while self._has_news:
                self._has_news = False
                term = self._owner.term
                read = await read_controls(self._owner, self._read_up_to)
                if self._owner.term == term:
                    self._read_up_to = read
                else:
                    self._has_news = True  # what was decided under a term that ended meanwhile may not count
        finally:
            self._is_reading = False


async def read_controls(owner: Owner, after: int) -> int:
    """Record a decision for each control message after this sequence; returns the last sequence that was read."""
    subject = subjects.control(owner.request_id)
    after = max(after, owner.state.controls_seen)
    for raw in await read_subject(owner.bus.nc, "CONTROL", subject, after, from_leader=True):
        after = raw.sequence
        try:
            by, control = await _opened(owner, raw)
        except Invalid as reason:
            if owner.now() - raw.time < RECENT_SECONDS:  # older ones were reported when they came
                source = Source.of_raw("CONTROL", raw)
                await owner.bus.report(str(reason), source, request_id=owner.request_id)
            continue
        if isinstance(control, Cancel):
            reason = control.reason[:MAX_REASON]
            decision = Decision(decision="cancel", control_sequence=raw.sequence, by=by, reason=reason)
            await owner.append(decision, f"{owner.request_id}.decision.{owner.term}.{raw.sequence}")
    return after


async def _opened(owner: Owner, raw: Raw) -> tuple[str, Control]:
    """The sender and the message; Invalid says why it cannot be used."""
    by = h.require_sender(raw.headers)
    kind = h.require_kind(raw.headers, CONTROL_KINDS)
    control = kind.read(await owner.bus.body_of(raw.headers, raw.data))
    if control.request_id != owner.request_id:
        raise Invalid(f"the message is about {control.request_id}", "request_id")
    return by, control

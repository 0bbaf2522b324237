"""Copies what people say on `control` into the request's log, where it gets its place among everything else."""

import time

from muster_bus.receive import opened
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.messages import CONTROL_KINDS
from muster_supervisor.owner import Owner
from muster_supervisor.steps.replies import decision_of

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
    async with owner.copying:  # one at a time: each is judged by what those before it have changed
        return await _copy(owner, after)


async def _copy(owner: Owner, after: int) -> int:
    after = max(after, owner.state.controls_seen)
    for raw in await owner.bus.read(subjects.control(owner.request_id), after, from_leader=True):
        after = raw.sequence
        try:
            control = await opened(owner.bus, raw, CONTROL_KINDS, owner.request_id)
        except Invalid:
            continue  # the gate has reported it
        decision = decision_of(control.body, control.sender, owner.state, owner.resources.team)
        if decision is not None:
            placed = {"control_sequence": raw.sequence, "said_at": raw.time}
            await owner.append(decision.model_copy(update=placed))
    return after

"""The log of one request as its owner or a reader works with it: followed, folded, written with compare-and-set.

The log is the only shared state of a request (decision 1). `RequestLog` keeps the state that its entries fold to: it
follows the log with a `Tail`, folds an entry that comes live as it comes, and reads the stream where there is a gap.

Writing. An entry is stored, and then everything up to it is folded before the call returns, so that an owner acts on
what the log says after its own write and not on what it meant to write. These entries are compare-and-set on the
last sequence of the subject: the plan, the answer and the first `taken` (decision 6). Their message ids are unique
to one write, since in a cluster the broker's check for duplicates can hide a lost compare-and-set; an acknowledgement
that says `duplicate` counts as lost. A refusal may arrive before the commit of what caused it, so a loser reads until
the winner shows.

Reading. After an own write the repetition usually comes within a millisecond; if it does not, the log is read, and
what a lagging replica does not have, the leader has. An entry that cannot be used is reported by the gate and passed
over; a kind that a newer owner wrote is remembered, so that the request is left to a supervisor that knows it.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple

from muster_bus.connection import Bus
from muster_bus.publish import CompareAndSetLost, Stored
from muster_bus.read_stream import Raw
from muster_bus.receive import Opened, open_live, opened
from muster_bus.tail import Tail
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.fold import Entry, RequestState, apply
from muster_protocol.messages import LOG_KINDS, Answer, LogBody, PlanRecorded, Reserved, Taken

log = logging.getLogger("muster.bus")

PAST_TRIES = 20  # the winner's commit takes a millisecond; when its leader died there is none
CATCH_UP_SECONDS = 0.05  # the repetition comes within a millisecond of the acknowledgement; else read


class _Own(NamedTuple):
    """An entry that we are writing: what comes back just as it was sent need not be parsed again."""

    body: LogBody
    data: bytes
    headers: Mapping[str, str]

    def is_stored_as(self, raw: Raw) -> bool:
        """A byte may have changed on the wire; then others cannot read the entry, and we must not count on it."""
        return raw.data == self.data and all(raw.headers.get(name) == value for name, value in self.headers.items())


class RequestLog:
    """One request's log and the state that it folds to."""

    def __init__(
        self,
        bus: Bus,
        request_id: str,
        carrier: Mapping[str, str] | None = None,
        on_folded: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self._bus = bus
        self._on_folded = on_folded
        self._tail = Tail(bus, request_id, self._fold_live)
        self._own: dict[str, _Own] = {}
        self.carrier = carrier
        self.request_id = request_id
        self.state = RequestState(request_id)
        self.unknown_kind: str | None = None  # written by a newer supervisor

    async def open(self) -> None:
        """Listen for new entries. What is there already shows as a gap at the first one, or by `refresh`."""
        await self._tail.open()

    async def close(self) -> None:
        await self._tail.close()

    async def append(self, body: LogBody, *, term: int = 0) -> int:
        """Add an entry and fold up to it; returns its sequence.

        A reservation that the fold refused is none: the broker must not take the next one for a copy of it.
        """
        nonce = secrets.token_hex(4) if isinstance(body, Reserved) else ""
        return (await self._write(body, term, nonce=nonce)).sequence

    async def compare_and_set(self, body: Taken | PlanRecorded | Answer, *, term: int) -> bool:
        """Add an entry only if nothing came after what was folded. False: the log was read again, decide anew."""
        seen = self.state.last_sequence
        try:
            stored = await self._write(body, term, nonce=secrets.token_hex(4), expected=seen)
        except CompareAndSetLost:
            await self._read_past(seen)
            return False
        if stored.is_duplicate:
            await self.refresh()
            return False
        return True

    async def catch_up(self, sequence: int) -> None:
        """Fold until an own write is in; what a lagging replica does not have, the leader does."""
        if self._tail.is_open and self.state.last_sequence < sequence:
            try:
                async with asyncio.timeout(CATCH_UP_SECONDS):
                    while self.state.last_sequence < sequence and not self._tail.has_gap:
                        self._tail.changed.clear()
                        await self._tail.changed.wait()
            except TimeoutError:
                log.debug("request %s: entry %s was not repeated in time; reading the log", self.request_id, sequence)
        if self.state.last_sequence < sequence:
            await self.refresh()

    async def refresh(self, *, from_leader: bool = True) -> None:
        """Read everything that is new: at the leader, or from any replica when a little late will do."""
        await self._tail.read(self._fold, from_leader=from_leader)

    async def read_again(self) -> None:
        """Fold the whole log anew, as the leader has it: what came live may be somebody's invention."""
        await self._tail.read(self._fold, forget=self._forget)

    async def changed(self, timeout: float) -> bool:
        """Wait for news, at most this long; a gap is read. False: nothing came."""
        try:
            async with asyncio.timeout(max(0.0, timeout)):
                await self._tail.changed.wait()
        except TimeoutError:
            return False
        self._tail.changed.clear()
        if self._tail.has_gap:
            await self.refresh()
            if not self._tail.has_gap:  # else an entry came meanwhile: that is the next news, not a reason to stay here
                self._tail.changed.clear()
        return True

    def wake(self) -> None:
        """Something outside the log changed."""
        self._tail.changed.set()

    def _forget(self) -> None:
        self.state = RequestState(self.request_id)

    async def _write(self, body: LogBody, term: int, *, nonce: str = "", expected: int | None = None) -> Stored:
        """Store an entry and fold everything up to it."""
        origin = self._bus.origin(self.request_id, term=term, nonce=nonce)
        message_id = body.id_for(origin)
        subject, data, headers = await self._bus.outgoing(body, origin, self.carrier)
        self._own[message_id] = _Own(body, data, headers)
        try:
            stored = await self._bus.publisher.store(subject, data, headers, expected=expected)
            await self.catch_up(stored.sequence)
        finally:
            self._own.pop(message_id, None)
        return stored

    async def _read_past(self, sequence: int) -> None:
        """Read until what won shows: in a cluster a refusal can come before the commit of what caused it."""
        for _ in range(PAST_TRIES):
            await self.refresh()
            if self.state.last_sequence > sequence:
                return
            await asyncio.sleep(CATCH_UP_SECONDS)

    def _fold_live(self, raw: Raw) -> bool:
        own = self._own.get(raw.headers.get(h.MESSAGE_ID, ""))
        try:
            if own is not None and own.is_stored_as(raw):
                entry = Opened(raw.headers[h.SENDER], own.body)
            else:
                entry = open_live(raw, LOG_KINDS)
        except Invalid:
            return False  # its body lies elsewhere, or it is invalid: reading the gap fetches or reports it
        self._apply(entry_of(raw, entry))
        return True

    async def _fold(self, raw: Raw) -> None:
        try:
            entry = await opened(self._bus, raw, LOG_KINDS, self.request_id)
        except Invalid as reason:
            if reason.where == h.KIND and h.is_owner(raw.headers.get(h.SENDER, "")):
                self.unknown_kind = raw.headers.get(h.KIND)
            self.state.last_sequence = max(self.state.last_sequence, raw.sequence)
            return
        self._apply(entry_of(raw, entry))

    def _apply(self, entry: Entry) -> None:
        apply(self.state, entry)
        self._on_folded(entry)


def entry_of(raw: Raw, message: Opened[LogBody]) -> Entry:
    """A stored message that was opened, as the fold takes it."""
    term = raw.headers.get(h.TERM)
    number = int(term) if term is not None and subjects.is_number(term) else 0
    return Entry(raw.sequence, raw.time, message.sender, number, message.body)


async def read_log(bus: Bus, request_id: str, after: int = 0, *, from_leader: bool = False) -> list[Entry]:
    """The entries of a log, without those that cannot be read."""
    entries: list[Entry] = []
    for raw in await bus.read(subjects.results(request_id), after, from_leader=from_leader):
        try:
            entries.append(entry_of(raw, await opened(bus, raw, LOG_KINDS, request_id)))
        except Invalid:
            continue  # the gate has reported it
    return entries

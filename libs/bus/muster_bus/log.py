"""A request's log: read whole, woken by the broker's repetition of each commit, written with compare-and-set.

The state is what the fold says of everything read so far. A repeated entry that follows the last one directly is
folded as it comes; anything else means a gap, and the log is read.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping

from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from muster_bus.bodies import inline
from muster_bus.connection import Bus
from muster_bus.nats_fast import Incoming
from muster_bus.publish import CompareAndSetLost, Stored
from muster_bus.read import Raw, read_subject, timestamp
from muster_bus.reports import Source
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.fold import Entry, RequestState
from muster_protocol.headers import require_kind, require_sender
from muster_protocol.messages import LOG_KINDS, Answer, LogBody, PlanRecorded, Taken

log = logging.getLogger("muster.bus")

STREAM = "RESULTS"
PAST_TRIES = 20  # the winner's commit takes a millisecond; when its leader died there is none
CATCH_UP_SECONDS = 0.05  # the repetition comes within a millisecond of the acknowledgement; else read


class RequestLog:
    """One request's log and the state that it folds to."""

    def __init__(self, bus: Bus, request_id: str, carrier: Mapping[str, str] | None = None) -> None:
        self._bus = bus
        self._subscription: Subscription | None = None
        self._changed = asyncio.Event()
        self._has_gap = False
        self._reading = asyncio.Lock()
        self._own: dict[str, LogBody] = {}  # being written by us: what comes back need not be parsed again
        self.carrier = carrier
        self.request_id = request_id
        self.state = RequestState(request_id)
        self.unknown_kind: str | None = None  # written by a newer supervisor: not ours to understand

    async def open(self) -> None:
        """Listen for new entries. What is there already shows as a gap at the first one, or by `refresh`."""
        self._subscription = await self._bus.subscribe(subjects.live(self.request_id), self._on_live)
        self._bus.on_reconnect(self._on_reconnect)

    async def close(self) -> None:
        if self._subscription is None:
            return
        self._bus.forget_reconnect(self._on_reconnect)
        try:
            await self._subscription.unsubscribe()
        except NatsError as error:
            log.debug("could not unsubscribe: %s", error)
        self._subscription = None

    async def append(self, body: LogBody, *, message_id: str, term: int = 0) -> int:
        """Add an entry and fold up to it; returns its sequence."""
        stored = await self._write(body, message_id, term)
        return stored.sequence

    async def compare_and_set(self, body: Taken | PlanRecorded | Answer, *, term: int) -> bool:
        """Add an entry only if nothing came after what was folded. False: re-read and decide anew."""
        # The id is unique to this try: in a cluster a known id would hide a lost compare-and-set as a duplicate.
        message_id = f"{self.request_id}.{body.kind}.{self._bus.sender.instance}.{secrets.token_hex(4)}"
        seen = self.state.last_sequence
        try:
            stored = await self._write(body, message_id, term, expected=self.state.last_sequence)
        except CompareAndSetLost:
            await self._read_past(seen)
            return False
        if stored.is_duplicate:
            await self.refresh()
            return False
        return True

    async def _read_past(self, sequence: int) -> None:
        """Read until what won shows: in a cluster a refusal can come before the commit of what caused it."""
        for _ in range(PAST_TRIES):
            await self.refresh()
            if self.state.last_sequence > sequence:
                return
            await asyncio.sleep(CATCH_UP_SECONDS)

    async def _write(self, body: LogBody, message_id: str, term: int, expected: int | None = None) -> Stored:
        """Store an entry and fold everything up to it."""
        self._own[message_id] = body
        try:
            stored = await self._bus.store(
                subjects.results(self.request_id),
                body,
                request_id=self.request_id,
                message_id=message_id,
                term=term,
                expected=expected,
                carrier=self.carrier,
            )
            await self.catch_up(stored.sequence)
        finally:
            self._own.pop(message_id, None)
        return stored

    async def catch_up(self, sequence: int) -> None:
        """Fold until an own write is in; what a lagging replica does not have, the leader does."""
        if self._subscription is not None and self.state.last_sequence < sequence:
            try:
                async with asyncio.timeout(CATCH_UP_SECONDS):
                    while self.state.last_sequence < sequence and not self._has_gap:
                        self._changed.clear()
                        await self._changed.wait()
            except TimeoutError:
                log.debug("%s: no repetition of #%s, reading", self.request_id, sequence)
        if self.state.last_sequence < sequence:
            await self.refresh()

    async def refresh(self, *, from_leader: bool = True) -> None:
        """Read everything that is new: at the leader, or from any replica when a little late will do."""
        async with self._reading:
            self._has_gap = False
            subject, after = subjects.results(self.request_id), self.state.last_sequence
            try:
                for raw in await read_subject(self._bus.nc, STREAM, subject, after, from_leader=from_leader):
                    await self._fold(raw)
            except BaseException:
                self._has_gap = True  # what was not read is still missing
                raise
            self._changed.set()

    async def changed(self, timeout: float) -> bool:
        """Wait for news, at most this long; a gap is read. False: nothing came."""
        try:
            async with asyncio.timeout(max(0.0, timeout)):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        if self._has_gap:
            await self.refresh()
            if not self._has_gap:  # else an entry came meanwhile: that is the next news, not a reason to stay here
                self._changed.clear()
        return True

    def wake(self) -> None:
        """Something outside the log changed."""
        self._changed.set()

    def _on_live(self, message: Incoming) -> None:
        headers = message.headers or {}
        sequence = int(headers.get("Nats-Sequence", "0"))
        if sequence <= self.state.last_sequence:
            return
        if self._reading.locked() or int(headers.get("Nats-Last-Sequence", "-1")) != self.state.last_sequence:
            self._has_gap = True
        else:
            time = timestamp(headers["Nats-Time-Stamp"])
            self._bus.clock.observe(time)
            raw = Raw(sequence, time, headers.get("Nats-Subject", ""), headers, message.data)
            own = self._own.get(headers.get(h.MESSAGE_ID, ""))
            try:
                self.state.apply(entry_of(raw, own or body_here(raw)))
            except Invalid:
                self._has_gap = True  # it lies elsewhere, or is none: whoever reads the gap fetches or reports it
        self._changed.set()

    async def _on_reconnect(self) -> None:
        self._has_gap = True
        self._changed.set()

    async def _fold(self, raw: Raw) -> None:
        try:
            entry = await read_entry(self._bus, raw)
        except Invalid as reason:
            if reason.where == h.KIND and h.is_owner(raw.headers.get(h.SENDER, "")):
                self.unknown_kind = raw.headers.get(h.KIND)
            self.state.last_sequence = max(self.state.last_sequence, raw.sequence)
            source = Source.of_raw(STREAM, raw)
            await self._bus.report(str(reason), source, request_id=self.request_id)
            return
        self.state.apply(entry)


async def read_entry(bus: Bus, raw: Raw) -> Entry:
    """A stored message as a log entry, or the reason why it is none."""
    require_sender(raw.headers)
    kind = require_kind(raw.headers, LOG_KINDS)
    return entry_of(raw, kind.read(await bus.body_of(raw.headers, raw.data)))


def entry_of(raw: Raw, body: LogBody) -> Entry:
    term = raw.headers.get(h.TERM, "0")
    term = int(term) if len(term) < 19 and term.isdecimal() else 0
    return Entry(raw.sequence, raw.time, require_sender(raw.headers), term, body)


def body_here(raw: Raw) -> LogBody:
    """What a message says, if it brought its body with it."""
    return require_kind(raw.headers, LOG_KINDS).read(inline(raw.headers, raw.data))


async def read_log(bus: Bus, request_id: str, after: int = 0, *, from_leader: bool = False) -> list[Entry]:
    """The entries of a log, without those that cannot be read."""
    entries: list[Entry] = []
    for raw in await read_subject(bus.nc, STREAM, subjects.results(request_id), after, from_leader=from_leader):
        try:
            entries.append(await read_entry(bus, raw))
        except Invalid as reason:
            source = Source.of_raw(STREAM, raw)
            await bus.report(str(reason), source, request_id=request_id)
    return entries

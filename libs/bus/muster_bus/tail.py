"""A log followed without gaps: live where possible, read from the stream where something was missed.

The broker repeats each entry after its commit, with the sequence of the entry before it on the same subject. An entry
whose predecessor is the last one seen is taken as it comes. Anything else (a lost repetition, a reconnect, a body that
lies in the object store, a full buffer) is a gap: nothing more is taken live until the stream was read from the last
position on. So a follower sees every entry once and in order, and a lost wake-up costs a read, not an entry. The log of
an owner, a client that follows a request and the coordinator use this one rule (decisions 1 and 16).
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

from nats.aio.subscription import Subscription

from muster_bus.broker.nats_fast import Incoming
from muster_bus.connection import Bus
from muster_bus.read_stream import Raw, timestamp
from muster_protocol import headers as h
from muster_protocol import subjects

SEQUENCE, PREVIOUS = "Nats-Sequence", "Nats-Last-Sequence"  # of an entry, and of the one before it in the log


class Live(NamedTuple):
    """An entry as the broker repeats it, and the sequence of the one before it."""

    raw: Raw
    previous: int

    def follows(self, position: int) -> bool:
        """Whether nothing is missing between the last entry that was taken and this one: the one rule for a gap."""
        return self.previous == position


def live_entry(message: Incoming) -> Live | None:
    """The stored entry that a message repeats; None when it is somebody's own message on this subject."""
    headers = message.headers or {}
    sequence, previous = _number(headers, SEQUENCE), _number(headers, PREVIOUS)
    if sequence < 1:
        return None
    try:
        time = timestamp(headers.get("Nats-Time-Stamp", ""))
    except ValueError:
        return None
    subject = headers.get("Nats-Subject", "")
    return Live(Raw(sequence, time, subject, headers, message.data, subjects.STREAMS["results"]), previous)


async def follow_all(bus: Bus, take: Callable[[Live], None]) -> Subscription:
    """Every entry of every log, as it is repeated: for whoever keeps a position for each log itself."""

    def on_message(message: Incoming) -> None:
        if (live := live_entry(message)) is not None:
            take(live)

    return await bus.watch(subjects.ALL_LIVE, on_message)


class Tail:
    """One request's log, followed from a position on."""

    def __init__(
        self, bus: Bus, request_id: str, take: Callable[[Raw], bool], *, unwanted: Collection[str] = ()
    ) -> None:
        """`take` is called with each entry that follows directly; False means that it must be read instead.

        Entries of unwanted kinds are passed over, and wake nobody.
        """
        self._unwanted = unwanted
        self._bus = bus
        self._request_id = request_id
        self._take = take
        self._subscription: Subscription | None = None
        self._reading = asyncio.Lock()
        self.position = 0  # the sequence of the last entry that was taken or read
        self.has_gap = False
        self.changed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._subscription is not None

    async def open(self) -> None:
        """Listen. What is stored already shows as a gap at the first repetition, or is read by `read`."""
        self._subscription = await self._bus.subscribe(subjects.live(self._request_id), self._on_message)
        self._bus.on_reconnect(self._on_reconnect)

    async def close(self) -> None:
        if self._subscription is None:
            return
        self._bus.forget_reconnect(self._on_reconnect)
        await self._bus.unsubscribe(self._subscription)
        self._subscription = None

    async def read(
        self,
        handle: Callable[[Raw], Awaitable[None]],
        *,
        from_leader: bool = True,
        forget: Callable[[], None] | None = None,
    ) -> None:
        """Hand over everything that is stored after the position: all that the leader has, or any replica.

        With `forget` it begins at the start of the log, once whoever takes the entries has forgotten them all.
        """
        async with self._reading:
            self.has_gap = False
            if forget is not None:
                forget()
                self.position = 0
            try:
                subject = subjects.results(self._request_id)
                for raw in await self._bus.read(subject, self.position, from_leader=from_leader):
                    await handle(raw)
                    self.position = max(self.position, raw.sequence)
            except BaseException:
                self.has_gap = True  # what was not handed over is still missing
                raise
            self.changed.set()

    def mark_gap(self) -> None:
        """Something may have been missed: the next reader reads the stream."""
        self.has_gap = True
        self.changed.set()

    def _on_message(self, message: Incoming) -> None:
        if self._unwanted and self._passes_over(message):
            return
        live = live_entry(message)
        if live is None:
            self.mark_gap()  # not the broker's, but looking costs little
            return
        if live.raw.sequence <= self.position:
            return
        self._bus.clock.observe(live.raw.time)
        if self._reading.locked() or self.has_gap or not live.follows(self.position) or not self._take(live.raw):
            self.has_gap = True
        else:
            self.position = live.raw.sequence
        self.changed.set()

    def _passes_over(self, message: Incoming) -> bool:
        """Move on past an entry that nobody wants, if it follows; most entries are results, and few wait for those."""
        if message.header(h.KIND) not in self._unwanted:
            return False
        sequence, previous = message.header(SEQUENCE), message.header(PREVIOUS)
        is_next = subjects.is_number(sequence) and previous == str(self.position)
        if not is_next or self.has_gap or self._reading.locked():
            return False
        self.position = int(sequence)
        return True

    async def _on_reconnect(self) -> None:
        self.mark_gap()


def _number(headers: dict[str, str], name: str) -> int:
    text = headers.get(name, "")
    return int(text) if subjects.is_number(text) else -1

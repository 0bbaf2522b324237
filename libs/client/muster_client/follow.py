"""Follow one request: its log without gaps and in order, and the events between its entries."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass

from muster_bus.connection import Bus, Incoming
from muster_bus.log import entry_of
from muster_bus.read_stream import Raw
from muster_bus.receive import open_live, opened
from muster_bus.tail import Tail
from muster_client.queue import check_known
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway, Invalid
from muster_protocol.fold import Entry
from muster_protocol.messages import EVENT_KINDS, LOG_KINDS, Event

log = logging.getLogger("muster.client")

MAX_WAITING = 4096  # beyond it entries are read from the stream, and events are dropped
SILENCE_SECONDS = 5.0  # a repetition can be lost: after this long without one, read


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """An event and when it arrived, in broker time."""

    time: float
    sender: str
    body: Event


Update = Entry | LiveEvent


class Following:
    """One request's log from the beginning, and its events from now on if they are wanted."""

    def __init__(
        self,
        bus: Bus,
        request_id: str,
        *,
        is_known: bool,
        kinds: Collection[str] = LOG_KINDS,
        has_events: bool = False,
    ) -> None:
        self._bus = bus
        self._request_id = request_id
        self._unwanted = LOG_KINDS.keys() - kinds
        self._has_events = has_events
        self._is_known = is_known
        self._tail = Tail(bus, request_id, self._take, unwanted=self._unwanted)
        self._waiting: deque[Raw | LiveEvent] = deque()

    async def updates(self) -> AsyncGenerator[Update]:
        """Every entry of the wanted kinds, and the events between them; it never ends by itself.

        Raises Invalid when the request is unknown.
        """
        async with AsyncExitStack() as stack:
            await self._tail.open()
            stack.push_async_callback(self._tail.close)
            if self._has_events:
                events = await self._bus.subscribe(subjects.events(self._request_id), self._on_event)
                stack.push_async_callback(self._bus.unsubscribe, events)
            self._tail.mark_gap()  # what is stored already has not been read
            while True:
                async for update in self._new():
                    yield update
                if self._is_known or self._tail.position:
                    await self._wait()
                else:
                    await check_known(self._bus, self._request_id)
                    self._is_known = True
                    self._tail.mark_gap()  # it may have got its log meanwhile

    async def _new(self) -> AsyncGenerator[Update]:
        """What waits, then what was missed, until there is neither."""
        while self._waiting or self._tail.has_gap:
            if self._tail.has_gap and all(isinstance(waiting, LiveEvent) for waiting in self._waiting):
                await self._read_gap()
                continue
            waiting = self._waiting.popleft()
            if isinstance(waiting, LiveEvent):
                yield waiting
            elif (entry := await self._entry(waiting)) is not None:
                yield entry

    async def _read_gap(self) -> None:
        """Read what was missed, and put it before the events: what they tell of began with it."""
        await self._tail.read(self._add)
        entries = [waiting for waiting in self._waiting if not isinstance(waiting, LiveEvent)]
        events = [waiting for waiting in self._waiting if isinstance(waiting, LiveEvent)]
        self._waiting = deque([*entries, *events])

    async def _wait(self) -> None:
        self._tail.changed.clear()
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                await self._tail.changed.wait()
        except TimeoutError:
            if self._bus.is_closed:
                raise BrokerAway("the connection is closed") from None
            self._tail.mark_gap()

    async def _entry(self, raw: Raw) -> Entry | None:
        try:
            return entry_of(raw, await opened(self._bus, raw, LOG_KINDS, self._request_id))
        except Invalid:
            return None  # the gate has reported it

    def _take(self, raw: Raw) -> bool:
        if raw.headers.get(h.KIND) in self._unwanted:
            return True
        if len(self._waiting) >= MAX_WAITING:
            return False
        self._waiting.append(raw)
        return True

    async def _add(self, raw: Raw) -> None:
        if raw.headers.get(h.KIND) not in self._unwanted:
            self._waiting.append(raw)

    def _on_event(self, message: Incoming) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._bus.counters["events dropped"] += 1
            return
        try:
            event = open_live(message, EVENT_KINDS)
        except Invalid as reason:
            log.debug("request %s: an event cannot be read: %s", self._request_id, reason)
            return
        self._waiting.append(LiveEvent(self._bus.clock.now(), event.sender, event.body))
        self._tail.changed.set()

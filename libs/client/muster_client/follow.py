"""Follow one request: its log without gaps and in order, and what is told about it meanwhile.

The broker's repetition of each commit is a wake-up. One that follows the last entry directly is taken as it is;
anything else means a gap, and the stream is read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass

from muster_bus.connection import Bus, Incoming
from muster_bus.log import STREAM, read_entry
from muster_bus.read import Raw, read_subject, timestamp
from muster_bus.reports import Source
from muster_client.queue import check_known
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway, Invalid
from muster_protocol.fold import Entry
from muster_protocol.headers import require_kind, require_sender
from muster_protocol.messages import EVENT_KINDS, LOG_KINDS, Event

log = logging.getLogger("muster.client")

MAX_WAITING = 4096  # beyond it entries are read from the stream, and events are dropped
SILENCE_SECONDS = 5.0  # a wake-up can be lost: after this long without one, look


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """An event and when it was heard, in broker time."""

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
        self._kinds = frozenset(kinds)
        self._has_events = has_events
        self._is_known = is_known
        self._last = 0
        self._has_gap = True  # what is there already has not been read
        self._waiting: deque[Raw | LiveEvent] = deque()
        self._news = asyncio.Event()

    async def updates(self) -> AsyncGenerator[Update]:
        """Every entry of the wanted kinds, and the events between them; it never ends by itself.

        Raises Invalid when nobody has heard of the request.
        """
        async with AsyncExitStack() as stack:
            live = await self._bus.subscribe(subjects.live(self._request_id), self._on_live)
            stack.push_async_callback(self._bus.unsubscribe, live)
            if self._has_events:
                events = await self._bus.subscribe(subjects.events(self._request_id), self._on_event)
                stack.push_async_callback(self._bus.unsubscribe, events)
            self._bus.on_reconnect(self._on_reconnect)
            stack.callback(self._bus.forget_reconnect, self._on_reconnect)
            while True:
                async for update in self._new():
                    yield update
                if self._is_known or self._last:
                    await self._wait()
                else:
                    await check_known(self._bus, self._request_id)
                    self._is_known = self._has_gap = True  # it may have got its log meanwhile

    async def _new(self) -> AsyncGenerator[Update]:
        while self._has_gap or self._waiting:
            if self._has_gap:
                self._has_gap = False
                subject = subjects.results(self._request_id)
                for raw in await read_subject(self._bus.nc, STREAM, subject, self._last, from_leader=True):
                    self._last = raw.sequence
                    if (entry := await self._entry(raw)) is not None:
                        yield entry
                continue
            waiting = self._waiting.popleft()
            if isinstance(waiting, LiveEvent):
                yield waiting
            elif waiting.sequence > self._last:
                if int(waiting.headers.get("Nats-Last-Sequence", "-1")) != self._last:
                    self._has_gap = True
                    continue
                self._last = waiting.sequence
                if (entry := await self._entry(waiting)) is not None:
                    yield entry

    async def _wait(self) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                await self._news.wait()
        except TimeoutError:
            if self._bus.nc.is_closed:
                raise BrokerAway("the connection is closed") from None
            self._has_gap = True

    async def _entry(self, raw: Raw) -> Entry | None:
        kind = raw.headers.get(h.KIND, "")
        if kind in LOG_KINDS and kind not in self._kinds:
            return None
        try:
            return await read_entry(self._bus, raw)
        except Invalid as reason:
            source = Source.of_raw(STREAM, raw)
            await self._bus.report(str(reason), source, request_id=self._request_id)
            return None

    def _on_live(self, message: Incoming) -> None:
        headers = message.headers or {}
        if len(self._waiting) >= MAX_WAITING or not headers.get("Nats-Sequence", "").isdigit():
            self._has_gap = True
        else:
            time = timestamp(headers["Nats-Time-Stamp"])
            self._bus.clock.observe(time)
            subject = headers.get("Nats-Subject", "")
            self._waiting.append(Raw(int(headers["Nats-Sequence"]), time, subject, headers, message.data))
        self._news.set()

    def _on_event(self, message: Incoming) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._bus.counters["events dropped"] += 1
            return
        try:
            sender = require_sender(message.headers)
            body = require_kind(message.headers, EVENT_KINDS).read(message.data)
        except Invalid as reason:
            log.debug("%s: an event that cannot be read: %s", self._request_id, reason)
            return
        self._waiting.append(LiveEvent(self._bus.clock.now(), sender, body))
        self._news.set()

    async def _on_reconnect(self) -> None:
        self._has_gap = True
        self._news.set()

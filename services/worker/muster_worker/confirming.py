"""Small messages that are sent at once and stored for sure: nobody waits, and what is not confirmed is sent again."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextvars import Context

from muster_bus.background import supervised
from muster_bus.connection import Bus
from muster_bus.publish import Outgoing, Stored
from muster_protocol.errors import MusterError
from muster_protocol.messages import Message
from muster_protocol.sender import Origin

log = logging.getLogger("muster.worker")

MAX_UNCONFIRMED = 10_000  # a stream that is full or away for long costs events, not memory


class Confirming:
    """Sends in order, and confirms in the background with one loop, however many messages."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._sent: deque[tuple[Outgoing, asyncio.Future[Stored] | None]] = deque()
        self._confirming: asyncio.Task[None] | None = None

    def send(self, message: Message, origin: Origin, carrier: Mapping[str, str] | None = None) -> None:
        """Send it now if the broker is there; it is sent again under its id until it is stored."""
        if len(self._sent) >= MAX_UNCONFIRMED:
            self._bus.counters["events dropped"] += 1
            return
        outgoing = self._bus.small(message, origin, carrier)
        self._sent.append((outgoing, self._bus.publisher.send(outgoing)))
        if self._confirming is None or self._confirming.done():
            # In a context of its own: it goes on long after the attempt whose span is the current one.
            self._confirming = Context().run(supervised, self._confirm(), "confirming events")

    async def finish(self, timeout: float) -> None:
        """Wait until everything is stored, at most this long; the rest is given up."""
        if self._confirming is None:
            return
        await asyncio.wait([self._confirming], timeout=timeout)
        self._confirming.cancel()
        for _, acked in self._sent:
            if acked is not None and not acked.cancel() and not acked.cancelled():
                acked.exception()  # retrieved, or asyncio would log it
        self._bus.counters["events dropped"] += len(self._sent)
        self._sent.clear()

    async def _confirm(self) -> None:
        while self._sent:
            outgoing, acked = self._sent[0]
            try:
                await self._bus.publisher.confirm(outgoing, acked)
            except MusterError as error:
                self._bus.counters["events dropped"] += 1
                log.debug("%s: an event was not stored: %s", outgoing[0], error)
            self._sent.popleft()

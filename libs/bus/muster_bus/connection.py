"""One connection to the broker: reconnects for ever, counts what goes wrong, writes every message's headers."""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self

from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from muster_bus import receive
from muster_bus.background import repeated
from muster_bus.bodies import MAX_INLINE, Bodies
from muster_bus.broker.access import ANYBODY, ENDS_BADLY, Access, check_address, is_refusal, shown, why_not
from muster_bus.broker.nats_fast import FastClient, Incoming, Listener
from muster_bus.broker.nats_repairs import connect_within
from muster_bus.clock import BrokerClock
from muster_bus.publish import Outgoing, Publisher, Stored
from muster_bus.read_stream import Raw, next_page, read_subject
from muster_bus.redact import KNOWN
from muster_bus.reports import Reports
from muster_bus.tracing import names
from muster_bus.tracing.tracing import OFF, Tracing, inject
from muster_protocol import headers as h
from muster_protocol.errors import BrokerAway
from muster_protocol.headers import headers_of
from muster_protocol.messages import Message
from muster_protocol.sender import Origin, Sender

log = logging.getLogger("muster.bus")
RECONNECT_SECONDS = 0.1
PING_SECONDS = 1.25  # until a lease is known: that of the default, ten seconds
WAIT_SECONDS = 2.0  # services and broker often start at the same moment; then nobody need know
WAIT_AGAIN_SECONDS = 60.0
STUCK_SECONDS = 30.0  # a try takes a few seconds
PENDING_BYTES = 8 * 1024 * 1024  # what is buffered while the broker is away; more is refused

__all__ = ["Bus", "Incoming"]


class Bus:
    """What a service publishes, stores and reads through. Every message that leaves gets its headers here."""

    def __init__(self, nc: FastClient, sender: Sender, tracing: Tracing = OFF) -> None:
        self.nc = nc
        self.sender = sender
        self.tracing = tracing
        self.server: dict[str, str | int] = {}  # the broker's address, as spans about messages name it
        self.clock = BrokerClock()
        self.counters: Counter[str] = Counter()
        self.connected = asyncio.Event()
        self.publisher = Publisher(nc, self.connected)
        self.bodies = Bodies(nc)
        self.reports = Reports(self)
        self.last_error: Exception | None = None  # why there is no connection
        self.lacking = ""  # what the service still waits for before it begins
        self._url, self._access = "", ANYBODY
        self._refused = asyncio.Event()
        self._on_reconnect: list[Callable[[], Awaitable[None]]] = []

    @classmethod
    async def connect(
        cls, url: str, sender: Sender, *, timeout: float = 10.0, tracing: Tracing = OFF, access: Access = ANYBODY
    ) -> Self:
        """Connect, or say after `timeout` seconds why not; the spans are closed with the connection."""
        bus = cls.unconnected(url, sender, tracing=tracing, access=access)
        try:
            await connect_within(timeout, bus.nc.connect(**bus._options()), bus._refused)
        except (TimeoutError, NatsError, OSError) as error:
            await _close(bus.nc)
            await tracing.stop()
            raise BrokerAway(why_not(url, bus.last_error or error)) from None
        await bus._start()
        return bus

    @classmethod
    def unconnected(cls, url: str, sender: Sender, *, tracing: Tracing = OFF, access: Access = ANYBODY) -> Self:
        """For a service that can wait for its broker: `open` connects."""
        check_address(url)
        bus = cls(FastClient(), sender, tracing)
        bus._url, bus._access = url, access
        return bus

    async def open(self) -> None:
        """Connect, however long the broker takes to come; it is said now and then that it is waited for, and why."""
        if self.connected.is_set():
            return
        log.info("connecting to %s", shown(self._url))
        with repeated(self._log_waiting, WAIT_SECONDS, WAIT_AGAIN_SECONDS):
            await connect_within(math.inf, self.nc.connect(**self._options()), asyncio.Event())  # a cancel holds
        await self._start()

    async def _start(self) -> None:
        self.last_error = None
        self.connected.set()
        self._name_server()
        self.tracing.watch()
        await self.publisher.start()

    def _options(self) -> dict[str, Any]:
        return {
            "servers": [part.strip() for part in self._url.split(",")],
            "name": str(self.sender),
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": RECONNECT_SECONDS,
            "connect_timeout": 2,
            "ping_interval": PING_SECONDS,
            "pending_size": PENDING_BYTES,
            "skip_subject_validation": True,  # subjects are made by `muster_protocol.subjects` alone
            "error_cb": self._on_error,
            "disconnected_cb": self._on_disconnected,
            "reconnected_cb": self._on_reconnected,
            **self._access.options(),
        }

    @property
    def is_stuck(self) -> bool:
        """Not connected and no longer trying: only a new process helps."""
        return not self.connected.is_set() and time.monotonic() - self.nc.tried_at > STUCK_SECONDS

    @property
    def is_closed(self) -> bool:
        return self.nc.is_closed

    def on_reconnect(self, callback: Callable[[], Awaitable[None]]) -> None:
        self._on_reconnect.append(callback)

    def forget_reconnect(self, callback: Callable[[], Awaitable[None]]) -> None:
        self._on_reconnect.remove(callback)

    def origin(self, request_id: str, *, term: int | None = None, nonce: str = "", role: str = "") -> Origin:
        """Us, as the writer of a message about a request."""
        sender = Sender(self.sender.service, self.sender.instance, role) if role else self.sender
        return Origin(request_id, sender, term, nonce=nonce)

    async def store(
        self,
        message: Message,
        origin: Origin,
        *,
        expected: int | None = None,
        give_up_after: float | None = None,
        carrier: Mapping[str, str] | None = None,
    ) -> Stored:
        """Store a message in its stream, retried under the same id until it is acknowledged."""
        subject, body, headers = await self.outgoing(message, origin, carrier)
        return await self.publisher.store(subject, body, headers, expected=expected, give_up_after=give_up_after)

    async def outgoing(self, message: Message, origin: Origin, carrier: Mapping[str, str] | None) -> Outgoing:
        """A message ready to be stored, alone or with others by `store_all`; call it under the span that sends it."""
        headers = headers_of(message, origin)
        body = await self._body(message, headers)
        inject(headers, carrier)
        return message.subject_for(origin), body, headers

    def small(self, message: Message, origin: Origin, carrier: Mapping[str, str] | None) -> Outgoing:
        """The same for a message whose body is never large."""
        headers = headers_of(message, origin)
        inject(headers, carrier)
        return message.subject_for(origin), _without_secrets(message), headers

    async def store_all(self, messages: Sequence[Outgoing]) -> list[Stored]:
        return await self.publisher.store_all(messages)

    async def store_raw(
        self, subject: str, body: bytes, headers: Mapping[str, str], give_up_after: float | None
    ) -> Stored:
        """Store bytes under a subject, such as a key's value; the sender is added."""
        headers = {**headers, h.SENDER: str(self.sender)}
        return await self.publisher.store(subject, body, headers, give_up_after=give_up_after)

    def announce(self, message: Message, origin: Origin) -> None:
        """Publish something that nobody waits for; dropped and counted when the broker is away."""
        if not self.connected.is_set():
            self.counters["events dropped"] += 1
            return
        headers = headers_of(message, origin)
        inject(headers, None)
        try:
            self.nc.post(message.subject_for(origin), _without_secrets(message), headers=headers)
        except NatsError:
            self.counters["events dropped"] += 1

    async def report(self, reason: str, message: receive.Stored, *, request_id: str | None = None) -> None:
        """Put a stored message that cannot be used on `errors`; several readers of one message report it once."""
        await self.reports.add(reason, message, request_id)

    async def read(
        self, subject: str, after: int = 0, *, from_leader: bool = False, is_page: bool = False
    ) -> list[Raw]:
        """What is stored under a subject after a sequence; see `read_subject` in read_stream.py."""
        return await read_subject(self.nc, subject, after, from_leader=from_leader, is_page=is_page)

    async def next_page(self, subject: str, after: int) -> list[Raw]:
        """At most the next thousand messages of a subject; none when the leader has no more."""
        return await next_page(self.nc, subject, after)

    async def subscribe(self, subject: str, listener: Listener) -> Subscription:
        """Call the listener with each message on a subject. It returns at once; what has to wait is left to a loop."""
        return await self.nc.listen(subject, listener)

    async def watch(self, subject: str, listener: Listener) -> Subscription:
        """The same for `<prefix>.*`; if its subscription gets lost on the wire, the connection is replaced."""
        return await self.nc.watch(subject, listener)

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Listen no more; on a connection that is gone there is nothing to do."""
        try:
            await subscription.unsubscribe()
        except NatsError as error:
            log.debug("could not unsubscribe: %s", error)

    async def flush(self, timeout: float = 2.0) -> None:
        """Wait until the broker has everything that was published; gives up quietly, since callers go on anyway."""
        try:
            async with asyncio.timeout(timeout):
                await self.nc.flush(timeout=max(1, int(timeout)))
        except (TimeoutError, NatsError):
            self.counters["flush given up"] += 1

    async def close(self) -> None:
        """Close within a few seconds: a dead broker must not keep a service from ending."""
        self.reports.close()
        self.publisher.close()
        if self.nc.is_connected:
            await self.flush(1.0)
        self._log_counters()
        self.connected.clear()
        await _close(self.nc)
        await self.tracing.stop()

    def _name_server(self) -> None:
        """Let spans about messages name the broker; after a reconnect it may be another."""
        if (url := self.nc.connected_url) is not None:
            self.server = {names.SERVER_ADDRESS: url.hostname or "", names.SERVER_PORT: url.port or 4222}

    def _log_counters(self) -> None:
        """One line at the end if anything went wrong between us and the broker."""
        counted = self.counters + Counter({"publishes tried again": self.publisher.retries})
        if counted:
            log.info("broker: %s", ", ".join(f"{what} {count}" for what, count in counted.most_common()))

    async def _body(self, message: Message, headers: dict[str, str]) -> bytes:
        body = _without_secrets(message)
        if len(body) <= MAX_INLINE:
            return body
        headers[h.BODY_REF] = await self.bodies.put(body)
        return b""

    def _log_waiting(self) -> None:
        log.warning("not ready, waiting for the broker: %s", why_not(self._url, self.last_error))

    async def _on_error(self, error: Exception) -> None:
        self.counters[type(error).__name__] += 1
        if self.connected.is_set():
            log.warning("connection to the broker: %s", str(error) or type(error).__name__)
            return
        if is_refusal(error):
            self._refused.set()
            if not is_refusal(self.last_error):
                log.warning("%s", why_not(self._url, error))
        if not (is_refusal(self.last_error) and isinstance(error, ENDS_BADLY)):
            self.last_error = error

    async def _on_disconnected(self) -> None:
        if self.connected.is_set():
            log.warning("the broker is away; trying again until it is back")
            self.tracing.note(names.BROKER_AWAY, {})
        self.connected.clear()

    async def _on_reconnected(self) -> None:
        self.counters["reconnects"] += 1
        self.last_error = None
        self.connected.set()
        self._name_server()
        self.tracing.note(names.BROKER_BACK, {})
        log.info("the broker is back")
        self.publisher.retry_all()
        for callback in list(self._on_reconnect):
            try:
                await callback()
            except Exception:
                log.exception("what follows a reconnect failed")  # the connection is no worse for it


def _without_secrets(message: Message) -> bytes:
    """A message as it leaves the process; only one that holds a known secret is looked at again."""
    body = message.body()
    return KNOWN.body(body, message.free_text) if message.free_text and KNOWN.is_in(body) else body


async def _close(nc: FastClient) -> None:
    try:
        async with asyncio.timeout(2.0):
            await nc.close()
    except (TimeoutError, NatsError, OSError, AssertionError):  # nats-py asserts that it was opened
        log.debug("the connection did not close in time")

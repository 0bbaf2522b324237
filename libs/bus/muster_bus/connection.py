"""One connection to the broker: reconnects for ever, counts what goes wrong, writes every message's headers."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from muster_bus import receive
from muster_bus.bodies import MAX_INLINE, Bodies
from muster_bus.broker.nats_fast import FastClient, Incoming, Listener
from muster_bus.clock import BrokerClock
from muster_bus.publish import Outgoing, Publisher, Stored
from muster_bus.read_stream import Raw, next_page, read_subject
from muster_bus.redact import KNOWN, without_user_info
from muster_bus.reports import Reports
from muster_bus.tracing import names
from muster_bus.tracing.tracing import OFF, Tracing, inject
from muster_protocol import headers as h
from muster_protocol.errors import BrokerAway, Invalid
from muster_protocol.headers import headers_of
from muster_protocol.messages import Message
from muster_protocol.sender import Origin, Sender

log = logging.getLogger("muster.bus")

SCHEMES = ("nats", "tls", "ws", "wss")
RECONNECT_SECONDS = 0.1
CANCEL_SECONDS = 0.05
PING_SECONDS = 5  # two missed pings: a dead peer is noticed after ten seconds instead of four minutes
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
        self._on_reconnect: list[Callable[[], Awaitable[None]]] = []

    @classmethod
    async def connect(cls, url: str, sender: Sender, *, timeout: float = 10.0, tracing: Tracing = OFF) -> Self:
        """Connect, or say after `timeout` seconds that no broker answers; the spans are closed with the connection."""
        bus = cls(FastClient(), sender, tracing)
        options: dict[str, Any] = {
            "servers": [part.strip() for part in url.split(",")],
            "name": str(sender),
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": RECONNECT_SECONDS,
            "connect_timeout": 2,
            "ping_interval": PING_SECONDS,
            "pending_size": PENDING_BYTES,
            "skip_subject_validation": True,  # subjects are made by `muster_protocol.subjects` alone
            "error_cb": bus._on_error,
            "disconnected_cb": bus._on_disconnected,
            "reconnected_cb": bus._on_reconnected,
        }
        _check_address(url)
        try:
            await _within(timeout, bus.nc.connect(**options))
        except (TimeoutError, NatsError, OSError) as error:
            await _close(bus.nc)
            await tracing.stop()
            raise BrokerAway(
                f"no NATS server answers at {without_user_info(url)} ({str(error) or 'timeout'}); "
                "start one with `muster up`, or set MUSTER_NATS_URL"
            ) from None
        bus.connected.set()
        bus._name_server()
        tracing.watch()
        await bus.publisher.start()
        return bus

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

    async def _on_error(self, error: Exception) -> None:
        self.counters[type(error).__name__] += 1
        if self.connected.is_set():
            log.warning("connection to the broker: %s", str(error) or type(error).__name__)

    async def _on_disconnected(self) -> None:
        if self.connected.is_set():
            log.warning("the broker is away; trying again every %s s", RECONNECT_SECONDS)
            self.tracing.note(names.BROKER_AWAY, {})
        self.connected.clear()

    async def _on_reconnected(self) -> None:
        self.counters["reconnects"] += 1
        self.connected.set()
        self._name_server()
        self.tracing.note(names.BROKER_BACK, {})
        log.info("the broker is back")
        self.publisher.retry_all()
        for callback in list(self._on_reconnect):
            await callback()


def _without_secrets(message: Message) -> bytes:
    """A message as it leaves the process; only one that holds a known secret is looked at again."""
    body = message.body()
    return KNOWN.body(body, message.free_text) if message.free_text and KNOWN.is_in(body) else body


async def _within(seconds: float, connecting: Coroutine[Any, Any, None]) -> None:
    """A limit that holds: `wait_for` inside nats-py may swallow a cancel, so it is repeated until the task ends."""
    task = asyncio.get_running_loop().create_task(connecting)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise TimeoutError
        task.result()
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_SECONDS)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log it as never retrieved


def _check_address(url: str) -> None:
    """Refuse what is no address, instead of saying that nobody answers there."""
    for one in url.split(","):
        try:
            parts = urlsplit(one.strip() if "://" in one else f"nats://{one.strip()}")
            is_address = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise Invalid(
                f"{without_user_info(one.strip())!r} is no address of a NATS server, such as nats://127.0.0.1:4222",
                "MUSTER_NATS_URL",
            )


async def _close(nc: FastClient) -> None:
    try:
        async with asyncio.timeout(2.0):
            await nc.close()
    except (TimeoutError, NatsError, OSError):
        log.debug("the connection did not close in time")

"""A message that is ours for a while: kept alive with confirmed in-progress acks, settled once.

A message that was delivered and not acknowledged within its consumer's ack wait is delivered again. Whoever
works on it longer sends in-progress acks. For a supervisor the un-acked request is its claim to own the request, the
lease (decision 2); for a worker the un-acked task is the right to work on it.

The broker has no fence: it accepts a late in-progress ack or nak of a former holder, which would take the message from
its next one. So the holder must know by itself when its lease is over. Each keep-alive asks for a confirmation, and the
lease counts from the moment at which the last confirmed one was *sent*, by the monotonic clock: the broker cannot have
started its own ack wait earlier. A lease whose last confirmed keep-alive was sent longer ago than the ack wait is lost:
no more keep-alives, no nak, and its owner stops writing until the broker delivers the message to it again.

Ten keep-alives fit into an ack wait, and one that is not confirmed is repeated twice as often: an election takes up to
nine seconds of a ten-second lease, and a new leader must learn of the lease at once (decision 14). One loop and one
inbox keep all leases of a process alive, however many. Acks are sent lazily, with the next write: a lost ack costs its
next reader a look into the log, not a second run. While the connection is down nothing but acks is buffered, because
what is sent after the reconnect would come too late.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nats.errors import Error as NatsError

from muster_bus.broker.nats_fast import FastClient, Incoming
from muster_bus.broker.silence import Silence

log = logging.getLogger("muster.bus")

ACK, NAK, PROGRESS = b"+ACK", b"-NAK", b"+WPI"
BEATS_PER_LEASE = 10  # an election takes up to nine seconds of a ten-second lease, and the last one may be lost with it
TRIES_PER_LEASE = 20  # one that is not confirmed is repeated sooner: a new leader must learn of it at once


@dataclass(slots=True)
class Delivery:
    """One delivery of a stored message, from the metadata that the broker put into the reply subject."""

    subject: str
    headers: Mapping[str, str] | None
    data: bytes
    stream: str
    consumer: str
    number: int
    sequence: int
    time: float
    lease: "Lease" = field(repr=False)

    @classmethod
    def of(cls, message: Incoming, keeper: "LeaseKeeper") -> "Delivery":
        parts = _reply_tokens(message.reply)
        lease = Lease(keeper, message.reply)
        return cls(
            subject=message.subject,
            headers=message.headers,
            data=message.data,
            stream=parts[2],
            consumer=parts[3],
            number=int(parts[4]),
            sequence=int(parts[5]),
            time=int(parts[7]) / 1e9,
            lease=lease,
        )


def _reply_tokens(reply: str) -> list[str]:
    """`$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.…`, without the domain and account hash of some brokers."""
    parts = reply.split(".")
    return parts[2:] if len(parts) > 9 else parts


def left_behind(reply: str) -> int:
    """How many messages the consumer had not delivered yet when it delivered this one; none if it does not say."""
    parts = _reply_tokens(reply)
    return int(parts[8]) if len(parts) > 8 else 0


def _place(reply: str) -> str:
    """Stream and sequence of a delivered message, for logs."""
    parts = _reply_tokens(reply)
    return f"{parts[2]} #{parts[5]}" if len(parts) > 5 else reply


class Lease:
    """The right to work on one delivery."""

    __slots__ = ("_keeper", "confirmed_at", "is_settled", "reply", "sent_at")

    def __init__(self, keeper: "LeaseKeeper", reply: str) -> None:
        self._keeper = keeper
        self.reply = reply
        self.confirmed_at = self.sent_at = time.monotonic()
        self.is_settled = False

    @property
    def is_held(self) -> bool:
        return not self.is_settled and time.monotonic() - self.confirmed_at < self._keeper.ack_wait

    @property
    def is_confirmed(self) -> bool:
        """Whether the last keep-alive was answered."""
        return self.confirmed_at >= self.sent_at

    def ack(self) -> None:
        """The work is stored elsewhere; a lost ack costs a look into the log, not a second run."""
        if self._settle():
            self._keeper.settle(self.reply, ACK)

    def hand_back(self, delay_seconds: float = 0.0) -> None:
        """Somebody else may have it, at once or after a delay. A lost lease is not ours to hand back."""
        if self.is_held and self._settle():
            self._keeper.settle(self.reply, NAK + (b' {"delay": %d}' % (delay_seconds * 1e9) if delay_seconds else b""))

    def drop(self) -> None:
        """Send nothing more about it."""
        self._settle()

    def _settle(self) -> bool:
        if self.is_settled:
            return False
        self.is_settled = True
        self._keeper.forget(self)
        return True


class LeaseKeeper:
    """Keeps all leases of one ack wait alive: one loop and one inbox, however many leases."""

    def __init__(self, nc: FastClient, ack_wait: float) -> None:
        self._nc = nc
        self.ack_wait = ack_wait
        self._leases: set[Lease] = set()
        self._beats: dict[str, tuple[Lease, float, asyncio.Future[bool]]] = {}
        self._count = 0
        self._inbox = ""
        self._silence = Silence(nc, lambda: self._inbox)
        self._timer: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[bool]] = set()
        self.on_beat: Callable[[], None] = lambda: None

    async def start(self) -> None:
        self._inbox = self._nc.new_inbox()
        await self._nc.listen(f"{self._inbox}.*", self._on_confirmed)
        self._turn()

    def keep(self, lease: Lease) -> None:
        self._leases.add(lease)

    def forget(self, lease: Lease) -> None:
        self._leases.discard(lease)

    async def beat(self, lease: Lease) -> bool:
        """Send one in-progress ack; whether the broker confirmed it."""
        if not self._nc.is_connected:
            return False  # sent after the reconnect it would come too late
        self._count += 1
        token, sent_at = str(self._count), time.monotonic()
        lease.sent_at = sent_at
        confirmed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._beats[token] = (lease, sent_at, confirmed)
        try:
            async with asyncio.timeout(self.ack_wait / 2):
                self._nc.post(lease.reply, PROGRESS, f"{self._inbox}.{token}")
                return await confirmed
        except (TimeoutError, NatsError):
            self._silence.missed()
            return False
        finally:
            self._beats.pop(token, None)

    def settle(self, reply: str, answer: bytes) -> None:
        if answer != ACK and not self._nc.is_connected:
            return  # sent after the reconnect it would take the message from its next holder
        try:
            self._nc.post(reply, answer, is_lazy=answer == ACK)
        except NatsError as error:
            log.debug("could not settle %s: %s", _place(reply), error)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._sending:
            task.cancel()

    def _on_confirmed(self, message: Incoming) -> None:
        self._silence.since = 0.0
        beat = self._beats.get(message.subject.rsplit(".", 1)[1])
        if beat is None or beat[2].done():
            return
        lease, sent_at, confirmed = beat
        is_confirmed = not (message.headers and message.headers.get("Status"))
        if is_confirmed:
            lease.confirmed_at = max(lease.confirmed_at, sent_at)
        confirmed.set_result(is_confirmed)

    def _turn(self) -> None:
        self.on_beat()
        now = time.monotonic()
        for lease in list(self._leases):
            if now - lease.confirmed_at >= self.ack_wait:
                self._leases.discard(lease)  # lost: a keep-alive now would take it from its next holder
            elif now - lease.sent_at >= self.ack_wait / (BEATS_PER_LEASE if lease.is_confirmed else TRIES_PER_LEASE):
                task = asyncio.get_running_loop().create_task(self.beat(lease))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)
        pause = self.ack_wait / BEATS_PER_LEASE / 4
        self._timer = asyncio.get_running_loop().call_later(pause, self._turn)

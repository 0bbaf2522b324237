"""Pull as many messages as there are free slots, over several consumers, and no more.

A worker serves several tags, each a consumer of its own, with one set of slots. JetStream has no pull over several
consumers, so the free slots are shared out: a consumer that filled its last pull gets four shares where an idle one
gets one, and every consumer comes first in its turn, so that none starves. A pull on the only consumer may wait long;
one that keeps slots from other consumers returns them within half a second, and while another has work an idle consumer
is only looked at. The sum of running handlers and open pulls never exceeds the slots, nor that of capped consumers
their cap.

A pull ends by its status message, by its last message, or, when the broker is silent for longer than it may be, by
being given up. A message that comes although no slot is free (its pull was given up as lost), or while the pull closes,
is handed back at once and noted by whoever pulls: the broker has counted it as delivered. Pulls expire within half an
ack wait, so that the open pull of a process that hangs is not given again what that process let go (decision 8).

A handler that raises drops its lease, so that the message comes again; a handler that is cancelled settles its own.
On a reconnect all pulls are dead and asked again. `close` hands back late arrivals and returns what still runs;
keep-alives go on until `stop` (decisions 3, 8 and 14).
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from muster_bus.background import supervised
from muster_bus.broker.nats_fast import Incoming
from muster_bus.broker.queues import Queue
from muster_bus.broker.silence import Silence
from muster_bus.connection import Bus
from muster_bus.lease import Delivery, LeaseKeeper
from muster_bus.slot_shares import shares
from muster_protocol.errors import Retryable

log = logging.getLogger("muster.bus")

SOLE_EXPIRY_SECONDS = 15.0  # a pull on the only consumer may wait long …
SHARED_EXPIRY_SECONDS = 0.5  # … one that keeps slots from other consumers may not
LOOK_SECONDS = 0.05  # … and while another has work, one that had none is only looked at
EXPIRIES_PER_LEASE = 2  # an open pull of a process that hangs must not be given again what that process let go
IDLE_HEARTBEAT_SECONDS = 5.0  # 1 s from 20 workers × 150 consumers took 11 % of the server
BUSY_WEIGHT = 4  # a consumer that filled its last pull gets four slots where an idle one gets one
WATCH_SECONDS = 0.5
COALESCE_SECONDS = 0.002  # slots that become free together are asked for together

CLOSE_SECONDS = 2.0  # what each step of a close may take

Handler = Callable[[Delivery], Awaitable[None]]


async def _do_nothing(_: Delivery) -> None:
    return


@dataclass(slots=True)
class OpenPull:
    consumer: int
    asked: int
    open: int
    overdue: float
    is_look: bool = False  # it ends at once, with what there is


class Pull:
    """A pull loop: at most `slots` messages of all its consumers are held at any time."""

    def __init__(
        self,
        bus: Bus,
        queue: Queue,
        slots: int,
        ack_wait: float,
        handler: Handler,
        note_returned: Handler = _do_nothing,
    ) -> None:
        self._bus = bus
        self._stream, self._consumers = queue
        self._weights = [1] * len(queue.consumers)
        self._held = [0] * len(queue.consumers)  # by consumer: messages that are being handled
        self._caps: list[tuple[frozenset[int], int]] = []
        self._handler = handler
        self._note_returned = note_returned
        self._returning: set[asyncio.Task[None]] = set()
        longest = SOLE_EXPIRY_SECONDS if len(queue.consumers) == 1 else SHARED_EXPIRY_SECONDS
        self._expiry = min(longest, ack_wait / EXPIRIES_PER_LEASE)
        self._pulls: dict[str, OpenPull] = {}
        self._count = self._first = 0
        self._subscription: Subscription | None = None
        self._inbox = ""
        self._silence = Silence(bus.nc, lambda: self._inbox)
        self._is_closing = False
        self._wake = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self.running: set[asyncio.Task[None]] = set()
        self.slots = slots
        self.keeper = LeaseKeeper(bus.nc, ack_wait)
        self.last_turn_at = time.monotonic()

    @property
    def free(self) -> int:
        return self.slots - len(self.running) - sum(pull.open for pull in self._pulls.values())

    def cap(self, consumers: Iterable[str], limit: int) -> None:
        """Hold at most so many messages of these consumers together; called before the start."""
        self._caps.append((frozenset(map(self._consumers.index, consumers)), limit))

    async def start(self) -> None:
        self._inbox = self._bus.nc.new_inbox()
        self._subscription = await self._bus.subscribe(f"{self._inbox}.*", self._on_message)
        await self.keeper.start()
        self._bus.on_reconnect(self._again)
        self._fill()
        self._asking = supervised(self._keep_asking(), "the pull")

    async def close(self) -> list[asyncio.Task[None]]:
        """Ask for nothing more, hand back what still arrives; returns what runs."""
        if self._is_closing:
            return list(self.running)
        self._is_closing = True
        self._bus.forget_reconnect(self._again)
        if self._asking is not None:
            self._asking.cancel()
        if self._subscription is not None:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._subscription.drain()
            except (TimeoutError, NatsError) as error:
                log.debug("the pull did not drain: %s", error)
        if self._returning:
            await asyncio.wait(self._returning, timeout=CLOSE_SECONDS)
        return list(self.running)

    def stop(self) -> None:
        """After `close` and when nothing runs: end the keep-alives."""
        self.keeper.stop()

    async def _again(self) -> None:
        """The connection is new, so every open pull is dead."""
        self._pulls.clear()
        self._fill()

    def _fill(self) -> None:
        self._first = (self._first + 1) % len(self._consumers)  # by one: every consumer is first in its turn
        for _ in range(len(self._caps) + 1):  # what a cap leaves over is shared out once more
            if self.free <= 0 or self._is_closing or not self._bus.connected.is_set() or not self._share_out():
                return

    def _share_out(self) -> bool:
        """Ask for as many messages as there are free slots; False: no consumer may be asked."""
        is_busy = max(self._weights) > 1
        asked = self._to_be_asked(is_busy)
        if not asked:
            return False
        first = next((place for place, consumer in enumerate(asked) if consumer >= self._first), 0)
        asked = [*asked[first:], *asked[:first]]  # the first one has what a common cap allows
        shared = shares(self.free, [self._weights[consumer] for consumer in asked], 0)
        for consumer, share in zip(asked, shared, strict=True):
            allowed = min(share, self._room(consumer))
            if allowed > 0:
                is_look = is_busy and self._weights[consumer] == 1
                self._ask(consumer, allowed, min(LOOK_SECONDS, self._expiry) if is_look else self._expiry)
        return True

    def _room(self, consumer: int) -> int:
        """How many more messages the caps of a consumer allow."""
        room = sys.maxsize
        for capped, limit in self._caps:
            if consumer in capped:
                opened = sum(pull.open for pull in self._pulls.values() if pull.consumer in capped)
                room = min(room, limit - opened - sum(self._held[index] for index in capped))
        return room

    def _to_be_asked(self, is_busy: bool) -> list[int]:
        """While one has work, an idle one gets no second pull: it would keep slots from the work."""
        waiting = {pull.consumer for pull in self._pulls.values()} if is_busy else set[int]()
        found = [index for index, weight in enumerate(self._weights) if weight > 1 or index not in waiting]
        return [index for index in found if self._room(index) > 0] if self._caps else found

    def _ask(self, consumer: int, share: int, expiry: float, *, is_look: bool = False) -> None:
        """Open a pull; a look takes what is there and waits for nothing, and `expiry` is how long it may be silent."""
        self._count += 1
        token = str(self._count)
        ask: dict[str, int] = {"batch": share, **({"no_wait": True} if is_look else {"expires": int(expiry * 1e9)})}
        give_up_after = expiry
        if expiry > IDLE_HEARTBEAT_SECONDS * 2:
            ask["idle_heartbeat"] = int(IDLE_HEARTBEAT_SECONDS * 1e9)
            give_up_after = IDLE_HEARTBEAT_SECONDS * 2
        self._pulls[token] = OpenPull(consumer, share, share, time.monotonic() + give_up_after + 0.5, is_look)
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumers[consumer]}"
        try:
            self._bus.nc.post(subject, json.dumps(ask).encode(), f"{self._inbox}.{token}")
        except NatsError as error:
            self._pulls.pop(token, None)
            log.debug("could not pull from consumer %s on %s: %s", self._consumers[consumer], self._stream, error)

    def _on_message(self, message: Incoming) -> None:
        self._silence.since = 0.0
        status = message.headers.get("Status") if message.headers else None
        if status is None and not message.reply:
            return  # an echo
        if status is None or message.reply.startswith("$JS.ACK."):
            self._take(message)
            return
        pull = self._pulls.get(message.subject.rsplit(".", 1)[1])
        if pull is None:
            return
        if status == "100":
            pull.overdue = time.monotonic() + IDLE_HEARTBEAT_SECONDS * 2 + 0.5
            return
        self._finish(message.subject.rsplit(".", 1)[1], pull)
        if status != "503":
            self._wake.set()

    def _finish(self, token: str, pull: OpenPull) -> None:
        """A pull has ended: what it did not deliver is free again."""
        self._pulls.pop(token, None)
        self._weights[pull.consumer] = BUSY_WEIGHT if pull.open == 0 else 1

    def _take(self, message: Incoming) -> None:
        delivery = Delivery.of(message, self.keeper)
        consumer = self._consumers.index(delivery.consumer)
        self._deduct(consumer)
        if self._is_closing or len(self.running) >= self.slots or self._room(consumer) < 1:
            self._refuse(delivery, consumer)
        else:
            self._begin(delivery, consumer, self._run(delivery))

    def _refuse(self, delivery: Delivery, _consumer: int) -> None:
        returning = asyncio.get_running_loop().create_task(self._return_unread(delivery))
        self._returning.add(returning)
        returning.add_done_callback(self._returning.discard)

    def _begin(self, delivery: Delivery, consumer: int, handling: Coroutine[None, None, None]) -> asyncio.Task[None]:
        self._bus.clock.observe(delivery.time)
        self.keeper.keep(delivery.lease)
        task = asyncio.get_running_loop().create_task(handling)
        self.running.add(task)
        self._held[consumer] += 1
        task.add_done_callback(partial(self._freed, consumer, delivery))
        return task

    async def _return_unread(self, delivery: Delivery) -> None:
        try:
            await self._note_returned(delivery)
        finally:
            delivery.lease.hand_back()

    def _deduct(self, consumer: int) -> None:
        """One message less to come from the oldest open pull of this consumer."""
        for token, pull in self._pulls.items():
            if pull.consumer == consumer:
                pull.open -= 1
                if pull.open == 0:
                    self._finish(token, pull)
                return

    def _freed(self, consumer: int, delivery: Delivery, task: asyncio.Task[None]) -> None:
        self.running.discard(task)
        self._held[consumer] -= 1
        error = None if task.cancelled() else task.exception()
        failed = "%s #%d: handling it failed, it will be delivered again: %s"
        if isinstance(error, Retryable):
            log.warning(failed, delivery.subject, delivery.sequence, error)
        elif error is not None:  # a bug
            log.error(failed, delivery.subject, delivery.sequence, error, exc_info=error)
        self._wake.set()

    async def _run(self, delivery: Delivery) -> None:
        try:
            await self._handler(delivery)
        except asyncio.CancelledError:
            raise  # whoever cancels settles it
        except BaseException:
            delivery.lease.drop()  # kept alive without a handler, it would never come again
            raise

    async def _keep_asking(self) -> None:
        """Ask whenever slots become free; give up pulls that fell silent; turn the loop's own heartbeat."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCH_SECONDS):
                    await self._wake.wait()
                await asyncio.sleep(COALESCE_SECONDS)
            self._wake.clear()
            self.last_turn_at = time.monotonic()
            for token, pull in list(self._pulls.items()):
                if pull.overdue < self.last_turn_at:
                    self._finish(token, pull)
                    self._silence.missed()
            self._fill()

"""Delivers the callbacks of a team, at least once each: any supervisor that has the secret takes one and sends it.

The message is acknowledged after the receiver took the callback, so a supervisor that dies in between leaves it to be
sent again; the receiver knows it by its request id. What the receiver does not take is handed back with a delay that
doubles; what it refuses, or does not take for a day, is reported on `errors`.
"""

import asyncio
import logging
import secrets
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from muster_agent.calling.wire import NoReply
from muster_bus.broker.queues import ack_wait_of, callback_queue
from muster_bus.lease import Delivery
from muster_bus.log import RequestLog
from muster_bus.process.version import version
from muster_bus.pull import Pull
from muster_bus.receive import opened
from muster_bus.tracing.context import valid
from muster_protocol.calling.addresses import Target, may_be_called
from muster_protocol.calling.signing import REQUEST_ID, SIGNATURE, TIMESTAMP, signature
from muster_protocol.calling.tries import Delivered, GaveUp, TryLater, Verdict, next_try, verdict
from muster_protocol.errors import BrokerAway, Invalid
from muster_protocol.messages import Callback, CalledBack, ErrorReport
from muster_supervisor.calling.callbacks import Callbacks
from muster_supervisor.calling.content import content
from muster_supervisor.calling.post import post

log = logging.getLogger("muster.supervisor")

SLOTS = 16  # callbacks that are sent at once; a receiver that hangs holds one for twenty seconds
# At once, in threads of their own: a name server that hangs must not stop the broker's name from resolving.
LOOK_UPS = 4
LOOK_UP_SECONDS = 5.0
EVENT_SECONDS = 1.0  # for the event; it is news, the message is what counts
REPORT_SECONDS = 10.0  # for the report; without it the message comes again
KINDS = {Callback.kind: Callback}


class _Try(NamedTuple):
    """One try to deliver."""

    delivery: Delivery
    request_id: str
    host: str

    @property
    def number(self) -> int:
        return self.delivery.number


class Deliveries:
    """The callbacks that this supervisor sends."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self._bus = callbacks.bus
        self._pull: Pull | None = None
        self._tls = ssl.create_default_context()
        self._looking_up = ThreadPoolExecutor(LOOK_UPS, "callback-names")

    async def start(self) -> None:
        queue = callback_queue(self._callbacks.team.team)
        self._pull = Pull(self._bus, queue, SLOTS, await ack_wait_of(self._bus, queue), self._take)
        await self._pull.start()

    async def stop(self, grace_seconds: float) -> None:
        """Let what is being sent be sent, then hand it back."""
        if self._pull is None:
            return
        if running := await self._pull.close():
            _, late = await asyncio.wait(running, timeout=grace_seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._looking_up.shutdown(wait=False, cancel_futures=True)
        self._pull.stop()

    async def _take(self, delivery: Delivery) -> None:
        try:
            callback = (await opened(self._bus, delivery, KINDS)).body
        except Invalid:
            delivery.lease.ack()  # it was reported
            return
        try:
            target = self._callbacks.target(callback.callback_url)
        except Invalid as reason:
            one = _Try(delivery, callback.request_id, "")
            await self._settle(one, GaveUp(str(reason)))
            return
        one = _Try(delivery, callback.request_id, target.host)
        try:
            found = await self._send(one, target)
        except asyncio.CancelledError:
            delivery.lease.hand_back()
            raise
        await self._settle(one, found)

    async def _send(self, one: _Try, target: Target) -> Verdict:
        """One POST, to an address that was checked."""
        known = RequestLog(self._bus, one.request_id)
        await known.refresh(from_leader=True)
        if known.state.answer is None:
            return GaveUp("the log does not hold the answer any more")
        body = content(known.state.answer, self._callbacks.team.team, known.state.answered_at)
        try:
            addresses = await self._addresses(target)
            reply = await post(target, addresses, self._headers(one, body), body, self._tls)
        except Invalid as reason:
            return GaveUp(str(reason))
        except NoReply as reason:
            return TryLater(str(reason))
        return verdict(reply.status, reply.asked_seconds)

    async def _addresses(self, target: Target) -> list[str]:
        """What the host's name stands for now; Invalid if any of it may not be called."""
        look_up = partial(socket.getaddrinfo, target.host, target.port, type=socket.SOCK_STREAM)
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                found = await asyncio.get_running_loop().run_in_executor(self._looking_up, look_up)
        except TimeoutError:
            raise NoReply(f"its name was not resolved within {LOOK_UP_SECONDS:g} s") from None
        except (OSError, UnicodeError):
            raise NoReply("its name cannot be resolved") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        rules = self._callbacks.team.callbacks
        private = rules.private if rules is not None else ()
        if inside := [address for address in addresses if not may_be_called(address, private)]:
            text = f"{target.host} stands for {inside[0]}, which is not public; callbacks.private may allow its network"
            raise Invalid(text)
        return addresses

    def _headers(self, one: _Try, body: bytes) -> dict[str, str]:
        stamp = int(self._bus.clock.now())
        return {
            "Content-Type": "application/json",
            "User-Agent": f"muster/{version()}",
            REQUEST_ID: one.request_id,
            TIMESTAMP: str(stamp),
            SIGNATURE: signature(self._callbacks.secret, stamp, body),
            **valid(one.delivery.headers),
        }

    async def _settle(self, one: _Try, found: Verdict) -> None:
        """Acknowledge what was delivered or given up, and hand back the rest for later."""
        match found:
            case Delivered():
                log.info("✓ callback %s  delivered to %s at try %d", one.request_id, one.host, one.number)
                await self._note(one, "delivered")
                one.delivery.lease.ack()
            case TryLater(reason, seconds) if (delay := self._delay(one, seconds)) is not None:
                text = "… callback %s  to %s waits, tried again in %.0f s: %s"
                log.warning(text, one.request_id, one.host, delay, reason)
                await self._note(one, "waits", reason, delay)
                one.delivery.lease.hand_back(delay)
            case TryLater(reason) | GaveUp(reason):
                await self._give_up(one, reason)

    def _delay(self, one: _Try, asked_seconds: float) -> float | None:
        """Until the next try; None: the last one was."""
        rules = self._callbacks.team.callbacks
        delay = max(next_try(one.request_id, one.number), asked_seconds)
        waited = self._bus.clock.now() - one.delivery.time
        return None if rules is None or waited + delay > rules.give_up_after_seconds else delay

    async def _give_up(self, one: _Try, reason: str) -> None:
        """Report it, without an excerpt, which would hold the URL."""
        where = f" to {one.host}" if one.host else ""
        log.warning("✗ callback %s %s given up at try %d: %s", one.request_id, where, one.number, reason)
        report = ErrorReport(
            reason=f"callback{where} given up at try {one.number}: {reason}",
            subject=one.delivery.subject,
            stream=one.delivery.stream,
            sequence=one.delivery.sequence,
            request_id=one.request_id,
        )
        await self._bus.store(report, self._bus.origin(one.request_id), give_up_after=REPORT_SECONDS)
        await self._note(one, "given_up", reason)
        one.delivery.lease.ack()

    async def _note(self, one: _Try, outcome: str, reason: str = "", delay: float = 0.0) -> None:
        """Say what came of it, for `muster logs`."""
        event = CalledBack.of(
            {
                "request_id": one.request_id,
                "host": one.host,
                "outcome": outcome,
                "tries": one.number,
                "next_try_seconds": round(delay, 3),
                "reason": reason,
            }
        )
        origin = self._bus.origin(one.request_id, nonce=secrets.token_hex(4))
        try:
            await self._bus.store(event, origin, give_up_after=EVENT_SECONDS)
        except BrokerAway as error:
            log.debug("… callback %s  not noted: %s", one.request_id, error)

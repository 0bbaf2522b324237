"""Publish with bounded concurrency, and retry under the same message id until the broker says that it is stored.

nats-py's own `publish_async` hides refusals and leaks its slots, and `publish` costs a task per call; here one inbox
takes all acknowledgements and one sweep finds those that are overdue.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from nats.errors import ConnectionClosedError, MaxPayloadError, OutboundBufferLimitError
from pydantic_core import from_json

from muster_bus.broker.nats_fast import FastClient, Incoming
from muster_bus.broker.nats_repairs import ECHO
from muster_bus.broker.silence import Silence
from muster_protocol.errors import BrokerAway, Invalid, Terminal

log = logging.getLogger("muster.bus")

ACK_SECONDS = 2.0  # an acknowledgement takes a millisecond, an election five seconds: ask again meanwhile
SWEEP_SECONDS = 0.25
PAUSE_SECONDS = 0.1  # between two tries
MAX_IN_FLIGHT = 512
LATE_SECONDS = 5.0  # what waits longer than an acknowledgement or two is worth a line …
MISSED_SECONDS = 5.0  # what still waits is missed every two seconds
ECHO_SECONDS = 3.0  # an echo takes a millisecond, also where the machine is busy
QUIET_SECONDS = 30.0  # … and one line says it for all that wait

NOT_STORING = "the broker answers but stores nothing; its disk is probably full: make room there and restart it"
LOST_COMPARE_AND_SET = frozenset({10071, 10164})  # a cluster answers with either
REFUSED_FOR_NOW = frozenset({10077, 10158, 10047, 10008, 10023, 10049, 10074, 10122, 10167, 10195})


class CompareAndSetLost(Terminal):
    """A compare-and-set found another entry than it expected."""


class Stored(NamedTuple):
    """The broker's acknowledgement that a message is stored."""

    sequence: int
    is_duplicate: bool


class NoStream(BrokerAway):
    """No stream takes the subject: nobody provisioned it, or the broker is still starting."""


class _TryAgain(Exception):
    """This try failed; the next may not."""


class _NotTaken(_TryAgain):
    """The broker is there, but no stream took the message."""


Outgoing = tuple[str, bytes, dict[str, str]]  # subject, body, headers


class Publisher:
    """Stores messages in their streams."""

    def __init__(self, nc: FastClient, connected: asyncio.Event) -> None:
        self._nc = nc
        self._connected = connected
        self._waiting: dict[str, tuple[asyncio.Future[Stored], float]] = {}
        self._places = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._count = 0
        self._inbox = ""
        self._silence = Silence(nc, lambda: self._inbox)
        self._late_since = 0.0  # when the first was sent that is not acknowledged since the last that was
        self._late_at = 0.0  # when the last was missed
        self._sweeper: asyncio.TimerHandle | None = None
        self._logged_delay_at = -QUIET_SECONDS
        self.retries = 0

    @property
    def trouble(self) -> str:
        """Why nothing is stored though the broker is there; empty when things are stored."""
        now, silent_since = time.monotonic(), self._silence.since
        is_late = self._is_late(now) and now - self._late_since > LATE_SECONDS
        has_echo = silent_since == 0.0 or now - silent_since < ECHO_SECONDS
        return NOT_STORING if is_late and has_echo else ""

    def _is_late(self, now: float) -> bool:
        """Whether something waits in vain: what does is missed again and again."""
        return self._late_since > 0.0 and now - self._late_at < MISSED_SECONDS

    async def start(self) -> None:
        self._inbox = self._nc.new_inbox()
        await self._nc.listen(f"{self._inbox}.*", self._on_ack)
        self._sweep()

    async def store_all(self, messages: Sequence[Outgoing]) -> list[Stored]:
        """Store many at once: all are sent before the first acknowledgement is waited for, without a task each."""
        stored: list[Stored] = []
        for start in range(0, len(messages), MAX_IN_FLIGHT):
            chunk = messages[start : start + MAX_IN_FLIGHT]
            sent = [await self._send_if_connected(message) for message in chunk]
            try:
                for message, acked in zip(chunk, sent, strict=True):
                    stored.append(await self.confirm(message, acked))
            finally:
                for acked in sent:
                    _discard(acked)
        return stored

    def send(self, message: Outgoing) -> "asyncio.Future[Stored] | None":
        """Send a message without waiting; None while the broker is away. Its sender calls `confirm`."""
        return self._send(*message) if self._connected.is_set() else None

    async def confirm(self, message: Outgoing, acked: "asyncio.Future[Stored] | None") -> Stored:
        """Wait for the acknowledgement of what was sent; if there is none, store it as `store` does."""
        if acked is not None:
            try:
                return await acked
            except _TryAgain:
                self.retries += 1
        return await self.store(*message)

    async def _send_if_connected(self, message: Outgoing) -> "asyncio.Future[Stored] | None":
        if self._nc.is_full:
            await self._nc.make_room()
        return self.send(message)

    def _send(self, subject: str, body: bytes, headers: dict[str, str]) -> "asyncio.Future[Stored]":
        self._count += 1
        token = str(self._count)
        acked: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting[token] = (acked, time.monotonic() + ACK_SECONDS)
        try:
            self._nc.post(subject, body, f"{self._inbox}.{token}", headers)
        except MaxPayloadError:
            acked.set_exception(Invalid(f"{len(body)} bytes are more than the broker takes", subject))
        except OutboundBufferLimitError:
            acked.set_exception(_TryAgain("the broker is away and the buffer is full"))
        except ConnectionClosedError:
            acked.set_exception(BrokerAway("the connection is closed"))
        return acked

    async def store(
        self,
        subject: str,
        body: bytes,
        headers: dict[str, str],
        *,
        expected: int | None = None,
        give_up_after: float | None = None,
    ) -> Stored:
        """Store a message. Without `give_up_after` (seconds) it is tried until it is stored or refused for good."""
        if expected is not None:
            headers = {**headers, "Nats-Expected-Last-Subject-Sequence": str(expected)}
        began = time.monotonic()
        give_up = None if give_up_after is None else began + give_up_after
        while True:
            try:
                return await self._try_to_store(subject, body, headers, give_up)
            except _TryAgain as reason:
                self.retries += 1
                if give_up is not None and time.monotonic() > give_up:
                    failure = NoStream if isinstance(reason, _NotTaken) else BrokerAway
                    raise failure(f"{subject} was not stored within {give_up_after:g} s: {reason}") from None
                self._log_delay(subject, reason, began)
            await asyncio.sleep(PAUSE_SECONDS)

    def _log_delay(self, subject: str, reason: Exception, began: float) -> None:
        """Log once in a while that a publish waits: a full stream holds work up for as long as it is full."""
        now = time.monotonic()
        if now - began > LATE_SECONDS and now - self._logged_delay_at > QUIET_SECONDS:
            self._logged_delay_at = now
            log.warning("… %s  not stored for %.0f s: %s", subject, now - began, reason)

    async def _try_to_store(self, subject: str, body: bytes, headers: dict[str, str], give_up: float | None) -> Stored:
        """One try; its place is given up with it, so that what a full stream refuses blocks no other."""
        if not self._connected.is_set():
            await _until(self._connected.wait(), give_up, "the broker is away")
        if self._places.locked():
            await _until(self._places.acquire(), give_up, f"{MAX_IN_FLIGHT} others are being stored")
        else:
            await self._places.acquire()
        try:
            if self._nc.is_full:
                await _until(self._nc.make_room(), give_up, "the broker does not read what is sent")
            return await self._send(subject, body, headers)
        finally:
            self._places.release()

    def _on_ack(self, message: Incoming) -> None:
        self._silence.since = 0.0
        token = message.subject.rsplit(".", 1)[1]
        if token == ECHO:
            return
        self._late_since = 0.0  # also when it comes too late for its sender
        waiting = self._waiting.pop(token, None)
        if waiting is None or waiting[0].done():
            return
        verdict = _verdict(message)
        if isinstance(verdict, Stored):
            waiting[0].set_result(verdict)
        else:
            waiting[0].set_exception(verdict)

    def retry_all(self) -> None:
        """The connection is new: no acknowledgement of the old one will come."""
        self._late_since = 0.0
        for acked, _ in list(self._waiting.values()):
            if not acked.done():
                acked.set_exception(_TryAgain("the connection was lost"))

    def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for acked, _ in list(self._waiting.values()):
            if not acked.done():
                acked.set_exception(BrokerAway("the connection is closing"))

    def _sweep(self) -> None:
        now = time.monotonic()
        for token, (acked, overdue) in list(self._waiting.items()):
            if now > overdue and not acked.done():
                self._late_since = self._late_since if self._is_late(now) else overdue - ACK_SECONDS
                self._late_at = now
                acked.set_exception(_TryAgain(self.trouble or "no acknowledgement came"))
                self._silence.missed()
            if acked.done():  # given up, refused before it was sent, or its caller was cancelled
                self._waiting.pop(token, None)
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)


async def _until(waiting: Awaitable[object], give_up: float | None, reason: str) -> None:
    try:
        async with asyncio.timeout(None if give_up is None else max(0.0, give_up - time.monotonic())):
            await waiting
    except TimeoutError:
        raise _TryAgain(reason) from None


def _discard(acked: "asyncio.Future[Stored] | None") -> None:
    """Nobody waits for it any more, whatever it comes to."""
    if acked is not None and not acked.cancel() and not acked.cancelled():
        acked.exception()  # retrieved, or asyncio would log it as never retrieved


def _verdict(message: Incoming) -> Stored | Exception:
    """What the answer to a publish means."""
    if message.headers and message.headers.get("Status") == "503":
        return _NotTaken("no stream is bound to this subject")
    try:
        answer = from_json(message.data)
        error = answer.get("error")
        return Stored(answer["seq"], answer.get("duplicate", False)) if error is None else _refusal(error)
    except (ValueError, KeyError, AttributeError, TypeError):
        return _TryAgain("the reply is not an acknowledgement of a stream")


def _refusal(error: dict[str, object]) -> Exception:
    code = error.get("err_code")
    text = str(error.get("description", "refused"))
    if code in LOST_COMPARE_AND_SET:
        return CompareAndSetLost(text)
    if code in REFUSED_FOR_NOW or error.get("code") == 503:
        return _TryAgain(text)
    return Terminal(f"the broker refuses: {text} ({code})")

"""What the processes of a team have started at each provider of models: read when another has written, changed by
compare-and-set, and pushed to whoever asks that provider."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex
from typing import Any

from nats.aio.subscription import Subscription
from pydantic import ValidationError

from muster_bus.buckets.kv import DELETED
from muster_bus.connection import Bus, Incoming
from muster_bus.publish import CompareAndSetLost
from muster_protocol import headers as h
from muster_protocol.errors import MusterError
from muster_protocol.workers.rate_limits import EMPTY, RateRecord

BUCKET = "limits"
WRITE_SECONDS = 5.0
LOOK_SECONDS = 1.0
OnWritten = Callable[[RateRecord], None]


class LimitStore:
    """The record of one provider. It is read again only after somebody else has written it."""

    def __init__(self, bus: Bus, team: str, provider: str) -> None:
        self._bus = bus
        name = bus.sender.instance
        self._subject = f"$KV.{BUCKET}.{team}.{provider}"
        self.name = f"{name}-{token_hex(4)}"  # of this process: one that is started anew is another
        self._writes = self._pushes = 0
        self._record, self._revision = EMPTY, 0
        self._known_at = -1  # how many writes of others were pushed before that was read; -1: it is to be read
        self._on_written: OnWritten = _ignore
        self._subscription: Subscription | None = None

    @property
    def is_open(self) -> bool:
        return self._subscription is not None

    @property
    def is_away(self) -> bool:
        return not self._bus.connected.is_set()

    @property
    def now(self) -> float:
        return self._bus.clock.now()

    async def open(self, on_written: OnWritten) -> None:
        """From now on be told of what others write, also after the connection was lost for a while."""
        self._on_written = on_written
        self._subscription = await self._bus.subscribe(self._subject, self._on_message)
        self._bus.on_reconnect(self._look_again)
        await self._look_again()

    async def close(self) -> None:
        if self._subscription is not None:
            self._bus.forget_reconnect(self._look_again)
            await self._bus.unsubscribe(self._subscription)
            self._subscription = None

    async def read(self) -> RateRecord:
        """What is stored now, as far as this process can know."""
        if self._known_at != self._pushes:
            pushes = self._pushes
            stored = await self._bus.read(self._subject, from_leader=True)
            self._revision, self._record, self._known_at = 0, EMPTY, pushes
            for raw in stored:
                self._revision = raw.sequence
                self._record = EMPTY if DELETED in raw.headers else _read(raw.data)
        return self._record

    async def write(self, record: RateRecord) -> bool:
        """Write over what was read last; False when somebody was faster. A write whose acknowledgement was lost is
        known again by its id."""
        self._writes += 1
        headers = {
            "Nats-Expected-Last-Subject-Sequence": str(self._revision),
            h.MESSAGE_ID: f"{self._subject}.{self.name}.{self._writes}",
        }
        data = record.model_dump_json(exclude_defaults=True).encode()
        pushes, self._known_at = self._pushes, -1
        try:
            stored = await self._bus.store_raw(self._subject, data, headers, WRITE_SECONDS)
        except CompareAndSetLost:
            return False
        self._record, self._revision, self._known_at = record, stored.sequence, pushes
        return True

    async def _look_again(self) -> None:
        """What cannot be read for now is read before the next write; where no limit is set nobody waits for it."""
        self._known_at = -1
        with suppress(MusterError, TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                self._on_written(await self.read())

    def _on_message(self, message: Incoming) -> None:
        if not message.header(h.MESSAGE_ID).startswith(f"{self._subject}.{self.name}."):
            self._pushes += 1
            self._on_written(_read(message.data))


async def shown_limits(bus: Bus, now: float) -> list[dict[str, Any]]:
    """The providers that nobody asks for a while since one call was refused, of all teams."""
    prefix = f"$KV.{BUCKET}."
    try:
        stored = await bus.read(f"{prefix}>")
    except MusterError:
        return []  # provisioned by an older version
    found = {raw.subject.removeprefix(prefix): _read(raw.data) for raw in stored if DELETED not in raw.headers}
    return [
        {"provider": key, "held_for_seconds": round(record.held_until - now, 3)}
        for key, record in sorted(found.items())
        if record.held_until > now
    ]


def _ignore(_: RateRecord) -> None:
    """Nobody is told."""


def _read(data: bytes) -> RateRecord:
    """Nothing is known where it cannot be read: whoever starts something writes over it."""
    try:
        return RateRecord.model_validate_json(data)
    except ValidationError:
        return EMPTY

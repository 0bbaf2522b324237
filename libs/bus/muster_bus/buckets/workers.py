"""The registry of workers: each renews its card in a bucket, which forgets who falls silent."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress

from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from pydantic import ValidationError

from muster_bus.buckets.kv import DELETED, Bucket, Value
from muster_bus.connection import Bus, Incoming
from muster_bus.read_stream import Raw, timestamp
from muster_protocol.subjects import last_token
from muster_protocol.workers.card import WorkerCard
from muster_protocol.workers.signs import Signs

BUCKET = "workers"
TIME_SECONDS = 2.0


def registry(bus: Bus) -> Bucket:
    return Bucket(bus, BUCKET)


async def live_workers(bus: Bus) -> list[WorkerCard]:
    """In the order of their names."""
    return sorted((_card(value) for value in await registry(bus).all()), key=lambda card: card.name)


async def read_signs(bus: Bus) -> Signs:
    """The whole registry now, and which workers have left it lately."""
    asked, stored = await asyncio.gather(_broker_time(bus), bus.read(f"$KV.{BUCKET}.*"))
    cards = {card.name: card for raw in stored if DELETED not in raw.headers for card in (_card(_value(raw)),)}
    left = {last_token(raw.subject): raw.time for raw in stored if DELETED in raw.headers}
    return Signs(max([asked, *(raw.time for raw in stored)]), cards, left)


async def follow_workers(bus: Bus, on_renewal: Callable[[str], None]) -> Subscription:
    """Call with the name of each worker as it renews its card."""

    def on_message(message: Incoming) -> None:
        if DELETED not in (message.headers or {}):
            on_renewal(last_token(message.subject))

    return await bus.subscribe(f"$KV.{BUCKET}.*", on_message)


async def _broker_time(bus: Bus) -> float:
    """By the broker's own clock, since a silence of seconds is judged: that of this machine may be wrong."""
    with suppress(TimeoutError, NatsError, KeyError, ValueError):
        reply = await bus.nc.request(f"$JS.API.STREAM.INFO.KV_{BUCKET}", b"", timeout=TIME_SECONDS)
        return timestamp(json.loads(reply.data)["ts"])
    return bus.clock.now()


def _value(raw: Raw) -> Value:
    return Value(last_token(raw.subject), raw.data, raw.sequence, raw.time)


def _card(value: Value) -> WorkerCard:
    """Under the name that the broker knows; a worker whose card cannot be read is listed all the same."""
    try:
        card = WorkerCard.model_validate_json(value.data)
    except ValidationError:
        card = WorkerCard()
    return card.model_copy(update={"name": value.key, "renewed_at": value.time})

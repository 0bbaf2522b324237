"""The registry of workers: each renews its card in a bucket, which forgets who falls silent."""

from collections.abc import Callable

from nats.aio.subscription import Subscription
from pydantic import ValidationError

from muster_bus.buckets.kv import DELETED, Bucket, Value
from muster_bus.connection import Bus, Incoming
from muster_protocol.subjects import last_token
from muster_protocol.worker_card import WorkerCard

BUCKET = "workers"


def registry(bus: Bus) -> Bucket:
    return Bucket(bus, BUCKET)


async def live_workers(bus: Bus) -> list[WorkerCard]:
    """In the order of their names."""
    return sorted((_card(value) for value in await registry(bus).all()), key=lambda card: card.name)


async def follow_workers(bus: Bus, on_renewal: Callable[[str], None]) -> Subscription:
    """Call with the name of each worker as it renews its card."""

    def on_message(message: Incoming) -> None:
        if DELETED not in (message.headers or {}):
            on_renewal(last_token(message.subject))

    return await bus.subscribe(f"$KV.{BUCKET}.*", on_message)


def _card(value: Value) -> WorkerCard:
    """Under the name that the broker knows; a worker whose card cannot be read is listed all the same."""
    try:
        return WorkerCard.model_validate_json(value.data).model_copy(update={"name": value.key})
    except ValidationError:
        return WorkerCard(name=value.key)

"""Who is alive, as the workers write their cards; the bucket forgets who falls silent."""

from pydantic import ValidationError

from muster_bus.connection import Bus
from muster_bus.kv import Bucket, Value
from muster_protocol.worker_card import WorkerCard

BUCKET = "workers"


async def live_workers(bus: Bus) -> list[WorkerCard]:
    """In the order of their names."""
    return sorted((_card(value) for value in await Bucket(bus, BUCKET).all()), key=lambda card: card.name)


def _card(value: Value) -> WorkerCard:
    """Under the name that the broker knows; who writes what we cannot read is there all the same."""
    try:
        return WorkerCard.model_validate_json(value.data).model_copy(update={"name": value.key})
    except ValidationError:
        return WorkerCard(name=value.key)

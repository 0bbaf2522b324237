"""Which workers are alive, under the names that people see."""

from muster_bus.buckets import workers
from muster_bus.connection import Bus
from muster_cli.view.board import name_of
from muster_protocol.workers.card import WorkerCard


async def live_workers(bus: Bus) -> list[WorkerCard]:
    return [card.model_copy(update={"name": name_of(card.name)}) for card in await workers.live_workers(bus)]

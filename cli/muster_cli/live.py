"""Who is alive, as the workers register themselves."""

from pydantic import ValidationError

from muster_bus.connection import Bus
from muster_bus.kv import Bucket
from muster_protocol.plan import Frozen


class LiveWorker(Frozen):
    """A worker that gave a sign of life lately."""

    name: str = ""
    tags: tuple[str, ...] = ()
    slots: int = 0
    busy: int = 0


async def live_workers(bus: Bus) -> list[LiveWorker]:
    found: list[LiveWorker] = []
    for value in await Bucket(bus, "workers").all():
        try:
            worker = LiveWorker.model_validate_json(value.data)
        except ValidationError:
            continue  # of a version that we do not know: it cannot be shown
        found.append(worker.model_copy(update={"name": f"worker-{value.key}"}))
    return sorted(found, key=lambda worker: worker.name)


async def live_tags(bus: Bus) -> set[str]:
    return {tag for worker in await live_workers(bus) for tag in worker.tags}

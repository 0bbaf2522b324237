"""The services of `muster up`, started and stopped together: two in this process, the worker in its own."""

import asyncio
from collections.abc import Sequence

from muster_bus.process.service import Service, stop_within
from muster_cli.local.worker_process import WorkerProcess


class ServiceGroup:
    """Several services as one; each has its own connection."""

    def __init__(self, services: Sequence[Service], worker: WorkerProcess) -> None:
        self._services = services
        self._worker = worker
        self.bus = services[0].bus

    @property
    def last_turn_at(self) -> float:
        return min(service.last_turn_at for service in self._services)

    async def start(self) -> None:
        await self._worker.ready(self.bus)  # first: a role that cannot be imported is said before all else
        await asyncio.gather(*(service.start() for service in self._services))

    async def stop(self, grace_seconds: float) -> None:
        stops = [stop_within(service.stop(grace_seconds), grace_seconds, "a service") for service in self._services]
        await asyncio.gather(*stops, stop_within(self._worker.stop(), grace_seconds, "the worker"))
        await asyncio.gather(*(service.bus.close() for service in self._services[1:]))
